// How long to sleep before a wait.
#include "engine/runtime/nap.h"

#include <gtest/gtest.h>

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Time = Nap::Time;

// One wait for what takes `taken`; gives for how long it would have slept.
std::chrono::nanoseconds wait_for(Nap& nap, size_t kind, std::chrono::nanoseconds taken) {
  static Time now{1h};
  now += 1s;
  nap.begin(kind, now);
  const auto slept = nap.until() > now ? nap.until() - now : 0ns;
  nap.end(now + taken);
  return slept;
}

TEST(Nap, DoesNotSleepThroughWhatItDoesNotKnow) {
  Nap nap;
  EXPECT_EQ(wait_for(nap, 0, 5ms), 0ns);
  EXPECT_EQ(wait_for(nap, 1, 5ms), 0ns) << "another kind";
}

TEST(Nap, EndsBeforeTheShortestOfLate) {
  Nap nap;
  wait_for(nap, 0, 5ms);
  const auto slept = wait_for(nap, 0, 4ms);
  EXPECT_GT(slept, 4500us);
  EXPECT_LT(slept, 5ms);
  EXPECT_LT(wait_for(nap, 0, 9ms), 4ms) << "what took 4 ms may do so again";
}

TEST(Nap, BelievesSlowlyThatItTakesLonger) {
  Nap nap;
  wait_for(nap, 0, 1ms);
  wait_for(nap, 0, 10ms);
  EXPECT_LT(wait_for(nap, 0, 10ms), 1ms);
  for (int i = 0; i < 1000; ++i) wait_for(nap, 0, 10ms);
  const auto slept = wait_for(nap, 0, 10ms);
  EXPECT_GT(slept, 9ms);
  EXPECT_LT(slept, 10ms);
}

TEST(Nap, IsNotWorthItForShortWaits) {
  Nap nap;
  wait_for(nap, 0, 100us);
  EXPECT_EQ(wait_for(nap, 0, 100us), 0ns);
}

}  // namespace
}  // namespace clinfer
