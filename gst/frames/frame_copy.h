// Copies of frames in system memory, for what outlives the frame or must not hold memory of a pool.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "gst/frames/frame_input.h"

namespace clinfer {

// Copies the picture of a buffer, with its crop, so that it can be given to requests of `model`.
// Throws UnreadableFrame, and Error if there is no memory or the frame cannot be mapped.
std::shared_ptr<FrameInput> copied_input(GstBuffer* buffer, const GstVideoInfo& info,
                                         const CompiledModel& model);

}  // namespace clinfer
