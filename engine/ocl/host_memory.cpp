// Pinned memory, and its use again.
#include "engine/ocl/host_memory.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace clinfer::ocl {

HostMemory::HostMemory(const Context& context, const cl::CommandQueue& queue, size_t bytes)
    : platform_(context.device.platform), bytes_(bytes), plain_(nullptr, std::free) {
  if (context.traits.is_cpu) {
    plain_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    data_ = plain_.get();
    if (!data_)
      throw Error(ErrorCode::out_of_memory,
                  "no memory for frames or results of " + std::to_string(bytes) + " bytes");
    return;
  }
  queue_ = queue;
  pinned_ = cl::Buffer(context.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes);
  data_ = static_cast<std::byte*>(
      queue_.enqueueMapBuffer(pinned_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes));
}

HostMemory::~HostMemory() {
  if (!pinned_()) return;
  try {
    queue_.enqueueUnmapMemObject(pinned_, data_);
  } catch (const cl::Error&) {
    // The device is lost, and the memory with it.
  }
}

const std::byte* HostMemory::write(size_t at, const void* from, size_t bytes) const {
  auto* to = data_ + at;
  const auto* source = static_cast<const std::byte*>(from);
#ifdef __SSE2__
  constexpr size_t kVector = sizeof(__m128i), kLine = 64;
  const size_t head = std::min(bytes, (0 - reinterpret_cast<uintptr_t>(to)) % kLine);
  std::memcpy(to, source, head);
  to += head, source += head, bytes -= head;
  for (; bytes >= kLine; to += kLine, source += kLine, bytes -= kLine)
    for (size_t i = 0; i < kLine; i += kVector)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i)));
  _mm_sfence();
#endif
  std::memcpy(to, source, bytes);
  return data_ + at;
}

std::shared_ptr<HostMemory> HostMemoryPool::take(const Context& context,
                                                 const cl::CommandQueue& queue, size_t bytes) {
  const auto free = std::find_if(blocks_.begin(), blocks_.end(),
                                 [](const auto& block) { return block.use_count() == 1; });
  if (free == blocks_.end())
    return blocks_.emplace_back(std::make_shared<HostMemory>(context, queue, bytes));
  // The releasing thread's reads happen before the device writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  return *free;
}

}  // namespace clinfer::ocl
