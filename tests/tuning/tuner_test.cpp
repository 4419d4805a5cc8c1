// The search on made-up kernels whose times are known.
#include "tuning/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kernels/base/error.h"

namespace clinfer {
namespace {

// A space of 12 x 8 points, with one valley: best at A = 7, B = 5.
std::vector<TuningPoint> grid(const OpDesc&, const DeviceTraits&) {
  std::vector<TuningPoint> points;
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 8; ++b) points.push_back({{{"A", a}, {"B", b}}});
  return points;
}

KernelPlan plan(const OpDesc&, const DeviceTraits&, const TuningPoint& point) {
  KernelPlan plan;
  KernelSpec spec;
  for (const auto& [name, value] : point.values)
    spec.defines.emplace_back(name, std::to_string(value));
  plan.launches.push_back(spec);
  return plan;
}

std::string reject(const OpDesc&, const DeviceTraits&) { return ""; }

const KernelFamily kGrid{"grid",
                         1,
                         reject,
                         grid,
                         [](const OpDesc&, const DeviceTraits&) {
                           return TuningPoint{{{"A", 1}, {"B", 1}}};
                         },
                         plan};
const KernelFamily kOther{"other",
                          1,
                          reject,
                          [](const OpDesc&, const DeviceTraits&) {
                            return std::vector<TuningPoint>{{{{"C", 0}}}};
                          },
                          [](const OpDesc&, const DeviceTraits&) {
                            return TuningPoint{{{"C", 0}}};
                          },
                          plan};

class FakeRunner final : public KernelRunner {
 public:
  void expect(std::span<const KernelPlan> plans) override { expected += plans.size(); }
  std::vector<std::string> prepare(std::span<const KernelPlan> plans,
                                   const std::function<bool()>& has_time) override {
    std::vector<std::string> reasons;
    for (const KernelPlan& plan : plans) {
      if (!reasons.empty() && has_time && !has_time()) break;
      seconds += build_seconds;
      std::map<std::string, int> values;
      for (const auto& [name, text] : plan.launches[0].defines) values[name] = std::stoi(text);
      made_.push_back(values);
      reasons.push_back(does_not_build && does_not_build(values) ? "syntax\nerror" : "");
    }
    return reasons;
  }
  std::string verify(size_t number) override {
    ++checks;
    return is_wrong && is_wrong(made_.at(number)) ? "12 of 20 outputs differ" : "";
  }
  double time(size_t number, unsigned repeat) override {
    ++timings;
    seconds += repeat * cost(made_.at(number)) / 1e9;
    if (does_not_run && does_not_run(made_.at(number)))
      throw Error(ErrorCode::device_failed, "out of registers");
    clock_ *= drift;  // the whole device slows down or speeds up
    noise_ = noise_ * 1664525u + 1013904223u;
    const double noise = 1 + 0.04 * (static_cast<double>(noise_ >> 16) / 65536 - 0.5);
    return cost(made_.at(number)) * clock_ * noise;
  }
  std::function<bool(const std::map<std::string, int>&)> does_not_build, is_wrong, does_not_run;
  std::function<double(const std::map<std::string, int>&)> cost =
      [](const std::map<std::string, int>& v) {
        if (v.count("C")) return 5e5;
        return 1e5 * (1 + 0.1 * (std::abs(v.at("A") - 7) + std::abs(v.at("B") - 5)));
      };
  double drift = 1;
  double seconds = 0, build_seconds = 0;  // the clock, and what a build adds to it
  size_t builds() const { return made_.size(); }
  size_t timings = 0, checks = 0, expected = 0;

 private:
  std::vector<std::map<std::string, int>> made_;
  double clock_ = 1;
  uint32_t noise_ = 7;
};

const std::vector<const KernelFamily*> kFamilies{&kGrid, &kOther};
const KernelChoice kDefault{&kGrid, {{{"A", 1}, {"B", 1}}}};

SearchResult run(
    FakeRunner& runner, const SearchLimits& limits = {}, std::vector<KernelChoice> guesses = {},
    const std::function<bool(const SearchProgress&)>& observe = [](const SearchProgress&) {
      return true;
    }) {
  return search(OpDesc(), DeviceTraits(), kFamilies, kDefault, guesses, runner, limits, observe);
}

TEST(Tuner, FindsTheBestWithoutTryingAll) {
  FakeRunner runner, all;
  const SearchResult result = run(runner);
  EXPECT_EQ(to_string(result.best), "grid A=7 B=5");
  EXPECT_NEAR(result.default_ns / result.best_ns, 2.0, 0.1);
  EXPECT_LT(result.tried, 60u);
  const SearchResult exhaustive = run(all, {.exhaustive = true});
  EXPECT_EQ(exhaustive.best, result.best);
  EXPECT_EQ(exhaustive.tried, 96u);  // 97 points, one of them the default
  EXPECT_EQ(all.expected, 96u);
}

TEST(Tuner, ExhaustivelyTriesOnlyFamiliesThatCanWin) {
  KernelFamily many = kOther;
  many.space = [](const OpDesc&, const DeviceTraits&) {
    std::vector<TuningPoint> points;
    for (int c = 0; c < 100; ++c) points.push_back({{{"C", c}}});
    return points;
  };
  const std::vector<const KernelFamily*> families{&kGrid, &many};
  for (const double other : {1.1e5, 2e5}) {
    FakeRunner runner;
    const auto grid_cost = runner.cost;
    runner.cost = [&](const std::map<std::string, int>& v) {
      return v.count("C") ? other : grid_cost(v);
    };
    const SearchResult result =
        search(OpDesc(), DeviceTraits(), families, kDefault, {}, runner, {.exhaustive = true},
               [](const SearchProgress&) { return true; });
    EXPECT_EQ(to_string(result.best), "grid A=7 B=5");
    EXPECT_EQ(result.tried >= 195, other < 1.2e5) << result.tried;
    EXPECT_GE(result.tried, 95u);
  }
}

TEST(Tuner, ADriftingClockDoesNotDecide) {
  for (const double drift : {1.002, 0.998}) {
    FakeRunner runner;
    runner.drift = drift;
    EXPECT_EQ(to_string(run(runner).best), "grid A=7 B=5") << drift;
  }
}

TEST(Tuner, KeepsTheDefaultWhereNothingIsClearlyFaster) {
  FakeRunner runner;
  runner.cost = [](const std::map<std::string, int>&) { return 1e5; };
  const SearchResult result = run(runner);
  EXPECT_EQ(result.best, kDefault);
  EXPECT_EQ(result.best_ns, result.default_ns);
}

TEST(Tuner, NeverChoosesWhatFails) {
  FakeRunner runner;
  runner.is_wrong = [](const std::map<std::string, int>& v) {
    return v.count("A") && v.at("A") == 7 && v.at("B") == 5;
  };
  runner.does_not_build = [](const std::map<std::string, int>& v) { return v.count("C") != 0; };
  const SearchResult result = run(runner, {.exhaustive = true});
  EXPECT_NEAR(result.default_ns / result.best_ns, 2.0 / 1.1, 0.1);
  ASSERT_EQ(result.failed.size(), 2u);
  const std::map<std::string, std::string> failed(result.failed.begin(), result.failed.end());
  EXPECT_EQ(failed.at("grid A=7 B=5"), "12 of 20 outputs differ");
  EXPECT_EQ(failed.at("other C=0"), "syntax error");
}

TEST(Tuner, StopsAtOnceAndKeepsTheBestSoFar) {
  FakeRunner runner;
  size_t timings = 0;
  const SearchResult result = run(runner, {}, {}, [&](const SearchProgress& progress) {
    if (progress.tried < 12) return true;
    if (timings == 0) timings = runner.timings;
    return false;
  });
  EXPECT_TRUE(result.stopped);
  EXPECT_LE(runner.timings, timings + 1);
  EXPECT_LT(result.best_ns, result.default_ns);
}

// Builds take seconds: the time is looked at between them, also within a batch of them.
TEST(Tuner, ABudgetEndsTheSearchBetweenTwoBuilds) {
  FakeRunner unlimited;
  unlimited.build_seconds = 1;
  run(unlimited);
  ASSERT_GT(unlimited.builds(), 20u);
  // The default's build, so many candidates, and one whose build begins just in time.
  for (const double budget : {0.5, 2.5, 4.5, 9.5, 15.5}) {
    FakeRunner runner;
    runner.build_seconds = 1;
    const SearchResult result = run(runner, {budget, false, [&] { return runner.seconds; }});
    EXPECT_FALSE(result.stopped);
    EXPECT_EQ(result.tried, std::max(1.0, std::floor(budget))) << budget;
    EXPECT_EQ(runner.builds(), result.tried + 1) << budget;
    EXPECT_LT(runner.seconds, std::max(budget, 1.5) + 1.1) << budget;
    EXPECT_LE(result.best_ns, result.default_ns);
  }
}

// A clock that does not move never ends a search, however slow the machine is.
TEST(Tuner, OnlyTheStatedClockCounts) {
  FakeRunner runner, unlimited;
  const SearchResult result = run(runner, {1e-9, false, [] { return 7.0; }});
  EXPECT_EQ(result.best, run(unlimited).best);
  EXPECT_EQ(runner.builds(), unlimited.builds());
}

// The run over a network: 23 operations, the first of which takes half of its time.
TEST(Tuner, ABudgetIsSharedByTheTimeInTheNetwork) {
  std::vector<double> weights{22};
  weights.resize(23, 1);
  constexpr double kSeconds = 88, kBuild = 0.5;
  double now = 1e6;
  TuningBudget budget(kSeconds, [&] { return now; });
  for (const double weight : weights) budget.add(weight);
  std::vector<double> spent;
  for (const double weight : weights) {
    if (budget.is_over()) break;
    FakeRunner runner;
    runner.build_seconds = kBuild;
    runner.seconds = now;
    const SearchResult result =
        run(runner, {budget.take(weight), false, [&] { return runner.seconds; }});
    EXPECT_GT(result.tried, 0u);
    spent.push_back(runner.seconds - now);
    now = runner.seconds;
  }
  EXPECT_EQ(spent.size(), weights.size()) << "each has its turn";
  EXPECT_LT(budget.passed(), kSeconds + 2);
  EXPECT_LT(spent[0], kSeconds / 2 + 2);
  for (size_t i = 1; i < spent.size(); ++i) {
    EXPECT_GT(spent[0], 3 * spent[i]) << i;
    // Later operations get the time that earlier ones leave.
    EXPECT_GE(spent[i], kSeconds / 44 - kBuild) << i;
  }
}

TEST(Tuner, StartsFromGuesses) {
  FakeRunner runner;
  // The valley lies between the points of the first sample; the guess leads there.
  runner.cost = [](const std::map<std::string, int>& v) {
    return v.count("A") && v.at("A") == 10 && v.at("B") == 6 ? 5e4 : 1e5;
  };
  const SearchResult result = run(runner, {}, {{&kGrid, {{{"A", 10}, {"B", 6}}}}});
  EXPECT_EQ(to_string(result.best), "grid A=10 B=6");
}

TEST(Tuner, AModelOfTheCostsLeads) {
  KernelFamily modelled = kGrid;
  modelled.costs = [](const OpDesc& desc, const DeviceTraits& traits) {
    std::vector<double> costs;
    for (const TuningPoint& point : grid(desc, traits))
      costs.push_back(std::abs(point["A"] - 10) + std::abs(point["B"] - 6));
    return costs;
  };
  const std::vector<const KernelFamily*> families{&modelled};
  FakeRunner runner;
  runner.cost = [](const std::map<std::string, int>& v) {
    return v.at("A") == 10 && v.at("B") == 6 ? 5e4 : 1e5;
  };
  const SearchResult result =
      search(OpDesc(), DeviceTraits(), families, {&modelled, {{{"A", 1}, {"B", 1}}}}, {}, runner,
             {}, [](const SearchProgress&) { return true; });
  EXPECT_EQ(to_string(result.best), "grid A=10 B=6");
  EXPECT_LT(result.tried, 30u);
}

// The doubt of a model of times is larger where more points come near the chosen one.
TEST(Tuner, ExpectsAGainWhereOtherPointsArePredictedToBeNear) {
  static std::vector<double> predicted;
  KernelFamily family = kOther;
  family.space = [](const OpDesc&, const DeviceTraits&) {
    std::vector<TuningPoint> points;
    for (size_t c = 0; c < predicted.size(); ++c) points.push_back({{{"C", static_cast<int>(c)}}});
    return points;
  };
  const auto gain = [&](std::vector<double> costs) {
    predicted = std::move(costs);
    return expected_gain({&family, {{{"C", 0}}}}, OpDesc(), DeviceTraits());
  };
  EXPECT_GT(gain({7, 7}), 0.02) << "without a model";
  family.costs = [](const OpDesc&, const DeviceTraits&) { return predicted; };
  const double least = gain({7});
  EXPECT_GT(least, 0) << "so that it gets what others leave of a budget";
  EXPECT_EQ(gain({7, 70, 700}), least) << "nothing that can be faster";
  EXPECT_GT(gain({7, 7.5}), least);
  EXPECT_GT(gain({7, 7.1}), gain({7, 7.5}));
  EXPECT_GT(gain({7, 7.5, 7.5}), gain({7, 7.5}));
  EXPECT_GT(gain({7, 6}), gain({7, 7})) << "the chosen one is not the cheapest";
  EXPECT_NEAR(gain({7, 7.5, 8}), gain({700, 750, 800}), 1e-9) << "the unit does not matter";
  EXPECT_LT(gain(std::vector<double>(1000, 7)), 0.2);
}

TEST(Tuner, ChecksOnlyWhatCanWin) {
  FakeRunner runner;
  runner.cost = [](const std::map<std::string, int>& v) {
    if (v.count("C")) return 1e6;
    return 1e5 * (1 + 0.5 * (std::abs(v.at("A") - 7) + std::abs(v.at("B") - 5)));
  };
  const SearchResult result = run(runner, {.exhaustive = true});
  EXPECT_EQ(result.tried, 96u);
  EXPECT_EQ(to_string(result.best), "grid A=7 B=5");
  EXPECT_LT(runner.checks, 75u);
}

TEST(Tuner, NotesWhatCannotBeLaunched) {
  FakeRunner runner;
  runner.does_not_run = [](const std::map<std::string, int>& v) {
    return v.count("A") && v.at("A") == 7 && v.at("B") == 5;
  };
  const SearchResult result = run(runner);
  EXPECT_NEAR(result.default_ns / result.best_ns, 2.0 / 1.1, 0.1);
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_EQ(result.failed[0].first, "grid A=7 B=5");
  EXPECT_EQ(result.failed[0].second, "out of registers");
}

TEST(Tuner, FailsWithTheDefault) {
  FakeRunner runner;
  runner.does_not_build = [](const std::map<std::string, int>&) { return true; };
  EXPECT_THROW(run(runner), Error);
}

}  // namespace
}  // namespace clinfer
