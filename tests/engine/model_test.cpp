// Batches and other shapes of a model's inputs.
#include "engine/runtime/model.h"

#include <gtest/gtest.h>

#include "tests/engine/graph_builder.h"

namespace clinfer {
namespace {

// A sequence [time, batch] stands before the picture, as in models that read number plates.
std::unique_ptr<Graph> two_inputs() {
  test::GraphBuilder b;
  const Edge mask = b.parameter({5, 1}), picture = b.parameter({1, 2, 4, 4});
  b.result(
      b.op("Reshape", 1,
           {picture, b.constant(Tensor::of(ElementType::i64, {2}, std::vector<int64_t>{1, 32}))},
           {{"special_zero", "false"}}));
  b.result(b.op("Abs", 1, {mask}));
  return b.finish();
}

TEST(Model, BatchOfPicturesAndSequences) {
  auto graph = two_inputs();
  set_batch(*graph, 3);
  EXPECT_EQ(graph->parameters[0]->shape(), (Shape{5, 3}));
  EXPECT_EQ(graph->parameters[1]->shape(), (Shape{3, 2, 4, 4}));
  EXPECT_EQ(graph->results[0]->inputs[0].node->shape(), (Shape{3, 32}));
}

TEST(Model, OtherShapes) {
  auto graph = two_inputs();
  reshape(*graph, {{7, 1}, {2, 2, 4, 4}});
  EXPECT_EQ(graph->results[0]->inputs[0].node->shape(), (Shape{2, 32}));
  EXPECT_EQ(graph->results[1]->inputs[0].node->shape(), (Shape{7, 1}));
  graph = two_inputs();
  EXPECT_THROW(reshape(*graph, {{7, 1}, {2, 2, 4}}), Error);
  EXPECT_THROW(reshape(*graph, {{7, 1}, {1, 2, 4, 5}}), Error);  // the fixed pattern does not fit
}

}  // namespace
}  // namespace clinfer
