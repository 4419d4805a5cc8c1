// Allocates memory of requests, which the host can map without a copy where it shares memory with
// the device.
#include "engine/runtime/run/request_memory.h"

namespace clinfer {

RequestMemory::RequestMemory(const DeviceNetwork& network, size_t bytes)
    : all(network.context->device.info.is_integrated
              ? DeviceMemory{.buffer = cl::Buffer(network.context->context,
                                                  CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes)}
              : make_memory(network, bytes)) {}

RequestMemory::~RequestMemory() {
  for (auto& [plan, taken] : kernels)
    for (std::vector<cl::Kernel>& launches : taken.steps)
      for (cl::Kernel& kernel : launches) try {
          taken.programs->give_back(std::move(kernel));
        } catch (const std::exception&) {
          // Without memory for the list of idle kernels, this one is released here.
        }
}

}  // namespace clinfer
