// A device of CUDA with its primary context, which all users of CUDA in the process share.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>

#include "engine/cuda/driver.h"
#include "engine/cuda/pinned_memory.h"

namespace clinfer::cuda {

// Thread-safe. Lives as long as the process, because drivers do not expect a context to be
// destroyed while OpenCL still holds memory of it.
class Device {
 public:
  using Uuid = std::array<unsigned char, 16>;

  // Returns the device of this identity, always as the same object. Throws Failure{unsupported}
  // where CUDA is missing or has no such device, and Error{device_failed}.
  static std::shared_ptr<const Device> find(const Uuid& uuid);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  CUdevice number() const { return number_; }
  CUcontext context() const { return context_; }
  // Returns pinned host memory, which can be copied from and to while other work runs. It is
  // uninitialised. Throws Failure{out_of_memory, device_failed}.
  std::shared_ptr<std::byte> pinned_memory(size_t bytes) const { return pinned_.take(bytes); }

 private:
  Device(const Driver& driver, CUdevice number);

  const Driver& driver_;
  const CUdevice number_;
  CUcontext context_ = nullptr;
  mutable PinnedMemory pinned_{*this};
};

// Makes a device's context the calling thread's current one, and restores the former one when
// destroyed.
class Current {
 public:
  explicit Current(const Device& device);
  Current(const Device& device, std::nothrow_t) noexcept;  // for destructors
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Device& device_;
};

}  // namespace clinfer::cuda
