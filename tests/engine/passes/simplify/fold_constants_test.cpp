// Constants computed when a model is loaded.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::cpu_context;
using test::expect_becomes;
using test::expect_same_values;
using test::GraphBuilder;
using test::random_tensor;

TEST(FoldConstants, ComputesShapeChains) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 2, 3, 4});
  const Edge shape = b.op("ShapeOf", 3, {x}, {{"output_type", "i64"}});
  b.result(b.op("Convert", 1, {shape}, {{"destination_type", "f32"}}));
  auto graph = b.finish();
  expect_same_values(*graph, "fold_constants");
  EXPECT_EQ(graph->results[0]->inputs[0].node->constant.to_floats(),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(count_of(*graph, "ShapeOf"), 0u);
}

// Priors depend on sizes alone.
TEST(FoldConstants, PriorsAreComputedAtLoadTime) {
  using Attributes = std::map<std::string, std::string>;
  const std::map<std::string, Attributes> types = {{"PriorBox",
                                                    {{"min_size", "16"},
                                                     {"aspect_ratio", "2"},
                                                     {"flip", "true"},
                                                     {"offset", "0.5"},
                                                     {"variance", "0.1"},
                                                     {"step", "0"}}},
                                                   {"PriorBoxClustered",
                                                    {{"width", "20,10"},
                                                     {"height", "10,10"},
                                                     {"step", "0"},
                                                     {"step_w", "8"},
                                                     {"step_h", "8"},
                                                     {"offset", "0.5"},
                                                     {"variance", "0.1"}}}};
  for (const auto& [type, attributes] : types) {
    GraphBuilder b;
    b.result(b.op(type, 1, {b.ints({4, 6}), b.ints({32, 48})}, attributes));
    auto graph = b.finish();
    run_passes(*graph, cpu_context(), "fold_constants");
    EXPECT_TRUE(graph->results[0]->inputs[0].node->is("Constant")) << type;
    EXPECT_EQ(count_of(*graph, type), 0u);
  }
}

TEST(FoldConstants, LeavesWhatWouldTakeFarMoreThanTheModel) {
  GraphBuilder b;
  const Edge one = b.constant(Tensor::of<float>(ElementType::f32, {1}, {2}));
  const auto wide = [&](const std::vector<int>& shape) {
    return b.op("Broadcast", 3, {one, b.constant(Tensor::of(ElementType::i64, {2}, shape))},
                {{"mode", "numpy"}});
  };
  b.result(wide({70000, 1000}));  // 280 MB of one number
  b.result(wide({70, 100}));
  auto graph = b.finish();
  run_passes(*graph, cpu_context(), "fold_constants");
  EXPECT_EQ(count_of(*graph, "Broadcast"), 1u);
  EXPECT_EQ(graph->results[1]->inputs[0].node->type, "Constant");
}

TEST(FoldConstants, ReshapesTakeNoMemory) {
  GraphBuilder b;
  const Edge constant = b.constant(random_tensor({1000, 500}, -1, 1, 1));
  for (int i = 0; i < 40; ++i)  // 80 MB, where 16 and 64 may be computed
    b.result(b.op("Reshape", 1, {constant, b.ints({500, 1000})}, {{"special_zero", "false"}}));
  auto graph = b.finish();
  run_passes(*graph, cpu_context(), "fold_constants");
  EXPECT_EQ(count_of(*graph, "Reshape"), 0u);
  EXPECT_EQ(graph->results[0]->inputs[0].node->constant.raw(),
            graph->results[39]->inputs[0].node->constant.raw());
}

// A product of 400 MB on the way to one number.
TEST(FoldConstants, LeavesStepsThatTakeTooMuchMemory) {
  const auto folded = [](int64_t n) {
    GraphBuilder b;
    const Edge row = b.constant(random_tensor({n})), one = b.constant(random_tensor({1, 1}));
    b.result(b.op("Einsum", 7, {row, row, one}, {{"equation", "a,b,ab->"}}));
    auto graph = b.finish();
    run_passes(*graph, cpu_context(), "fold_constants");
    return graph->results[0]->inputs[0].node->is("Constant");
  };
  EXPECT_TRUE(folded(100));
  EXPECT_FALSE(folded(10000));
}

TEST(FoldConstants, WhatHasNoElementsIsConstant) {
  GraphBuilder b;
  const Edge none = b.op("Slice", 8, {b.parameter({2, 3}), b.ints({1}), b.ints({1}), b.ints({1})});
  b.result(b.op("ReduceSum", 1, {none, b.ints({0})}, {{"keep_dims", "false"}}));
  const auto graph = b.finish();
  run_passes(*graph, cpu_context(), "fold_constants");
  EXPECT_EQ(count_of(*graph, "ReduceSum") + count_of(*graph, "Slice"), 0u);
  EXPECT_EQ(evaluate_graph(*graph, std::vector<Tensor>{random_tensor({2, 3})})[0].to_floats(),
            (std::vector<float>{0, 0, 0}));
}

TEST(FoldConstants, WhatIsFoundInAShapeIsConstant) {
  GraphBuilder b;
  const Edge shape = b.op("ShapeOf", 3, {b.parameter({1, 3, 1, 5})});
  const Edge found = b.op("NonZero", 3, {b.op("Equal", 1, {shape, b.ints({1})})});
  b.result(b.op("Add", 1, {b.op("Reshape", 1, {found, b.ints({-1})}), b.ints({1})}));
  auto graph = b.finish();
  infer_shapes(*graph);
  run_passes(*graph, cpu_context(), "fold_constants");
  const Tensor* value = constant_value(graph->results[0]->inputs[0]);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->to_ints(), (std::vector<int64_t>{1, 3}));
}

TEST(FoldConstants, TextOfAShapeChain) {
  expect_becomes(R"(
      x = parameter f32[2,3,4]
      shape = ShapeOf-3(x)
      zero = i64[1] 0
      axis = i64[] 0
      rows = Gather-8(shape, zero, axis)
      count = Convert-1(rows) destination_type=f32
      y = Multiply-1(x, count)
      result y)",
                 "fold_constants",
                 "a = Multiply(in0, 2)\n"
                 "result a\n");
}

}  // namespace
}  // namespace clinfer
