// Kernels that CUDA launches.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "engine/cuda/device.h"

namespace clinfer::cuda {

// A CUDA module with one kernel. Immutable, thread-safe.
class Kernel {
 public:
  // `ptx` is the binary that OpenCL returns for a program. Throws Failure{unsupported} with the
  // driver's log where CUDA cannot launch it, and Failure{out_of_memory, device_failed}.
  Kernel(std::shared_ptr<const Device> device, std::string ptx, const std::string& name);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  CUfunction function() const { return function_; }
  unsigned dynamic_shared() const { return dynamic_shared_; }  // bytes
  // Whether it may be launched before what it depends on is over (Ptx::begins_early).
  bool begins_early() const { return begins_early_; }

 private:
  const std::shared_ptr<const Device> device_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  unsigned dynamic_shared_ = 0;
  bool begins_early_ = false;
};

// One launch. `arguments` points to the arguments' values in the kernel's order; they are copied.
struct Launch {
  const Kernel* kernel = nullptr;
  std::array<unsigned, 3> groups{1, 1, 1}, local{1, 1, 1};
  void** arguments = nullptr;
};

}  // namespace clinfer::cuda
