// Operations on rows compute those alone that a Gather chooses of them.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::GraphBuilder;

Edge floats(GraphBuilder& b, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i % 7) - 0.2f;
  return b.constant(Tensor::of<float>(ElementType::f32, shape, values));
}

// The places of the `chosen` best of 12 rows, from a second parameter [2, 12].
Edge places(GraphBuilder& b, int64_t chosen) {
  const Edge scores = b.parameter({2, 12});
  const Edge k = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {chosen}));
  const Edge best =
      b.op("TopK", 11, {scores, k},
           {{"axis", "1"}, {"mode", "max"}, {"sort", "value"}, {"index_element_type", "i64"}}, 2);
  return {best.node, 1};
}

Edge rows_at(GraphBuilder& b, const Edge& x, const Edge& at) {
  const Edge axis = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {1}));
  return b.op("Gather", 8, {x, at, axis}, {{"batch_dims", "1"}});
}

// Number of rows of the last product.
int64_t rows_of_products(const Graph& graph) {
  int64_t rows = 0;
  for (const auto& node : graph.nodes())
    if (node->is("MatMul")) rows = node->shape()[1];
  return rows;
}

TEST(ChooseRows, ProductsOfChosenRowsOnly) {
  for (const int64_t chosen : {3, 7}) {
    GraphBuilder b;
    const std::map<std::string, std::string> numpy{{"auto_broadcast", "numpy"}};
    const Edge x = b.op("Sigmoid", 1, {b.parameter({2, 12, 4})}), at = places(b, chosen);
    Edge y = b.op("MatMul", 1, {x, floats(b, {5, 4})}, {{"transpose_b", "true"}});
    y = b.op("ReLU", 1, {b.op("Add", 1, {y, floats(b, {5})}, numpy)});
    y = b.op("MatMul", 1, {y, floats(b, {5, 6})});
    y = b.op("Add", 1, {floats(b, {1, 12, 6}), y}, numpy);
    b.result(rows_at(b, x, at));
    b.result(rows_at(b, y, at));
    auto graph = b.finish();
    expect_same_values(*graph, "choose_rows");
    EXPECT_EQ(rows_of_products(*graph), chosen == 3 ? 3 : 12);
    // One of the rows of x, and one of the summands of rows.
    EXPECT_EQ(count_of(*graph, "Gather"), 2u);
  }
}

TEST(ChooseRows, WhatIsReadElsewhereStays) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 12, 4}), at = places(b, 3);
  const Edge y = b.op("MatMul", 1, {x, floats(b, {4, 6})});
  b.result(y);
  b.result(rows_at(b, y, at));
  auto graph = b.finish();
  expect_same_values(*graph, "choose_rows");
  EXPECT_EQ(rows_of_products(*graph), 12);
}

TEST(ChooseRows, OperationsAcrossRowsStay) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 12, 4}), at = places(b, 3);
  b.result(rows_at(b, b.op("SoftMax", 8, {x}, {{"axis", "1"}}), at));
  // Weights that differ by image.
  b.result(rows_at(b, b.op("MatMul", 1, {x, floats(b, {2, 4, 6})}), at));
  auto graph = b.finish();
  expect_same_values(*graph, "choose_rows");
  EXPECT_EQ(rows_of_products(*graph), 12);
}

}  // namespace
}  // namespace clinfer
