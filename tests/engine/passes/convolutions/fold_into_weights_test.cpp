// Factors and shifts folded into weights.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::conv;
using test::count_of;
using test::expect_becomes;
using test::expect_same_values;
using test::GraphBuilder;
using test::random_tensor;

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

TEST(FoldIntoWeights, TextOfABatchNormalisation) {
  expect_becomes(R"(
      x = parameter f32[1,3,5,5]
      w = random[2,3,1,1]
      factor = f32[1,2,1,1] 2 4
      shift = f32[1,2,1,1] 1 -1
      y = Convolution-1(x, w) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
      z = Multiply-1(y, factor)
      u = Add-1(z, shift)
      v = Multiply-1(u, factor)
      result v)",
                 "fold_into_weights",
                 "a = Convolution(in0, f32[2,3,1,1])\n"
                 "b = Add(a, 2 -4)\n"
                 "result b\n");
}

}  // namespace
}  // namespace clinfer
