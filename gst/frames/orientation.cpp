// Orientations by their names in GStreamer.
#include "gst/frames/orientation.h"

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

std::optional<GstVideoOrientationMethod> tagged_orientation(const GstTagList* tags) {
  GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_IDENTITY;
  if (!gst_video_orientation_from_tag(const_cast<GstTagList*>(tags), &method)) return std::nullopt;
  return method;
}

}  // namespace clinfer
