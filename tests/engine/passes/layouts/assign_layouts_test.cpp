// Memory layouts, views and reorders.
#include "tests/devices.h"
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::conv;
using test::count_of;
using test::cpu_context;
using test::expect_same_values;
using test::find;
using test::GraphBuilder;
using test::random_tensor;

// Convolutions of signals have channels last, from the input on. A following transpose then is a
// view.
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

// Constants that were too many to be computed when the model was loaded had no memory behind their
// views, which gave other values in silence.
TEST(AssignLayouts, ViewsOfConstantsAreViewsOfACopy) {
  GraphBuilder b;
  const Edge constant = b.constant(random_tensor({2, 3, 4}, -1, 1, 1));
  const Edge rows = b.op("Reshape", 1, {constant, b.ints({6, 4})}, {{"special_zero", "false"}});
  const Edge wide = b.op("Unsqueeze", 1, {rows, b.ints({0})});
  b.result(b.op("Add", 1, {b.parameter({1, 6, 4}), wide}, {{"auto_broadcast", "numpy"}}));
  auto graph = b.finish();
  assign_layouts(*graph, cpu_context());
  EXPECT_EQ(count_of(*graph, "Reorder"), 1u);
  for (const char* view : {"Reshape", "Unsqueeze"})
    EXPECT_EQ(storage_root({find(*graph, view), 0}).node->type, "Reorder") << view;
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
  Node* first = find(*graph, "Convolution");
  EXPECT_EQ(storage_root({first, 0}).node->type, "Concat");
  EXPECT_EQ(first->outputs[0].desc.strides, (Shape{64 * 36, 1, 64 * 6, 64}));
}

TEST(AssignLayouts, SsdHeadsWriteStraightIntoTheirConcat) {
  for (const int64_t images : {1, 3}) {
    GraphBuilder b;
    const Edge in = b.parameter({images, 8, 6, 5});
    std::vector<Edge> heads;
    for (unsigned i = 0; i < 2; ++i) {
      const Edge x =
          b.op("Transpose", 1, {conv(b, in, 8, 12 + 4 * i, 1, "0,0", 1 + i), b.ints({0, 2, 3, 1})});
      heads.push_back(b.op("Reshape", 1, {x, b.ints({0, -1})}, {{"special_zero", "true"}}));
    }
    b.result(b.op("Concat", 1, {heads[0], heads[1]}, {{"axis", "1"}}));
    auto graph = b.finish();
    expect_same_values(*graph, "assign_layouts");
    EXPECT_EQ(count_of(*graph, "Reorder"), 0u);
    Node* first = find(*graph, "Convolution");
    EXPECT_EQ(storage_root({first, 0}).node->type, "Concat");
    EXPECT_EQ(first->outputs[0].desc.strides, (Shape{(images > 1 ? 28 : 12) * 30, 1, 12 * 5, 12}));
  }
}

// As after deformable attention, which leaves channels by tokens: matrix instructions read rows.
TEST(AssignLayouts, ProductsReadRowsOnNvidia) {
  for (const bool nvidia : {true, false}) {
    GraphBuilder b;
    const Edge x = b.op("Sigmoid", 1, {b.parameter({2, 64, 40})});
    const Edge tokens = b.op("Transpose", 1, {x, b.ints({0, 2, 1})});
    for (const unsigned seed : {1, 2})
      b.result(b.op("MatMul", 1, {tokens, b.constant(random_tensor({64, 48}, -1, 1, seed))}));
    auto graph = b.finish();
    PassContext context = cpu_context();
    if (nvidia) context.traits = test::hopper("NVIDIA H200");
    context.activations = ElementType::f16;
    run_passes(*graph, context);
    const TensorDesc& read = find(*graph, "MatMul")->inputs[0].node->outputs[0].desc;
    EXPECT_EQ(read.is_row_major(), nvidia);
    EXPECT_EQ(find(*graph, "MatMul")->inputs[0].node->is("Reorder"), nvidia);
  }
}

// As YOLOv8's: boxes computed in rows, scores a view of the heads' maps. Scores alone are copied, and
// both leave as f32.
TEST(AssignLayouts, AConcatOfRowsAndAViewIsWrittenInRows) {
  for (const ElementType type : {ElementType::f32, ElementType::f16}) {
    GraphBuilder b;
    const Edge map =
        b.op("Reshape", 1,
             {conv(b, b.parameter({1, 8, 50, 50}), 8, 10, 1, "0,0", 1), b.ints({1, 10, 2500})},
             {{"special_zero", "false"}});
    const Edge boxes = b.op("Multiply", 1, {b.parameter({1, 4, 2500}), b.parameter({1, 4, 2500})});
    b.result(b.op("Concat", 1, {boxes, map}, {{"axis", "1"}}));
    auto graph = b.finish();
    PassContext context = cpu_context();
    context.activations = type;
    run_passes(*graph, context, "");
    const Edge result = graph->results[0]->inputs[0];
    EXPECT_TRUE(result.node->is("Concat"));
    EXPECT_EQ(result.node->outputs[0].type, ElementType::f32);
    EXPECT_EQ(count_of(*graph, "Reorder"), 1u);
    EXPECT_TRUE(result.node->inputs[0].node->is("Multiply"));
    EXPECT_TRUE(result.node->outputs[0].desc.is_row_major());
  }
}

}  // namespace
}  // namespace clinfer
