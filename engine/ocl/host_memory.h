// Host memory from which a device fetches frames and to which it writes results. It is pinned if
// the device has memory of its own, so that transfers run beside other work at the bus's full
// speed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/ocl/device.h"

namespace clinfer::ocl {

class HostMemory final : public FrameMemory {
 public:
  // Allocates uninitialised memory. Throws cl::Error, Error{out_of_memory}.
  HostMemory(const Context& context, const cl::CommandQueue& queue, size_t bytes);
  // Wraps memory that another interface of the device's driver pinned.
  HostMemory(const Context& context, std::shared_ptr<std::byte> pinned, size_t bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::byte* data() const override { return data_; }
  size_t bytes() const override { return bytes_; }
  // Returns whether this device's driver made the memory; a driver knows its memory in all of its
  // contexts.
  bool is_known_to(const Device& device) const { return platform_ == device.platform; }
  // Copies `bytes` bytes from `from` to data() + at, which it returns. Bypasses the caches if the
  // processor can, because the device reads the bytes next.
  const std::byte* write(size_t at, const void* from, size_t bytes) const;

 private:
  cl::Platform platform_;
  size_t bytes_;
  cl::CommandQueue queue_;
  cl::Buffer pinned_;
  std::shared_ptr<std::byte> plain_;  // set for a CPU device, and for memory of another interface
  std::byte* data_ = nullptr;
};

// A pool of blocks of one size, each of which is used again once only the pool holds it. One thread
// takes them; any thread may release them.
class HostMemoryPool {
 public:
  std::shared_ptr<HostMemory> take(const std::function<std::shared_ptr<HostMemory>()>& make);

 private:
  std::vector<std::shared_ptr<HostMemory>> blocks_;
};

// Allocates a network's memory on the device. With `data`, the memory gets these bytes and kernels
// only read it. On a CPU uses large pages where the system provides them on request: layers walk
// through more small pages than a core can map at a time. Throws cl::Error.
cl::Buffer make_memory(const Context& context, size_t bytes, const void* data = nullptr);

}  // namespace clinfer::ocl
