// Binds the arguments of a KernelSpec to buffers, and enqueues it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "engine/ocl/device.h"
#include "engine/ocl/device_pointer.h"
#include "engine/plan/cut.h"

namespace clinfer {

// Makes sub-buffers for kernels that take a part of a buffer as an argument, each part once. A
// kernel does not keep its arguments alive: the owner of the buffers keeps this object as long as
// they are used. Releases the parts in reverse order, because NVIDIA's driver (580.159) crashes
// where the older of two overlapping parts is released first. Thread-safe.
class SubBuffers {
 public:
  SubBuffers() = default;
  SubBuffers(const SubBuffers&) = delete;
  SubBuffers& operator=(const SubBuffers&) = delete;
  ~SubBuffers();

  // Returns the part of `whole` that begins at byte `origin`. Throws cl::Error.
  cl::Buffer part_of(const cl::Buffer& whole, size_t origin, size_t bytes);

 private:
  std::mutex mutex_;
  std::vector<cl::Buffer> parts_;
  // Indices of the parts, by the whole, the first byte and the number of bytes.
  std::map<std::tuple<cl_mem, size_t, size_t>, size_t> places_;
};

struct BoundBuffer {
  cl::Buffer buffer;
  int64_t offset = 0;   // from the start of the buffer to the tensor's first element, in bytes
  cl::Image2D image{};  // for arguments that are images, instead of the buffer and the offset
  SubBuffers* parts = nullptr;  // of the buffer; only custom layers need them
  // Memory of the application that kernels address by a pointer, instead of the buffer; may be null.
  std::shared_ptr<const ocl::DevicePointer> pointer{};
};

// Converts a byte offset into the value of the offset argument, which counts elements of the
// kernel's type.
cl_int element_offset(const Argument& argument, int64_t bytes);

// Sets all arguments of `kernel`; `find` gives the buffer of a tensor argument.
void bind_arguments(cl::Kernel& kernel, const KernelSpec& spec,
                    const std::function<BoundBuffer(const Argument&)>& find);

// Sets one tensor argument of a kernel that is otherwise bound: its offset and, if `buffer` is
// true, its buffer. `index` counts `arguments`.
void bind_argument(cl::Kernel& kernel, const std::vector<Argument>& arguments, size_t index,
                   const BoundBuffer& bound, bool buffer);

// Enqueues work-groups `first` to `first` + `count` - 1 of a launch that is cut.
void enqueue_part(const cl::CommandQueue& queue, const cl::Kernel& kernel, const KernelSpec& spec,
                  const Cut& cut, size_t first, size_t count, cl::Event* event = nullptr);

void enqueue(const cl::CommandQueue& queue, const cl::Kernel& kernel, const KernelSpec& spec,
             cl::Event* event = nullptr, const std::vector<cl::Event>* after = nullptr);

// Sets those arguments of a persistent kernel that are the same in every launch: the buffers that
// hold all tensors, its list of work, and its counters (ocl/compiler/persistent.h).
void bind_persistent(cl::Kernel& kernel, const std::array<cl::Buffer, 3>& buffers,
                     const cl::Buffer& list, const cl::Buffer& counters);

// Launches `groups` work-groups of one work-item, which execute the first `words` words of the list.
void enqueue_persistent(const cl::CommandQueue& queue, cl::Kernel& kernel, size_t words,
                        unsigned groups);

// Returns whether `groups` work-groups of a persistent kernel, which take work from each other, run
// at the same time. Waits for the queue; takes about a second if they do not.
bool groups_meet(const cl::CommandQueue& queue, cl::Kernel& kernel, const cl::Buffer& counters,
                 unsigned groups);

}  // namespace clinfer
