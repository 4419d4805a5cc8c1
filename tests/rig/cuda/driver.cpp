// A stand-in for NVIDIA's driver, libcuda.so.1, as far as GStreamer's CUDA library needs it for memory:
// device memory is host memory, exportable memory a memfd. Stricter than a GPU: what is copied on a
// stream is there only once that stream is synchronised. RIG_FAIL makes calls fail (cuda-create,
// cuda-export, cuda-copy: on the device), RIG_NO_EXPORT=1 leaves memory that can be exported out.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

#include "engine/cuda/interface/cuda.h"
#include "tests/rig/rig.h"

namespace {

enum : int { kOk = 0, kInvalid = 1, kNoMemory = 2, kNotSupported = 801 };
enum : int { kTextureAlignment = 14, kMajor = 75, kVirtualMemory = 102, kDescriptors = 103 };
constexpr size_t kPitch = 512, kGranularity = size_t{1} << 16;

struct Stream {
  std::vector<std::function<void()>> work;
};
struct Allocation {
  int fd;
  size_t bytes;
};

std::mutex g_mutex;
std::list<Stream> g_streams;
RigCudaCounters g_count;
RigFault g_create_fault("cuda-create"), g_export_fault("cuda-export"), g_copy_fault("cuda-copy");
thread_local std::vector<CUcontext> g_current;

void finish(Stream& stream) {
  for (const auto& step : stream.work) step();
  stream.work.clear();
}
void finish_all() {
  for (Stream& stream : g_streams) finish(stream);
}

// Of host memory what is there now is copied.
int copy(const CUDA_MEMCPY2D& wanted, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  const bool from_host = wanted.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = wanted.dstMemoryType == CU_MEMORYTYPE_HOST;
  if (!from_host && !to_host && g_copy_fault.strikes()) return kInvalid;
  if (wanted.srcPitch < wanted.WidthInBytes || wanted.dstPitch < wanted.WidthInBytes)
    return kInvalid;
  const size_t bytes = wanted.WidthInBytes * wanted.Height;
  (from_host ? g_count.bytes_up
   : to_host ? g_count.bytes_down
             : g_count.bytes_inside) += static_cast<long>(bytes);
  auto* to = to_host ? static_cast<char*>(wanted.dstHost)
                     : reinterpret_cast<char*>(static_cast<uintptr_t>(wanted.dstDevice));
  const auto* from = from_host ? static_cast<const char*>(wanted.srcHost)
                               : reinterpret_cast<char*>(static_cast<uintptr_t>(wanted.srcDevice));
  size_t pitch = wanted.srcPitch;
  std::vector<char> kept;
  if (from_host) {
    kept.resize(bytes);
    for (size_t row = 0; row < wanted.Height; ++row)
      std::memcpy(kept.data() + row * wanted.WidthInBytes, from + row * pitch, wanted.WidthInBytes);
    pitch = wanted.WidthInBytes;
  }
  auto step = [wanted, to, from, pitch, kept = std::move(kept)] {
    const char* source = kept.empty() ? from : kept.data();
    for (size_t row = 0; row < wanted.Height; ++row)
      std::memcpy(to + row * wanted.dstPitch, source + row * pitch, wanted.WidthInBytes);
  };
  if (stream == nullptr) {
    finish_all();
    step();
  } else {
    stream->work.emplace_back(std::move(step));
  }
  return kOk;
}

void* at(CUdeviceptr address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

}  // namespace

#define RIG_CUDA extern "C" __attribute__((visibility("default"))) int

RIG_CUDA cuInit(unsigned) { return kOk; }
RIG_CUDA cuDriverGetVersion(int* version) { return *version = 12000, kOk; }
RIG_CUDA cuGetErrorName(int, const char** text) { return *text = "RIG_ERROR", kOk; }
RIG_CUDA cuGetErrorString(int, const char** text) { return *text = "an error of the rig", kOk; }
RIG_CUDA cuDeviceGetCount(int* count) { return *count = 1, kOk; }
RIG_CUDA cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, kOk; }
RIG_CUDA cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<size_t>(length), "CUDA rig");
  return kOk;
}
RIG_CUDA cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  const bool exports = std::getenv("RIG_NO_EXPORT") == nullptr;
  *value = attribute == kTextureAlignment ? static_cast<int>(kPitch)
           : attribute == kMajor          ? 9
           : attribute == kVirtualMemory  ? 1
           : attribute == kDescriptors    ? exports
                                          : 0;
  return kOk;
}
RIG_CUDA cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) { return *can = 0, kOk; }

RIG_CUDA cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice) {
  *context = static_cast<CUcontext>(std::malloc(1));
  g_current.push_back(*context);
  return kOk;
}
RIG_CUDA cuCtxDestroy_v2(CUcontext context) { return std::free(context), kOk; }
RIG_CUDA cuCtxPushCurrent_v2(CUcontext context) { return g_current.push_back(context), kOk; }
RIG_CUDA cuCtxPopCurrent_v2(CUcontext* context) {
  if (g_current.empty()) return kInvalid;
  if (context != nullptr) *context = g_current.back();
  g_current.pop_back();
  return kOk;
}
RIG_CUDA cuCtxSynchronize() {
  const std::lock_guard lock(g_mutex);
  ++g_count.device_syncs;
  return finish_all(), kOk;
}

RIG_CUDA cuStreamCreate(CUstream* stream, unsigned) {
  const std::lock_guard lock(g_mutex);
  *stream = reinterpret_cast<CUstream>(&g_streams.emplace_back());
  return kOk;
}
RIG_CUDA cuStreamSynchronize(CUstream stream) {
  const std::lock_guard lock(g_mutex);
  stream != nullptr ? finish(*reinterpret_cast<Stream*>(stream)) : finish_all();
  return kOk;
}
RIG_CUDA cuStreamDestroy_v2(CUstream stream) {
  const std::lock_guard lock(g_mutex);
  finish(*reinterpret_cast<Stream*>(stream));
  g_streams.remove_if([&](const Stream& one) {
    return reinterpret_cast<CUstream>(const_cast<Stream*>(&one)) == stream;
  });
  return kOk;
}

RIG_CUDA cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const std::lock_guard lock(g_mutex);
  ++g_count.alive;
  *address = reinterpret_cast<uintptr_t>(
      std::aligned_alloc(kPitch, (bytes + kPitch - 1) / kPitch * kPitch));
  return kOk;
}
RIG_CUDA cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned) {
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return cuMemAlloc_v2(address, *pitch * height);
}
RIG_CUDA cuMemFree_v2(CUdeviceptr address) {
  const std::lock_guard lock(g_mutex);
  finish_all();
  --g_count.alive;
  return std::free(at(address)), kOk;
}
RIG_CUDA cuMemAllocHost_v2(void** memory, size_t bytes) {
  return (*memory = std::malloc(bytes)) != nullptr ? kOk : kNoMemory;
}
RIG_CUDA cuMemFreeHost(void* memory) { return std::free(memory), kOk; }
RIG_CUDA cuMemcpy2D_v2(const CUDA_MEMCPY2D* wanted) { return copy(*wanted, nullptr); }
RIG_CUDA cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* wanted, CUstream stream) {
  return copy(*wanted, reinterpret_cast<Stream*>(stream));
}

RIG_CUDA cuMemGetAllocationGranularity(size_t* bytes, const void*, int) {
  return *bytes = kGranularity, kOk;
}
RIG_CUDA cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const void*,
                     unsigned long long) {
  const std::lock_guard lock(g_mutex);
  if (bytes % kGranularity != 0) return kInvalid;
  if (g_create_fault.strikes()) return kNoMemory;
  const int fd = memfd_create("rig-cuda", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kNoMemory;
  ++g_count.alive;
  *handle = reinterpret_cast<uintptr_t>(new Allocation{fd, bytes});
  return kOk;
}
RIG_CUDA cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(g_mutex);
  auto* allocation = static_cast<Allocation*>(at(handle));
  --g_count.alive;
  close(allocation->fd);
  delete allocation;
  return kOk;
}
RIG_CUDA cuMemExportToShareableHandle(void* fd, CUmemGenericAllocationHandle handle, int,
                                      unsigned long long) {
  const std::lock_guard lock(g_mutex);
  if (g_export_fault.strikes()) return kNotSupported;
  *static_cast<int*>(fd) = dup(static_cast<Allocation*>(at(handle))->fd);
  return kOk;
}
RIG_CUDA cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = reinterpret_cast<uintptr_t>(memory);
  return memory != MAP_FAILED ? kOk : kNoMemory;
}
RIG_CUDA cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return munmap(at(address), bytes) == 0 ? kOk : kInvalid;
}
RIG_CUDA cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  return mmap(at(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
              static_cast<Allocation*>(at(handle))->fd, 0) != MAP_FAILED
             ? kOk
             : kInvalid;
}
RIG_CUDA cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(g_mutex);
  finish_all();
  return mmap(at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
                 MAP_FAILED
             ? kOk
             : kInvalid;
}
RIG_CUDA cuMemSetAccess(CUdeviceptr, size_t, const void*, size_t) { return kOk; }

// GStreamer does not load a driver that lacks one of these; the elements of the tests call none.
#define RIG_CUDA_NONE(name) \
  RIG_CUDA name() { return kNotSupported; }
RIG_CUDA_NONE(cuCtxEnablePeerAccess)
RIG_CUDA_NONE(cuCtxDisablePeerAccess)
RIG_CUDA_NONE(cuCtxGetLimit)
RIG_CUDA_NONE(cuCtxSetLimit)
RIG_CUDA_NONE(cuGraphicsMapResources)
RIG_CUDA_NONE(cuGraphicsUnmapResources)
RIG_CUDA_NONE(cuGraphicsUnregisterResource)
RIG_CUDA_NONE(cuGraphicsResourceSetMapFlags_v2)
RIG_CUDA_NONE(cuGraphicsSubResourceGetMappedArray)
RIG_CUDA_NONE(cuGraphicsResourceGetMappedPointer_v2)
RIG_CUDA_NONE(cuGraphicsGLRegisterImage)
RIG_CUDA_NONE(cuGraphicsGLRegisterBuffer)
RIG_CUDA_NONE(cuGLGetDevices_v2)
RIG_CUDA_NONE(cuMemcpyDtoD_v2)
RIG_CUDA_NONE(cuMemcpyDtoDAsync_v2)
RIG_CUDA_NONE(cuMemcpyDtoH_v2)
RIG_CUDA_NONE(cuMemcpyDtoHAsync_v2)
RIG_CUDA_NONE(cuMemcpyHtoD_v2)
RIG_CUDA_NONE(cuMemcpyHtoDAsync_v2)
RIG_CUDA_NONE(cuMemsetD2D8_v2)
RIG_CUDA_NONE(cuMemsetD2D8Async)
RIG_CUDA_NONE(cuMemsetD2D16_v2)
RIG_CUDA_NONE(cuMemsetD2D16Async)
RIG_CUDA_NONE(cuMemsetD2D32_v2)
RIG_CUDA_NONE(cuMemsetD2D32Async)
RIG_CUDA_NONE(cuModuleLoadData)
RIG_CUDA_NONE(cuModuleUnload)
RIG_CUDA_NONE(cuModuleGetFunction)
RIG_CUDA_NONE(cuTexObjectCreate)
RIG_CUDA_NONE(cuTexObjectDestroy)
RIG_CUDA_NONE(cuLaunchKernel)
RIG_CUDA_NONE(cuEventCreate)
RIG_CUDA_NONE(cuEventDestroy_v2)
RIG_CUDA_NONE(cuEventRecord)
RIG_CUDA_NONE(cuEventSynchronize)
RIG_CUDA_NONE(cuIpcGetEventHandle)
RIG_CUDA_NONE(cuIpcOpenEventHandle)
RIG_CUDA_NONE(cuIpcGetMemHandle)
RIG_CUDA_NONE(cuIpcOpenMemHandle)
RIG_CUDA_NONE(cuIpcOpenMemHandle_v2)
RIG_CUDA_NONE(cuIpcCloseMemHandle)
RIG_CUDA_NONE(cuMemImportFromShareableHandle)
RIG_CUDA_NONE(cuMemGetAccess)
RIG_CUDA_NONE(cuMemGetAllocationPropertiesFromHandle)
RIG_CUDA_NONE(cuMemRetainAllocationHandle)
RIG_CUDA_NONE(cuMemAllocAsync)
RIG_CUDA_NONE(cuMemAllocFromPoolAsync)
RIG_CUDA_NONE(cuMemFreeAsync)
RIG_CUDA_NONE(cuMemPoolCreate)
RIG_CUDA_NONE(cuMemPoolDestroy)
RIG_CUDA_NONE(cuMemPoolSetAttribute)
RIG_CUDA_NONE(cuMemPoolGetAttribute)
RIG_CUDA_NONE(cuDestroyExternalMemory)
RIG_CUDA_NONE(cuDestroyExternalSemaphore)
RIG_CUDA_NONE(cuImportExternalMemory)
RIG_CUDA_NONE(cuImportExternalSemaphore)
RIG_CUDA_NONE(cuExternalMemoryGetMappedBuffer)
RIG_CUDA_NONE(cuExternalMemoryGetMappedMipmappedArray)
RIG_CUDA_NONE(cuSignalExternalSemaphoresAsync)
RIG_CUDA_NONE(cuWaitExternalSemaphoresAsync)

extern "C" __attribute__((visibility("default"))) void rig_cuda_counters(
    RigCudaCounters* counters) {
  const std::lock_guard lock(g_mutex);
  *counters = g_count;
}
