// How long to sleep before a wait.
#include "engine/runtime/requests/wait_estimator.h"

#include <gtest/gtest.h>

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Time = WaitEstimator::Time;

// One wait for what takes `taken`; gives for how long it would have slept.
std::chrono::nanoseconds wait_for(WaitEstimator& estimator, size_t kind,
                                  std::chrono::nanoseconds taken) {
  static Time now{1h};
  now += 1s;
  estimator.begin(kind, now);
  const auto slept = estimator.until() > now ? estimator.until() - now : 0ns;
  estimator.end(now + taken);
  return slept;
}

TEST(WaitEstimator, DoesNotSleepThroughWhatItDoesNotKnow) {
  WaitEstimator estimator;
  EXPECT_EQ(wait_for(estimator, 0, 5ms), 0ns);
  EXPECT_EQ(wait_for(estimator, 1, 5ms), 0ns) << "another kind";
}

TEST(WaitEstimator, EndsBeforeTheShortestOfLate) {
  WaitEstimator estimator;
  wait_for(estimator, 0, 5ms);
  const auto slept = wait_for(estimator, 0, 4ms);
  EXPECT_GT(slept, 4500us);
  EXPECT_LT(slept, 5ms);
  EXPECT_LT(wait_for(estimator, 0, 9ms), 4ms) << "what took 4 ms may do so again";
}

TEST(WaitEstimator, BelievesSlowlyThatItTakesLonger) {
  WaitEstimator estimator;
  wait_for(estimator, 0, 1ms);
  wait_for(estimator, 0, 10ms);
  EXPECT_LT(wait_for(estimator, 0, 10ms), 1ms);
  for (int i = 0; i < 1000; ++i) wait_for(estimator, 0, 10ms);
  const auto slept = wait_for(estimator, 0, 10ms);
  EXPECT_GT(slept, 9ms);
  EXPECT_LT(slept, 10ms);
}

// A thread that sleeps sees the end when it wakes. ViT-Base at batch 32 slept 183 ms, as long as its first
// inference took, through 12 ms of work.
TEST(WaitEstimator, ForgetsASlowFirstTime) {
  WaitEstimator estimator;
  wait_for(estimator, 0, 183ms);
  const auto seen = [&] {
    Time now{1000h};
    estimator.begin(0, now);
    const auto slept = estimator.until() - now;
    estimator.end(now + std::max<std::chrono::nanoseconds>(slept + 50us, 12ms));
    return slept;
  };
  for (int i = 0; i < 16; ++i) seen();
  for (int i = 0; i < 100; ++i) EXPECT_LT(seen(), 12ms) << i;
  EXPECT_GT(seen(), 11ms) << "and sleeps all the same";
}

TEST(WaitEstimator, IsNotWorthItForShortWaits) {
  WaitEstimator estimator;
  wait_for(estimator, 0, 100us);
  EXPECT_EQ(wait_for(estimator, 0, 100us), 0ns);
}

}  // namespace
}  // namespace clinfer
