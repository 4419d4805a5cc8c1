// Time by stamps that jump, stand still, are missing, or leave out a hole.
#include "gst/base/frame_time.h"

#include <gtest/gtest.h>

#include <functional>

namespace clinfer {
namespace {

constexpr uint64_t kSecond = 1'000'000'000, kStart = 100'000 * kSecond;
constexpr double kInterval = 0.04;

struct Told {
  double seconds = 0;  // from the first frame to the last
  double most = 0;     // in one step
  int holes = 0, problems = 0;
};

// Frames at 25 a second whose stamps `change` moves by so many seconds.
Told run(int frames, const std::function<double(int)>& change, double interval = kInterval) {
  FrameTime time;
  Told told;
  for (int i = 0; i < frames; ++i) {
    const double at = i * kInterval + change(i);
    const auto stamp = static_cast<uint64_t>(
        static_cast<int64_t>(kStart) + static_cast<int64_t>(at * static_cast<double>(kSecond)));
    const FrameTime::Step step = time.advance(stamp, interval);
    told.seconds += step.seconds;
    told.most = std::max(told.most, step.seconds);
    told.holes += step.is_hole;
    told.problems += !step.problem.empty();
    EXPECT_GE(step.seconds, 0) << i;
  }
  return told;
}

TEST(FrameTime, FollowsTheStamps) {
  const Told told = run(
      100, [](int) { return 0.0; }, 0);
  EXPECT_NEAR(told.seconds, 99 * kInterval, 1e-6);
  EXPECT_EQ(told.holes + told.problems, 0);
}

TEST(FrameTime, AWrongStampCountsAsTheFrameInterval) {
  for (const double jump : {1.5, 37'600.0, -3.0, -9'800.0, 86'400.0 * 400})
    for (const int at : {0, 1, 50, 98}) {
      const Told told = run(100, [&](int i) { return i == at ? jump : 0; });
      EXPECT_NEAR(told.seconds, 99 * kInterval, 2 * kInterval) << jump << " at " << at;
      EXPECT_LT(told.most, 3 * kInterval) << jump << " at " << at;
      EXPECT_EQ(told.holes, 0) << jump << " at " << at;
      EXPECT_EQ(told.problems, 1) << jump << " at " << at;
    }
}

TEST(FrameTime, WrongStampsEveryFewFramesAreToldOnce) {
  const Told told = run(300, [](int i) {
    return i % 7 == 3 ? 1000.0 * i : i % 11 == 5 ? -500 : 0;
  });
  EXPECT_NEAR(told.seconds, 299 * kInterval, 2 * kInterval);
  EXPECT_EQ(told.holes, 0);
  EXPECT_EQ(told.problems, 1);
}

TEST(FrameTime, AHoleIsKnownWithTheSecondFrameAfterIt) {
  const Told told = run(100, [](int i) { return i >= 50 ? 60.0 : 0; });
  EXPECT_NEAR(told.seconds, 99 * kInterval + 60, 1e-6);
  EXPECT_EQ(told.holes, 1);
  EXPECT_EQ(told.problems, 1);
}

TEST(FrameTime, StampsThatBeginAgainGoOn) {
  const Told told = run(100, [](int i) { return i >= 50 ? -1000.0 : 0; });
  EXPECT_NEAR(told.seconds, 99 * kInterval, 1e-6);
  EXPECT_EQ(told.holes, 0);
  EXPECT_EQ(told.problems, 1);
}

TEST(FrameTime, ASlowStreamHasNoHoles) {
  FrameTime time;
  double seconds = 0;
  for (int i = 0; i < 20; ++i) {
    const FrameTime::Step step = time.advance(static_cast<uint64_t>(i) * 10 * kSecond, kInterval);
    seconds += step.seconds;
    EXPECT_FALSE(step.is_hole) << i;
  }
  EXPECT_NEAR(seconds, 190, 1e-6);
}

TEST(FrameTime, FramesOutOfOrderAndWithoutStampsCount) {
  FrameTime time;
  double seconds = 0;
  const int order[] = {0, 2, 1, 4, 3, 5, -1, 7, 7, 8};
  for (const int i : order)
    seconds +=
        time.advance(i < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(i) * kSecond / 25),
                     kInterval)
            .seconds;
  EXPECT_NEAR(seconds, 8 * kInterval, 1e-6);
}

}  // namespace
}  // namespace clinfer
