// The pass that turns loops into operations of the device: the values stay, also by the reference of
// the new operation.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::GraphBuilder;

// out = x W + s, which is the next s. The condition of a Loop follows from the state.
std::unique_ptr<Graph> loop_graph(int64_t steps, bool by_value) {
  GraphBuilder inner;
  const Edge x = inner.parameter({2, 1, 3}), s = inner.parameter({2, 1, 3});
  const Edge product =
      inner.op("MatMul", 1, {x, inner.constant(test::random_tensor({3, 3}, -1, 1, 3))});
  const Edge sum = inner.op("Add", 1, {product, s});
  inner.result(sum);
  if (by_value) {
    const Edge flat = inner.op("ReduceMax", 1, {sum, inner.ints({0, 1, 2})});
    inner.result(inner.op("Less", 1, {flat, inner.number(1e9f)}));
  }
  auto body = std::make_shared<GraphBody>(inner.finish());
  if (by_value) body->condition = 1;
  const Body::Port along{by_value ? 2u : 0u, 0, true, 1, 0, -1, 1, 1};
  body->inputs = {along, {by_value ? 3u : 1u, 1}};
  body->outputs = {{0, 0, true, 1, 0, -1, 1, 1}, {1, 0}};
  body->back_edges = {{0, 1}};
  GraphBuilder b;
  std::vector<Edge> inputs;
  if (by_value) {
    inputs.push_back(b.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{steps})));
    inputs.push_back(b.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})));
  }
  inputs.push_back(b.parameter({2, steps, 3}));
  inputs.push_back(b.parameter({2, 1, 3}));
  const Edge loop =
      Insertion(b.graph(), nullptr, "loop")
          .op(by_value ? "Loop" : "TensorIterator", by_value ? 5 : 1, inputs, {}, 2, {body});
  for (const int port : {0, 1}) b.result({loop.node, port});
  return b.finish();
}

TEST(PlaceLoops, KeepsValuesAndComputesOutsideWhatNeedsNoState) {
  auto graph = loop_graph(5000, false);
  test::expect_same_values(*graph, "place_loops", -1, 1);
  EXPECT_EQ(count_of(*graph, "TensorIterator"), 0u);
  ASSERT_EQ(count_of(*graph, "DeviceLoop"), 1u);
  EXPECT_EQ(count_of(*graph, "MatMul"), 1u);  // of all steps
  const auto& body = static_cast<const GraphBody&>(*test::find(*graph, "DeviceLoop")->bodies[0]);
  EXPECT_EQ(count_of(body.graph(), "MatMul"), 0u);
}

TEST(PlaceLoops, SaysWhyALoopStays) {
  auto graph = loop_graph(5000, true);
  run_passes(*graph, test::cpu_context(), "place_loops");
  const Node* const loop = test::find(*graph, "Loop");
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->attributes.get_string(kOnHost), "how often it runs depends on values");
}

}  // namespace
}  // namespace clinfer
