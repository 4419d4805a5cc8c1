// Allocates device memory by CUDA that OpenCL can import.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/cuda/device.h"

namespace clinfer::cuda {

// Device memory that a file descriptor can hand to other interfaces of the same driver.
class Memory {
 public:
  // Leaves the memory uninitialised. Throws Failure{out_of_memory, device_failed}.
  Memory(std::shared_ptr<const Device> device, size_t bytes);
  // Memory that another context exported, of so many bytes. The descriptor stays the caller's.
  // Throws Failure{out_of_memory, device_failed}, also where it is none that the driver imports.
  Memory(std::shared_ptr<const Device> device, int descriptor, size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return bytes_; }  // at least as many as were requested
  // Returns a new descriptor, which the caller has to close.
  int export_descriptor() const;

 private:
  // Maps the memory that `obtain` gives a handle of, of the device and with these properties.
  void map(size_t bytes, const std::function<void(const CUmemAllocationProp&)>& obtain);
  void release() noexcept;

  const std::shared_ptr<const Device> device_;
  size_t bytes_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  bool mapped_ = false;
};

}  // namespace clinfer::cuda
