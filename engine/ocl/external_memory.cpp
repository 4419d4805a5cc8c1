// Imports memory of other APIs as OpenCL buffers.
#include "engine/ocl/external_memory.h"

#include <CL/cl_ext.h>
#include <fcntl.h>
#include <unistd.h>

namespace clinfer::ocl {
namespace {

// OpenCL's names for a kind of handle.
struct Handle {
  MemoryHandle kind;
  const char* extension;
  cl_mem_properties property;
  const char* name;  // for messages
};
constexpr Handle kHandles[] = {{MemoryHandle::dmabuf, "cl_khr_external_memory_dma_buf",
                                CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, "a DMA-BUF"},
                               {MemoryHandle::opaque, "cl_khr_external_memory_opaque_fd",
                                CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, "exported memory"}};

// Values that take the place of a descriptor.
constexpr int kApplications = -1;  // a buffer of the application, without a descriptor
constexpr int kGiven = -2;         // the driver owns the descriptor

}  // namespace

ExternalMemory::ExternalMemory(cl::Context context, int fd, size_t bytes)
    : context_(std::move(context)), fd_(fcntl(fd, F_DUPFD_CLOEXEC, 0)), bytes_(bytes) {
  if (fd_ < 0)
    throw Error(ErrorCode::bad_argument, "the descriptor of a frame's memory is not open");
}

ExternalMemory::ExternalMemory(cl::Context context, const cl::Buffer& buffer)
    : context_(std::move(context)),
      fd_(kApplications),
      bytes_(buffer.getInfo<CL_MEM_SIZE>()),
      buffer_(buffer) {}

ExternalMemory::~ExternalMemory() {
  buffer_ = {};
  if (fd_ >= 0) close(fd_);
}

void ExternalMemory::drop() {
  uses_.close([&] { buffer_ = {}; });
  address_ = 0;
  owner_.reset();
  const std::lock_guard lock(mutex_);
  other_uses_.clear();
}

void ExternalMemory::wait() {
  uses_.wait();
  std::map<const void*, std::function<void()>> others;
  {
    const std::lock_guard lock(mutex_);
    others.swap(other_uses_);
  }
  for (const auto& [stream, until_over] : others) until_over();
}

void ExternalMemory::share(uint64_t address, std::shared_ptr<const void> owner) {
  address_ = address;
  owner_ = std::move(owner);
}

void ExternalMemory::note_use(const void* of, std::function<void()> until_over) {
  const std::lock_guard lock(mutex_);
  other_uses_[of] = std::move(until_over);
}

MemorySharing::MemorySharing(const Device& device) {
  const std::string list = device.device.getInfo<CL_DEVICE_EXTENSIONS>();
  for (const Handle& handle : kHandles) {
    std::string& problem = problems_[static_cast<size_t>(handle.kind)];
    for (const char* extension : {"cl_khr_external_memory", handle.extension})
      if (problem.empty() && !has_extension(list, extension))
        problem = device.info.name + " does not offer " + extension;
  }
  functions_.acquire_name = "clEnqueueAcquireExternalMemObjectsKHR";
  functions_.release_name = "clEnqueueReleaseExternalMemObjectsKHR";
  functions_.acquire = extension_function<AcquireReleaseFunctions::Enqueue>(
      device.platform, functions_.acquire_name);
  functions_.release = extension_function<AcquireReleaseFunctions::Enqueue>(
      device.platform, functions_.release_name);
  if (functions_.acquire != nullptr && functions_.release != nullptr) return;
  for (std::string& problem : problems_)
    if (problem.empty())
      problem = "the OpenCL driver names cl_khr_external_memory but lacks functions of it";
}

std::shared_ptr<ExternalMemory> MemorySharing::import(const cl::Context& context, MemoryHandle kind,
                                                      int fd, size_t bytes) const {
  const Handle& handle = kHandles[static_cast<size_t>(kind)];
  auto memory = std::make_shared<ExternalMemory>(context, fd, bytes);
  const cl_mem_properties properties[] = {handle.property,
                                          static_cast<cl_mem_properties>(memory->fd_), 0};
  cl_int status = CL_SUCCESS;
  const cl_mem buffer = clCreateBufferWithProperties(context(), properties, CL_MEM_READ_ONLY, bytes,
                                                     nullptr, &status);
  if (buffer == nullptr || status != CL_SUCCESS)
    throw Error(ErrorCode::device_failed,
                std::string(handle.name) + " of " + std::to_string(bytes) +
                    " bytes cannot be shared with OpenCL (" + error_name(status) + ")");
  memory->buffer_ = cl::Buffer(buffer);
  // The driver takes over the descriptor of an opaque handle, and closes it.
  if (kind == MemoryHandle::opaque) memory->fd_ = kGiven;
  return memory;
}

std::shared_ptr<const cl::Buffer> MemorySharing::import_own(const Context& context, int fd,
                                                            size_t bytes) const {
  const cl_mem_properties properties[] = {CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
                                          static_cast<cl_mem_properties>(fd), 0};
  cl_int status = CL_SUCCESS;
  const cl_mem made = clCreateBufferWithProperties(context.context(), properties, CL_MEM_READ_WRITE,
                                                   bytes, nullptr, &status);
  if (made == nullptr || status != CL_SUCCESS) {
    close(fd);
    throw cl::Error(status, "clCreateBufferWithProperties");
  }
  auto buffer = std::make_unique<cl::Buffer>(made);
  const cl::CommandQueue queue(context.context, context.device.device);
  status = functions_.acquire(queue(), 1, &made, 0, nullptr, nullptr);
  if (status != CL_SUCCESS) throw cl::Error(status, functions_.acquire_name);
  queue.finish();
  const auto release = [queue, function = functions_.release](const cl::Buffer* held) {
    const std::unique_ptr<const cl::Buffer> owner(held);
    const cl_mem object = (*held)();
    function(queue(), 1, &object, 0, nullptr, nullptr);
    clFinish(queue());
  };
  return {buffer.release(), release};
}

// Acquires the memories one within the other, because each has uses of its own to wait for. The
// queue is in order, so the innermost event stands for all.
void MemorySharing::with_acquired(const cl::CommandQueue& queue,
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
  const bool external = memories.front()->fd_ != kApplications;
  memories.front()->uses_.with_acquired(external ? functions_ : AcquireReleaseFunctions{}, queue,
                                        {&object, 1}, use_with_others);
}

}  // namespace clinfer::ocl
