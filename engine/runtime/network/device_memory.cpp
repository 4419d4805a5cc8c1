// Allocates memory that OpenCL and CUDA both can use.
#include "engine/runtime/network/device_memory.h"

#include <unistd.h>

#include "engine/ocl/host_memory.h"
#include "engine/runtime/network/device_network.h"

namespace clinfer {

DeviceMemory make_memory(const DeviceNetwork& network, size_t bytes, const void* data) {
  const ocl::Context& context = *network.context;
  if (network.cuda == nullptr) return {.buffer = ocl::make_memory(context, bytes, data)};
  auto memory = std::make_shared<cuda::Memory>(network.cuda, bytes);
  auto import = network.external->import_own(context, memory->export_descriptor(), memory->bytes());
  if (data != nullptr) {
    const cuda::Stream stream(network.cuda);
    stream.write(memory->address(), data, bytes);
    stream.finish();
  }
  return {memory, import, *import};
}

}  // namespace clinfer
