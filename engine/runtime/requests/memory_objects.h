// Checks memory that applications give: type, context, size and pixels.
#pragma once

#include <CL/opencl.hpp>
#include <string>

#include "engine/runtime/network/launch.h"

namespace clinfer {

// Throws Error{bad_argument} unless `memory` has this type and belongs to the context. `what` names
// it in the message.
void check_memory_object(const ocl::Context& context, const cl::Memory& memory,
                         cl_mem_object_type type, const std::string& what);

// Throws Error{bad_argument} unless the buffer holds the dense tensor from `offset` on.
void check_range(const cl::Buffer& buffer, size_t offset, const TensorDesc& desc,
                 const std::string& what);

// Throws Error{bad_argument} unless `bytes` bytes at `data` hold the dense tensor. Returns how many
// it takes.
size_t check_range(const void* data, size_t bytes, const TensorDesc& desc, const std::string& what);

// Returns how kernels address `bytes` bytes of SVM or USM from `data` on: by the pointer, or by a
// buffer. Throws what the constructor of DevicePointer throws, and Error{bad_argument} if a driver
// that makes the buffer says that the bytes are no SVM of the context.
BoundBuffer pointed_memory(const ocl::Context& context, ocl::DevicePointer::Kind kind, void* data,
                           size_t bytes, const std::string& what);

size_t components_of(cl_channel_order order);  // 0 for an order that is not supported

// Returns whether the channels of an image have this element type.
bool image_holds(cl_channel_type channel, ElementType type);

}  // namespace clinfer
