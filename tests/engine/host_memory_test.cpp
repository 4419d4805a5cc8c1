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

}  // namespace
}  // namespace clinfer
