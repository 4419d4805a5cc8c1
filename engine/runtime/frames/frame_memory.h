// Frames in host memory that the device reads without a copy.
#pragma once

#include "engine/engine.h"
#include "engine/ocl/device.h"

namespace clinfer {

// Returns whether the memory was allocated for this context's device.
bool fetches_from(const ocl::Context& context, const FrameMemory& memory);

// Throws Error{bad_argument} unless the device reads this memory and the frame lies in it.
void check_in_frame_memory(const ocl::Context& context, const FrameMemory& memory,
                           const Frame& frame);

}  // namespace clinfer
