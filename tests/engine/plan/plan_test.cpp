// Plans: which operations run where, and where their tensors lie.
#include "engine/plan/plan.h"

#include <algorithm>
#include <ctime>
#include <limits>

#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::conv;
using test::cpu_context;
using test::GraphBuilder;

// How many bytes all regions have together; looks that none overlap that are alive at a time.
size_t check_places(const Plan& plan) {
  size_t sum = 0;
  for (const Region& a : plan.regions) {
    if (a.memory != Memory::stream) continue;
    sum += a.bytes;
    EXPECT_LE(a.offset + a.bytes, plan.stream_bytes);
    for (const Region& o : plan.regions)
      if (&a != &o && o.memory == Memory::stream && a.first <= o.last && o.first <= a.last) {
        EXPECT_TRUE(a.offset + a.bytes <= o.offset || o.offset + o.bytes <= a.offset);
      }
  }
  return sum;
}

TEST(PlanMemory, RegionsAliveTogetherDoNotOverlap) {
  GraphBuilder b;
  Edge x = b.parameter({1, 16, 12, 12});
  std::vector<Edge> kept;
  for (unsigned i = 0; i < 6; ++i) {
    x = conv(b, x, 16, 16, 3, "1,1", i);
    if (i % 2 == 0) kept.push_back(x);
  }
  for (const Edge& other : kept) x = b.op("Add", 1, {x, other});
  b.result(x);
  auto graph = b.finish();
  const PassContext context = cpu_context();
  run_passes(*graph, context, "");
  const Plan plan = make_plan(std::move(graph), context.traits);
  EXPECT_LT(plan.stream_bytes, check_places(plan)) << "nothing was reused";
}

// More than are compared with each other when a gap is looked for.
TEST(PlanMemory, ManyRegionsAliveTogetherDoNotOverlap) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 4, 4, 4});
  std::vector<Edge> kept;
  for (int i = 0; i < 1500; ++i) kept.push_back(b.op("Sigmoid", 1, {b.op("Exp", 1, {x})}));
  Edge sum = x;
  for (const Edge& other : kept) sum = b.op("Multiply", 1, {sum, other});
  b.result(sum);
  const Plan plan = make_plan(b.finish(), DeviceTraits{});
  ASSERT_EQ(plan.steps.size(), 4500u);
  EXPECT_LT(plan.stream_bytes, check_places(plan) * 2 / 3);
}

// The processor's time for a chain of that many steps, the least of several tries.
double time_to_plan(int steps) {
  GraphBuilder b;
  Edge x = b.parameter({1, 4, 4, 4});
  for (int i = 0; i < steps; ++i) x = b.op("Sigmoid", 1, {x});
  b.result(x);
  Plan plan = make_plan(b.finish(), DeviceTraits{});
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int i = 0; i < 5; ++i) {
    const std::clock_t begin = std::clock();
    plan_memory(plan);
    least = std::min(least, std::clock() - begin);
  }
  EXPECT_LE(plan.stream_bytes, 4 * plan.regions[1].bytes);
  return static_cast<double>(least);
}

TEST(PlanMemory, TakesTimeByTheNumberOfSteps) {
  constexpr int kFew = 4000, kTimes = 10;
  const double few = time_to_plan(kFew), many = time_to_plan(kTimes * kFew);
  // Each compared with each would take a hundred times as long.
  EXPECT_LT(many, 4 * kTimes * few);
}

// A kernel may fill up the rows after those it found. The host trims them; another kernel would
// read them.
TEST(Plan, FilledUpRowsReachNoKernel) {
  for (const bool read_on_device : {false, true}) {
    GraphBuilder b;
    const auto number = [&](float v) {
      return b.constant(Tensor::of(ElementType::f32, {}, std::vector<float>{v}));
    };
    const Edge most = b.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{4}));
    const Edge rows =
        b.op("NonMaxSuppression", 4,
             {b.parameter({1, 8, 4}), b.parameter({1, 2, 8}), most, number(0.5f), number(0.5f)},
             {{"output_type", "i32"}});
    b.result(read_on_device ? b.op("Abs", 1, {rows}) : rows);
    auto graph = b.finish();
    const Plan plan = make_plan(std::move(graph), DeviceTraits{});  // no pass groups what follows
    ASSERT_FALSE(plan.steps.empty());
    EXPECT_EQ(plan.steps[0].on_host, read_on_device);
  }
}

}  // namespace
}  // namespace clinfer
