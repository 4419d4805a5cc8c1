// Memory of a device for OpenCL and, where inferences run as CUDA graphs, for CUDA as well.
#pragma once

#include <CL/opencl.hpp>
#include <memory>

#include "engine/cuda/memory.h"

namespace clinfer {

class DeviceNetwork;

struct DeviceMemory {
  // CUDA's memory and OpenCL's import of it, which `buffer` refers to; both outlive the buffer.
  // Null where the buffer is OpenCL's own.
  std::shared_ptr<const cuda::Memory> cuda = {};
  std::shared_ptr<const cl::Buffer> import = {};
  cl::Buffer buffer;
};

// Allocates memory for a network. With `data`, the memory gets these bytes and kernels only read
// it. Throws cl::Error and Error.
DeviceMemory make_memory(const DeviceNetwork& network, size_t bytes, const void* data = nullptr);

}  // namespace clinfer
