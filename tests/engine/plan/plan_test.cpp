// Plans: which operations run where, and where their tensors lie.
#include "engine/plan/plan.h"

#include "tests/engine/pass_test.h"

namespace clinfer {
namespace {

using test::conv;
using test::cpu_context;
using test::GraphBuilder;

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
  EXPECT_LT(plan.stream_bytes, sum) << "nothing was reused";
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
