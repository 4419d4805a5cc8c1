// Which launches have to wait for which.
#include "engine/plan/order.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace clinfer {
namespace {

using Order = std::vector<std::vector<size_t>>;
constexpr bool kReads = false, kWrites = true;

TEST(Order, AChainWaitsForTheLastOne) {
  EXPECT_EQ(find_order({{{0, 0, 8, kWrites}},
                        {{0, 0, 8, kReads}, {0, 8, 16, kWrites}},
                        {{0, 0, 8, kReads}, {0, 8, 16, kReads}, {0, 16, 24, kWrites}}}),
            (Order{{}, {0}, {1}}));
}

TEST(Order, BranchesRunBesideEachOtherAndMeet) {
  EXPECT_EQ(find_order({{{0, 0, 8, kWrites}},
                        {{0, 0, 8, kReads}, {0, 8, 16, kWrites}},
                        {{0, 0, 8, kReads}, {0, 16, 24, kWrites}},
                        {{0, 8, 24, kReads}, {1, 0, 8, kWrites}}}),
            (Order{{}, {0}, {0}, {2, 1}}));
}

TEST(Order, WhatIsReadMayNotBeOverwrittenBefore) {
  EXPECT_EQ(find_order({{{0, 0, 8, kReads}, {1, 0, 8, kWrites}},
                        {{2, 0, 8, kReads}, {0, 4, 12, kWrites}},
                        {{0, 0, 4, kWrites}},
                        {{0, 6, 7, kWrites}}}),
            (Order{{}, {0}, {0}, {1}}));
}

TEST(Order, EmptyRangesAndOtherMemoriesAreNoReason) {
  EXPECT_EQ(find_order({{{0, 4, 4, kWrites}}, {{0, 0, 8, kWrites}}, {{1, 0, 8, kWrites}}}),
            (Order{{}, {}, {}}));
}

// Against the definition, with random launches: each that has to wait does so, and nothing is stated twice.
TEST(Order, IsCompleteAndHasNothingTwice) {
  std::mt19937 random(1);
  const auto pick = [&](size_t below) { return random() % below; };
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<Access>> launches(30);
    for (auto& launch : launches)
      for (int i = 0; i < 3; ++i) {
        const size_t begin = pick(40);
        launch.push_back({static_cast<int>(pick(2)), begin, begin + 1 + pick(6), i == 2});
      }
    const Order order = find_order(launches);
    std::vector<std::set<size_t>> all(launches.size());
    for (size_t i = 0; i < launches.size(); ++i) {
      for (const size_t before : order[i]) {
        ASSERT_LT(before, i);
        EXPECT_FALSE(all[i].contains(before)) << "it waits for it by way of another one";
        all[i].insert(before);
        all[i].insert(all[before].begin(), all[before].end());
      }
      for (size_t other = 0; other < i; ++other)
        for (const Access& a : launches[other])
          for (const Access& b : launches[i])
            if (a.memory == b.memory && (a.writes || b.writes) && a.begin < b.end &&
                b.begin < a.end) {
              EXPECT_TRUE(all[i].contains(other));
            }
    }
  }
}

}  // namespace
}  // namespace clinfer
