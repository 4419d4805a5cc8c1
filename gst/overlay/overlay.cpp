// Implements cloverlay, a transform in place. Frames with nothing to draw pass untouched; a shared
// one is copied only if something is drawn into it.
#include "gst/overlay/overlay.h"

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <algorithm>
#include <optional>

#include "engine/heads/files/labels.h"
#include "gst/base/element_class.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/base/transforms.h"
#include "gst/base/unreadable_frame.h"
#include "gst/base/video_mapping.h"
#include "gst/frames/mapped_frame.h"
#include "gst/frames/va_surface.h"
#include "gst/meta/meta.h"
#include "gst/meta/notice.h"
#include "gst/overlay/drawing.h"
#include "gst/overlay/privacy.h"

#define GST_CAT_DEFAULT cloverlay_debug

namespace {

struct OverlayState {
  OverlayState() { gst_video_info_init(&info); }
  // Members that the object lock guards:
  clinfer::DrawingStyle settings;
  clinfer::LostProperties lost;
  GstVideoInfo info;
  clinfer::TextCache text;
  clinfer::Palette palette;
  clinfer::Trails trails;
  // The results on the buffer between prepare_output_buffer and transform_ip.
  clinfer::FrameView frame;
  std::vector<clinfer::PictureBox> hidden;  // in addition to objects
  bool draws = false;
  clinfer::HiddenParts hidden_parts;
  clinfer::UnreadableFrames unreadable;
  clinfer::RoiNotice roi_notice;
};

}  // namespace

using GstCloverlay = clinfer::Instance<GstBaseTransform, OverlayState>;
using GstCloverlayClass = GstBaseTransformClass;

G_DEFINE_TYPE(GstCloverlay, gst_cloverlay, GST_TYPE_BASE_TRANSFORM)

namespace {

using clinfer::DrawingStyle;
using clinfer::Property;

constexpr const char* kCaps = CLINFER_SURFACE_CAPS CLINFER_MAPPED_CAPS;

const std::vector<Property<DrawingStyle>>& properties() {
  using clinfer::ColorBy, clinfer::Privacy;
  using clinfer::flag, clinfer::kControllable, clinfer::kPlaying, clinfer::number;
  using S = DrawingStyle;
  static const auto& rows = *new std::vector<Property<S>>{
      number<&S::line_width>("line-width", "Line width",
                             "Width of lines in pixels (0: chosen by the height of the frame)", 0,
                             1000, kControllable),
      number<&S::font_size>("font-size", "Font size",
                            "Size of the text in pixels (0: chosen by the height of the frame)", 0,
                            1000, kControllable),
      flag<&S::show_boxes>("show-boxes", "Show boxes", "Draw a box around each object",
                           kControllable),
      flag<&S::show_labels>("show-labels", "Show labels", "Write the label beside each box",
                            kControllable),
      flag<&S::show_scores>("show-scores", "Show scores", "Write the confidence beside each box",
                            kControllable),
      flag<&S::show_masks>("show-masks", "Show masks",
                           "Colour the pixels of objects and of segmentation and depth maps",
                           kControllable),
      number<&S::mask_opacity>("mask-opacity", "Mask opacity",
                               "How much masks and maps cover the picture (0: not at all, 1: all)",
                               0, 1, kControllable),
      flag<&S::show_points>("show-points", "Show points",
                            "Draw key points with their skeletons, and landmarks", kControllable),
      flag<&S::show_zones>("show-zones", "Show zones",
                           "Draw the lines and zones of clzones with their counts", kControllable),
      clinfer::choice<&S::color_by>(
          "color-by", "Colour by", "Whether each label or each track has a colour of its own",
          "GstCloverlayColorBy",
          {{ColorBy::label, "Each label", "label"},
           {ColorBy::track, "Each track; objects without one go by their label", "track"}},
          kPlaying),
      number<&S::trail_length>("trail-length", "Trail length",
                               "Draw the places of tracks on this many past frames (0: no trails)",
                               0, 10000, kControllable),
      clinfer::choice<&S::privacy>(
          "privacy", "Privacy",
          "How to hide the content of the boxes. On frames without inference, "
          "the last boxes and their surroundings are hidden, or the whole "
          "picture if they are unknown or a second old",
          "GstCloverlayPrivacy",
          {{Privacy::none, "Hide nothing", "none"},
           {Privacy::blur, "Blur", "blur"},
           {Privacy::fill, "Fill with black", "fill"}},
          kPlaying),
      clinfer::text<&S::privacy_labels>(
          "privacy-labels", "Privacy labels",
          "Labels of the objects to hide, comma separated (empty: all)", kPlaying)};
  return rows;
}

using Class = clinfer::ElementClass<GstCloverlay, properties>;

gboolean start(GstBaseTransform* transform) {
  return clinfer::guard(GST_ELEMENT(transform), FALSE, [&]() -> gboolean {
    Class::settings(transform);  // throws if a property could not be set
    return TRUE;
  });
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  return clinfer::read_caps(in, Class::state(transform).info);
}

GstFlowReturn prepare_output_buffer(GstBaseTransform* transform, GstBuffer* in, GstBuffer** out) {
  return clinfer::guard(GST_ELEMENT(transform), GST_FLOW_ERROR, [&] {
    OverlayState& state = Class::state(transform);
    clinfer::sync_controllers(GST_ELEMENT(transform), transform->segment, in);
    int width = GST_VIDEO_INFO_WIDTH(&state.info), height = GST_VIDEO_INFO_HEIGHT(&state.info);
    if (const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(in)) {
      width = static_cast<int>(crop->width);
      height = static_cast<int>(crop->height);
    }
    state.frame = clinfer::read_frame(in, width, height);
    state.roi_notice.look(GST_ELEMENT(transform), state.frame);
    const DrawingStyle style = Class::settings(transform);
    std::optional<uint64_t> time;
    if (GST_BUFFER_PTS_IS_VALID(in)) time = GST_BUFFER_PTS(in);
    // Updates hidden parts in any case, because hiding may be switched on at a frame that is not
    // inferred.
    state.hidden =
        state.hidden_parts.update(state.frame, clinfer::parse_labels(style.privacy_labels), time);
    if (style.privacy == clinfer::Privacy::none) state.hidden.clear();
    state.draws = clinfer::has_drawing(state.frame) || !state.hidden.empty();
    *out = !state.draws || gst_buffer_is_writable(in) ? in : gst_buffer_copy(in);
    return GST_FLOW_OK;
  });
}

void draw(OverlayState& state, const DrawingStyle& style, GstBuffer* buffer) {
  clinfer::check_meta(buffer, state.info);
  constexpr auto kFlags = static_cast<GstMapFlags>(
      GST_MAP_READWRITE | static_cast<int>(GST_VIDEO_FRAME_MAP_FLAG_NO_REF));
  clinfer::VideoMapping mapping(buffer, state.info, kFlags, "a frame cannot be mapped for drawing");
  GstVideoFrame& frame = *mapping.frame();
  clinfer::check_frame_memory(frame, buffer);
  const clinfer::Rect visible =
      clinfer::visible_part(GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame), buffer);
  clinfer::Canvas canvas(&frame, visible.x, visible.y, visible.width, visible.height);
  for (const clinfer::PictureBox& part : state.hidden)
    clinfer::hide_part(canvas, part, style.privacy);
  clinfer::draw_results(canvas, state.frame, style, state.text, state.palette, state.trails);
}

GstFlowReturn transform_ip(GstBaseTransform* transform, GstBuffer* buffer) {
  return clinfer::guard(GST_ELEMENT(transform), GST_FLOW_ERROR, [&] {
    OverlayState& state = Class::state(transform);
    const DrawingStyle style = Class::settings(transform);
    if (!state.draws) {
      state.trails.add({}, style.trail_length);
      return GST_FLOW_OK;
    }
    try {
      draw(state, style, buffer);
      state.unreadable.count_readable();
    } catch (const clinfer::UnreadableFrame& frame) {
      state.unreadable.lose(GST_ELEMENT(transform), frame);
      // Drops the frame: another element may still read it, and must not see the parts that are to
      // be hidden.
      if (style.privacy != clinfer::Privacy::none) return GST_BASE_TRANSFORM_FLOW_DROPPED;
    }
    return GST_FLOW_OK;
  });
}

}  // namespace

static void gst_cloverlay_class_init(GstCloverlayClass* klass) {
  auto* transform = GST_BASE_TRANSFORM_CLASS(klass);
  clinfer::register_result_meta();
  Class::set_up(klass, {"Inference result overlay", "Filter/Editor/Video",
                        "Draws detected objects, their labels and scores into the frames",
                        CLINFER_DOCS "drawing.md", kCaps, kCaps});
  transform->start = start;
  transform->set_caps = set_caps;
  clinfer::make_no_buffers(transform);
  transform->prepare_output_buffer = prepare_output_buffer;
  transform->transform_ip = transform_ip;
}

static void gst_cloverlay_init(GstCloverlay* self) {
  Class::make_state(self);
  gst_base_transform_set_in_place(GST_BASE_TRANSFORM(self), TRUE);
}

static gboolean register_cloverlay(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "cloverlay", gst_cloverlay_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(cloverlay, register_cloverlay)
