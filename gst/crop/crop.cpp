// Implements clcrop: for each buffer, sends one for each of its regions, or a gap.
#include "gst/crop/crop.h"

#include <gst/video/video.h>

#include <algorithm>
#include <cmath>

#include "engine/heads/files/labels.h"
#include "gst/base/element_class.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/base/unreadable_frame.h"
#include "gst/base/video_mapping.h"
#include "gst/crop/cutter.h"
#include "gst/frames/mapped_frame.h"
#include "gst/meta/meta.h"
#include "gst/meta/notice.h"

#define GST_CAT_DEFAULT clcrop_debug

namespace {

constexpr char kCropMeta[] = "ClinferCrop";

struct CropSettings {
  unsigned width = 0, height = 0;
  double margin = 0;
  std::string object_class;
};

struct CropState {
  CropState() {
    gst_video_info_init(&info);
    gst_video_info_init(&sent);
  }
  // Members that the object lock guards:
  CropSettings settings;
  clinfer::LostProperties lost;
  GstVideoInfo info;
  GstVideoInfo sent;  // the caps that downstream has
  clinfer::UnreadableFrames unreadable;
  clinfer::RoiNotice roi_notice;
};

}  // namespace

struct GstClcrop : clinfer::Instance<GstElement, CropState> {
  GstPad *sink, *src;
};

using GstClcropClass = GstElementClass;

G_DEFINE_TYPE(GstClcrop, gst_clcrop, GST_TYPE_ELEMENT)

namespace {

using clinfer::Property;
using clinfer::Rect;

constexpr const char* kCaps = GST_VIDEO_CAPS_MAKE(CLINFER_VIDEO_FORMATS);

const std::vector<Property<CropSettings>>& properties() {
  using clinfer::kControllable, clinfer::kPlaying, clinfer::number, clinfer::text;
  using S = CropSettings;
  static const auto& rows = *new std::vector<Property<S>>{
      text<&S::object_class>("object-class", "Object class",
                             "Labels of the regions to output, comma separated (empty: all)",
                             kPlaying),
      number<&S::width>("width", "Width", "Scale regions to this width (0: as they are)", 0, 32768,
                        kPlaying),
      number<&S::height>("height", "Height", "Scale regions to this height (0: as they are)", 0,
                         32768, kPlaying),
      number<&S::margin>(
          "margin", "Margin",
          "Extra space on each side, as a share of the region's size, up to the edge "
          "of the picture",
          0, 10, kControllable)};
  return rows;
}

using Class = clinfer::ElementClass<GstClcrop, properties>;

// Sends caps of another size downstream. They state no frame rate, because frames come when there
// are regions.
bool send_caps(GstClcrop* self, GstVideoInfo info) {
  CropState& state = Class::state(self);
  GST_VIDEO_INFO_FPS_N(&info) = 0;
  GST_VIDEO_INFO_FPS_D(&info) = 1;
  if (gst_pad_has_current_caps(self->src) && gst_video_info_is_equal(&info, &state.sent))
    return true;
  const clinfer::Handle<GstCaps> caps(gst_video_info_to_caps(&info));
  if (!gst_pad_push_event(self->src, gst_event_new_caps(caps.get()))) return false;
  state.sent = info;
  return true;
}

// Sends caps with the size of the first region if it is known, and until then with that of the
// frame.
bool set_caps(GstClcrop* self, GstCaps* caps) {
  CropState& state = Class::state(self);
  if (!clinfer::read_caps(caps, state.info)) return false;
  const CropSettings settings = Class::settings(self);
  const auto wanted = [](unsigned size, int otherwise) {
    return size != 0 ? static_cast<int>(size) : otherwise;
  };
  return send_caps(
      self, clinfer::resized(state.info, wanted(settings.width, GST_VIDEO_INFO_WIDTH(&state.info)),
                             wanted(settings.height, GST_VIDEO_INFO_HEIGHT(&state.info))));
}

gboolean sink_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return gst_pad_event_default(pad, parent, event);
  const clinfer::Handle<GstEvent> owner(event);
  return clinfer::guard(GST_ELEMENT(parent), FALSE, [&]() -> gboolean {
    GstCaps* caps = nullptr;
    gst_event_parse_caps(event, &caps);
    return set_caps(reinterpret_cast<GstClcrop*>(parent), caps);
  });
}

// Answers queries of caps: the sizes of the two pads do not depend on each other.
gboolean answer_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) return FALSE;  // buffers are not passed on
  if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS) return gst_pad_query_default(pad, parent, query);
  auto* self = reinterpret_cast<GstClcrop*>(parent);
  GstPad* other = pad == self->sink ? self->src : self->sink;
  clinfer::Handle<GstCaps> caps(gst_pad_get_pad_template_caps(pad));
  if (GstCaps* peer = gst_pad_peer_query_caps(other, nullptr)) {
    peer = gst_caps_make_writable(peer);
    for (guint i = 0; i < gst_caps_get_size(peer); ++i)
      gst_structure_remove_fields(gst_caps_get_structure(peer, i), "width", "height", "framerate",
                                  "pixel-aspect-ratio", nullptr);
    caps.reset(gst_caps_intersect_full(peer, caps.get(), GST_CAPS_INTERSECT_FIRST));
    gst_caps_unref(peer);
  }
  GstCaps* filter = nullptr;
  gst_query_parse_caps(query, &filter);
  if (filter != nullptr)
    caps.reset(gst_caps_intersect_full(filter, caps.get(), GST_CAPS_INTERSECT_FIRST));
  gst_query_set_caps_result(query, caps.get());
  return TRUE;
}

// Adds a meta with the region's place in its frame, its label and confidence.
void describe(GstBuffer* buffer, const clinfer::RegionView& region, const Rect& rect,
              const Rect& visible) {
  GstStructure* s = gst_custom_meta_get_structure(gst_buffer_add_custom_meta(buffer, kCropMeta));
  gst_structure_set(s, "x", G_TYPE_INT, rect.x - visible.x, "y", G_TYPE_INT, rect.y - visible.y,
                    "width", G_TYPE_INT, rect.width, "height", G_TYPE_INT, rect.height,
                    "frame-width", G_TYPE_INT, visible.width, "frame-height", G_TYPE_INT,
                    visible.height, "region-id", G_TYPE_INT, region.id, "label", G_TYPE_STRING,
                    region.label.c_str(), "confidence", G_TYPE_DOUBLE, region.confidence, nullptr);
  if (region.track_id) gst_structure_set(s, "id", G_TYPE_UINT64, *region.track_id, nullptr);
}

// Sends a gap, so that downstream's time advances without a region.
void push_gap(GstClcrop* self, GstBuffer* buffer) {
  if (GST_BUFFER_PTS_IS_VALID(buffer))
    gst_pad_push_event(self->src,
                       gst_event_new_gap(GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer)));
}

GstFlowReturn push_region(GstClcrop* self, GstBuffer* from, GstVideoFrame& frame,
                          const clinfer::RegionView& region, const CropSettings& settings,
                          const Rect& visible) {
  const auto more = [&](int size) { return static_cast<int>(std::lround(settings.margin * size)); };
  const int x = more(region.width), y = more(region.height);
  const Rect wanted{visible.x + region.x - x, visible.y + region.y - y, region.width + 2 * x,
                    region.height + 2 * y};
  const Rect rect = clinfer::whole_samples(wanted, visible, frame.info);
  GstVideoInfo info;
  clinfer::Handle<GstBuffer> buffer = clinfer::cut(frame, rect, static_cast<int>(settings.width),
                                                   static_cast<int>(settings.height), info);
  gst_buffer_copy_into(buffer.get(), from,
                       static_cast<GstBufferCopyFlags>(GST_BUFFER_COPY_TIMESTAMPS), 0, -1);
  describe(buffer.get(), region, rect, visible);
  clinfer::RegionView inside = region;
  const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_HEIGHT(&info);
  if (clinfer::move_region(inside, clinfer::between(visible, rect), width, height))
    clinfer::attach_objects(buffer.get(), {0, 0, width, height}, {inside});
  if (!send_caps(self, info)) return GST_FLOW_NOT_NEGOTIATED;
  return gst_pad_push(self->src, buffer.release());
}

GstFlowReturn push_regions(GstClcrop* self, GstBuffer* buffer) {
  CropState& state = Class::state(self);
  const CropSettings settings = Class::settings(self);
  const Rect visible = clinfer::visible_part(GST_VIDEO_INFO_WIDTH(&state.info),
                                             GST_VIDEO_INFO_HEIGHT(&state.info), buffer);
  const std::vector<std::string> labels = clinfer::parse_labels(settings.object_class);
  clinfer::FrameView view = clinfer::read_frame(buffer, visible.width, visible.height);
  state.roi_notice.look(GST_ELEMENT(self), view);
  std::vector<clinfer::RegionView>& regions = view.regions;
  std::erase_if(regions, [&](const auto& region) { return !clinfer::is_among(region, labels); });
  if (regions.empty()) {
    push_gap(self, buffer);
    return GST_FLOW_OK;
  }
  clinfer::check_meta(buffer, state.info);
  clinfer::VideoMapping mapping(buffer, state.info, GST_MAP_READ, "a frame cannot be mapped");
  GstVideoFrame& frame = *mapping.frame();
  clinfer::check_frame_memory(frame, buffer);
  state.unreadable.count_readable();
  for (const clinfer::RegionView& region : regions)
    if (const GstFlowReturn flow = push_region(self, buffer, frame, region, settings, visible);
        flow != GST_FLOW_OK)
      return flow;
  return GST_FLOW_OK;
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* given) {
  clinfer::Handle<GstBuffer> buffer(given);
  return clinfer::guard(GST_ELEMENT(parent), GST_FLOW_ERROR, [&]() -> GstFlowReturn {
    auto* self = reinterpret_cast<GstClcrop*>(parent);
    CropState& state = Class::state(self);
    if (GST_VIDEO_INFO_FORMAT(&state.info) == GST_VIDEO_FORMAT_UNKNOWN)
      return GST_FLOW_NOT_NEGOTIATED;
    if (const clinfer::Handle<GstEvent> event{
            gst_pad_get_sticky_event(self->sink, GST_EVENT_SEGMENT, 0)}) {
      const GstSegment* segment = nullptr;
      gst_event_parse_segment(event.get(), &segment);
      clinfer::sync_controllers(GST_ELEMENT(self), *segment, buffer.get());
    }
    try {
      return push_regions(self, buffer.get());
    } catch (const clinfer::UnreadableFrame& frame) {
      state.unreadable.lose(GST_ELEMENT(self), frame);
      push_gap(self, buffer.get());
      return GST_FLOW_OK;
    }
  });
}

}  // namespace

static void gst_clcrop_class_init(GstClcropClass* klass) {
  clinfer::register_result_meta();
  static const gchar* kTags[] = {nullptr};
  if (gst_meta_get_info(kCropMeta) == nullptr)
    gst_meta_register_custom(kCropMeta, kTags, nullptr, nullptr, nullptr);
  Class::set_up(
      klass,
      {"Region cropper", "Filter/Effect/Video",
       "Outputs the regions of each frame as buffers of their own, at full resolution or scaled",
       CLINFER_DOCS "crops.md", kCaps, kCaps});
}

static void gst_clcrop_init(GstClcrop* self) {
  Class::make_state(self);
  self->sink = clinfer::new_pad(GST_ELEMENT(self), "sink");
  gst_pad_set_chain_function(self->sink, chain);
  gst_pad_set_event_function(self->sink, sink_event);
  gst_pad_set_query_function(self->sink, answer_query);
  gst_element_add_pad(GST_ELEMENT(self), self->sink);
  self->src = clinfer::new_pad(GST_ELEMENT(self), "src");
  gst_pad_set_query_function(self->src, answer_query);
  gst_element_add_pad(GST_ELEMENT(self), self->src);
}

static gboolean register_clcrop(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clcrop", gst_clcrop_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clcrop, register_clcrop)
