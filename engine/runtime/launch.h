// Binding the arguments of a KernelSpec to buffers, and enqueuing it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/ocl/device.h"
#include "engine/plan/cut.h"

namespace clinfer {

// The parts of buffers that kernels take as arguments of their own. A kernel does not keep its
// arguments alive: the owner of the buffers keeps this as long as they are used. Each part is made
// once, and they are released in the reverse order of their making: NVIDIA's driver (580.159)
// crashes where of two parts that overlap the older one is released first. Thread-safe.
class SubBuffers {
 public:
  SubBuffers() = default;
  SubBuffers(const SubBuffers&) = delete;
  SubBuffers& operator=(const SubBuffers&) = delete;
  ~SubBuffers();

  // Throws cl::Error.
  cl::Buffer part_of(const cl::Buffer& whole, size_t origin, size_t bytes);

 private:
  struct Part {
    cl_mem whole;
    size_t origin, bytes;
    cl::Buffer buffer;
  };

  std::mutex mutex_;
  std::vector<Part> parts_;
};

struct BoundBuffer {
  cl::Buffer buffer;
  int64_t offset = 0;           // bytes from the start of the buffer to the tensor's first element
  cl::Image2D image{};          // of an argument that is an image, instead of both
  SubBuffers* parts = nullptr;  // of the buffer; custom layers need them
};

// The value of an argument's offset, in elements of the kernel's type, for one in bytes.
cl_int element_offset(const Argument& argument, int64_t bytes);

// Sets all arguments of `kernel`; `find` gives the buffer of a tensor argument.
void bind_arguments(cl::Kernel& kernel, const KernelSpec& spec,
                    const std::function<BoundBuffer(const Argument&)>& find);

// Sets one tensor argument of an otherwise bound kernel: its buffer, where `buffer` says so, and its
// offset. `index` counts `arguments`.
void bind_argument(cl::Kernel& kernel, const std::vector<Argument>& arguments, size_t index,
                   const BoundBuffer& bound, bool buffer);

// The part of `count` work-groups from `first` on, of a launch that is cut.
void enqueue_part(const cl::CommandQueue& queue, const cl::Kernel& kernel, const KernelSpec& spec,
                  const Cut& cut, size_t first, size_t count, cl::Event* event = nullptr);

void enqueue(const cl::CommandQueue& queue, const cl::Kernel& kernel, const KernelSpec& spec,
             cl::Event* event = nullptr, const std::vector<cl::Event>* after = nullptr);

// Sets the arguments of a persistent kernel that are the same in every launch: the buffers that hold
// all tensors, its list of work, and its counters (ocl/persistent.h).
void bind_persistent(cl::Kernel& kernel, const std::array<cl::Buffer, 3>& buffers,
                     const cl::Buffer& list, const cl::Buffer& counters);

// Launches `groups` work-groups of `items` work-items, which execute the first `words` of the list
// and pass `barriers` grid-wide barriers. `barriers_passed`: the arrival counter before this launch,
// advanced to its value afterwards.
void enqueue_persistent(const cl::CommandQueue& queue, cl::Kernel& kernel, size_t words,
                        unsigned groups, size_t items, unsigned barriers, cl_uint& barriers_passed,
                        cl::Event* event = nullptr);

// Returns whether so many work-groups of a persistent kernel that take the work from each other run
// at the same time. Waits for the queue; about a second where they do not.
bool groups_meet(const cl::CommandQueue& queue, cl::Kernel& kernel, const cl::Buffer& counters,
                 unsigned groups);

}  // namespace clinfer
