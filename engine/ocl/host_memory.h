// Host memory that a device fetches frames from and puts results into: pinned where the device has
// memory of its own, so that a transfer runs beside other work at the bus's full speed.
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
  // Allocates memory that is not initialised. Throws cl::Error, Error{out_of_memory}.
  HostMemory(const Context& context, const cl::CommandQueue& queue, size_t bytes);
  // Wraps memory that another interface of the device's driver pinned.
  HostMemory(const Context& context, std::shared_ptr<std::byte> pinned, size_t bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::byte* data() const override { return data_; }
  size_t bytes() const override { return bytes_; }
  // Returns whether the driver of this device made the memory: it knows its memory in all of its
  // contexts.
  bool is_known_to(const Device& device) const { return platform_ == device.platform; }
  // Copies `bytes` from `from` to data() + at, which it returns; past the caches where the
  // processor can, since it is the device that reads them next.
  const std::byte* write(size_t at, const void* from, size_t bytes) const;

 private:
  cl::Platform platform_;
  size_t bytes_;
  cl::CommandQueue queue_;
  cl::Buffer pinned_;
  std::shared_ptr<std::byte> plain_;  // of a CPU device, or of another interface
  std::byte* data_ = nullptr;
};

// Blocks of one size that are reused once only the pool holds them. One thread takes them, any
// thread may release them.
class HostMemoryPool {
 public:
  std::shared_ptr<HostMemory> take(const std::function<std::shared_ptr<HostMemory>()>& make);

 private:
  std::vector<std::shared_ptr<HostMemory>> blocks_;
};

// Memory of a network on the device; with `data`, what kernels only read. On a CPU it lies in large pages where the
// system gives them to who asks: layers walk through more small pages than a core remembers. Throws cl::Error.
cl::Buffer make_memory(const Context& context, size_t bytes, const void* data = nullptr);

}  // namespace clinfer::ocl
