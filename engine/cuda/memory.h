// Memory of CUDA: of the device, for OpenCL to import, and pinned memory of the host.
#pragma once

#include <cstddef>

#include "engine/cuda/device.h"

namespace clinfer::cuda {

// Memory of a device that a file descriptor hands to other interfaces of its driver.
class Memory {
 public:
  // The memory is not initialised. Throws Failure{out_of_memory, device_failed}.
  Memory(std::shared_ptr<const Device> device, size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return bytes_; }  // at least as many as wanted
  // The caller's to close.
  int export_descriptor() const;

 private:
  void release() noexcept;

  const std::shared_ptr<const Device> device_;
  size_t bytes_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  bool mapped_ = false;
};

// Pinned memory of the host, which copies pass to and from beside other work. Not initialised.
// Throws Failure{out_of_memory, device_failed}.
std::shared_ptr<std::byte> pinned_memory(std::shared_ptr<const Device> device, size_t bytes);

}  // namespace clinfer::cuda
