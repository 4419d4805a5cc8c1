// Operations whose shapes depend on values, as one step of the host.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::cpu_context;
using test::GraphBuilder;

// Boxes that a NonMaxSuppression picks, and how many these are.
TEST(GroupByValues, WhatFollowsASuppressionIsOneStepOfTheHost) {
  GraphBuilder b;
  const auto number = [&](float value) {
    return b.constant(Tensor::of<float>(ElementType::f32, {}, {value}));
  };
  const Edge boxes = b.parameter({1, 4, 4}), scores = b.parameter({1, 1, 4});
  const Edge picked =
      b.op("NonMaxSuppression", 9, {boxes, scores, b.ints({4}), number(0.5f), number(0.3f)}, {}, 3);
  const Edge rows = b.op("Gather", 8, {picked, b.ints({2}), b.ints({1})});
  const Edge found = b.op("Gather", 8,
                          {b.op("Reshape", 1, {boxes, b.ints({4, 4})}),
                           b.op("Squeeze", 1, {rows, b.ints({1})}), b.ints({0})});
  b.result(b.op("Reshape", 1, {b.op("Abs", 1, {found}), b.ints({-1, 2, 2})}));
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
  const Edge data = b.parameter({3, 2});
  const Edge found = b.op("NonZero", 3, {b.parameter({3})}, {{"output_type", "i64"}});
  const Edge indices = b.op("Transpose", 1, {found, b.ints({1, 0})});
  const Edge count = b.op("Gather", 8, {b.op("ShapeOf", 3, {indices}), b.ints({0}), b.ints({0})});
  const Edge shape = b.op("Concat", 1, {count, b.ints({2})}, {{"axis", "0"}});
  const Edge value = b.constant(Tensor::of<float>(ElementType::f32, {}, std::vector<float>{7}));
  const Edge updates = b.op("Broadcast", 3, {value, b.ints({3, 2})});
  updates.node->inputs.set(1, shape);
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
  const Edge twice = b.op("Multiply", 1, {b.parameter({3}, ElementType::i64), b.ints({2})});
  const Edge found = b.op("NonZero", 3, {b.parameter({3})}, {{"output_type", "i64"}});
  const Edge picked = b.op("Gather", 8, {twice, found, b.ints({0})});
  b.result(b.op("GreaterEqual", 1, {picked, b.ints({4})}));
  const auto graph = b.finish();
  run_passes(*graph, cpu_context());
  EXPECT_EQ(count_of(*graph, "Subgraph"), 1u);
  const std::vector<Tensor> inputs{
      Tensor::of<int64_t>(ElementType::i64, {3}, std::vector<int64_t>{1, 2, 3}),
      Tensor::of<float>(ElementType::f32, {3}, std::vector<float>{1, 0, 1})};
  EXPECT_EQ(evaluate_graph(*graph, inputs)[0].to_ints(), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace clinfer
