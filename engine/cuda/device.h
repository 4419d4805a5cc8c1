// A device of CUDA: its primary context, which the process's other users of CUDA have, too.
#pragma once

#include <array>
#include <memory>
#include <new>

#include "engine/cuda/driver.h"

namespace clinfer::cuda {

// Thread-safe. Lives as long as the process: drivers do not expect a context to go while OpenCL still has
// memory of it.
class Device {
 public:
  using Uuid = std::array<unsigned char, 16>;

  // Gives the same object each time. Throws Failure{unsupported} where CUDA is missing or has no device of this identity, and
  // Error{device_failed}.
  static std::shared_ptr<const Device> find(const Uuid& uuid);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  CUdevice number() const { return number_; }
  CUcontext context() const { return context_; }

 private:
  Device(const Driver& driver, CUdevice number);

  const Driver& driver_;
  const CUdevice number_;
  CUcontext context_ = nullptr;
};

// Makes a device's context that of the calling thread, and then the former one again.
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
