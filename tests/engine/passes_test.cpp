// Passes one by one on small graphs: each must keep the values of the graph, and do what it is
// there for.
#include "engine/passes/passes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/plan/plan.h"
#include "tests/engine/graph_builder.h"
#include "tests/engine/pass_test.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::conv;
using test::count_of;
using test::cpu_context;
using test::functions_of;
using test::GraphBuilder;
using test::random_tensor;

// Runs the passes up to `until` and expects the outputs of the graph to stay what they were.
void expect_same_values(Graph& graph, const std::string& until) {
  std::vector<Tensor> inputs;
  for (const Node* parameter : graph.parameters)
    inputs.push_back(random_tensor(parameter->shape(), -2, 2, 7));
  const std::vector<Tensor> before = evaluate_graph(graph, inputs);
  run_passes(graph, cpu_context(), until);
  const std::vector<Tensor> after = evaluate_graph(graph, inputs);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(before[i].shape(), after[i].shape());
    for (int64_t k = 0; k < before[i].elements(); ++k)
      ASSERT_NEAR(before[i].data<float>()[k], after[i].data<float>()[k], 1e-4)
          << "output " << i << ", element " << k;
  }
}

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

TEST(InferShapes, RefusesValuesThatTakeTooMuchMemory) {
  const auto shape = [](int64_t n) {
    GraphBuilder b;
    const auto ones = [&](const Shape& of, ElementType type = ElementType::f32) {
      return b.constant(Tensor::of(type, of, std::vector<int>(static_cast<size_t>(count(of)), 1)));
    };
    const Edge row = ones({n});
    const Edge sum = b.op("Einsum", 7, {row, row, ones({1, 1})}, {{"equation", "a,b,ab->"}});
    const Edge wanted = b.op("Convert", 1, {sum}, {{"destination_type", "i64"}});
    const Edge any = ones({1}, ElementType::i64);
    const Edge target = b.op("Reshape", 1, {wanted, any}), one = ones({1});
    auto graph = b.finish();
    Node* made = graph->insert(nullptr, "Broadcast", "made");
    made->opset = 3;
    made->def = find_op("Broadcast", 3);
    made->inputs = {one, target};
    made->outputs.resize(1);
    infer_shapes(*graph);
    return made->shape();
  };
  EXPECT_EQ(shape(3), (Shape{9}));
  EXPECT_THROW(shape(30000), Error);
}

TEST(FoldIntoWeights, BatchNormalisationBehindAConvolution) {
  GraphBuilder b;
  Edge x = conv(b, b.parameter({1, 3, 5, 5}), 3, 4, 3, "1,1", 1);
  x = b.op("Multiply", 1, {x, b.constant(random_tensor({1, 4, 1, 1}, 0.5, 2, 2))});
  x = b.op("Add", 1, {b.constant(random_tensor({1, 4, 1, 1}, -1, 1, 3)), x});
  x = b.op("Subtract", 1, {x, b.constant(Tensor::of<float>(ElementType::f32, {1}, {0.25f}))});
  b.result(x);
  auto graph = b.finish();
  expect_same_values(*graph, "fold_into_weights");
  EXPECT_EQ(count_of(*graph, "Multiply"), 0u);
  EXPECT_EQ(count_of(*graph, "Subtract"), 0u);
  EXPECT_EQ(count_of(*graph, "Add"), 1u);
}

TEST(FoldIntoWeights, ScaleBeforeAGroupConvolution) {
  GraphBuilder b;
  Edge x = b.op("Multiply", 1,
                {b.parameter({1, 4, 5, 5}), b.constant(random_tensor({1, 4, 1, 1}, 0.5, 2, 2))});
  x = b.op("GroupConvolution", 1, {x, b.constant(random_tensor({2, 3, 2, 3, 3}, -1, 1, 5))},
           {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
  b.result(x);
  auto graph = b.finish();
  expect_same_values(*graph, "fold_into_weights");
  EXPECT_EQ(count_of(*graph, "Multiply"), 0u);
}

TEST(FoldIntoWeights, LeavesValuesThatOthersRead) {
  GraphBuilder b;
  const Edge c = conv(b, b.parameter({1, 3, 5, 5}), 3, 4, 1, "0,0", 1);
  b.result(b.op("Multiply", 1, {c, b.constant(random_tensor({1, 4, 1, 1}, 0.5, 2, 2))}));
  b.result(c);
  auto graph = b.finish();
  expect_same_values(*graph, "fold_into_weights");
  EXPECT_EQ(count_of(*graph, "Multiply"), 1u);
}

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
  const auto named = std::find_if(graph->nodes.begin(), graph->nodes.end(), [](const auto& n) {
    return !n->outputs.empty() && n->outputs[0].names == std::vector<std::string>{"attention"};
  });
  ASSERT_NE(named, graph->nodes.end());
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
  // Of a step of another operation.
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
                                      {{9, 9}, 0},
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

TEST(FoldConstants, WhatHasNoElementsIsConstant) {
  GraphBuilder b;
  const auto ints = [&](const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
  };
  const Edge none = b.op("Slice", 8, {b.parameter({2, 3}), ints({1}), ints({1}), ints({1})});
  b.result(b.op("ReduceSum", 1, {none, ints({0})}, {{"keep_dims", "false"}}));
  const auto graph = b.finish();
  run_passes(*graph, cpu_context(), "fold_constants");
  EXPECT_EQ(count_of(*graph, "ReduceSum") + count_of(*graph, "Slice"), 0u);
  EXPECT_EQ(evaluate_graph(*graph, std::vector<Tensor>{random_tensor({2, 3})})[0].to_floats(),
            (std::vector<float>{0, 0, 0}));
}

// Boxes that a NonMaxSuppression picks, and how many these are.
TEST(GroupByValues, WhatFollowsASuppressionIsOneStepOfTheHost) {
  GraphBuilder b;
  const auto ints = [&](const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
  };
  const auto number = [&](float value) {
    return b.constant(Tensor::of<float>(ElementType::f32, {}, {value}));
  };
  const Edge boxes = b.parameter({1, 4, 4}), scores = b.parameter({1, 1, 4});
  const Edge picked =
      b.op("NonMaxSuppression", 9, {boxes, scores, ints({4}), number(0.5f), number(0.3f)}, {}, 3);
  const Edge rows = b.op("Gather", 8, {picked, ints({2}), ints({1})});
  const Edge found = b.op("Gather", 8,
                          {b.op("Reshape", 1, {boxes, ints({4, 4})}),
                           b.op("Squeeze", 1, {rows, ints({1})}), ints({0})});
  b.result(b.op("Reshape", 1, {b.op("Abs", 1, {found}), ints({-1, 2, 2})}));
  b.result(b.op("ShapeOf", 3, {rows}));
  b.result(b.op("Sigmoid", 1, {scores}));
  const auto graph = b.finish();
  // The second box is much like the first one, the third has a low score.
  const std::vector<Tensor> inputs{
      Tensor::of<float>(ElementType::f32, {1, 4, 4},
                        {0, 0, 2, 2, 0, 0, 2, 2.1f, 5, 5, 6, 6, -3, -3, -1, -1}),
      Tensor::of<float>(ElementType::f32, {1, 1, 4}, {0.9f, 0.8f, 0.2f, 0.5f})};
  run_passes(*graph, cpu_context());
  EXPECT_EQ(count_of(*graph, "Subgraph"), 1u);
  EXPECT_EQ(count_of(*graph, "NonMaxSuppression") + count_of(*graph, "Sigmoid"), 2u);
  EXPECT_EQ(count_of(*graph, "Gather") + count_of(*graph, "Abs"), 0u);
  const std::vector<Tensor> outputs = evaluate_graph(*graph, inputs);
  EXPECT_EQ(outputs[0].shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(outputs[0].to_floats(), (std::vector<float>{0, 0, 2, 2, 3, 3, 1, 1}));
  EXPECT_EQ(outputs[1].to_ints(), (std::vector<int64_t>{2, 1}));
}

// As a tool writes data[mask] = value: the updates take their shape from the indices that are
// found.
TEST(GroupByValues, AShapeThatIsComputedFromWhatIsFoundIsTheActualOne) {
  GraphBuilder b;
  const auto ints = [&](const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
  };
  const Edge data = b.parameter({3, 2});
  const Edge found = b.op("NonZero", 3, {b.parameter({3})}, {{"output_type", "i64"}});
  const Edge indices = b.op("Transpose", 1, {found, ints({1, 0})});
  const Edge count = b.op("Gather", 8, {b.op("ShapeOf", 3, {indices}), ints({0}), ints({0})});
  const Edge shape = b.op("Concat", 1, {count, ints({2})}, {{"axis", "0"}});
  const Edge value = b.constant(Tensor::of<float>(ElementType::f32, {}, std::vector<float>{7}));
  const Edge updates = b.op("Broadcast", 3, {value, ints({3, 2})});
  updates.node->inputs[1] = shape;
  b.result(b.op("ScatterNDUpdate", 4, {data, indices, updates}));
  const auto graph = b.finish();
  run_passes(*graph, cpu_context());
  for (const auto& [mask, want] :
       {std::pair<std::vector<float>, std::vector<float>>{{0, 1, 0}, {1, 2, 7, 7, 5, 6}},
        {{0, 0, 0}, {1, 2, 3, 4, 5, 6}}}) {
    const std::vector<Tensor> inputs{
        Tensor::of<float>(ElementType::f32, {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}),
        Tensor::of<float>(ElementType::f32, {3}, mask)};
    EXPECT_EQ(evaluate_graph(*graph, inputs)[0].to_floats(), want);
  }
}

// Outside the group 64-bit integers are stored as 32 bits, its own constants are not.
TEST(GroupByValues, IntegersThatAreNarrowedOutsideMeetThoseInside) {
  GraphBuilder b;
  const auto ints = [&](const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
  };
  const Edge twice = b.op("Multiply", 1, {b.parameter({3}, ElementType::i64), ints({2})});
  const Edge found = b.op("NonZero", 3, {b.parameter({3})}, {{"output_type", "i64"}});
  const Edge picked = b.op("Gather", 8, {twice, found, ints({0})});
  b.result(b.op("GreaterEqual", 1, {picked, ints({4})}));
  const auto graph = b.finish();
  run_passes(*graph, cpu_context());
  EXPECT_EQ(count_of(*graph, "Subgraph"), 1u);
  const std::vector<Tensor> inputs{
      Tensor::of<int64_t>(ElementType::i64, {3}, std::vector<int64_t>{1, 2, 3}),
      Tensor::of<float>(ElementType::f32, {3}, std::vector<float>{1, 0, 1})};
  EXPECT_EQ(evaluate_graph(*graph, inputs)[0].to_ints(), (std::vector<int64_t>{0, 1}));
}

TEST(FoldConstants, WhatIsFoundInAShapeIsConstant) {
  GraphBuilder b;
  const auto ints = [&](const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
  };
  const Edge shape = b.op("ShapeOf", 3, {b.parameter({1, 3, 1, 5})});
  const Edge found = b.op("NonZero", 3, {b.op("Equal", 1, {shape, ints({1})})});
  b.result(b.op("Add", 1, {b.op("Reshape", 1, {found, ints({-1})}), ints({1})}));
  auto graph = b.finish();
  infer_shapes(*graph);
  run_passes(*graph, cpu_context(), "fold_constants");
  const Tensor* value = constant_value(graph->results[0]->inputs[0]);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->to_ints(), (std::vector<int64_t>{1, 3}));
}

TEST(FuseTails, BiasActivationAndResidualBecomeOneStep) {
  GraphBuilder b;
  const Edge in = b.parameter({1, 16, 6, 6});
  const Edge left = b.op("ReLU", 1, {conv(b, in, 16, 16, 1, "0,0", 1)});
  Edge x = conv(b, left, 16, 16, 3, "1,1", 2);
  x = b.op("Add", 1, {x, b.constant(random_tensor({1, 16, 1, 1}, -1, 1, 3))});
  x = b.op("Add", 1, {left, x});
  b.result(b.op("ReLU", 1, {x}));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "Convolution"), 2u);
  EXPECT_EQ(count_of(*graph, "Add") + count_of(*graph, "ReLU"), 0u);
}

// A block whose sum goes on by two ways: one through further functions, one as it is.
TEST(FuseTails, WhatOthersReadIsKept) {
  GraphBuilder b;
  const Edge in = b.parameter({1, 16, 6, 6});
  const Edge x = conv(b, in, 16, 16, 3, "1,1", 1);
  Edge y = b.op("Multiply", 1, {b.op("ReLU", 1, {x}), b.constant(random_tensor({1}, 1, 2, 3))});
  y = conv(b, b.op("Clamp", 1, {y}, {{"min", "0"}, {"max", "1"}}), 16, 16, 1, "0,0", 2);
  b.result(b.op("Add", 1, {x, y}));
  b.result(x);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  std::vector<std::vector<std::string>> tails;
  for (const auto& node : graph->nodes)
    if (node->def) {
      EXPECT_EQ(node->type, "Convolution");
      tails.emplace_back();
      for (const PostOp& step : node->tail) tails.back().push_back(step.function);
    }
  EXPECT_EQ(tails, (std::vector<std::vector<std::string>>{{"keep", "relu", "multiply", "clamp"},
                                                          {"add"}}));
}

// Both ways go on through functions.
TEST(FuseTails, WhatIsKeptGoesOnByItself) {
  GraphBuilder b;
  const Edge x = conv(b, b.parameter({1, 16, 6, 6}), 16, 16, 3, "1,1", 1);
  const auto factor = [&](unsigned seed) {
    return b.constant(random_tensor({1, 16, 1, 1}, 1, 2, seed));
  };
  b.result(b.op("Multiply", 1, {b.op("ReLU", 1, {x}), factor(3)}));
  const Edge branch = b.op("Multiply", 1, {b.op("Negative", 1, {x}), factor(4)});
  b.result(b.op("ReLU", 1, {branch}));
  b.result(branch);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(functions_of(*graph, "Convolution"),
            (std::vector<std::string>{"fork", "negative", "multiply", "keep", "relu", "multiply"}));
  EXPECT_EQ(count_of(*graph, "ReLU"), 1u);  // what it reads has another reader
}

// The other operand exists only behind the producer, which has to stay where it is.
TEST(FuseTails, NothingIsKeptForWhatWaitsForOthers) {
  GraphBuilder b;
  const Edge in = b.parameter({1, 16, 6, 6});
  const Edge x = conv(b, in, 16, 16, 3, "1,1", 1);
  const Edge pooled =
      b.op("ReduceMean", 1, {x, b.constant(Tensor::of(ElementType::i64, {2}, std::vector{2, 3}))},
           {{"keep_dims", "true"}});
  b.result(b.op("Multiply", 1, {x, pooled}));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_TRUE(functions_of(*graph, "Convolution").empty());
}

TEST(FuseTails, FactorsAndShiftsThatFollowOneAnotherMerge) {
  GraphBuilder b;
  const auto by = [&](const char* type, Edge x, const Shape& shape, unsigned seed) {
    return b.op(type, 1, {x, b.constant(random_tensor(shape, 0.5f, 1, seed))});
  };
  Edge x = b.op("MaxPool", 1, {b.parameter({1, 6, 4, 4})},
                {{"kernel", "2,2"},
                 {"strides", "1,1"},
                 {"pads_begin", "0,0"},
                 {"pads_end", "0,0"},
                 {"rounding_type", "floor"}});
  x = by("Add", by("Multiply", x, {1, 6, 1, 1}, 1), {}, 2);
  x = b.op("ReLU", 1, {by("Add", by("Multiply", x, {1}, 3), {1, 6, 1, 1}, 4)});
  x = b.op("Tanh", 1, {by("Multiply", by("Multiply", x, {}, 5), {}, 6)});
  // Shapes that only a larger tensor could merge.
  b.result(by("Multiply", by("Multiply", x, {1, 6, 1, 1}, 7), {1, 1, 3, 1}, 8));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(functions_of(*graph, "MaxPool"),
            (std::vector<std::string>{"multiply", "add", "relu", "multiply", "tanh", "multiply",
                                      "multiply"}));
  EXPECT_EQ(graph->results[0]->inputs[0].node->inputs.size(), 6u);  // with the data
}

// The steps of one that is nobody's tail, with its own tail behind them.
TEST(FuseTails, FakeQuantizesAreSpelledOut) {
  GraphBuilder b;
  const Edge in = b.parameter({1, 6, 4, 4});
  const Edge x =
      b.op("FakeQuantize", 1,
           {in, b.constant(random_tensor({1, 6, 1, 1}, -2, -1, 1)),
            b.constant(random_tensor({1, 6, 1, 1}, 1, 2, 2)),
            b.constant(random_tensor({}, -1, 0, 3)), b.constant(random_tensor({}, 1, 2, 4))},
           {{"levels", "16"}});
  b.result(b.op("Sqrt", 1, {b.op("Abs", 1, {x})}));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(functions_of(*graph, "Multiply"),
            (std::vector<std::string>{"add", "to_level", "multiply", "add", "abs", "sqrt"}));
}

TEST(FuseTails, FakeQuantizesOfWholeNumbersHaveNothingToMultiply) {
  GraphBuilder b;
  const Edge low = b.constant(random_tensor({}, 0, 0, 1)),
             high = b.constant(random_tensor({}, 15, 15, 1));
  b.result(b.op("FakeQuantize", 1, {b.parameter({1, 6, 4, 4}), low, high, low, high},
                {{"levels", "16"}}));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(functions_of(*graph, "Multiply"), std::vector<std::string>{"to_level"});
}

TEST(FuseTails, DoesNotFuseWhatWidensTheOutput) {
  GraphBuilder b;
  const Edge x = conv(b, b.parameter({1, 16, 1, 1}), 16, 16, 1, "0,0", 1);
  b.result(b.op("Add", 1, {x, b.parameter({1, 16, 4, 4})}));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "Add"), 1u);
}

// What convolves signals has their channels last, from the input on; a transpose behind it then is
// a sequence as it lies.
TEST(AssignLayouts, SignalsAreImagesOfOneRow) {
  GraphBuilder b;
  const auto convolve = [&](Edge x, unsigned seed) {
    return b.op("Convolution", 1, {x, b.constant(random_tensor({8, 8, 3}, -1, 1, seed))},
                {{"strides", "1"}, {"dilations", "1"}, {"pads_begin", "1"}, {"pads_end", "1"}});
  };
  const Edge pooled = b.op("MaxPool", 1, {convolve(b.parameter({1, 8, 20}), 1)},
                           {{"kernel", "2"},
                            {"strides", "2"},
                            {"pads_begin", "0"},
                            {"pads_end", "0"},
                            {"rounding_type", "floor"}});
  const Edge signal = convolve(pooled, 2);
  b.result(b.op("Transpose", 1,
                {signal, b.constant(Tensor::of<int>(ElementType::i64, {3}, {0, 2, 1}))}));
  auto graph = b.finish();
  expect_same_values(*graph, "assign_layouts");
  EXPECT_EQ(count_of(*graph, "Reorder"), 0u);
  EXPECT_TRUE(graph->parameters[0]->outputs[0].desc.is_channels_last());
}

TEST(AssignLayouts, ConcatAlongChannelsCostsNothing) {
  GraphBuilder b;
  const Edge in = b.parameter({1, 8, 6, 6});
  const Edge inner =
      b.op("Concat", 1, {conv(b, in, 8, 16, 1, "0,0", 1), conv(b, in, 8, 32, 1, "0,0", 2)},
           {{"axis", "1"}});
  const Edge outer = b.op("Concat", 1, {inner, conv(b, in, 8, 16, 1, "0,0", 3)}, {{"axis", "1"}});
  b.result(conv(b, outer, 64, 16, 1, "0,0", 4));
  auto graph = b.finish();
  run_passes(*graph, cpu_context(), "");
  EXPECT_EQ(count_of(*graph, "Reorder"), 1u);  // of the result, to NCHW
  // All four parts lie in the outer concat's memory, at their channels.
  const Node* first = graph->nodes[0].get();
  for (const auto& node : graph->nodes)
    if (node->is("Convolution")) {
      first = node.get();
      break;
    }
  EXPECT_EQ(storage_root({const_cast<Node*>(first), 0}).node->type, "Concat");
  EXPECT_EQ(first->outputs[0].desc.strides, (Shape{64 * 36, 1, 64 * 6, 64}));
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

TEST(AssignLayouts, SsdHeadsWriteStraightIntoTheirConcat) {
  GraphBuilder b;
  const Edge in = b.parameter({1, 8, 6, 6});
  std::vector<Edge> heads;
  for (unsigned i = 0; i < 2; ++i) {
    Edge x = conv(b, in, 8, 12, 1, "0,0", 1 + i);
    x = b.op("Transpose", 1, {x, b.constant(Tensor::of<int>(ElementType::i64, {4}, {0, 2, 3, 1}))});
    heads.push_back(b.op("Reshape", 1,
                         {x, b.constant(Tensor::of<int>(ElementType::i64, {2}, {1, -1}))},
                         {{"special_zero", "true"}}));
  }
  b.result(b.op("Concat", 1, {heads[0], heads[1]}, {{"axis", "1"}}));
  auto graph = b.finish();
  run_passes(*graph, cpu_context(), "");
  EXPECT_EQ(count_of(*graph, "Reorder"), 0u);
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

// Rows that a kernel fills up behind those it found are cut off on the way to the host; another
// kernel would read them.
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
