// The memory that the element proposes upstream: a GstAllocator of host memory from which a device
// fetches frames without a copy.
#pragma once

#include <gst/gst.h>

#include <memory>

#include "engine/engine.h"

namespace clinfer {

// Returns an allocator for frames of `model`, of which it keeps no reference. If the model is gone,
// has no such memory, or much of it is in use, memories are plain system memory. The caller owns
// the reference. Thread-safe.
GstAllocator* new_frame_allocator(const std::shared_ptr<CompiledModel>& model);

// Returns the memory of such an allocator that holds the whole buffer, or null. The buffer owns it.
const FrameMemory* frame_memory_of(GstBuffer* buffer);

// Returns whether the answer to an ALLOCATION query asks for no particular memory so far, so that
// this one may be proposed.
bool takes_any_memory(GstQuery* query);

// Adds an allocator to the answer, first in the list, where upstream elements look for it.
void propose_allocator(GstQuery* query, GstAllocator* allocator);

}  // namespace clinfer
