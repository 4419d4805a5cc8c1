// Memory of a device, for OpenCL and, where graphs of CUDA run there, for these as well.
#pragma once

#include <CL/opencl.hpp>
#include <memory>

#include "engine/cuda/memory.h"

namespace clinfer {

class DeviceNetwork;

struct DeviceMemory {
  // The memory that the buffer is by an import; null: the buffer is OpenCL's own. Both outlive the
  // buffer.
  std::shared_ptr<const cuda::Memory> cuda = {};
  std::shared_ptr<const cl::Buffer> import = {};
  cl::Buffer buffer;
};

// Memory for a network; with `data`, what kernels only read. Throws cl::Error, Error.
DeviceMemory make_memory(const DeviceNetwork& network, size_t bytes, const void* data = nullptr);

}  // namespace clinfer
