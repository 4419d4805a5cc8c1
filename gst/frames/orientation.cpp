// Converts GStreamer's descriptions of orientations.
#include "gst/frames/orientation.h"

#include <cmath>

#include "gst/base/handle.h"

namespace clinfer {

Orientation orientation_of(GstVideoOrientationMethod method) {
  switch (method) {
    case GST_VIDEO_ORIENTATION_90R:
      return {true, true, false};
    case GST_VIDEO_ORIENTATION_180:
      return {false, true, true};
    case GST_VIDEO_ORIENTATION_90L:
      return {true, false, true};
    case GST_VIDEO_ORIENTATION_HORIZ:
      return {false, true, false};
    case GST_VIDEO_ORIENTATION_VERT:
      return {false, false, true};
    case GST_VIDEO_ORIENTATION_UL_LR:
      return {true, false, false};
    case GST_VIDEO_ORIENTATION_UR_LL:
      return {true, true, true};
    default:
      return {};
  }
}

// Converts a matrix (column by column) that moves points of the picture, whose y axis points up.
// Coordinates are relative to its centre, as in GStreamer's documentation and libgstgl, or go from
// 0 to 1, as in some elements; a turn about the centre then also has a translation.
std::optional<Orientation> orientation_of(const GstVideoAffineTransformationMeta& meta) {
  const float* m = meta.matrix;
  const auto is = [](float value, float wanted) { return std::fabs(value - wanted) < 1e-3f; };
  const bool is_transposed = is(m[0], 0) && is(m[5], 0);
  // Images of the x and y axes, with y pointing down.
  const float x = is_transposed ? -m[4] : m[0], y = is_transposed ? -m[1] : m[5];
  const bool is_turn =
      is(std::fabs(x), 1) && is(std::fabs(y), 1) && (is_transposed || (is(m[1], 0) && is(m[4], 0)));
  const bool about_middle =
      (is(m[12], 0) && is(m[13], 0)) ||
      (is(m[12], 0.5f - 0.5f * (m[0] + m[4])) && is(m[13], 0.5f - 0.5f * (m[1] + m[5])));
  if (!is_turn || !about_middle) return std::nullopt;
  return Orientation{is_transposed, x < 0, y < 0};
}

std::optional<GstVideoOrientationMethod> tagged_orientation(const GstTagList* tags) {
  GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_IDENTITY;
  if (!gst_video_orientation_from_tag(const_cast<GstTagList*>(tags), &method)) return std::nullopt;
  return method;
}

bool is_turned_upstream(GstPad* sink) {
  constexpr int kFarthest = 64;  // limit of elements and borders of bins
  Handle<GstPad> pad(static_cast<GstPad*>(gst_object_ref(sink)));
  for (int step = 0; step < kFarthest && pad; ++step) {
    Handle<GstPad> source(gst_pad_get_peer(pad.get()));
    if (!source) return false;
    if (GST_IS_GHOST_PAD(source.get())) {  // a bin: goes on with its last element
      source.reset(gst_ghost_pad_get_target(GST_GHOST_PAD(source.get())));
      if (!source) return false;
    }
    const Handle<GstObject> owner(gst_pad_get_parent(source.get()));
    if (owner && GST_IS_GHOST_PAD(owner.get())) {  // leaves the bin
      pad.reset(static_cast<GstPad*>(gst_object_ref(owner.get())));
      continue;
    }
    if (!owner || !GST_IS_ELEMENT(owner.get())) return false;
    if (GST_IS_VIDEO_DIRECTION(owner.get())) {
      GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_IDENTITY;
      g_object_get(owner.get(), "video-direction", &method, nullptr);
      if (method == GST_VIDEO_ORIENTATION_AUTO) return true;
    }
    GstElement* element = GST_ELEMENT(owner.get());
    pad.reset();
    GST_OBJECT_LOCK(element);
    if (element->numsinkpads == 1)
      pad.reset(static_cast<GstPad*>(gst_object_ref(element->sinkpads->data)));
    GST_OBJECT_UNLOCK(element);
  }
  return false;
}

}  // namespace clinfer
