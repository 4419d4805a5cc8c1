// Memory of requests: buffers that the host can map without a copy where it shares the memory.
#include "engine/runtime/request_memory.h"

#include "engine/ocl/host_memory.h"

namespace clinfer {

RequestMemory::RequestMemory(const ocl::Context& context, size_t bytes)
    : buffer(context.device.info.is_integrated
                 ? cl::Buffer(context.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes)
                 : ocl::make_memory(context, bytes)) {}

}  // namespace clinfer
