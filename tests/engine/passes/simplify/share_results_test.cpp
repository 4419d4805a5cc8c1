// Results that several nodes compute alike are computed once.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::GraphBuilder;

TEST(ShareResults, ChainsThatAreAlikeBecomeOne) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3});
  const auto chain = [&](float factor) {
    const Edge number = b.constant(Tensor::of<float>(ElementType::f32, {1, 1}, {factor}));
    return b.op("Exp", 1, {b.op("Multiply", 1, {x, number})});
  };
  b.result(b.op("Subtract", 1, {b.op("Abs", 1, {chain(2)}), b.op("Negative", 1, {chain(2)})}));
  b.result(b.op("Abs", 1, {chain(3)}));
  auto graph = b.finish();
  expect_same_values(*graph, "share_results", -1, 1);
  EXPECT_EQ(count_of(*graph, "Multiply"), 2u);  // by 2, by 3
  EXPECT_EQ(count_of(*graph, "Exp"), 2u);
}

TEST(ShareResults, AttributesAndInputsCount) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3}), y = b.parameter({2, 3});
  for (const char* axis : {"0", "1"})
    b.result(b.op("Abs", 1, {b.op("SoftMax", 8, {x}, {{"axis", axis}})}));
  b.result(b.op("Abs", 1, {b.op("SoftMax", 8, {y}, {{"axis", "1"}})}));
  auto graph = b.finish();
  expect_same_values(*graph, "share_results");
  EXPECT_EQ(count_of(*graph, "SoftMax"), 3u);
}

// An output is named after its node.
TEST(ShareResults, OutputsOfTheModelKeepTheirNodes) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3});
  b.result(b.op("Exp", 1, {x}));
  b.result(b.op("Exp", 1, {x}));
  auto graph = b.finish();
  expect_same_values(*graph, "share_results", -1, 1);
  EXPECT_NE(graph->results[0]->inputs[0].node, graph->results[1]->inputs[0].node);
}

}  // namespace
}  // namespace clinfer
