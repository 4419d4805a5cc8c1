// Import of DMA-BUFs as OpenCL buffers.
#include "engine/ocl/dmabuf.h"

#include <CL/cl_ext.h>
#include <fcntl.h>
#include <unistd.h>

namespace clinfer::ocl {

ExternalMemory::ExternalMemory(cl::Context context, int fd, size_t bytes)
    : context_(std::move(context)), fd_(fcntl(fd, F_DUPFD_CLOEXEC, 0)), bytes_(bytes) {
  if (fd_ < 0) throw Error(ErrorCode::bad_argument, "a frame's DMA-BUF is not open");
}

ExternalMemory::ExternalMemory(cl::Context context, const cl::Buffer& buffer)
    : context_(std::move(context)),
      fd_(-1),
      bytes_(buffer.getInfo<CL_MEM_SIZE>()),
      buffer_(buffer) {}

ExternalMemory::~ExternalMemory() {
  buffer_ = {};
  if (fd_ >= 0) close(fd_);
}

void ExternalMemory::drop() {
  uses_.close([&] { buffer_ = {}; });
}

DmabufSharing::DmabufSharing(const Device& device) {
  const std::string list = device.device.getInfo<CL_DEVICE_EXTENSIONS>();
  for (const char* extension : {"cl_khr_external_memory", "cl_khr_external_memory_dma_buf"})
    if (!has_extension(list, extension)) {
      problem_ = device.info.name + " does not offer " + extension;
      return;
    }
  functions_.acquire_name = "clEnqueueAcquireExternalMemObjectsKHR";
  functions_.release_name = "clEnqueueReleaseExternalMemObjectsKHR";
  functions_.acquire = extension_function<AcquireReleaseFunctions::Enqueue>(
      device.platform, functions_.acquire_name);
  functions_.release = extension_function<AcquireReleaseFunctions::Enqueue>(
      device.platform, functions_.release_name);
  if (functions_.acquire == nullptr || functions_.release == nullptr)
    problem_ = "the OpenCL driver names cl_khr_external_memory but lacks functions of it";
}

std::shared_ptr<ExternalMemory> DmabufSharing::import(const cl::Context& context, int fd,
                                                      size_t bytes) const {
  auto memory = std::make_shared<ExternalMemory>(context, fd, bytes);
  const cl_mem_properties properties[] = {CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
                                          static_cast<cl_mem_properties>(memory->fd_), 0};
  cl_int status = CL_SUCCESS;
  const cl_mem buffer = clCreateBufferWithProperties(context(), properties, CL_MEM_READ_ONLY, bytes,
                                                     nullptr, &status);
  if (buffer == nullptr || status != CL_SUCCESS)
    throw Error(ErrorCode::device_failed, "a DMA-BUF of " + std::to_string(bytes) +
                                              " bytes cannot be shared with OpenCL (" +
                                              error_name(status) + ")");
  memory->buffer_ = cl::Buffer(buffer);
  return memory;
}

// One within the other: each memory has uses of its own to wait for. The queue is in order, so that
// the innermost event represents all.
void DmabufSharing::with_acquired(const cl::CommandQueue& queue,
                                  std::span<ExternalMemory* const> memories,
                                  const AcquireRelease::Use& use) const {
  const auto use_with_others = [&](const cl::Event& acquired) {
    if (memories.size() == 1) return use(acquired);
    cl::Event used;
    with_acquired(queue, memories.subspan(1),
                  [&](const cl::Event& all) { return used = use(all); });
    return used;
  };
  const cl_mem object = memories.front()->buffer_();
  const bool external = memories.front()->fd_ >= 0;
  memories.front()->uses_.with_acquired(external ? functions_ : AcquireReleaseFunctions{}, queue,
                                        {&object, 1}, use_with_others);
}

}  // namespace clinfer::ocl
