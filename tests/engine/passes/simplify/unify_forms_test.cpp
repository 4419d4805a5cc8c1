// One form for what readers and converters state in several.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::GraphBuilder;
using test::integers;

Edge list(GraphBuilder& b, const std::vector<float>& values) {
  return b.constant(
      Tensor::of<float>(ElementType::f32, {static_cast<int64_t>(values.size())}, values));
}

TEST(UnifyForms, BatchNormsAreProductsAndSums) {
  for (const int opset : {1, 5}) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 3, 4, 5});
    const Edge gamma = list(b, {1, -2, 0.5f}), beta = list(b, {0, 1, -3});
    const Edge mean = list(b, {0.25f, 1, 2}), variance = list(b, {1, 4, 0});
    const std::vector<Edge> inputs = opset < 5 ? std::vector<Edge>{gamma, beta, x, mean, variance}
                                               : std::vector<Edge>{x, gamma, beta, mean, variance};
    b.result(b.op("BatchNormInference", opset, inputs, {{"epsilon", "0.001"}}));
    auto graph = b.finish();
    expect_same_values(*graph, "unify_forms");
    EXPECT_EQ(count_of(*graph, "BatchNormInference"), 0u);
    EXPECT_EQ(count_of(*graph, "Multiply"), 1u);
    EXPECT_EQ(count_of(*graph, "Add"), 1u);
  }
  // Parameters that are computed are reshaped to the data's rank.
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4}), gamma = b.parameter({3});
  const Edge one = list(b, {1, 1, 1});
  b.result(b.op("BatchNormInference", 5, {x, gamma, one, one, one}, {{"epsilon", "0.001"}}));
  auto graph = b.finish();
  expect_same_values(*graph, "unify_forms");
  EXPECT_EQ(count_of(*graph, "BatchNormInference"), 0u);
  EXPECT_EQ(count_of(*graph, "Reshape"), 1u);
}

TEST(UnifyForms, ABatchNormAfterAConvolutionIsInItsWeights) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 2, 5, 5});
  const Edge w = b.constant(Tensor::of<float>(ElementType::f32, {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}));
  const Edge y = b.op("Convolution", 1, {x, w},
                      {{"strides", "1,1"},
                       {"dilations", "1,1"},
                       {"pads_begin", "0,0"},
                       {"pads_end", "0,0"},
                       {"auto_pad", "explicit"}});
  const Edge normal =
      b.op("BatchNormInference", 5,
           {y, list(b, {2, 3, 4}), list(b, {1, 2, 3}), list(b, {0, 1, 0}), list(b, {1, 1, 4})},
           {{"epsilon", "0"}});
  b.result(normal);
  auto graph = b.finish();
  expect_same_values(*graph, "fold_into_weights");
  EXPECT_EQ(count_of(*graph, "Multiply"), 0u);
  EXPECT_EQ(count_of(*graph, "Add"), 1u);
}

TEST(UnifyForms, InterpolateNamesOnlyTheAxesThatChange) {
  for (const auto& [by_scales, listed] : {std::pair{true, true}, {false, true}, {true, false}}) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 3, 4, 5});
    std::vector<Edge> inputs{x, by_scales ? list(b, {1, 1, 2, 1.5f}) : integers(b, {1, 3, 8, 7})};
    if (listed) inputs.push_back(integers(b, {0, 1, -2, 3}));
    b.result(b.op("Interpolate", 11, inputs,
                  {{"mode", "linear_onnx"},
                   {"shape_calculation_mode", by_scales ? "scales" : "sizes"},
                   {"coordinate_transformation_mode", "half_pixel"},
                   {"nearest_mode", "floor"},
                   {"pads_begin", "0,0,0,0"},
                   {"pads_end", "0,0,0,0"}}));
    auto graph = b.finish();
    expect_same_values(*graph, "unify_forms");
    const Node& resized = *graph->results[0]->inputs[0].node;
    EXPECT_EQ(constant_value(resized.inputs[2])->to_ints(), (std::vector<int64_t>{2, 3}));
    if (by_scales) {
      EXPECT_EQ(constant_value(resized.inputs[1])->to_floats(), (std::vector<float>{2, 1.5f}));
    } else {
      EXPECT_EQ(constant_value(resized.inputs[1])->to_ints(), (std::vector<int64_t>{8, 7}));
    }
  }
}

// The quotient and the product are the same number for powers of two only.
TEST(UnifyForms, DividesByNoPowerOfTwo) {
  for (const float divisor : {0.5f, 3.f, 0.f}) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 3});
    b.result(b.op("Divide", 1, {x, list(b, {4, -2, divisor})}));
    auto graph = b.finish();
    if (divisor != 0)
      expect_same_values(*graph, "unify_forms");
    else
      run_passes(*graph, test::cpu_context(), "unify_forms");
    EXPECT_EQ(count_of(*graph, "Multiply"), divisor == 0.5f ? 1u : 0u) << divisor;
  }
}

// A last window that would begin past the picture keeps PyTorch's rounding.
TEST(UnifyForms, RoundsUpAsBeforeWhereThatIsTheSame) {
  for (const bool differs : {false, true}) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 2, differs ? 4 : 6, differs ? 4 : 6});
    b.result(b.op("MaxPool", 14, {x},
                  {{"strides", differs ? "3,3" : "2,2"},
                   {"dilations", "1,1"},
                   {"kernel", differs ? "2,2" : "3,3"},
                   {"pads_begin", differs ? "1,1" : "0,0"},
                   {"pads_end", differs ? "1,1" : "0,0"},
                   {"rounding_type", "ceil_torch"},
                   {"auto_pad", "explicit"},
                   {"index_element_type", "i64"},
                   {"axis", "0"}}));
    auto graph = b.finish();
    expect_same_values(*graph, "unify_forms");
    const Node& pool = *graph->results[0]->inputs[0].node;
    EXPECT_EQ(pool.opset, differs ? 14 : 8);
    EXPECT_EQ(pool.attributes.get_string("rounding_type"), differs ? "ceil_torch" : "ceil");
  }
}

Edge sliced(GraphBuilder& b, Edge x, int64_t begin, int64_t end, int64_t step = 1) {
  return b.op("Slice", 8, {x, b.ints({begin}), b.ints({end}), b.ints({step}), b.ints({-2})});
}

// Slices that are a whole axis together, stated in any order and by either operation.
TEST(UnifyForms, SlicesOfAWholeAxisAreASplit) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 7, 3});
  const Edge last = b.op("StridedSlice", 1, {x, b.ints({0, 5}), b.ints({0, 0}), b.ints({1, 1})},
                         {{"begin_mask", "1,0"},
                          {"end_mask", "1,1"},
                          {"new_axis_mask", ""},
                          {"shrink_axis_mask", ""},
                          {"ellipsis_mask", ""}});
  const Edge first = sliced(b, x, 0, 2), middle = sliced(b, x, -5, 5);
  for (const Edge& part : {middle, last, first}) b.result(test::unary(b, "ReLU", part));
  auto graph = b.finish();
  expect_same_values(*graph, "unify_forms");
  EXPECT_EQ(count_of(*graph, "Slice"), 0u);
  EXPECT_EQ(count_of(*graph, "StridedSlice"), 0u);
  ASSERT_EQ(count_of(*graph, "VariadicSplit"), 1u);
}

// Slices that leave a gap, overlap, take steps or lie along two axes stay.
TEST(UnifyForms, OtherSlicesStay) {
  for (const int what : {0, 1, 2, 3}) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 7, 3});
    std::vector<Edge> parts{sliced(b, x, 0, 3)};
    if (what == 0) parts.push_back(sliced(b, x, 4, 7));
    if (what == 1) parts.push_back(sliced(b, x, 2, 7));
    if (what == 2) parts.push_back(sliced(b, x, 3, 7, 2));
    if (what == 3)
      parts.push_back(
          b.op("Slice", 8, {x, b.ints({3, 0}), b.ints({7, 2}), b.ints({1, 1}), b.ints({1, 2})}));
    for (const Edge& part : parts) b.result(test::unary(b, "ReLU", part));
    auto graph = b.finish();
    expect_same_values(*graph, "unify_forms");
    EXPECT_EQ(count_of(*graph, "Slice"), 2u) << what;
  }
}

TEST(UnifyForms, GathersOfNeighboursAreSlices) {
  const auto gathered = [](const std::vector<int64_t>& at, bool scalar, int64_t axis) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 5, 3});
    const Edge indices =
        scalar ? b.constant(Tensor::of<int64_t>(ElementType::i64, {}, at)) : integers(b, at);
    const Edge along = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {axis}));
    b.result(b.op("Gather", 8, {x, indices, along}, {{"batch_dims", "0"}}));
    auto graph = b.finish();
    expect_same_values(*graph, "unify_forms");
    return count_of(*graph, "Gather");
  };
  EXPECT_EQ(gathered({3}, true, 1), 0u);
  EXPECT_EQ(gathered({-1}, true, -1), 0u);
  EXPECT_EQ(gathered({2}, false, 1), 0u);
  EXPECT_EQ(gathered({1, 2, 3}, false, 1), 0u);
  // Others, and those that are out of range, stay.
  EXPECT_EQ(gathered({1, 3}, false, 1), 1u);
  EXPECT_EQ(gathered({2, 1}, false, 1), 1u);
  EXPECT_EQ(gathered({4, 5}, false, 1), 1u);
  EXPECT_EQ(gathered({-1, 0}, false, 1), 1u);
}

TEST(UnifyForms, GathersOfAllElementsOfAnAxisAreASplit) {
  GraphBuilder b;
  const Edge x = b.parameter({3, 4, 2});
  const Edge axis = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {0}));
  for (const int64_t i : {0, 1, 2})
    b.result(b.op("Gather", 8,
                  {x, b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {i})), axis},
                  {{"batch_dims", "0"}}));
  auto graph = b.finish();
  expect_same_values(*graph, "unify_forms");
  EXPECT_EQ(count_of(*graph, "Slice"), 0u);
  EXPECT_EQ(count_of(*graph, "VariadicSplit"), 1u);
}

TEST(UnifyForms, GatherElementsOfWholeRowsIsAGather) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 5, 3});
  const Edge top = b.parameter({2, 5});
  const Edge k = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {2}));
  const Edge best =
      b.op("TopK", 11, {top, k},
           {{"axis", "1"}, {"mode", "max"}, {"sort", "value"}, {"index_element_type", "i64"}}, 2);
  const Edge column = b.op("Unsqueeze", 1, {Edge{best.node, 1}, integers(b, {2})});
  const Edge rows = b.op("Tile", 1, {column, integers(b, {1, 1, 3})});
  b.result(b.op("GatherElements", 6, {x, rows}, {{"axis", "1"}}));
  auto graph = b.finish();
  expect_same_values(*graph, "unify_forms");
  EXPECT_EQ(count_of(*graph, "GatherElements"), 0u);
  EXPECT_EQ(count_of(*graph, "Tile"), 0u);
  EXPECT_EQ(count_of(*graph, "Gather"), 1u);
}

}  // namespace
}  // namespace clinfer
