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

// The memory of such an allocator that holds the whole buffer, or null. The buffer owns it.
const FrameMemory* frame_memory_of(GstBuffer* buffer);

// Returns whether the answer to an ALLOCATION query asks for no particular memory so far, so that
// ours may be proposed.
bool takes_any_memory(GstQuery* query);

// Adds an allocator to the answer, first in the list, where upstream elements look for it.
void propose_allocator(GstQuery* query, GstAllocator* allocator);

}  // namespace clinfer
