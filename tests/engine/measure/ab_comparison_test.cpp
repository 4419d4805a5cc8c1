// Comparing two models by turns, with requests that take a time of their own.
#include "engine/measure/ab_comparison.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/ball_model.h"
#include "tests/engine/request_without_inputs.h"

namespace clinfer {
namespace {

using std::chrono::milliseconds;

class Sleeper final : public RequestWithoutInputs {
 public:
  explicit Sleeper(milliseconds time) : time_(time) {}
  void start(size_t) override { over_ = std::chrono::steady_clock::now() + time_; }
  bool wait(std::optional<milliseconds>) override {
    std::this_thread::sleep_until(over_);
    return true;
  }
  const Tensor& output(size_t) const override { return output_; }

 private:
  const milliseconds time_;
  std::chrono::steady_clock::time_point over_;
  Tensor output_;
};

Requests sleepers(size_t count, int ms) {
  Requests requests;
  while (requests.size() < count) requests.push_back(std::make_unique<Sleeper>(milliseconds(ms)));
  return requests;
}

TEST(ABComparison, TheSlowerOneIsFound) {
  Requests fast = sleepers(1, 5), slow = sleepers(1, 20);
  const ABComparison whole = compare_alternately(fast, slow, 0.3, [] { return true; });
  EXPECT_GE(whole.rounds, 3u);
  EXPECT_GE(whole.first_ms, 5);
  EXPECT_GE(whole.second_ms, 20);
  EXPECT_LT(whole.gain, 0.8);
  EXPECT_LE(whole.low, whole.gain);
  EXPECT_GE(whole.high, whole.gain);
  EXPECT_TRUE(whole.second_is_slower());
  EXPECT_FALSE(compare_alternately(slow, fast, 0.3, [] { return true; }).second_is_slower());
}

TEST(ABComparison, RequestsInFlightShareATurn) {
  Requests one = sleepers(1, 20), two = sleepers(2, 20);
  const ABComparison whole = compare_alternately(one, two, 0.3, [] { return true; });
  EXPECT_GT(whole.gain, 1.4);
}

TEST(ABComparison, StopsBetweenTurns) {
  Requests first = sleepers(1, 1), second = sleepers(1, 1);
  size_t asked = 0;
  const ABComparison whole = compare_alternately(first, second, 3600, [&] { return ++asked < 10; });
  EXPECT_EQ(asked, 10u);
  EXPECT_EQ(whole.rounds, 2u);
  EXPECT_EQ(compare_alternately(first, second, 3600, [] { return false; }).rounds, 0u);
}

// A stop of a slow comparison waits for a layer, not for inferences.
TEST(ABComparison, SlowInferencesAreAskedForByLayers) {
  Config config;
  config.persistent = Config::Persistent::no;
  const auto compiled = CompiledModel::compile(Model::read(test::ball_model()), config);
  const size_t layers = compiled->kernel_count();
  for (const double slow_ms : {0.0, 1e9}) {
    Requests first, second;
    for (Requests* requests : {&first, &second}) requests->push_back(compiled->create_request());
    size_t asked = 0;
    const ABComparison whole = compare_alternately(
        first, second, 3600, [&] { return ++asked < 2 * layers + 40; }, slow_ms);
    EXPECT_EQ(asked, 2 * layers + 40);
    EXPECT_EQ(whole.rounds >= 9, slow_ms > 0) << whole.rounds;
  }
}

}  // namespace
}  // namespace clinfer
