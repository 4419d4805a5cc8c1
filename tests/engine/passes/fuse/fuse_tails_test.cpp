// Element functions fused into their producers.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::conv;
using test::count_of;
using test::expect_becomes;
using test::expect_same_values;
using test::functions_of;
using test::GraphBuilder;
using test::random_tensor;

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
  for (const auto& node : graph->nodes())
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

// The other operand is computed after the producer, which must stay at its position.
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

// As the GPU plug-in's page has it: simple layers in any number and order, after convolutions,
// poolings and fully connected layers.
TEST(FuseTails, SimpleLayersInAnyOrderBecomePartOfTheirProducer) {
  const std::map<std::string, std::vector<std::string>> producers = {
      {"Convolution", {"ScaleShift", "PReLU", "FakeQuantize", "ReLU", "Elu", "Sigmoid", "Clamp"}},
      {"MaxPool", {"FakeQuantize", "ScaleShift"}},
      {"AvgPool", {"FakeQuantize", "PReLU", "FakeQuantize"}},
      {"MatMul", {"Tanh", "ScaleShift", "Swish", "ReLU", "Elu", "Sigmoid", "Clamp"}}};
  const std::map<std::string, std::string> windows = {
      {"kernel", "2,2"}, {"strides", "2,2"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}};
  for (const auto& [type, layers] : producers)
    for (const bool backwards : {false, true}) {
      GraphBuilder b;
      const bool is_product = type == "MatMul";
      const Shape each = is_product ? Shape{1, 16} : Shape{1, 16, 1, 1};
      const auto numbers = [&](float low, float high, unsigned seed) {
        return b.constant(random_tensor(each, low, high, seed));
      };
      Edge x;
      if (type == "Convolution") {
        x = conv(b, b.parameter({1, 16, 6, 6}), 16, 16, 3, "1,1", 1);
      } else if (is_product) {
        x = b.op(type, 1, {b.parameter({2, 24}), b.constant(random_tensor({24, 16}, -1, 1, 2))});
      } else {
        auto attributes = windows;
        if (type == "AvgPool") attributes["exclude-pad"] = "true";
        x = b.op(type, 1, {b.parameter({1, 16, 6, 6})}, attributes);
      }
      std::vector<std::string> order = layers;
      if (backwards) std::reverse(order.begin(), order.end());
      for (const std::string& layer : order)
        if (layer == "ScaleShift") {
          x = b.op("Add", 1, {b.op("Multiply", 1, {x, numbers(1, 2, 3)}), numbers(-1, 1, 4)});
        } else if (layer == "PReLU") {
          x = b.op("PReLU", 1, {x, b.constant(random_tensor({16}, 0, 1, 5))});
        } else if (layer == "FakeQuantize") {
          x = b.op("FakeQuantize", 1, {x, b.number(-2), b.number(2), b.number(-1), b.number(3)},
                   {{"levels", "16"}});
        } else {
          const int opset = layer == "Swish" ? 4 : 1;
          x = b.op(layer, opset, {x},
                   layer == "Clamp"
                       ? std::map<std::string, std::string>{{"min", "-1"}, {"max", "2"}}
                   : layer == "Elu" ? std::map<std::string, std::string>{{"alpha", "0.5"}}
                                    : std::map<std::string, std::string>{});
        }
      b.result(x);
      auto graph = b.finish();
      run_passes(*graph, test::cpu_context(), "fuse_tails");
      for (const auto& node : graph->nodes())
        EXPECT_TRUE(!node->def || node->is(type)) << node->type << " after " << type;
      EXPECT_EQ(count_of(*graph, type), 1u);
    }
}

// The steps of a FakeQuantize that is in no tail, followed by its own tail.
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

TEST(FuseTails, TextOfAResidualBlock) {
  expect_becomes(R"(
      x = parameter f32[1,16,6,6]
      w = random[16,16,1,1]
      bias = random[1,16,1,1]
      y = Convolution-1(x, w) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
      z = Add-1(y, bias)
      u = Add-1(z, x)
      v = ReLU-1(u)
      result v)",
                 "fuse_tails",
                 "a = Convolution(in0, f32[16,16,1,1]) + add(f32[1,16,1,1]) + add(in0) + relu\n"
                 "result a\n");
}

// Each step costs all that are fused later.
TEST(FuseTails, TailsAreBounded) {
  GraphBuilder b;
  Edge x = conv(b, b.parameter({1, 16, 2, 2}), 16, 16, 1, "0,0", 1);
  for (int i = 0; i < 200; ++i) x = b.op(i % 2 ? "Sigmoid" : "Tanh", 1, {x});
  b.result(x);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_tails");
  size_t longest = 0, steps = 0;
  for (const auto& node : graph->nodes()) {
    longest = std::max(longest, node->tail.size());
    steps += node->tail.size() + !node->is("Convolution") * (node->def != nullptr);
  }
  EXPECT_EQ(longest, 64u);
  EXPECT_EQ(steps, 200u);
}

}  // namespace
}  // namespace clinfer
