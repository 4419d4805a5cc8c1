// Operations replaced by their steps.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::cpu_context;
using test::expect_becomes;
using test::expect_same_values;
using test::GraphBuilder;
using test::random_tensor;

TEST(ExpandOperations, AttentionBecomesProductsAndASoftmax) {
  GraphBuilder b;
  const Edge q = b.parameter({2, 5, 4}), k = b.parameter({2, 6, 4}), v = b.parameter({2, 6, 3});
  const Edge y = b.op("ScaledDotProductAttention", 13, {q, k, v}, {{"causal", "false"}});
  y.node->outputs[0].names = {"attention"};
  b.result(b.op("Roll", 7,
                {y, b.constant(Tensor::of(ElementType::i64, {1}, std::vector<int64_t>{2})),
                 b.constant(Tensor::of(ElementType::i64, {1}, std::vector<int64_t>{1}))}));
  const auto graph = b.finish();
  const std::vector<Tensor> inputs{random_tensor({2, 5, 4}), random_tensor({2, 6, 4}, -1, 1, 2),
                                   random_tensor({2, 6, 3}, -1, 1, 3)};
  const std::vector<float> before = evaluate_graph(*graph, inputs)[0].to_floats();
  run_passes(*graph, cpu_context(), "expand_operations");
  EXPECT_EQ(count_of(*graph, "ScaledDotProductAttention") + count_of(*graph, "Roll"), 0u);
  EXPECT_EQ(count_of(*graph, "MatMul"), 2u);
  EXPECT_EQ(count_of(*graph, "SoftMax"), 1u);
  const auto named = std::find_if(graph->nodes().begin(), graph->nodes().end(), [](const auto& n) {
    return !n->outputs.empty() && n->outputs[0].names == std::vector<std::string>{"attention"};
  });
  ASSERT_NE(named, graph->nodes().end());
  EXPECT_TRUE((*named)->is("MatMul"));
  EXPECT_EQ(evaluate_graph(*graph, inputs)[0].to_floats(), before);
}

TEST(ExpandOperations, IntegersThatKernelsDoNotTakeGoThroughFloats) {
  const auto expand = [](const Shape& shape, auto&& make) {
    GraphBuilder b;
    b.result(make(b, b.parameter(shape, ElementType::i32)));
    auto graph = b.finish();
    std::vector<int64_t> values(static_cast<size_t>(count(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * i) % 23 - 7;
    const std::vector<Tensor> inputs{Tensor::of(ElementType::i32, shape, values)};
    const std::vector<int64_t> before = evaluate_graph(*graph, inputs)[0].to_ints();
    run_passes(*graph, cpu_context(), "expand_operations");
    EXPECT_EQ(count_of(*graph, "Convert"), 2u);
    const Tensor after = evaluate_graph(*graph, inputs)[0];
    EXPECT_EQ(after.type(), ElementType::i32);
    EXPECT_EQ(after.to_ints(), before);
    return graph;
  };
  const auto ints = [](const std::vector<int64_t>& values) {
    return Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values);
  };
  const auto rounds = expand({1, 2, 4, 4}, [](GraphBuilder& b, Edge x) {
    return b.op("AvgPool", 1, {x},
                {{"kernel", "2,2"},
                 {"strides", "2,2"},
                 {"pads_begin", "0,0"},
                 {"pads_end", "0,0"},
                 {"exclude-pad", "true"}});
  });
  EXPECT_EQ(count_of(*rounds, "Round"), 1u);
  const auto cuts_off = expand({3, 5}, [&](GraphBuilder& b, Edge x) {
    return b.op("ReduceMean", 1, {x, b.constant(ints({1}))}, {{"keep_dims", "false"}});
  });
  EXPECT_EQ(count_of(*cuts_off, "Round"), 0u);
  expand({1, 1, 4, 3}, [&](GraphBuilder& b, Edge x) {
    return b.op("Interpolate", 11, {x, b.constant(ints({7, 5})), b.constant(ints({2, 3}))},
                {{"mode", "linear"}, {"shape_calculation_mode", "sizes"}});
  });
  // As a step of another operation.
  expand({3, 4}, [&](GraphBuilder& b, Edge x) {
    const Tensor square = Tensor::of(ElementType::i32, {4, 4}, std::vector<int64_t>(16, 3));
    return b.op("Einsum", 7, {x, b.constant(square)}, {{"equation", "ab,bc->ac"}});
  });
}

// [N, H, W, C]: channels become the second dimension, by views.
TEST(ExpandOperations, PicturesWhoseChannelsComeLastAreTurned) {
  const auto ints = [](const std::vector<int64_t>& values) {
    return Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values);
  };
  const auto check = [](auto&& make) {
    GraphBuilder b;
    b.result(make(b, b.parameter({2, 5, 6, 3})));
    auto graph = b.finish();
    const std::vector<Tensor> inputs{random_tensor({2, 5, 6, 3}, -1, 1, 1)};
    const std::vector<float> before = evaluate_graph(*graph, inputs)[0].to_floats();
    run_passes(*graph, cpu_context(), "");
    EXPECT_EQ(count_of(*graph, "Transpose"), 2u);
    EXPECT_EQ(count_of(*graph, "Reorder"), 0u);
    const std::vector<float> after = evaluate_graph(*graph, inputs)[0].to_floats();
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-5) << i;
  };
  check([&](GraphBuilder& b, Edge x) {
    return b.op("Interpolate", 11, {x, b.constant(ints({12, 9})), b.constant(ints({-2, 1}))},
                {{"mode", "linear_onnx"},
                 {"shape_calculation_mode", "sizes"},
                 {"coordinate_transformation_mode", "align_corners"}});
  });
  check([&](GraphBuilder& b, Edge x) {
    const Tensor scales = Tensor::of(ElementType::f32, {4}, std::vector<float>{1, 2.5f, 0.75f, 1});
    return b.op("Interpolate", 4, {x, b.constant(ints({2, 15, 6, 3})), b.constant(scales)},
                {{"mode", "cubic"},
                 {"shape_calculation_mode", "scales"},
                 {"pads_begin", "0,1,0"},
                 {"pads_end", "0,0,2,0"}});
  });
  check([&](GraphBuilder& b, Edge x) {
    return b.op("Interpolate", 1, {x, b.constant(ints({7, 8}))},
                {{"mode", "nearest"}, {"axes", "1,2"}, {"align_corners", "false"}});
  });
}

// Slice assignments, as converters write them: constant indices, some of them repeated or negative.
TEST(ExpandOperations, ScattersToConstantPlacesArePicked) {
  const auto expand = [](const char* type, const Shape& data, const Tensor& indices,
                         const Shape& updates, int64_t axis, const char* by) {
    GraphBuilder b;
    std::vector<Edge> inputs{b.parameter(data), b.constant(indices), b.parameter(updates)};
    Edge result;
    if (std::string(type) == "ScatterNDUpdate")
      result = b.op(type, 4, {inputs[0], inputs[1], inputs[2]});
    else
      result = b.op(type, 3,
                    {inputs[0], inputs[1], inputs[2],
                     b.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{axis}))});
    b.result(result);
    auto graph = b.finish();
    expect_same_values(*graph, "expand_operations");
    EXPECT_EQ(count_of(*graph, type), 0u);
    EXPECT_EQ(count_of(*graph, "Gather"), std::string(by) == "Gather" ? 1u : 0u) << type;
  };
  const auto ints = [](const Shape& shape, const std::vector<int64_t>& values) {
    return Tensor::of(ElementType::i64, shape, values);
  };
  expand("ScatterUpdate", {2, 7, 3}, ints({2}, {3, 4}), {2, 2, 3}, 1, "Concat");
  expand("ScatterUpdate", {2, 3}, ints({}, {-1}), {2}, 1, "Concat");
  expand("ScatterUpdate", {9, 2}, ints({2, 3}, {1, 3, 5, 3, 8, 0}), {2, 3, 2}, 0, "Gather");
  expand("ScatterUpdate", {2, 3}, ints({3}, {0, 1, 2}), {2, 3}, 1, "nothing");
  expand("ScatterNDUpdate", {3, 4, 5}, ints({2, 2}, {1, 2, 1, 3}), {2, 5}, 0, "Concat");
  expand("ScatterNDUpdate", {3, 4}, ints({5, 2}, {0, 1, 2, 3, 1, 1, -1, -2, 1, 1}), {5}, 0,
         "Gather");
  expand("ScatterElementsUpdate", {3, 4}, ints({2, 3}, {0, 2, 1, 2, 2, -3}), {2, 3}, 0, "Gather");
}

TEST(ExpandOperations, ScattersThatAddUpStay) {
  GraphBuilder b;
  const Edge places = b.constant(Tensor::of(ElementType::i64, {2, 1}, std::vector<int64_t>{1, 1}));
  b.result(b.op("ScatterNDUpdate", 15, {b.parameter({3}), places, b.parameter({2})},
                {{"reduction", "sum"}}));
  const auto graph = b.finish();
  expect_same_values(*graph, "expand_operations");
  EXPECT_EQ(count_of(*graph, "ScatterNDUpdate"), 1u);
}

TEST(ExpandOperations, SequencesOfOneLengthAreReversed) {
  for (const auto& [lengths, left] : {std::pair<std::vector<int64_t>, size_t>{{5, 5}, 0},
                                      {{3, 3}, 0},
                                      {{3, 5}, 1},
                                      {{0, 0}, 1}}) {
    GraphBuilder b;
    b.result(b.op("ReverseSequence", 1,
                  {b.parameter({5, 2, 3}), b.constant(Tensor::of(ElementType::i64, {2}, lengths))},
                  {{"seq_axis", "0"}, {"batch_axis", "1"}}));
    const auto graph = b.finish();
    expect_same_values(*graph, "expand_operations");
    EXPECT_EQ(count_of(*graph, "ReverseSequence"), left);
  }
}

// On the device, booleans are bytes.
TEST(ExpandOperations, WhatDependsOnTheTypeBooleanSaysSo) {
  GraphBuilder b;
  const Edge x = b.parameter({6}), y = b.parameter({6});
  const Edge mask = b.op("Greater", 1, {x, y});
  b.result(b.op("Convert", 1, {b.op("BitwiseNot", 13, {mask})}, {{"destination_type", "f32"}}));
  b.result(b.op("Convert", 1, {b.op("ConvertLike", 1, {x, mask})}, {{"destination_type", "f32"}}));
  const auto graph = b.finish();
  const std::vector<Tensor> inputs{
      Tensor::of<float>(ElementType::f32, {6}, std::vector<float>{0, 0.25f, 0.5f, 3, 4, 0}),
      Tensor::of<float>(ElementType::f32, {6}, std::vector<float>{1, 0, 1, 2, 5, -1})};
  run_passes(*graph, cpu_context());
  const std::vector<Tensor> outputs = evaluate_graph(*graph, inputs);
  EXPECT_EQ(outputs[0].to_floats(), (std::vector<float>{1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(outputs[1].to_floats(), (std::vector<float>{0, 1, 1, 1, 1, 0}));
}

TEST(ExpandOperations, ScaleAndBiasOfAGroupNormalizationMayBeComputed) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 6, 3, 2}), scale = b.parameter({6}), bias = b.parameter({6});
  b.result(
      b.op("GroupNormalization", 12, {x, scale, bias}, {{"num_groups", "2"}, {"epsilon", "0.01"}}));
  const auto graph = b.finish();
  expect_same_values(*graph, "expand_operations");
  EXPECT_EQ(count_of(*graph, "GroupNormalization"), 1u);
  EXPECT_EQ(count_of(*graph, "Multiply") + count_of(*graph, "Add"), 2u);
}

TEST(ExpandOperations, ResizesToTheSameSizeAreNone) {
  const auto left = [](const char* pads, const std::vector<int>& sizes) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 2, 4, 5});
    const Edge resized =
        b.op("Interpolate", 11,
             {b.op("Abs", 1, {x}), b.constant(Tensor::of<int>(ElementType::i64, {2}, sizes)),
              b.constant(Tensor::of<int>(ElementType::i64, {2}, {2, 3}))},
             {{"mode", "linear"}, {"shape_calculation_mode", "sizes"}, {"pads_end", pads}});
    b.result(b.op("ReLU", 1, {resized}));
    auto graph = b.finish();
    run_passes(*graph, cpu_context(), "expand_operations");
    return count_of(*graph, "Interpolate");
  };
  EXPECT_EQ(left("0,0,0,0", {4, 5}), 0u);
  EXPECT_EQ(left("0,0,0,0", {4, 6}), 1u);
  EXPECT_EQ(left("0,0,0,1", {4, 5}), 1u);  // squeezed
}

TEST(ExpandOperations, TextOfAnAttention) {
  expect_becomes(R"(
      q = parameter f32[2,5,4]
      k = parameter f32[2,6,4]
      v = parameter f32[2,6,3]
      y = ScaledDotProductAttention-13(q, k, v) causal=false
      result y)",
                 "expand_operations",
                 "a = MatMul(in0, in1)\n"
                 "b = Multiply(a, 0.5)\n"
                 "c = SoftMax(b)\n"
                 "d = MatMul(c, in2)\n"
                 "result d\n");
}

}  // namespace
}  // namespace clinfer
