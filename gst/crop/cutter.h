// Copies parts of a frame, in the same format, and scales them if wanted.
#pragma once

#include <gst/video/video.h>

#include "gst/base/handle.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// Returns the rectangle extended to whole samples of every plane, inside `visible`, so that a copy
// of it is exact. It grows by at most a pixel to each side, where there is room.
Rect whole_samples(const Rect& rect, const Rect& visible, const GstVideoInfo& info);

// Copies `rect`, which whole_samples() returned, from a mapped frame. `width`, `height`: the wanted
// size in pixels; 0: that of `rect`. Sets `info` for the result. Throws Error{bad_argument} for
// formats that cannot be scaled.
Handle<GstBuffer> cut(GstVideoFrame& frame, const Rect& rect, int width, int height,
                      GstVideoInfo& info);

// Returns the format and colorimetry of `like` with another size.
GstVideoInfo resized(const GstVideoInfo& like, int width, int height);

}  // namespace clinfer
