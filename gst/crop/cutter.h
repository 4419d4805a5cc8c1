// Parts of a frame as frames of their own, in the same format: copied, or scaled to a wanted size.
#pragma once

#include <gst/video/video.h>

#include "gst/base/handle.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// The rectangle, inside `visible` and on whole samples of every plane, so that a copy of it is
// exact: it grows by at most a pixel to each side, where there is room.
Rect whole_samples(const Rect& rect, const Rect& visible, const GstVideoInfo& info);

// Copies `rect` of a mapped frame, which whole_samples() gave. width, height: wanted, in pixels; 0:
// those of `rect`. Makes `info` that of the result. Throws Error{bad_argument} for what cannot be
// scaled.
Handle<GstBuffer> cut(GstVideoFrame& frame, const Rect& rect, int width, int height,
                      GstVideoInfo& info);

// The format and colorimetry of `like` in another size.
GstVideoInfo resized(const GstVideoInfo& like, int width, int height);

}  // namespace clinfer
