// Maps and unmaps host memory of applications.
#include "engine/runtime/run/lent_memory.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace clinfer {

namespace {

bool is_whole(const void* data, size_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % kSharedPage == 0 && bytes % kSharedLine == 0;
}

}  // namespace

std::string LentMemory::why_not(const ocl::Context& context, const void* data, size_t bytes) {
  if (!context.device.info.is_integrated) return "the device has memory of its own";
  if (!is_whole(data, bytes))
    return "the device shares memory that begins at a multiple of " + std::to_string(kSharedPage) +
           " bytes and takes a multiple of " + std::to_string(kSharedLine);
  return "the driver does not share this memory";
}

std::unique_ptr<LentMemory> LentMemory::make(const ocl::Context& context,
                                             const cl::CommandQueue& queue, void* data,
                                             size_t bytes, bool reads) {
  const bool is_cpu = context.device.info.is_cpu;
  if (!is_cpu && !(context.device.info.is_integrated && is_whole(data, bytes))) return nullptr;
  bytes = std::max<size_t>(bytes, 1);
  cl::Buffer buffer;
  try {
    buffer = cl::Buffer(context.context,
                        CL_MEM_USE_HOST_PTR | (reads ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE), bytes,
                        data);
  } catch (const cl::Error&) {
    if (is_cpu) throw;
    return nullptr;  // as is possible for memory of other devices
  }
  return std::unique_ptr<LentMemory>(new LentMemory(std::move(buffer), queue, bytes, reads));
}

LentMemory::LentMemory(cl::Buffer buffer, const cl::CommandQueue& queue, size_t bytes, bool reads)
    : buffer_(std::move(buffer)), queue_(queue), bytes_(bytes), reads_(reads) {
  map(CL_TRUE);
}

LentMemory::~LentMemory() {
  try {
    lend();
  } catch (const cl::Error&) {
    // The device is lost, and its memory with it.
  }
}

void LentMemory::map(cl_bool waits) {
  mapped_ = queue_.enqueueMapBuffer(buffer_, waits, reads_ ? CL_MAP_WRITE : CL_MAP_READ, 0, bytes_);
}

void LentMemory::lend() {
  if (mapped_ != nullptr) queue_.enqueueUnmapMemObject(buffer_, std::exchange(mapped_, nullptr));
}

void LentMemory::take_back() {
  if (mapped_ == nullptr) map(CL_FALSE);
}

}  // namespace clinfer
