// Allocates pinned memory, and reuses it.
#include "engine/ocl/host_memory.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace clinfer::ocl {

HostMemory::HostMemory(const Context& context, const cl::CommandQueue& queue, size_t bytes)
    : platform_(context.device.platform), bytes_(bytes) {
  if (context.device.info.is_cpu) {
    plain_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)),
                 std::free);
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

HostMemory::HostMemory(const Context& context, std::shared_ptr<std::byte> pinned, size_t bytes)
    : platform_(context.device.platform),
      bytes_(bytes),
      plain_(std::move(pinned)),
      data_(plain_.get()) {}

HostMemory::~HostMemory() {
  if (!pinned_()) return;
  try {
    queue_.enqueueUnmapMemObject(pinned_, data_);
  } catch (const cl::Error&) {
    // The device is lost, and its memory with it.
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

std::shared_ptr<HostMemory> HostMemoryPool::take(
    const std::function<std::shared_ptr<HostMemory>()>& make) {
  const auto free = std::find_if(blocks_.begin(), blocks_.end(),
                                 [](const auto& block) { return block.use_count() == 1; });
  if (free == blocks_.end()) return blocks_.emplace_back(make());
  // Orders the reads of the thread that released the block before the device's writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  return *free;
}

namespace {

#ifdef MADV_HUGEPAGE
constexpr size_t kLargePage = size_t{2} << 20;

// Pages that are freed together with the buffer that lies in them.
struct LargePages {
  explicit LargePages(size_t bytes) : all(bytes / kLargePage * kLargePage + 2 * kLargePage) {
    mapped = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return;
    const auto at = reinterpret_cast<uintptr_t>(mapped);
    begin = static_cast<std::byte*>(mapped) + (kLargePage - at % kLargePage) % kLargePage;
    madvise(begin, bytes, MADV_HUGEPAGE);  // if refused, pages are small
  }
  ~LargePages() {
    if (mapped != MAP_FAILED) munmap(mapped, all);
  }
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;

  size_t all;
  void* mapped;
  std::byte* begin = nullptr;
};

cl::Buffer in_large_pages(const Context& context, size_t bytes, const void* data) {
  auto pages = std::make_unique<LargePages>(bytes);
  if (pages->begin == nullptr) return {};
  if (data != nullptr) std::memcpy(pages->begin, data, bytes);
  cl::Buffer buffer(context.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, pages->begin);
  buffer.setDestructorCallback([](cl_mem, void* held) { delete static_cast<LargePages*>(held); },
                               pages.get());
  pages.release();  // The callback owns it now.
  return buffer;
}
#endif

}  // namespace

cl::Buffer make_memory(const Context& context, size_t bytes, const void* data) {
#ifdef MADV_HUGEPAGE
  if (context.device.info.is_cpu && bytes >= kLargePage)
    if (cl::Buffer buffer = in_large_pages(context, bytes, data); buffer() != nullptr)
      return buffer;
#endif
  if (data == nullptr) return {context.context, CL_MEM_READ_WRITE, bytes};
  return {context.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, const_cast<void*>(data)};
}

}  // namespace clinfer::ocl
