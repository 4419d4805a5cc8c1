// Binds kernel arguments and enqueues launches.
#include "engine/runtime/network/launch.h"

#include <limits>

#include "engine/ocl/compiler/persistent.h"

namespace clinfer {

cl_int element_offset(const Argument& argument, int64_t bytes) {
  const int64_t offset = bytes / static_cast<int64_t>(argument.unit);
  if (offset > std::numeric_limits<cl_int>::max() || offset < 0 ||
      bytes % static_cast<int64_t>(argument.unit) != 0)
    throw Error(ErrorCode::unsupported, "a tensor lies beyond what a kernel can address");
  return static_cast<cl_int>(offset);
}

SubBuffers::~SubBuffers() {
  while (!parts_.empty()) parts_.pop_back();
}

cl::Buffer SubBuffers::part_of(const cl::Buffer& whole, size_t origin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::tuple key(whole(), origin, bytes);
  if (const auto known = places_.find(key); known != places_.end()) return parts_[known->second];
  const cl_buffer_region region{origin, bytes};
  cl::Buffer from = whole;
  parts_.push_back(from.createSubBuffer(0, CL_BUFFER_CREATE_TYPE_REGION, &region));
  places_.emplace(key, parts_.size() - 1);
  return parts_.back();
}

static void set_memory(cl::Kernel& kernel, cl_uint number, const BoundBuffer& bound) {
  if (bound.pointer != nullptr)
    bound.pointer->set_argument(kernel, number);
  else
    kernel.setArg(number, bound.buffer);
}

void bind_argument(cl::Kernel& kernel, const std::vector<Argument>& arguments, size_t index,
                   const BoundBuffer& bound, bool buffer) {
  cl_uint number = 0;
  for (size_t i = 0; i < index; ++i)
    number += arguments[i].kind == Argument::Kind::value ||
                      arguments[i].kind == Argument::Kind::image || arguments[i].address_bytes
                  ? 1
                  : 2;
  if (buffer) set_memory(kernel, number, bound);
  kernel.setArg(number + 1, element_offset(arguments[index], bound.offset));
}

void bind_arguments(cl::Kernel& kernel, const KernelSpec& spec,
                    const std::function<BoundBuffer(const Argument&)>& find) {
  cl_uint index = 0;
  for (const Argument& argument : spec.arguments) {
    if (argument.kind == Argument::Kind::value) {
      kernel.setArg(index++, argument.bytes.size(), argument.bytes.data());
      continue;
    }
    const BoundBuffer bound = find(argument);
    if (argument.kind == Argument::Kind::image) {
      kernel.setArg(index++, bound.image);
      continue;
    }
    if (argument.address_bytes != 0) {
      kernel.setArg(index++, bound.parts->part_of(bound.buffer, static_cast<size_t>(bound.offset),
                                                  argument.address_bytes));
      continue;
    }
    set_memory(kernel, index++, bound);
    kernel.setArg(index++, element_offset(argument, bound.offset));
  }
}

void enqueue(const cl::CommandQueue& queue, const cl::Kernel& kernel, const KernelSpec& spec,
             cl::Event* event, const std::vector<cl::Event>* after) {
  queue.enqueueNDRangeKernel(
      kernel, cl::NullRange, cl::NDRange(spec.global[0], spec.global[1], spec.global[2]),
      cl::NDRange(spec.local[0], spec.local[1], spec.local[2]), after, event);
}

void enqueue_part(const cl::CommandQueue& queue, const cl::Kernel& kernel, const KernelSpec& spec,
                  const Cut& cut, size_t first, size_t count, cl::Event* event) {
  const auto range = [](const std::array<size_t, 3>& items) {
    return cl::NDRange(items[0], items[1], items[2]);
  };
  const Part part = part_of(spec, cut, first, count);
  queue.enqueueNDRangeKernel(kernel, range(part.offset), range(part.global), range(spec.local),
                             nullptr, event);
}

void bind_persistent(cl::Kernel& kernel, const std::array<cl::Buffer, 3>& buffers,
                     const cl::Buffer& list, const cl::Buffer& counters) {
  for (cl_uint i = 0; i < buffers.size(); ++i) kernel.setArg(i, buffers[i]);
  kernel.setArg(3, list);
  kernel.setArg(5, counters);
}

void enqueue_persistent(const cl::CommandQueue& queue, cl::Kernel& kernel, size_t words,
                        unsigned groups) {
  kernel.setArg(4, static_cast<cl_int>(words));
  queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(groups), cl::NDRange(1));
}

bool groups_meet(const cl::CommandQueue& queue, cl::Kernel& kernel, const cl::Buffer& counters,
                 unsigned groups) {
  // Other threads may occupy cores, so that one failure proves nothing.
  constexpr int kAttempts = 5;
  const std::vector<cl_uint> zeros(ocl::kMetCounter + 1);
  for (int i = 0; i < kAttempts; ++i) {
    kernel.setArg(4, cl_int{ocl::kMeet});
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(groups), cl::NDRange(1));
    cl_uint met = 0;
    queue.enqueueReadBuffer(counters, CL_TRUE, ocl::kMetCounter * sizeof met, sizeof met, &met);
    queue.enqueueWriteBuffer(counters, CL_TRUE, 0, zeros.size() * sizeof(cl_uint), zeros.data());
    if (met == groups) return true;
  }
  return false;
}

}  // namespace clinfer
