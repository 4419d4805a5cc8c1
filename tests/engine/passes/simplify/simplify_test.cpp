// Operations that change nothing.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::cpu_context;
using test::expect_becomes;
using test::expect_same_values;
using test::GraphBuilder;
using test::random_tensor;
using test::reshape;
using test::transpose;
using test::unary;

// Two transposes become one, and none where that moves nothing.
TEST(Simplify, OrdersMayCountFromTheEnd) {
  for (const bool back : {false, true}) {
    GraphBuilder b;
    const auto turn = [&](const Edge& x, const std::vector<int>& order) {
      return b.op("Transpose", 1, {x, b.constant(Tensor::of<int>(ElementType::i64, {3}, order))});
    };
    const Edge once = turn(b.parameter({2, 3, 4}), {-2, 2, -3});
    b.result(turn(once, back ? std::vector<int>{-1, -3, -2} : std::vector<int>{-1, -2, 0}));
    auto graph = b.finish();
    const std::vector<Tensor> given{random_tensor({2, 3, 4}, -1, 1, 1)};
    const std::vector<float> want = evaluate_graph(*graph, given)[0].to_floats();
    simplify(*graph, cpu_context());
    EXPECT_EQ(count_of(*graph, "Transpose"), back ? 0u : 1u);
    EXPECT_EQ(evaluate_graph(*graph, given)[0].to_floats(), want);
  }
}

TEST(Simplify, ChainsOfReshapesAndTransposes) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4, 5});
  b.result(reshape(b, reshape(b, reshape(b, x, {6, 20}), {24, 5}), {2, 3, 4, 5}));
  b.result(unary(b, "Abs", reshape(b, reshape(b, x, {6, 20}), {2, 60})));
  b.result(transpose(b, transpose(b, x, {0, 2, 3, 1}), {0, 3, 1, 2}));
  b.result(unary(b, "Abs", transpose(b, transpose(b, x, {1, 0, 3, 2}), {2, 3, 1, 0})));
  b.result(
      unary(b, "Abs", reshape(b, transpose(b, reshape(b, x, {6, 1, 20}), {1, 0, 2}), {2, 60})));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify");
  EXPECT_EQ(count_of(*graph, "Reshape"), 2u);
  EXPECT_EQ(count_of(*graph, "Transpose"), 1u);
  EXPECT_EQ(graph->results[0]->inputs[0].node, graph->parameters[0]);
  EXPECT_EQ(graph->results[2]->inputs[0].node, graph->parameters[0]);
}

TEST(Simplify, PadsOfNothing) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3});
  const auto padded = [&](int64_t first, int64_t last) {
    const Edge value = b.constant(Tensor::of<float>(ElementType::f32, {}, {5}));
    return unary(b, "Abs",
                 b.op("Pad", 12, {x, b.ints({0, first}), b.ints({0, last}), value},
                      {{"pad_mode", "constant"}}));
  };
  b.result(padded(0, 0));
  b.result(padded(-1, 1));  // as many elements, others
  auto graph = b.finish();
  expect_same_values(*graph, "simplify");
  EXPECT_EQ(count_of(*graph, "Pad"), 1u);
  EXPECT_EQ(graph->results[0]->inputs[0].node->inputs[0].node, graph->parameters[0]);
}

TEST(Simplify, FactorsOfOneAndSummandsOfZero) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4});
  const auto all = [&](float value) {
    return b.constant(Tensor::of<float>(ElementType::f32, {1, 3, 1}, {value, value, value}));
  };
  Edge y = b.op("Multiply", 1, {all(1), x});
  y = b.op("Subtract", 1, {b.op("Divide", 1, {b.op("Add", 1, {y, all(0)}), all(1)}), all(0)});
  b.result(unary(b, "Abs", y));
  b.result(b.op("Subtract", 1, {all(0), x}));                       // changes the sign
  b.result(b.op("Multiply", 1, {b.parameter({2, 1, 4}), all(1)}));  // changes the shape
  auto graph = b.finish();
  expect_same_values(*graph, "simplify");
  EXPECT_EQ(graph->results[0]->inputs[0].node->inputs[0].node, graph->parameters[0]);
  EXPECT_EQ(count_of(*graph, "Subtract"), 1u);
  EXPECT_EQ(count_of(*graph, "Multiply"), 1u);
}

TEST(Simplify, LeavesTransposesThatMoveSomething) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4, 5});
  b.result(reshape(b, transpose(b, reshape(b, x, {6, 4, 5}), {0, 2, 1}), {2, 60}));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify");
  EXPECT_EQ(count_of(*graph, "Reshape"), 2u);
  EXPECT_EQ(count_of(*graph, "Transpose"), 1u);
}

TEST(Simplify, TextOfReshapes) {
  expect_becomes(R"(
      x = parameter f32[2,3,4]
      flat = i64[1] 24
      pairs = i64[2] 12 2
      y = Reshape-1(x, flat) special_zero=false
      z = Reshape-1(y, pairs) special_zero=false
      u = Convert-1(z) destination_type=f32
      v = Abs-1(u)
      result v)",
                 "simplify",
                 "a = Reshape(in0, 12 2)\n"
                 "b = Abs(a)\n"
                 "result b\n");
}

}  // namespace
}  // namespace clinfer
