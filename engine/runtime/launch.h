// Binding the arguments of a KernelSpec to buffers, and enqueuing it.
#pragma once

#include <array>
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

// The arguments of a persistent kernel that stay; `buffers` are those that hold all tensors, `list`
// what it does, `barrier_counter` where its work-groups count themselves (ocl/persistent.h).
void bind_persistent(cl::Kernel& kernel, const std::array<cl::Buffer, 3>& buffers,
                     const cl::Buffer& list, const cl::Buffer& barrier_counter);

// The first `words` of the list, on so many work-groups of so many work-items, which count to `barriers_passed`
// before, and meet `times` times.
void enqueue_persistent(const cl::CommandQueue& queue, cl::Kernel& kernel, size_t words,
                        unsigned groups, size_t items, unsigned times, cl_uint& barriers_passed,
                        cl::Event* event = nullptr);

}  // namespace clinfer
