// Functions after views, flattened inputs of products, and reshapes between convolutions: launches
// counted, values compared.
#include "engine/plan/plan.h"
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::cpu_context;
using test::expect_same_values;
using test::GraphBuilder;
using test::random_tensor;

Edge convolution(GraphBuilder& b, const Edge& x, int64_t out, uint32_t seed) {
  const int64_t in = x.node->shape(x.port)[1];
  return b.op("Convolution", 1, {x, b.constant(random_tensor({out, in, 3, 3}, -1, 1, seed))},
              {{"strides", "1,1"},
               {"pads_begin", "1,1"},
               {"pads_end", "1,1"},
               {"dilations", "1,1"},
               {"auto_pad", "explicit"}});
}

// Kernels of the whole plan but for the copies that give results their order; values stay the same.
size_t launches(std::unique_ptr<Graph> graph) {
  expect_same_values(*graph, "fuse_tails");
  run_passes(*graph, cpu_context());
  const Plan plan = make_plan(std::move(graph), cpu_context().traits);
  size_t count = 0;
  for (const Step& step : plan.steps) {
    const std::vector<Node*> users = plan.graph->users(step.node);
    const bool copies_result =
        step.node->is("Reorder") && users.size() == 1 && users[0]->is("Result");
    if (!copies_result) count += step.kernels.launches.size();
  }
  return count;
}

TEST(MoveFunctions, PastViewsToTheirProducer) {
  const std::map<std::string, std::string> plain = {{"special_zero", "false"}};
  for (const std::string function : {"ReLU", "Sigmoid", "Multiply"}) {
    const auto apply = [&](GraphBuilder& b, const Edge& x) {
      return function == "Multiply" ? b.op(function, 1, {x, b.number(-2, {1, 1})})
                                    : b.op(function, 1, {x});
    };
    for (const int kind : {0, 1, 2, 3, 4}) {
      GraphBuilder b;
      const Edge x = b.parameter({1, 4, 6, 8});
      Edge y = convolution(b, x, 8, 1);
      if (kind == 0) y = b.op("Reshape", 1, {y, b.ints({1, 8, 48})}, plain);
      if (kind == 1) y = b.op("Transpose", 1, {y, b.ints({0, 2, 3, 1})});
      if (kind == 2) y = b.op("Slice", 8, {y, b.ints({1}), b.ints({5}), b.ints({1}), b.ints({2})});
      if (kind == 3) y = b.op("Concat", 1, {y, convolution(b, x, 4, 2)}, {{"axis", "1"}});
      if (kind == 4) y = b.op("Unsqueeze", 1, {b.op("Squeeze", 1, {y, b.ints({0})}), b.ints({0})});
      b.result(apply(b, y));
      EXPECT_EQ(launches(b.finish()), kind == 3 ? 2u : 1u) << function << " " << kind;
    }
  }
}

// Where each part of a split gets the same function, the operation before the split computes it.
TEST(MoveFunctions, PastSplitsToTheirProducer) {
  for (const std::string function : {"ReLU", "Sigmoid", "Multiply"}) {
    for (const bool variadic : {false, true}) {
      for (const bool same : {true, false}) {
        GraphBuilder b;
        const Edge y = convolution(b, b.parameter({1, 4, 6, 8}), 8, 1);
        const Edge axis = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {1}));
        const Edge parts = variadic ? b.op("VariadicSplit", 1, {y, axis, b.ints({2, 3, 3})}, {}, 3)
                                    : b.op("Split", 1, {y, axis}, {{"num_splits", "2"}}, 2);
        for (int k = 0; k < (variadic ? 3 : 2); ++k) {
          const Edge part{parts.node, k};
          const float factor = same || k == 0 ? -2.f : 3.f;
          const Edge result = function == "Multiply"
                                  ? b.op(function, 1, {part, b.number(factor, {1, 1})})
                                  : b.op(same || k == 0 ? function : "Tanh", 1, {part});
          b.result(result);
        }
        EXPECT_EQ(launches(b.finish()), same       ? 1u
                                        : variadic ? 4u
                                                   : 3u)
            << function << ", variadic " << variadic;
      }
    }
  }
}

// A part that is also read as it is keeps all functions where they are; one that nothing reads
// does not.
TEST(MoveFunctions, PastSplitsByWhatIsRead) {
  for (const bool read_raw : {true, false}) {
    GraphBuilder b;
    const Edge y = convolution(b, b.parameter({1, 4, 6, 8}), 9, 1);
    const Edge axis = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {1}));
    const Edge parts = b.op("Split", 1, {y, axis}, {{"num_splits", "3"}}, 3);
    for (const int k : {0, 1}) b.result(b.op("ReLU", 1, {Edge{parts.node, k}}));
    if (read_raw)
      b.result(b.op("MaxPool", 1, {Edge{parts.node, 1}},
                    {{"strides", "1,1"},
                     {"pads_begin", "0,0"},
                     {"pads_end", "0,0"},
                     {"kernel", "2,2"},
                     {"rounding_type", "floor"}}));
    EXPECT_EQ(launches(b.finish()), read_raw ? 4u : 1u);
  }
}

// The heads of YOLOv8: boxes and scores of two maps are joined, and split again. How many Sigmoids are
// nodes of their own after the one of the scores was moved.
size_t sigmoids_left(int64_t first_part, bool read_boxes_of_map) {
  GraphBuilder b;
  const std::map<std::string, std::string> plain = {{"special_zero", "false"}};
  std::vector<Edge> maps;
  for (const int64_t side : {6, 3}) {
    const Edge x = b.parameter({2, 4, side, side});
    const Edge boxes = convolution(b, x, 4, 1), scores = convolution(b, x, 8, 2);
    if (read_boxes_of_map) b.result(boxes);
    const Edge joined = b.op("Concat", 1, {boxes, scores}, {{"axis", "1"}});
    maps.push_back(b.op("Reshape", 1, {joined, b.ints({2, 12, side * side})}, plain));
  }
  const Edge all = b.op("Concat", 1, maps, {{"axis", "2"}});
  const Edge axis = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {1}));
  const Edge parts =
      b.op("VariadicSplit", 1, {all, axis, b.ints({first_part, 12 - first_part})}, {}, 2);
  b.result(b.op("Abs", 1, {parts}));
  b.result(b.op("Sigmoid", 1, {Edge{parts.node, 1}}));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  return test::count_of(*graph, "Sigmoid");
}

TEST(MoveFunctions, PastASplitToWhatMakesThePart) {
  EXPECT_EQ(sigmoids_left(4, false), 0u);
  EXPECT_EQ(sigmoids_left(4, true), 0u);
  EXPECT_EQ(sigmoids_left(5, false), 1u);  // reaches into the boxes, or leaves a score out
  EXPECT_EQ(sigmoids_left(3, false), 1u);
}

// A part of a part, which one input of the concat makes; and one that is less than an input.
TEST(MoveFunctions, PastSplitsOfSplits) {
  for (const bool whole : {true, false}) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 4, 6, 8});
    const Edge axis = b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {1}));
    std::vector<Edge> inputs;
    for (uint32_t i = 0; i < 3; ++i) inputs.push_back(convolution(b, x, i == 0 ? 3 : 2, i));
    const Edge all = b.op("Concat", 1, inputs, {{"axis", "1"}});
    const Edge outer = b.op("VariadicSplit", 1, {all, axis, b.ints({3, 4})}, {}, 2);
    const Edge inner =
        b.op("VariadicSplit", 1,
             {Edge{outer.node, 1}, axis, whole ? b.ints({2, 2}) : b.ints({3, 1})}, {}, 2);
    b.result(b.op("Abs", 1, {outer}));
    b.result(b.op("Abs", 1, {inner}));
    b.result(b.op("Sigmoid", 1, {Edge{inner.node, 1}}));
    auto graph = b.finish();
    expect_same_values(*graph, "fuse_tails");
    EXPECT_EQ(test::count_of(*graph, "Sigmoid"), whole ? 0u : 1u);
  }
}

// Both readers of a value see it as it was.
TEST(MoveFunctions, NotWhereOthersReadTheView) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 4, 6, 8});
  const Edge flat = b.op("Reshape", 1, {convolution(b, x, 8, 1), b.ints({1, 8, 48})},
                         {{"special_zero", "false"}});
  b.result(b.op("ReLU", 1, {flat}));
  b.result(flat);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(test::count_of(*graph, "ReLU"), 1u);
}

TEST(OrderFlattened, ProductsReadWhatLiesInMemory) {
  for (const bool transposed : {false, true}) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 4, 3, 5});
    const Edge flat = b.op("Reshape", 1, {convolution(b, x, 8, 1), b.ints({2, 120})},
                           {{"special_zero", "false"}});
    const Edge weights =
        b.constant(random_tensor(transposed ? Shape{7, 120} : Shape{120, 7}, -1, 1, 3));
    b.result(b.op("MatMul", 1, {flat, weights},
                  {{"transpose_a", "false"}, {"transpose_b", transposed ? "true" : "false"}}));
    EXPECT_EQ(launches(b.finish()), 2u) << transposed;
  }
}

TEST(AssignLayouts, AReshapeBetweenConvolutionsIsOneCopy) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 4, 8, 8});
  const Edge other = b.op("Reshape", 1, {convolution(b, x, 16, 1), b.ints({1, 4, 16, 16})},
                          {{"special_zero", "false"}});
  b.result(convolution(b, other, 8, 2));
  EXPECT_EQ(launches(b.finish()), 3u);
}

TEST(Simplify, TilesOfOneGoAway) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 4, 8, 8});
  b.result(convolution(b, b.op("Tile", 1, {convolution(b, x, 4, 1), b.ints({1, 1, 1, 1})}), 4, 2));
  EXPECT_EQ(launches(b.finish()), 2u);
}

}  // namespace
}  // namespace clinfer
