// Host memory that devices fetch from: what is written there, and what is not.
#include "engine/ocl/host_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/ocl/choose.h"
#include "engine/ocl/queue.h"

namespace clinfer {
namespace {

TEST(HostMemory, WritesWhatItIsGivenAndNothingBeside) {
  const auto context = ocl::Context::create(ocl::select_device("GPU"));
  const cl::CommandQueue queue(context->context, context->device.device);
  constexpr size_t kSize = 600;
  const ocl::HostMemory memory(*context, queue, kSize);
  std::vector<uint8_t> source(kSize + 16);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i % 251 + 1);
  for (size_t at = 0; at < 130; at += 13)
    for (size_t shift = 0; shift < 16; shift += 5)
      for (size_t bytes = 0; at + bytes <= kSize; bytes += 37) {
        std::fill_n(memory.data(), kSize, std::byte{0});
        EXPECT_EQ(memory.write(at, source.data() + shift, bytes), memory.data() + at);
        for (size_t i = 0; i < kSize; ++i) {
          const uint8_t want = i < at || i >= at + bytes ? 0 : source[shift + i - at];
          ASSERT_EQ(static_cast<uint8_t>(memory.data()[i]), want) << at << " " << bytes << " " << i;
        }
      }
}

// Small and large, with and without contents, alive for as long as a part of it.
TEST(HostMemory, NetworksLieInMemoryThatKeepsWhatItIsGiven) {
  const auto context = ocl::Context::create(ocl::select_device("GPU"));
  const cl::CommandQueue queue(context->context, context->device.device);
  for (const size_t bytes : {size_t{4}, size_t{5} << 20, (size_t{2} << 20) + 4}) {
    std::vector<uint8_t> values(bytes), got(bytes);
    for (size_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(i % 251);
    cl::Buffer whole = ocl::make_memory(*context, bytes, values.data());
    EXPECT_EQ(whole.getInfo<CL_MEM_SIZE>(), bytes);
    queue.enqueueReadBuffer(whole, CL_TRUE, 0, bytes, got.data());
    EXPECT_EQ(got, values) << bytes;
    const cl::Buffer empty = ocl::make_memory(*context, bytes);
    queue.enqueueWriteBuffer(empty, CL_TRUE, 0, bytes, values.data());
    std::fill(got.begin(), got.end(), uint8_t{0});
    const cl_buffer_region region{0, bytes};
    const cl::Buffer part = whole.createSubBuffer(0, CL_BUFFER_CREATE_TYPE_REGION, &region);
    whole = {};
    queue.enqueueCopyBuffer(empty, part, 0, 0, bytes);
    queue.enqueueReadBuffer(part, CL_TRUE, 0, bytes, got.data());
    EXPECT_EQ(got, values) << bytes;
  }
}

}  // namespace
}  // namespace clinfer
