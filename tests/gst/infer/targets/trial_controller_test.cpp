// Trials of variants of a model: which is tried when, what is taken, and how often one is tried
// again. The rates of the variants are given, so that figures are exact.
#include "gst/infer/targets/trial_controller.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace clinfer {
namespace {

using Phase = TrialController::Phase;

// A device with a known rate for each variant, and an owner that compiles at once.
class Trials {
 public:
  explicit Trials(std::function<double(const Variant&)> rate, TrialController::Bounds bounds)
      : rate_(std::move(rate)), bounds_(std::move(bounds)) {}

  bool is_short = true;
  size_t users = 4;
  double wanted = 1000;
  std::function<bool(const Variant&)> has = [](const Variant&) { return true; };

  // Runs some periods; returns how many of them went to variants that were not the present one.
  int run(int periods) {
    int tried = 0;
    for (int i = 0; i < periods; ++i, ++now) {
      const bool tries = controller.phase() == Phase::candidate;
      tried += tries ? 1 : 0;
      const Variant& runs = tries ? controller.candidate() : controller.present();
      const bool was_idle = controller.phase() == Phase::idle;
      controller.next({rate_(runs), wanted, is_short, users}, bounds_);
      if (controller.was_needless()) ++needless;
      if (controller.outcome()) outcomes.push_back(*controller.outcome());
      if (was_idle && controller.phase() == Phase::compiling) {
        begun.push_back(now);
        tried_variants.push_back(controller.candidate());
        if (has(controller.candidate()))
          controller.compiled();
        else
          controller.refuse();
      }
    }
    return tried;
  }

  TrialController controller{Variant{}};
  int now = 0, needless = 0;
  std::vector<int> begun;
  std::vector<Variant> tried_variants;
  std::vector<TrialController::Outcome> outcomes;

 private:
  const std::function<double(const Variant&)> rate_;
  const TrialController::Bounds bounds_;
};

double by_streams(const Variant& variant) {
  constexpr double kRates[] = {0, 30, 50, 60, 61, 62};
  return kRates[variant.streams];
}

TEST(TrialController, AsManyStreamsAsPay) {
  Trials device(by_streams, {5, {}});
  device.run(300);
  EXPECT_EQ(device.controller.present().streams, 3u) << "a fourth one gives less than 5 %";
  ASSERT_GE(device.outcomes.size(), 3u);
  EXPECT_TRUE(device.outcomes[0].taken);
  EXPECT_NEAR(device.outcomes[0].gain, 50.0 / 30, 1e-9);
  EXPECT_TRUE(device.outcomes[1].taken);
  EXPECT_FALSE(device.outcomes[2].taken);
}

TEST(TrialController, EndsWhereThePresentOneInfersAllFrames) {
  Trials device(by_streams, {5, {}});
  device.wanted = 30;
  EXPECT_EQ(device.run(30), 0) << "the other one was never used";
  EXPECT_GE(device.needless, 1);
  EXPECT_TRUE(device.outcomes.empty());
  device.wanted = 40;
  device.run(30);
  EXPECT_EQ(device.controller.present().streams, 2u);
}

TEST(TrialController, FewerStreamsWhereTheyPay) {
  Trials device([](const Variant& variant) { return 100.0 / variant.streams; }, {5, {}});
  device.controller = TrialController(Variant{3, Precision::f32});
  device.run(300);
  EXPECT_EQ(device.controller.present().streams, 1u);
}

TEST(TrialController, AFasterPrecisionIsTakenAndASlowerOneIsNot) {
  const auto rate = [](const Variant& variant) {
    return variant.precision == Precision::f16    ? 20.0
           : variant.precision == Precision::bf16 ? 60.0
                                                  : 30.0;
  };
  Trials device(rate, {0, {Precision::f16, Precision::bf16}});
  device.run(100);
  EXPECT_EQ(device.controller.present(), (Variant{1, Precision::bf16}));
  for (const TrialController::Outcome& outcome : device.outcomes)
    EXPECT_EQ(outcome.taken, outcome.to.precision == Precision::bf16);
}

TEST(TrialController, NothingIsTriedWhileTheDeviceKeepsUp) {
  Trials device(by_streams, {5, {Precision::bf16}});
  device.is_short = false;
  EXPECT_EQ(device.run(200), 0);
  EXPECT_TRUE(device.begun.empty());
  device.is_short = true;
  device.run(10);
  EXPECT_EQ(device.begun.size(), 1u);
}

TEST(TrialController, WhatIsFixedIsNotTried) {
  Trials device(by_streams, {0, {Precision::f32}});
  device.run(200);
  EXPECT_TRUE(device.begun.empty()) << "f32 is the present precision";
}

TEST(TrialController, PausesGrowWhileNothingIsGained) {
  Trials device([](const Variant&) { return 30.0; }, {2, {}});
  EXPECT_LT(device.run(3600), 3600 / 50) << "periods with the other variant";
  ASSERT_GE(device.begun.size(), 4u);
  ASSERT_LE(device.begun.size(), 6u);
  for (size_t i = 2; i < device.begun.size(); ++i)
    EXPECT_GT(device.begun[i] - device.begun[i - 1],
              1.8 * (device.begun[i - 1] - device.begun[i - 2]));
}

TEST(TrialController, WhatTheDeviceHasNotIsAskedForOnce) {
  Trials device(by_streams, {0, {Precision::bf16, Precision::f16}});
  device.has = [](const Variant&) { return false; };
  device.run(1000);
  EXPECT_EQ(device.tried_variants,
            (std::vector<Variant>{{1, Precision::bf16}, {1, Precision::f16}}));
  EXPECT_EQ(device.controller.present(), Variant{});
}

// A rate that grows by itself, as when another program ends, is no merit of the variant.
TEST(TrialController, ADeviceThatIsFasterAfterwardsAsWellDecidesNothing) {
  int period = 0;
  Trials device([&](const Variant&) { return period++ < 12 ? 30.0 : 60.0; }, {2, {}});
  device.run(60);
  ASSERT_FALSE(device.outcomes.empty());
  EXPECT_FALSE(device.outcomes[0].taken);
  EXPECT_EQ(device.controller.present().streams, 1u);
}

TEST(TrialController, AHopelessVariantIsGivenUpAtOnce) {
  Trials device(
      [](const Variant& variant) { return variant.precision == Precision::f16 ? 1.0 : 30.0; },
      {0, {Precision::f16}});
  EXPECT_LE(device.run(60), 3);
  EXPECT_FALSE(device.outcomes.at(0).taken);
}

// One inference of the present variant takes longer than the target.
TEST(TrialController, AVariantThatAloneIsInTimeIsTaken) {
  Trials device(
      [](const Variant& variant) { return variant.precision == Precision::bf16 ? 20.0 : 0.0; },
      {0, {Precision::bf16}});
  device.run(60);
  EXPECT_EQ(device.controller.present().precision, Precision::bf16);
}

TEST(TrialController, WithoutAnyFrameInTimeNothingIsTaken) {
  Trials device([](const Variant&) { return 0.0; }, {2, {Precision::bf16}});
  device.run(200);
  EXPECT_EQ(device.controller.present(), Variant{});
  EXPECT_LE(device.begun.size(), 4u);
}

TEST(TrialController, CamerasThatComeEndATrialWithoutAResult) {
  Trials device(by_streams, {5, {}});
  device.run(13);
  ASSERT_EQ(device.controller.phase(), Phase::candidate);
  ++device.users;
  device.run(1);
  EXPECT_EQ(device.controller.phase(), Phase::idle);
  EXPECT_TRUE(device.outcomes.empty());
  device.run(60);
  EXPECT_TRUE(device.outcomes.at(0).taken) << "it is tried again";
}

}  // namespace
}  // namespace clinfer
