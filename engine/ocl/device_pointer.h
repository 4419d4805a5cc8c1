// Memory that applications address by a pointer: shared virtual memory (SVM) of OpenCL 2.0, and
// unified shared memory (USM) of cl_intel_unified_shared_memory. Kernels take the pointer itself.
#pragma once

#include <CL/opencl.hpp>
#include <memory>
#include <string>

#include "engine/ocl/device.h"

namespace clinfer::ocl {

// Immutable. The application owns the memory.
class DevicePointer {
 public:
  enum class Kind { svm, usm };

  // `bytes`: how many the application has there. `what` names the memory in messages. Throws
  // Error{unsupported} if the device lacks such memory, and what check() throws.
  DevicePointer(const Context& context, Kind kind, void* data, size_t bytes, std::string what);

  // Throws Error{bad_argument} unless the pointer is to memory of this context, of at least that
  // size: as far as the driver tells. It tells nothing of SVM.
  void check() const;
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Makes it an argument of the kernel. Throws cl::Error.
  void set_argument(cl::Kernel& kernel, cl_uint number) const;
  // Enqueues a copy from host memory and waits for it. Throws cl::Error.
  void write(const cl::CommandQueue& queue, const void* from, size_t bytes) const;

 private:
  struct UsmFunctions;

  const cl::Context context_;
  const cl::Device device_;
  const std::string device_name_;
  std::byte* const data_;
  const size_t bytes_;
  const std::string what_;
  std::shared_ptr<const UsmFunctions> usm_;  // null: it is SVM
};

}  // namespace clinfer::ocl
