// clcrop: one buffer in, one out for each of its regions, or a gap.
#include "gst/crop/crop.h"

#include <gst/video/video.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/heads/labels.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/properties.h"
#include "gst/crop/cutter.h"
#include "gst/frames/mapped_frame.h"
#include "gst/meta/meta.h"

GST_DEBUG_CATEGORY_STATIC(clcrop_debug);
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
  CropSettings settings;  // under the object lock
  clinfer::LostProperties lost;
  GstVideoInfo info;
  GstVideoInfo sent;  // what the caps downstream say
};

}  // namespace

struct GstClcrop {
  GstElement parent;
  GstPad *sink, *src;
  CropState* state;
};

struct GstClcropClass {
  GstElementClass parent_class;
};

G_DEFINE_TYPE(GstClcrop, gst_clcrop, GST_TYPE_ELEMENT)

#define CLCROP(object) (reinterpret_cast<GstClcrop*>(object))

namespace {

using clinfer::Property;
using clinfer::Rect;

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE(CLINFER_INPUT_FORMATS)));
GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE(CLINFER_INPUT_FORMATS)));

const std::vector<Property<CropSettings>>& properties() {
  using clinfer::kControllable, clinfer::kPlaying, clinfer::number, clinfer::text;
  using S = CropSettings;
  static const std::vector<Property<S>> rows = {
      text<&S::object_class>("object-class", "Object class",
                             "Labels of the regions to give, comma separated (empty: all)",
                             kPlaying),
      number<&S::width>("width", "Width", "Scale regions to this width (0: as they are)", 0, 32768,
                        kPlaying),
      number<&S::height>("height", "Height", "Scale regions to this height (0: as they are)", 0,
                         32768, kPlaying),
      number<&S::margin>("margin", "Margin",
                         "Give so much more on each side, as a share of the region's size, where "
                         "the picture has it",
                         0, 10, kControllable)};
  return rows;
}

CropState& state_of(gpointer object) { return clinfer::state_of(CLCROP(object)->state); }

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  clinfer::guard(GST_ELEMENT(object), [&] {
    CropState& state = state_of(object);
    const clinfer::ObjectLock lock(object);
    state.lost.set(id, clinfer::property_of(properties(), id), state.settings, value);
  });
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  clinfer::guard(GST_ELEMENT(object), [&] {
    const CropState& state = state_of(object);
    const clinfer::ObjectLock lock(object);
    clinfer::property_of(properties(), id).get(state.settings, value);
  });
}

void finalize(GObject* object) {
  delete CLCROP(object)->state;
  G_OBJECT_CLASS(gst_clcrop_parent_class)->finalize(object);
}

CropSettings settings_of(GstClcrop* self) {
  const CropState& state = state_of(self);
  const clinfer::ObjectLock lock(self);
  return state.settings;
}

// Tells downstream of another size. Its frames come when there are regions: the rate is not known.
bool send_caps(GstClcrop* self, GstVideoInfo info) {
  CropState& state = state_of(self);
  GST_VIDEO_INFO_FPS_N(&info) = 0;
  GST_VIDEO_INFO_FPS_D(&info) = 1;
  if (gst_pad_has_current_caps(self->src) && gst_video_info_is_equal(&info, &state.sent))
    return true;
  const clinfer::Handle<GstCaps> caps(gst_video_info_to_caps(&info));
  if (!gst_pad_push_event(self->src, gst_event_new_caps(caps.get()))) return false;
  state.sent = info;
  return true;
}

// With the size of the first buffer where it is known, else that of the frame until then.
bool set_caps(GstClcrop* self, GstCaps* caps) {
  CropState& state = state_of(self);
  if (!clinfer::read_caps(caps, state.info)) return false;
  const CropSettings settings = settings_of(self);
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
    return set_caps(CLCROP(parent), caps);
  });
}

// Any size goes in, whatever size comes out: sizes of one pad say nothing about the other.
gboolean answer_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) return FALSE;  // buffers are not passed on
  if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS) return gst_pad_query_default(pad, parent, query);
  GstPad* other = pad == CLCROP(parent)->sink ? CLCROP(parent)->src : CLCROP(parent)->sink;
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

// Where the region lies in its frame, and what it is.
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
    clinfer::attach_object(buffer.get(), {0, 0, width, height}, inside);
  if (!send_caps(self, info)) return GST_FLOW_NOT_NEGOTIATED;
  return gst_pad_push(self->src, buffer.release());
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* given) {
  clinfer::Handle<GstBuffer> buffer(given);
  return clinfer::guard(GST_ELEMENT(parent), GST_FLOW_ERROR, [&]() -> GstFlowReturn {
    auto* self = CLCROP(parent);
    CropState& state = state_of(self);
    if (GST_VIDEO_INFO_FORMAT(&state.info) == GST_VIDEO_FORMAT_UNKNOWN)
      return GST_FLOW_NOT_NEGOTIATED;
    const CropSettings settings = settings_of(self);
    const Rect visible = clinfer::visible_part(GST_VIDEO_INFO_WIDTH(&state.info),
                                               GST_VIDEO_INFO_HEIGHT(&state.info), buffer.get());
    const std::vector<std::string> labels = clinfer::parse_labels(settings.object_class);
    auto regions = clinfer::read_regions(buffer.get(), visible.width, visible.height);
    std::erase_if(regions, [&](const auto& region) { return !clinfer::is_among(region, labels); });
    if (regions.empty()) {
      if (GST_BUFFER_PTS_IS_VALID(buffer.get()))
        gst_pad_push_event(self->src, gst_event_new_gap(GST_BUFFER_PTS(buffer.get()),
                                                        GST_BUFFER_DURATION(buffer.get())));
      return GST_FLOW_OK;
    }
    clinfer::check_meta(buffer.get(), state.info);
    GstVideoFrame frame;
    if (!gst_video_frame_map(&frame, &state.info, buffer.get(), GST_MAP_READ))
      throw clinfer::Error{clinfer::ErrorCode::bad_argument, "a frame cannot be mapped"};
    const std::unique_ptr<GstVideoFrame, void (*)(GstVideoFrame*)> owner(&frame,
                                                                         gst_video_frame_unmap);
    clinfer::check_frame_memory(frame, buffer.get());
    for (const clinfer::RegionView& region : regions)
      if (const GstFlowReturn flow =
              push_region(self, buffer.get(), frame, region, settings, visible);
          flow != GST_FLOW_OK)
        return flow;
    return GST_FLOW_OK;
  });
}

}  // namespace

static void gst_clcrop_class_init(GstClcropClass* klass) {
  GST_DEBUG_CATEGORY_INIT(clcrop_debug, "clcrop", 0, "regions as buffers");
  auto* object = G_OBJECT_CLASS(klass);
  auto* element = GST_ELEMENT_CLASS(klass);
  clinfer::register_result_meta();
  static const gchar* kTags[] = {nullptr};
  if (gst_meta_get_info(kCropMeta) == nullptr)
    gst_meta_register_custom(kCropMeta, kTags, nullptr, nullptr, nullptr);
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  clinfer::install_properties(object, properties());
  gst_element_class_set_static_metadata(
      element, "Region cropper", "Filter/Effect/Video",
      "Gives the regions of each frame as buffers of their own, at full resolution or scaled",
      "clinfer developers");
  gst_element_class_add_static_metadata(element, GST_ELEMENT_METADATA_DOC_URI,
                                        CLINFER_DOCS "crops.md");
  gst_element_class_add_static_pad_template(element, &sink_template);
  gst_element_class_add_static_pad_template(element, &src_template);
}

static void gst_clcrop_init(GstClcrop* self) {
  self->state = clinfer::make_state<CropState>();
  self->sink = gst_pad_new_from_static_template(&sink_template, "sink");
  gst_pad_set_chain_function(self->sink, chain);
  gst_pad_set_event_function(self->sink, sink_event);
  gst_pad_set_query_function(self->sink, answer_query);
  gst_element_add_pad(GST_ELEMENT(self), self->sink);
  self->src = gst_pad_new_from_static_template(&src_template, "src");
  gst_pad_set_query_function(self->src, answer_query);
  gst_element_add_pad(GST_ELEMENT(self), self->src);
}

static gboolean register_clcrop(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clcrop", gst_clcrop_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clcrop, register_clcrop)
