// The common base of elements that copy frames from system memory into other memory.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

namespace clinfer {

// GstBaseTransformClass::transform_caps: the same pictures, in memory of `feature` at the source.
inline GstCaps* upload_caps(GstPadDirection direction, GstCaps* caps, GstCaps* filter,
                            const char* feature) {
  GstCaps* result = gst_caps_copy(caps);
  gst_caps_set_features_simple(
      result, direction == GST_PAD_SINK ? gst_caps_features_from_string(feature) : nullptr);
  if (filter == nullptr) return result;
  GstCaps* both = gst_caps_intersect_full(filter, result, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref(result);
  return both;
}

inline gboolean unit_size(GstBaseTransform*, GstCaps* caps, gsize* size) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) return FALSE;
  *size = GST_VIDEO_INFO_SIZE(&info);
  return TRUE;
}

inline gboolean transform_size(GstBaseTransform* transform, GstPadDirection, GstCaps*, gsize,
                               GstCaps* caps, gsize* size) {
  return unit_size(transform, caps, size);
}

// Behind pictures of this size, so that both sides become multiples of `step`.
inline GstVideoAlignment padding_to(guint step, const GstVideoInfo& info) {
  GstVideoAlignment alignment;
  gst_video_alignment_reset(&alignment);
  const auto missing = [&](int length) {
    return (step - static_cast<guint>(length) % step) % step;
  };
  alignment.padding_right = missing(GST_VIDEO_INFO_WIDTH(&info));
  alignment.padding_bottom = missing(GST_VIDEO_INFO_HEIGHT(&info));
  return alignment;
}

}  // namespace clinfer
