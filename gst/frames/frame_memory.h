// The memory that the element proposes upstream: a GstAllocator of host memory that a device
// fetches frames from, so that they reach it without a copy.
#pragma once

#include <gst/gst.h>

#include <memory>

#include "engine/engine.h"

namespace clinfer {

// Makes memories for frames of `model`, which it does not keep. Where that is gone, has none, or
// much is in use already, they are of plain system memory. The caller's reference. Thread-safe.
GstAllocator* new_frame_allocator(const std::shared_ptr<CompiledModel>& model);

// What all of a buffer lies in, where that is one memory of such an allocator; else null. The
// buffer's.
const FrameMemory* frame_memory_of(GstBuffer* buffer);

// Whether an ALLOCATION query's answer so far asks for no particular memory: frames may lie in
// ours.
bool takes_any_memory(GstQuery* query);

// Puts an allocator into the answer, in the place that upstream elements look at.
void propose_allocator(GstQuery* query, GstAllocator* allocator);

}  // namespace clinfer
