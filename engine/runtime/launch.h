// Binding the arguments of a KernelSpec to buffers, and enqueuing it.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/ocl/device.h"

namespace clinfer {

struct BoundBuffer {
  cl::Buffer buffer;
  int64_t offset = 0;   // bytes from the start of the buffer to the tensor's first element
  cl::Image2D image{};  // of an argument that is an image, instead of both
};

// Sets all arguments of `kernel`; `find` gives the buffer of a tensor argument.
void bind_arguments(cl::Kernel& kernel, const KernelSpec& spec,
                    const std::function<BoundBuffer(const Argument&)>& find);

void enqueue(const cl::CommandQueue& queue, const cl::Kernel& kernel, const KernelSpec& spec,
             cl::Event* event = nullptr, const std::vector<cl::Event>* after = nullptr);

}  // namespace clinfer
