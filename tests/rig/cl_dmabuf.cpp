// The part of the OpenCL layer that adds cl_khr_external_memory with its handle types dma_buf and
// opaque_fd, for descriptors of any memory that can be mapped. As NVIDIA's driver does, a buffer takes an
// opaque descriptor over and closes it in the end; that of a DMA-BUF stays the importer's. A buffer is a shadow of it, filled when acquired and made rubbish when
// released, on the device, in order, by a native kernel; every use is checked.
#include <CL/cl_ext.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "tests/rig/cl_layer.h"

namespace rig {
namespace {

// The memory behind a descriptor as a buffer.
struct External {
  ~External() {
    if (data != nullptr) munmap(data, shadow.size());
    if (taken_over) close(fd);
  }
  // The descriptor that was imported is still open, and still the same.
  bool alive() const {
    struct stat now {};
    return fstat(fd, &now) == 0 && now.st_ino == inode && now.st_dev == device;
  }

  int fd = -1;
  bool taken_over = false;
  ino_t inode = 0;
  dev_t device = 0;
  unsigned char* data = nullptr;
  std::vector<unsigned char> shadow;
  cl_command_queue queue = nullptr;  // the one that acquired it, in the order of the host's calls
  bool in_use = false;               // in the order of the device
};

std::map<cl_mem, std::shared_ptr<External>> g_externals;

void misuse(const char* what, const External& external) {
  ++g_count.misuse;
  std::fprintf(stderr, "rig cl: misuse: %s (descriptor %d)\n", what, external.fd);
}

std::shared_ptr<External> find_external(cl_mem memory) {
  const auto found = g_externals.find(memory);
  return found == g_externals.end() ? nullptr : found->second;
}

struct ExternalTransfer {
  bool acquire;
  std::shared_ptr<External> external;
};

void CL_CALLBACK run_external_transfer(void* argument) {
  const std::unique_ptr<ExternalTransfer> transfer(*static_cast<ExternalTransfer**>(argument));
  External& external = *transfer->external;
  {
    const std::lock_guard lock(g_mutex);
    if (transfer->acquire && external.in_use)
      misuse("two uses of a buffer overlap on the device", external);
    if (!external.alive()) misuse("the descriptor was closed before a use was over", external);
    external.in_use = transfer->acquire;
  }
  if (transfer->acquire) {
    std::memcpy(external.shadow.data(), external.data, external.shadow.size());
    if (set("RIG_CORRUPT"))
      for (unsigned char& byte : external.shadow) byte ^= 0x40;
  } else {
    std::fill(external.shadow.begin(), external.shadow.end(), kPoison);
  }
}

void CL_CALLBACK forget_external(cl_mem memory, void*) {
  std::shared_ptr<External> gone;
  const std::lock_guard lock(g_mutex);
  const auto found = g_externals.find(memory);
  if (found == g_externals.end()) return;
  gone = found->second;
  if (gone->queue != nullptr) misuse("a buffer is released for good while it is acquired", *gone);
  if (gone->taken_over && !gone->alive())
    misuse("a descriptor was closed that the driver had taken over", *gone);
  g_externals.erase(found);
  forget_argument(memory);
  --g_count.buffers_alive;
}

}  // namespace

cl_mem CL_API_CALL create_dmabuf(cl_context context, const cl_mem_properties* properties,
                                 cl_mem_flags flags, size_t size, void* host, cl_int* error) {
  cl_int ignored = CL_SUCCESS;
  if (error == nullptr) error = &ignored;
  const bool opaque =
      properties != nullptr && properties[0] == CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR;
  if (properties == nullptr || set("RIG_HIDE") ||
      (!opaque && properties[0] != CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR)) {
    *error = CL_INVALID_PROPERTY;
    return nullptr;
  }
  if (lost(context)) {
    *error = CL_OUT_OF_RESOURCES;
    return nullptr;
  }
  auto external = std::make_shared<External>();
  external->fd = static_cast<int>(properties[1]);
  struct stat about {};
  {
    const std::lock_guard lock(g_mutex);
    if (g_import_fault.strikes()) {
      *error = CL_OUT_OF_RESOURCES;
      return nullptr;
    }
    if (host != nullptr || size == 0 || properties[2] != 0 || fstat(external->fd, &about) != 0 ||
        static_cast<size_t>(about.st_size) < size) {
      misuse("wrong arguments of clCreateBufferWithProperties", *external);
      *error = CL_INVALID_VALUE;
      return nullptr;
    }
  }
  external->inode = about.st_ino;
  external->device = about.st_dev;
  external->shadow.assign(size, kPoison);
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, external->fd, 0);
  if (data == MAP_FAILED) {
    *error = CL_INVALID_VALUE;
    return nullptr;
  }
  external->data = static_cast<unsigned char*>(data);
  const cl_mem memory = g_next->clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, size,
                                               external->shadow.data(), error);
  if (memory == nullptr) return nullptr;
  {
    const std::lock_guard lock(g_mutex);
    external->taken_over = opaque;
    g_externals[memory] = external;
    ++g_count.buffers_imported;
    ++g_count.buffers_alive;
  }
  g_next->clSetMemObjectDestructorCallback(memory, forget_external, nullptr);
  return memory;
}

namespace {

cl_int hand_over_external(bool acquire, cl_command_queue queue, cl_uint count,
                          const cl_mem* memories, cl_uint waits, const cl_event* wait_list,
                          cl_event* event) {
  if (count != 1 || memories == nullptr) return CL_INVALID_VALUE;
  if (acquire && lost(queue)) return CL_OUT_OF_RESOURCES;
  std::shared_ptr<External> external;
  {
    const std::lock_guard lock(g_mutex);
    if (acquire && g_acquire_fault.strikes()) return CL_OUT_OF_RESOURCES;
    external = find_external(memories[0]);
    if (external == nullptr) {
      misuse("acquire or release of what is no imported buffer", External{});
      return CL_INVALID_MEM_OBJECT;
    }
    if (acquire != (external->queue == nullptr)) {
      misuse(acquire ? "acquired twice" : "released without being acquired", *external);
      return CL_INVALID_OPERATION;
    }
    if (!acquire && external->queue != queue)
      misuse("released on another queue than acquired", *external);
    if (!external->alive()) {
      misuse("used after its descriptor was closed", *external);
      return CL_INVALID_MEM_OBJECT;
    }
  }
  if (!acquire && lost(queue)) {  // what a lost device held is free
    g_next->clFinish(queue);
    const std::lock_guard lock(g_mutex);
    external->queue = nullptr;
    external->in_use = false;
    ++g_count.released;
    return CL_OUT_OF_RESOURCES;
  }
  auto transfer = std::make_unique<ExternalTransfer>(ExternalTransfer{acquire, external});
  ExternalTransfer* argument = transfer.get();
  const cl_int status =
      g_next->clEnqueueNativeKernel(queue, run_external_transfer, &argument, sizeof argument, 0,
                                    nullptr, nullptr, waits, wait_list, event);
  if (status != CL_SUCCESS) return status;
  transfer.release();  // run_external_transfer's now
  const std::lock_guard lock(g_mutex);
  external->queue = acquire ? queue : nullptr;
  ++(acquire ? g_count.acquired : g_count.released);
  return CL_SUCCESS;
}

cl_int CL_API_CALL acquire_externals(cl_command_queue queue, cl_uint count, const cl_mem* memories,
                                     cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return hand_over_external(true, queue, count, memories, waits, wait_list, event);
}

cl_int CL_API_CALL release_externals(cl_command_queue queue, cl_uint count, const cl_mem* memories,
                                     cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return hand_over_external(false, queue, count, memories, waits, wait_list, event);
}

}  // namespace

bool is_dmabuf(cl_mem memory) { return find_external(memory) != nullptr; }

bool may_use_dmabuf(cl_mem memory, cl_command_queue queue) {
  const auto external = find_external(memory);
  if (external->queue == nullptr) {
    misuse("a kernel reads imported memory that is not acquired", *external);
    return false;
  }
  if (external->queue != queue)
    misuse("a kernel reads imported memory that another queue acquired", *external);
  return true;
}

void* dmabuf_function(const std::string& name) {
  if (name == "clEnqueueAcquireExternalMemObjectsKHR")
    return reinterpret_cast<void*>(acquire_externals);
  if (name == "clEnqueueReleaseExternalMemObjectsKHR")
    return reinterpret_cast<void*>(release_externals);
  return nullptr;
}

}  // namespace rig
