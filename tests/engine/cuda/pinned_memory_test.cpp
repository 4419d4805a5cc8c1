// Pinned memory is cut out of few large pieces, by a stand-in for CUDA's driver.
#include "engine/cuda/pinned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/engine/cuda/stand_in.h"
#include "tests/engine/cuda/stand_in_device.h"

namespace clinfer::cuda {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

// A test leaves the stand-in as it found it.
class Pinned : public testing::Test {
 protected:
  Pinned() { stand_in_reset(); }
  ~Pinned() override { stand_in_fail(nullptr, 0); }

  static long calls() { return stand_in_calls("cuMemHostAlloc"); }
  static long releases() { return stand_in_calls("cuMemFreeHost"); }

  PinnedMemory memory_{*test::stand_in_device()};
};

TEST_F(Pinned, APoolOfFramesNeedsFewCalls) {
  std::vector<std::shared_ptr<std::byte>> frames;
  for (int i = 0; i < 600; ++i) frames.push_back(memory_.take(345600));
  EXPECT_LE(calls(), 9);  // 4, 4, 8, 16, 32 and 64 MiB
  EXPECT_EQ(releases(), 0);
}

TEST_F(Pinned, BlocksArePagesOfTheirOwn) {
  const auto none = memory_.take(0), one = memory_.take(1), page = memory_.take(4096),
             next = memory_.take(4097), last = memory_.take(1);
  for (const auto& block : {none, one, page, next, last})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 4096, 0u);
  EXPECT_EQ(one.get() - none.get(), 4096);
  EXPECT_EQ(page.get() - one.get(), 4096);
  EXPECT_EQ(next.get() - page.get(), 4096);
  EXPECT_EQ(last.get() - next.get(), 8192);
  EXPECT_EQ(calls(), 1);
}

TEST_F(Pinned, WhatIsReleasedIsUsedAgainWhole) {
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(memory_.take(kMegabyte));
  const std::byte* const first = blocks[0].get();
  blocks[2].reset();  // nothing beside it is free
  blocks[0].reset();
  blocks[1].reset();  // between two free ranges
  EXPECT_EQ(memory_.take(3 * kMegabyte).get(), first);
  blocks[3].reset();
  EXPECT_EQ(memory_.take(4 * kMegabyte).get(), first);
  EXPECT_EQ(calls(), 1);
}

TEST_F(Pinned, OnePieceIsKeptForWhoComesNext) {
  auto small = memory_.take(1), large = memory_.take(100 * kMegabyte);
  EXPECT_EQ(calls(), 2);
  small.reset();
  EXPECT_EQ(releases(), 0);
  large.reset();
  EXPECT_EQ(releases(), 1);
  small = memory_.take(1);
  EXPECT_EQ(calls(), 2);
}

TEST_F(Pinned, AFailureLeavesTheRest) {
  const auto block = memory_.take(kMegabyte);
  stand_in_fail("cuMemHostAlloc", 0);
  EXPECT_THROW(memory_.take(5 * kMegabyte), Error);
  EXPECT_NO_THROW(memory_.take(kMegabyte));
  stand_in_fail(nullptr, 0);
  EXPECT_NO_THROW(memory_.take(5 * kMegabyte));
}

// Each thread fills its blocks with a number of its own, and finds it there later.
TEST_F(Pinned, ThreadsNeverShareBytes) {
  std::vector<std::thread> threads;
  for (int thread = 1; thread <= 4; ++thread)
    threads.emplace_back([this, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      std::vector<std::pair<std::shared_ptr<std::byte>, size_t>> blocks(8);
      for (int i = 0; i < 2000; ++i) {
        auto& [block, bytes] = blocks[random() % blocks.size()];
        for (size_t at = 0; at < bytes; ++at)
          ASSERT_EQ(block.get()[at], static_cast<std::byte>(thread));
        block.reset();
        bytes = random() % 40000;
        block = memory_.take(bytes);
        std::memset(block.get(), thread, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls(), 1);
}

}  // namespace
}  // namespace clinfer::cuda
