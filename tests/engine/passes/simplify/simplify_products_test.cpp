// Factors and transposes around products of matrices.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::GraphBuilder;
using test::transpose;

Edge number(GraphBuilder& b, float value) {
  return b.constant(Tensor::of<float>(ElementType::f32, {1}, {value}));
}

// As PyTorch exports attention: both sides are scaled, the keys turned.
TEST(SimplifyProducts, ScalesOfAttentionBecomeOne) {
  GraphBuilder b;
  const Edge q = b.parameter({1, 5, 2, 4}), k = b.parameter({1, 5, 2, 4});
  const Edge a = b.op("Multiply", 1, {transpose(b, q, {0, 2, 1, 3}), number(b, 0.5f)});
  const Edge c = b.op("Divide", 1, {transpose(b, k, {0, 2, 3, 1}), number(b, 4)});
  b.result(b.op("SoftMax", 8, {b.op("MatMul", 1, {a, c})}, {{"axis", "-1"}}));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify_products");
  EXPECT_EQ(count_of(*graph, "Divide"), 0u);
  ASSERT_EQ(count_of(*graph, "Multiply"), 1u);
  const Node& scale = *graph->results[0]->inputs[0].node->inputs[0].node;
  EXPECT_TRUE(scale.is("Multiply"));
  EXPECT_EQ(constant_value(scale.inputs[1])->to_floats(), std::vector<float>{0.125f});
  EXPECT_TRUE(scale.inputs[0].node->attributes.get_bool("transpose_b"));
}

// As YOLO11 writes it.
TEST(SimplifyProducts, AScaleBeforeATranspose) {
  GraphBuilder b;
  const Edge q = b.parameter({2, 4, 5}), k = b.parameter({2, 4, 5});
  const Edge a = transpose(b, b.op("Multiply", 1, {q, number(b, 0.5f)}), {0, 2, 1});
  b.result(b.op("Abs", 1, {b.op("MatMul", 1, {a, k})}));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify_products");
  const Node& scale = *graph->results[0]->inputs[0].node->inputs[0].node;
  EXPECT_TRUE(scale.is("Multiply"));
  EXPECT_TRUE(scale.inputs[0].node->is("MatMul"));
}

TEST(SimplifyProducts, ATransposeOfTheSecondBecomesAFlag) {
  for (const bool mixed : {false, true}) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 3, 4});
    const Edge y = mixed ? b.parameter({5, 2, 4}) : b.parameter({2, 5, 4});
    const std::vector<int64_t> order =
        mixed ? std::vector<int64_t>{1, 2, 0} : std::vector<int64_t>{0, 2, 1};
    b.result(b.op("MatMul", 1, {x, transpose(b, y, order)}));
    auto graph = b.finish();
    expect_same_values(*graph, "simplify_products");
    EXPECT_EQ(count_of(*graph, "Transpose"), mixed ? 1u : 0u);
    const Node& product = *graph->results[0]->inputs[0].node;
    EXPECT_TRUE(product.attributes.get_bool("transpose_b"));
  }
}

// RT-DETR masks the places at the border by factors like these.
TEST(SimplifyProducts, FactorsOfRowsBecomeThoseOfTheResult) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4});
  const Edge rows = b.op("Multiply", 1, {b.constant(test::random_tensor({1, 3, 1}, 0, 1, 3)), x});
  b.result(b.op("MatMul", 1, {rows, b.constant(test::random_tensor({4, 5}, -1, 1, 4))}));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify_products");
  const Node& scale = *graph->results[0]->inputs[0].node;
  EXPECT_TRUE(scale.is("Multiply"));
  EXPECT_TRUE(scale.inputs[0].node->is("MatMul"));
  EXPECT_EQ(count_of(*graph, "Multiply"), 1u);
}

TEST(SimplifyProducts, LeavesFactorsThatOthersReadOrThatDiffer) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4}), y = b.parameter({2, 4, 5});
  const Edge shared = b.op("Multiply", 1, {x, number(b, 2)});
  b.result(b.op("MatMul", 1, {shared, y}));
  b.result(shared);
  const Edge rows = b.op("Multiply", 1, {x, b.constant(test::random_tensor({1, 1, 4}, 1, 2, 3))});
  b.result(b.op("MatMul", 1, {rows, y}));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify_products");
  EXPECT_EQ(count_of(*graph, "Multiply"), 2u);
  EXPECT_TRUE(graph->results[0]->inputs[0].node->is("MatMul"));
}

}  // namespace
}  // namespace clinfer
