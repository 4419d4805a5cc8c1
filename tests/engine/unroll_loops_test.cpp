// The pass that writes loops out: the values of the graph stay, the loop goes.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
#include "kernels/loop.h"
#include "tests/engine/graph_builder.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::GraphBuilder;
using test::random_tensor;

// Unrolls and expects the outputs of the graph to stay what they were.
void expect_same_values(Graph& graph) {
  std::vector<Tensor> inputs;
  for (const Node* parameter : graph.parameters)
    inputs.push_back(random_tensor(parameter->shape(), -2, 2, 7));
  const std::vector<Tensor> before = evaluate_graph(graph, inputs);
  unroll_loops(graph, {});
  const std::vector<Tensor> after = evaluate_graph(graph, inputs);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i].to_floats(), after[i].to_floats()) << "output " << i;
}

// A body x * k + s, which is the next s as well as a result of its own.
std::shared_ptr<GraphBody> scan_body(const Shape& part) {
  GraphBuilder b;
  const Edge x = b.parameter(part), s = b.parameter(part);
  const Edge sum =
      b.op("Add", 1,
           {b.op("Multiply", 1,
                 {x, b.constant(Tensor::of(ElementType::f32, {1}, std::vector<float>{3}))}),
            s});
  b.result(sum);
  auto body = std::make_shared<GraphBody>(b.finish());
  body->back_edges = {{0, 1}};
  return body;
}

// A TensorIterator over `steps` parts, backwards where `stride` is -1.
std::unique_ptr<Graph> scan_graph(int64_t steps, int64_t stride) {
  GraphBuilder b;
  const Edge x = b.parameter({2, steps, 3}), s = b.parameter({2, 1, 3});
  auto body = scan_body({2, 1, 3});
  const Body::Port along{0, 0, true, 1, stride < 0 ? -1 : 0, stride < 0 ? 0 : -1, stride, 1};
  body->inputs = {along, {1, 1}};
  body->outputs = {along, {1, 0}};
  auto graph = b.finish();
  Node* loop = graph->insert(nullptr, "TensorIterator", "scan");
  loop->def = find_op("TensorIterator", 1);
  loop->inputs = {x, s};
  loop->bodies = {body};
  loop->outputs.resize(2);
  infer_node_shapes(*loop);
  for (int port : {0, 1}) {
    Node* result = graph->insert(nullptr, "Result", "out");
    result->inputs = {{loop, port}};
    graph->results.push_back(result);
  }
  return graph;
}

TEST(UnrollLoops, WritesIterationsOut) {
  for (const int64_t stride : {1, -1}) {
    auto graph = scan_graph(4, stride);
    EXPECT_EQ(graph->nodes.at(2)->shape(), (Shape{2, 4, 3}));
    expect_same_values(*graph);
    EXPECT_EQ(count_of(*graph, "TensorIterator"), 0u);
    EXPECT_EQ(count_of(*graph, "Add"), 4u);
    EXPECT_EQ(count_of(*graph, "Constant"), 1u + 4 * 4);  // the factor once, the slices' numbers
  }
}

TEST(UnrollLoops, LeavesLongLoopsAndThoseItIsToldTo) {
  auto graph = scan_graph(2000, 1);
  expect_same_values(*graph);
  EXPECT_EQ(count_of(*graph, "TensorIterator"), 1u);
  graph = scan_graph(4, 1);
  PassContext context;
  context.unroll_loops = false;
  unroll_loops(*graph, context);
  EXPECT_EQ(count_of(*graph, "TensorIterator"), 1u);
}

// As TensorFlow writes a recurrent layer: the condition counts, and the list of results, whose
// elements have no shape yet, becomes one in the first iteration.
TEST(UnrollLoops, CountsByTheConditionAndLetsAStateTakeShape) {
  const auto ints = [](GraphBuilder& b, const Shape& shape, const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(ElementType::i64, shape, values));
  };
  GraphBuilder inner;
  const Edge count = inner.parameter({}, ElementType::i64), list = inner.parameter({3, 1}),
             x = inner.parameter({3, 2});
  const Edge next = inner.op("Add", 1, {count, ints(inner, {}, {1})});
  const Edge full = inner.op("Broadcast", 3, {list, ints(inner, {2}, {3, 2})});
  const Edge row = inner.op("Gather", 8, {x, count, ints(inner, {}, {0})});
  inner.result(next);
  inner.result(
      inner.op("ScatterUpdate", 3,
               {full, inner.op("Unsqueeze", 1, {count, ints(inner, {1}, {0})}),
                inner.op("Unsqueeze", 1, {row, ints(inner, {1}, {0})}), ints(inner, {1}, {0})}));
  inner.result(inner.op("Less", 1, {next, ints(inner, {}, {2})}));
  auto body = std::make_shared<GraphBody>(inner.finish());
  body->inputs = {{2, 0}, {3, 1}, {4, 2}};
  body->outputs = {{0, 1}};
  body->back_edges = {{0, 0}, {1, 1}};
  body->condition = 2;

  GraphBuilder b;
  const Edge data = b.parameter({3, 2});
  auto* loop = b.op("Abs", 1, {data}).node;
  loop->type = "Loop";
  loop->def = find_op("Loop", 5);
  loop->opset = 5;
  const Edge start = ints(b, {}, {0}), trips = ints(b, {}, {-1}),
             go = b.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})),
             empty = b.constant(Tensor::allocate(ElementType::f32, {3, 1}));
  loop->inputs = {trips, go, start, empty, data};
  loop->bodies = {body};
  b.result({loop, 0});
  auto graph = b.finish();
  graph->sort();
  infer_node_shapes(*loop);
  EXPECT_EQ(loop->shape(), (Shape{3, 2}));
  expect_same_values(*graph);
  EXPECT_EQ(count_of(*graph, "Loop"), 0u);
  EXPECT_EQ(count_of(*graph, "ScatterUpdate"), 2u);
  const Tensor given = random_tensor({3, 2}, -2, 2, 7);
  std::vector<float> want = given.to_floats();
  want[4] = want[5] = 0;  // two of three rows
  EXPECT_EQ(evaluate_graph(*graph, std::vector<Tensor>{given})[0].to_floats(), want);
}

TEST(UnrollLoops, AConditionOfConstantsNeedsNoCounting) {
  GraphBuilder inner;
  inner.result(inner.op("Abs", 1, {inner.parameter({2})}));
  inner.result(inner.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})));
  GraphBody body(inner.finish());
  body.inputs = {{2, 0}};
  body.back_edges = {{0, 0}};
  body.condition = 1;
  const int64_t trips = 1'000'000'000;
  const std::vector<ValueInfo> inputs{
      {ElementType::i64, {}, Tensor::of(ElementType::i64, {}, std::vector<int64_t>{trips})},
      {ElementType::boolean, {}, Tensor::of(ElementType::boolean, {}, std::vector<int>{1})},
      {ElementType::f32, {2}}};
  EXPECT_EQ(iterations("Loop", body, inputs), trips);
}

// A Loop of Abs, its input and output 0 a state; so is output 1 where `states` is 2.
Node* abs_loop(GraphBuilder& b, const Edge& x, std::shared_ptr<GraphBody> body, int64_t trips,
               bool go, size_t states) {
  Node* loop = b.op("Abs", 1, {x}).node;
  loop->type = "Loop";
  loop->def = find_op("Loop", 5);
  loop->opset = 5;
  loop->inputs = {b.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{trips})),
                  b.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{go})), x, x};
  body->inputs = {{2, 0}, {3, 1}};
  body->outputs = {{0, 0}, {1, 1}};
  for (size_t i = 0; i < states; ++i) body->back_edges.push_back({i, i});
  loop->bodies = {std::move(body)};
  loop->outputs.resize(2);
  return loop;
}

TEST(UnrollLoops, NoIterationAtAllLeavesStatesAsTheyWere) {
  GraphBuilder inner, b;
  for (int i = 0; i < 2; ++i) inner.result(inner.op("Abs", 1, {inner.parameter({2})}));
  Node* loop =
      abs_loop(b, b.parameter({2}), std::make_shared<GraphBody>(inner.finish()), 3, false, 1);
  for (int port : {0, 1}) b.result({loop, port});
  auto graph = b.finish();
  graph->sort();
  infer_node_shapes(*loop);
  expect_same_values(*graph);
  EXPECT_EQ(count_of(*graph, "Loop"), 0u);
}

// The state would grow in the first iteration, and later layers have been told so.
TEST(UnrollLoops, NoIterationAtAllMakesNoOtherShape) {
  GraphBuilder inner, b;
  const Edge x = inner.parameter({2});
  inner.result(
      inner.op("Broadcast", 3,
               {x, inner.constant(Tensor::of(ElementType::i64, {2}, std::vector<int64_t>{3, 2}))}));
  inner.result(inner.op("Abs", 1, {inner.parameter({2})}));
  Node* loop =
      abs_loop(b, b.parameter({2}), std::make_shared<GraphBody>(inner.finish()), 3, false, 1);
  b.result({loop, 0});
  const auto graph = b.finish();
  graph->sort();
  infer_node_shapes(*loop);
  EXPECT_EQ(loop->shape(), (Shape{3, 2}));
  EXPECT_THROW(evaluate_graph(*graph, std::vector<Tensor>{random_tensor({2})}), Error);
  EXPECT_THROW(unroll_loops(*graph, {}), Error);
}

TEST(UnrollLoops, BodiesThatTakeTooMuchAreRefused) {
  const auto error_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  GraphBuilder inner, b;
  for (int i = 0; i < 2; ++i) inner.result(inner.op("Abs", 1, {inner.parameter({2})}));
  auto body = std::make_shared<GraphBody>(inner.finish());
  Node* loop = abs_loop(b, b.parameter({2}), body, 3, true, 1);
  body->inputs.pop_back();
  body->counter = 1;  // of two elements, as a hostile model may state it
  EXPECT_NE(error_of([&] { infer_node_shapes(*loop); }).find("[2]"), std::string::npos);

  GraphBuilder wide;
  wide.result(wide.op(
      "Broadcast", 3,
      {wide.parameter({1, 1}),
       wide.constant(Tensor::of(ElementType::i64, {2}, std::vector<int64_t>{1 << 15, 1 << 14}))}));
  const GraphBody big(wide.finish());
  EXPECT_NE(error_of([&] {
              big.evaluate(std::vector<Tensor>{random_tensor({1, 1})});
            }).find("memory"),
            std::string::npos);
}

TEST(UnrollLoops, LoopsInsideOfLoopsStopGrowing) {
  const auto abs = [] {
    GraphBuilder inner;
    for (int i = 0; i < 2; ++i) inner.result(inner.op("Abs", 1, {inner.parameter({2})}));
    return std::make_shared<GraphBody>(inner.finish());
  };
  GraphBuilder middle, b;
  const Edge x = middle.parameter({2}), y = middle.parameter({2});
  Node* loop = abs_loop(middle, x, abs(), 500, true, 2);
  middle.result({loop, 0});
  middle.result(y);
  auto body = middle.finish();
  body->sort();
  Node* outer =
      abs_loop(b, b.parameter({2}), std::make_shared<GraphBody>(std::move(body)), 500, true, 2);
  b.result({outer, 0});
  auto graph = b.finish();
  graph->sort();
  infer_node_shapes(*outer);
  expect_same_values(*graph);
  EXPECT_LT(graph->nodes.size(), 50'000u);
  EXPECT_GT(count_of(*graph, "Loop"), 0u);
}

TEST(UnrollLoops, PutsTheChosenBranchInPlace) {
  for (const int chosen : {0, 1}) {
    GraphBuilder b;
    const Edge condition =
                   b.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{chosen})),
               x = b.parameter({2, 3});
    auto graph = b.finish();
    Node* node = graph->insert(nullptr, "If", "choice");
    node->opset = 8;
    node->def = find_op("If", 8);
    node->inputs = {condition, x};
    for (const char* type : {"Exp", "Abs"}) {
      GraphBuilder branch;
      branch.result(branch.op(type, 1, {branch.parameter({2, 3})}));
      auto body = std::make_shared<GraphBody>(branch.finish());
      body->inputs = {{1, 0}};
      body->outputs = {{0, 0}};
      node->bodies.push_back(body);
    }
    node->outputs.resize(1);
    infer_node_shapes(*node);
    Node* result = graph->insert(nullptr, "Result", "out");
    result->inputs = {{node, 0}};
    graph->results.push_back(result);
    expect_same_values(*graph);
    EXPECT_EQ(count_of(*graph, chosen ? "Exp" : "Abs"), 1u);
    EXPECT_EQ(count_of(*graph, "If"), 0u);
  }
}

}  // namespace
}  // namespace clinfer
