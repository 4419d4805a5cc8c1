// Kernels that CUDA launches.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/device.h"

namespace clinfer::cuda {

// A program with one kernel, compiled for the device by this driver.
struct Code {
  std::vector<unsigned char> binary;
  unsigned dynamic_shared = 0;  // bytes that each launch requests
  bool begins_early = false;    // whether it may begin before what it depends on is over (ptx.h)

  // The code as one block of bytes, for caches; nothing for bytes that pack() did not make.
  std::vector<unsigned char> pack() const;
  static std::optional<Code> unpack(const std::vector<unsigned char>& bytes);
};

// Compiles a program. `ptx` is the binary that OpenCL returns for it, `name` its kernel. Threads
// compile side by side, whereas the driver compiles modules that are loaded as PTX one after the
// other. Throws Failure{unsupported} with the driver's log where CUDA does not take it, and
// Failure{out_of_memory, device_failed}.
Code compile(const Device& device, std::string ptx, const std::string& name);

// A CUDA module with one kernel. Immutable, thread-safe.
class Kernel {
 public:
  // Throws Failure{unsupported} where the driver does not load the code, and
  // Failure{out_of_memory, device_failed}.
  Kernel(std::shared_ptr<const Device> device, const Code& code, const std::string& name);
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
  const unsigned dynamic_shared_;
  const bool begins_early_;
};

// One launch. `arguments` points to the arguments' values in the kernel's order; they are copied.
struct Launch {
  const Kernel* kernel = nullptr;
  std::array<unsigned, 3> groups{1, 1, 1}, local{1, 1, 1};
  void** arguments = nullptr;
};

}  // namespace clinfer::cuda
