// The pass that writes loops out: the values of the graph stay, the loop goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
#include "kernels/recurrent/loop.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/error_of.h"
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
    EXPECT_EQ(nodes_of(*graph).at(2)->shape(), (Shape{2, 4, 3}));
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

Edge ints(GraphBuilder& b, const Shape& shape, const std::vector<int64_t>& values) {
  return b.constant(Tensor::of(ElementType::i64, shape, values));
}

// As TensorFlow writes a recurrent layer: the condition counts, and the list of results, whose
// elements have no shape yet, becomes one in the first iteration.
TEST(UnrollLoops, CountsByTheConditionAndLetsAStateTakeShape) {
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

// An operation whose shape is not known where it is built.
Node* uninferred(GraphBuilder& b, const std::string& type, int opset,
                 const std::vector<Edge>& inputs) {
  Node* node = b.op("Abs", 1, {inputs[0]}).node;
  node->type = type;
  node->opset = opset;
  node->def = find_op(type, opset);
  node->inputs = inputs;
  return node;
}

// `count` rows of x from row `i` on.
Edge rows_at(GraphBuilder& b, const Edge& x, const Edge& i, int64_t count) {
  const Edge begin = b.op("Unsqueeze", 1, {i, ints(b, {1}, {0})}),
             end = b.op("Add", 1, {begin, ints(b, {1}, {count})});
  return {uninferred(b, "Slice", 8, {x, begin, end, ints(b, {1}, {1}), ints(b, {1}, {0})}), 0};
}

// x[i], as TensorFlow writes it.
Edge row_at(GraphBuilder& b, const Edge& x, const Edge& i) {
  const Edge begin = b.op("Unsqueeze", 1, {i, ints(b, {1}, {0})}),
             end = b.op("Add", 1, {begin, ints(b, {1}, {1})});
  Node* node = uninferred(b, "StridedSlice", 1, {x, begin, end, ints(b, {1}, {1})});
  for (const char* mask : {"begin_mask", "end_mask"}) node->attributes.set(mask, "0");
  node->attributes.set("shrink_axis_mask", "1");
  return {node, 0};
}

// A Loop that gives its state 1. Its body's parameters are a counter, which is state 0, a state,
// and x; its results the next counter and state, and whether to go on.
Node* slicing_loop(GraphBuilder& b, std::unique_ptr<Graph> inner, int64_t trips, int64_t start,
                   const Edge& state, const Edge& x) {
  auto body = std::make_shared<GraphBody>(std::move(inner));
  body->inputs = {{2, 0}, {3, 1}, {4, 2}};
  body->outputs = {{0, 1}};
  body->back_edges = {{0, 0}, {1, 1}};
  body->condition = 2;
  Node* loop = uninferred(
      b, "Loop", 5,
      {ints(b, {}, {trips}), b.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})),
       ints(b, {}, {start}), state, x});
  loop->bodies = {std::move(body)};
  return loop;
}

using test::error_of;

// A slice at a counter has a shape that only the iterations determine.
TEST(UnrollLoops, BodiesSliceAtACounter) {
  struct Case {
    int64_t start, step;
    const char* goes_on;
    int64_t limit, from_end;
    std::vector<size_t> rows;
  };
  for (const Case& c :
       {Case{0, 1, "Less", 6, 0, {0, 1, 2, 3, 4, 5}}, Case{1, 2, "Less", 6, 0, {1, 3, 5}},
        Case{5, -1, "GreaterEqual", 0, 0, {5, 4, 3, 2, 1, 0}},
        Case{1, 1, "Less", 5, 6, {1, 2, 3, 4}}})
    for (const bool shrinks : {true, false}) {
      GraphBuilder inner, b;
      const Edge i = inner.parameter({}, ElementType::i64), s = inner.parameter({1, 2}),
                 x = inner.parameter({6, 2});
      const Edge at = inner.op("Subtract", 1, {i, ints(inner, {}, {c.from_end})});
      const Edge half = inner.constant(Tensor::of(ElementType::f32, {1}, std::vector<float>{.5f}));
      const Edge next = inner.op("Add", 1, {i, ints(inner, {}, {c.step})});
      inner.result(next);
      inner.result(inner.op("Add", 1,
                            {inner.op("Multiply", 1, {s, half}),
                             shrinks ? row_at(inner, x, at) : rows_at(inner, x, at, 1)}));
      inner.result(inner.op(c.goes_on, 1, {next, ints(inner, {}, {c.limit})}));
      const Edge before = b.parameter({1, 2}), data = b.parameter({6, 2});
      Node* loop = slicing_loop(b, inner.finish(), -1, c.start, before, data);
      b.result({loop, 0});
      const auto graph = b.finish();
      graph->sort();
      infer_node_shapes(*loop);
      EXPECT_EQ(loop->shape(), (Shape{1, 2}));

      const std::vector<Tensor> inputs{random_tensor({1, 2}), random_tensor({6, 2})};
      const std::vector<float> values = inputs[1].to_floats();
      std::vector<float> want = inputs[0].to_floats();
      for (const size_t row : c.rows)
        for (size_t k : {0, 1}) want[k] = want[k] * .5f + values[2 * row + k];
      EXPECT_EQ(evaluate_graph(*graph, inputs)[0].to_floats(), want);
      unroll_loops(*graph, {});
      EXPECT_EQ(evaluate_graph(*graph, inputs)[0].to_floats(), want);
      EXPECT_EQ(count_of(*graph, "Loop"), 0u);
      EXPECT_EQ(count_of(*graph, "Multiply"), c.rows.size());
      EXPECT_EQ(std::count_if(graph->nodes().begin(), graph->nodes().end(),
                              [](const auto& node) {
                                return node->is("Constant") &&
                                       node->constant.type() == ElementType::f32;
                              }),
                1);  // what all iterations share is there once
    }
}

// A body that appends x[i:i+1] to its state while i is below the limit.
std::unique_ptr<Graph> growing_body(const Shape& whole, int64_t limit) {
  GraphBuilder inner;
  const Edge i = inner.parameter({}, ElementType::i64), s = inner.parameter({1, 2}),
             x = inner.parameter(whole);
  const Edge next = inner.op("Add", 1, {i, ints(inner, {}, {1})});
  inner.result(next);
  inner.result(inner.op("Concat", 1, {s, rows_at(inner, x, i, 1)}, {{"axis", "0"}}));
  inner.result(inner.op("Less", 1, {next, ints(inner, {}, {limit})}));
  return inner.finish();
}

TEST(UnrollLoops, StatesGrowWhereTheNumberOfIterationsIsKnown) {
  for (const int64_t count : {1, 4}) {
    GraphBuilder b;
    Node* loop = slicing_loop(b, growing_body({4, 2}, count), -1, 0, b.parameter({1, 2}),
                              b.parameter({4, 2}));
    b.result({loop, 0});
    const auto graph = b.finish();
    graph->sort();
    infer_node_shapes(*loop);
    EXPECT_EQ(loop->shape(), (Shape{1 + count, 2}));
    expect_same_values(*graph);
    EXPECT_EQ(count_of(*graph, "Loop"), 0u);
  }
  GraphBuilder b;
  Node* loop = slicing_loop(b, growing_body({400, 2}, 400), -1, 0, b.parameter({1, 2}),
                            b.parameter({400, 2}));
  EXPECT_NE(error_of([&] { infer_node_shapes(*loop); }).find("from [2,2] to [3,2]"),
            std::string::npos);
}

TEST(UnrollLoops, LoopsInsideDependOnCountersAround) {
  GraphBuilder innermost, inner, b;
  {
    const Edge i = innermost.parameter({}, ElementType::i64), s = innermost.parameter({2}),
               x = innermost.parameter({6, 2});
    const Edge next = innermost.op("Add", 1, {i, ints(innermost, {}, {1})});
    innermost.result(next);
    innermost.result(
        innermost.op("Subtract", 1, {row_at(innermost, x, i), innermost.op("Abs", 1, {s})}));
    innermost.result(innermost.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})));
  }
  const Edge i = inner.parameter({}, ElementType::i64), s = inner.parameter({2}),
             x = inner.parameter({6, 2});
  Node* two_rows = slicing_loop(inner, innermost.finish(), 2, 0, s, x);
  two_rows->inputs.set(2, inner.op("Multiply", 1, {i, ints(inner, {}, {2})}));
  const Edge next = inner.op("Add", 1, {i, ints(inner, {}, {1})});
  inner.result(next);
  inner.result({two_rows, 0});
  inner.result(inner.op("Less", 1, {next, ints(inner, {}, {3})}));
  auto body = inner.finish();
  body->sort();
  Node* loop = slicing_loop(b, std::move(body), -1, 0, b.parameter({2}), b.parameter({6, 2}));
  b.result({loop, 0});
  const auto graph = b.finish();
  graph->sort();
  infer_node_shapes(*loop);
  expect_same_values(*graph);
  EXPECT_EQ(count_of(*graph, "Loop"), 0u);
  EXPECT_EQ(count_of(*graph, "Subtract"), 6u);
}

// How often it runs is an input of the network, so it stays a loop.
TEST(UnrollLoops, LoopsThatStaySliceAtACounter) {
  GraphBuilder inner, b;
  const Edge i = inner.parameter({}, ElementType::i64), s = inner.parameter({2}),
             x = inner.parameter({3, 2});
  inner.result(inner.op("Add", 1, {i, ints(inner, {}, {1})}));
  inner.result(inner.op("Add", 1, {s, row_at(inner, x, i)}));
  inner.result(inner.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})));
  Node* loop =
      slicing_loop(b, inner.finish(), 1, 0, b.constant(Tensor::allocate(ElementType::f32, {2})),
                   b.parameter({3, 2}));
  loop->inputs.set(0, b.parameter({}, ElementType::i64));
  b.result({loop, 0});
  const auto graph = b.finish();
  graph->sort();
  infer_node_shapes(*loop);
  unroll_loops(*graph, {});
  EXPECT_EQ(count_of(*graph, "Loop"), 1u);
  const auto run = [&](int64_t trips) {
    return evaluate_graph(
               *graph,
               std::vector<Tensor>{
                   Tensor::of(ElementType::f32, {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}),
                   Tensor::of(ElementType::i64, {}, std::vector<int64_t>{trips})})[0]
        .to_floats();
  };
  EXPECT_EQ(run(2), (std::vector<float>{4, 6}));
  EXPECT_EQ(run(3), (std::vector<float>{9, 12}));
  EXPECT_NE(error_of([&] { run(4); }).find("index 3 is out of range"), std::string::npos);
}

TEST(UnrollLoops, ShapesThatDependOnDataOrVaryAreRefused) {
  const auto body = [] {
    GraphBuilder inner;
    const Edge i = inner.parameter({}, ElementType::i64), s = inner.parameter({1, 2}),
               x = inner.parameter({4, 2});
    inner.result(inner.op("Add", 1, {i, ints(inner, {}, {1})}));
    inner.result(inner.op("Maximum", 1, {rows_at(inner, x, i, 1), s}));
    inner.result(inner.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})));
    return inner.finish();
  };
  {
    GraphBuilder b;
    Node* loop = slicing_loop(b, body(), 4, 0, b.parameter({1, 2}), b.parameter({4, 2}));
    loop->inputs.set(2, b.parameter({}, ElementType::i64));
    EXPECT_NE(error_of([&] { infer_node_shapes(*loop); }).find("(Slice"), std::string::npos);
  }
  {
    GraphBuilder b;
    Node* loop =
        slicing_loop(b, growing_body({4, 2}, 4), -1, 0, b.parameter({1, 2}), b.parameter({4, 2}));
    loop->inputs.set(0, b.parameter({}, ElementType::i64));
    EXPECT_NE(error_of([&] { infer_node_shapes(*loop); }).find("from [2,2] to [3,2]"),
              std::string::npos);
  }
  {  // row 3 is the last one
    GraphBuilder b;
    const Edge before = b.parameter({1, 2}), data = b.parameter({4, 2});
    Node* loop = slicing_loop(b, body(), 5, 0, before, data);
    b.result({loop, 0});
    const auto graph = b.finish();
    graph->sort();
    infer_node_shapes(*loop);
    EXPECT_EQ(loop->shape(), (Shape{1, 2}));
    const std::vector<Tensor> inputs{random_tensor({1, 2}), random_tensor({4, 2})};
    EXPECT_NE(error_of([&] { evaluate_graph(*graph, inputs); }).find("comes out as [0,2]"),
              std::string::npos);
    EXPECT_NE(error_of([&] { unroll_loops(*graph, {}); }).find("comes out as [0,2]"),
              std::string::npos);
  }
}

TEST(UnrollLoops, SlicedInputsThatRunOutAreRefused) {
  auto graph = scan_graph(4, 1);
  Node* loop = nodes_of(*graph).at(2);
  loop->type = "Loop";
  loop->opset = 5;
  loop->def = find_op("Loop", 5);
  Insertion add(*graph, loop);
  const Edge go = add.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})),
             trips = add.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{5}));
  auto body = scan_body({2, 1, 3});
  body->inputs = {{2, 0, true, 1}, {3, 1}};
  body->outputs = {{0, 0, true, 1}, {1, 0}};
  loop->bodies = {body};
  loop->inputs = {trips, go, loop->inputs[0], loop->inputs[1]};
  infer_node_shapes(*loop);
  EXPECT_NE(error_of([&] { unroll_loops(*graph, {}); }).find("past the end of a sliced input"),
            std::string::npos);
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

// Without an iteration such a state would have no value.
TEST(UnrollLoops, BackEdgesToWhatIterationsBringAreRefused) {
  for (const bool counts : {false, true}) {
    GraphBuilder inner, b;
    inner.result(inner.op("Abs", 1, {inner.parameter({1})}));
    auto body = std::make_shared<GraphBody>(inner.finish());
    Node* loop = abs_loop(b, b.parameter({1}), body, 3, false, 1);
    loop->outputs.resize(1);
    body->outputs.pop_back();
    body->inputs.pop_back();
    if (counts) {
      body->inputs.clear();
      body->counter = 0;
    } else {
      body->inputs[0].sliced = true;
    }
    EXPECT_NE(error_of([&] { infer_node_shapes(*loop); }).find("back edge"), std::string::npos);
  }
}

TEST(UnrollLoops, BodiesThatTakeTooMuchAreRefused) {
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
  EXPECT_LT(graph->nodes().size(), 50'000u);
  EXPECT_GT(count_of(*graph, "Loop"), 0u);
}

TEST(UnrollLoops, WhatLoopsGoThroughCountsTogether) {
  IterationLimit outer(1000);
  {
    IterationLimit inner(1);  // the outermost one counts
    inner.take(500);
    EXPECT_FALSE(IterationLimit::passed());
    EXPECT_NE(error_of([&] { inner.take(500); }).find("1000"), std::string::npos);
    EXPECT_TRUE(IterationLimit::passed());
  }
  EXPECT_THROW(outer.take(0), Error);
}

TEST(UnrollLoops, LoopsPastTheLimitRunAsLoops) {
  const auto loops_left = [](int64_t limited_to) {
    GraphBuilder inner, b;
    inner.result(inner.op("Abs", 1, {inner.parameter({2})}));
    const Edge counter = inner.parameter({}, ElementType::i64);
    inner.result(
        inner.op("Less", 1,
                 {counter, inner.constant(Tensor::of(ElementType::i64, {}, std::vector<int>{5}))}));
    auto body = std::make_shared<GraphBody>(inner.finish());
    Node* loop = abs_loop(b, b.parameter({2}), body, 100, true, 1);
    body->inputs.pop_back();
    body->outputs.pop_back();
    body->counter = 1;
    body->condition = 1;
    loop->outputs.resize(1);
    infer_node_shapes(*loop);
    b.result({loop, 0});
    auto graph = b.finish();
    graph->sort();
    std::optional<IterationLimit> limit;
    if (limited_to >= 0) limit.emplace(limited_to);
    unroll_loops(*graph, {});
    return count_of(*graph, "Loop");
  };
  EXPECT_EQ(loops_left(-1), 0u);
  EXPECT_EQ(loops_left(50), 1u);
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
