// Passes on quantised models, in integers and in floats: each must keep the values of the graph,
// but for what lies in the middle between two steps, and do what it is there for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
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

PassContext dot_context() {
  PassContext context = cpu_context();
  context.traits.vector_width = 16;
  context.traits.dot = DotProduct::avx512;
  return context;
}

Tensor numbers(const Shape& shape, const std::vector<float>& values) {
  return Tensor::of(ElementType::f32, shape, values);
}

Edge fake_quantize(GraphBuilder& b, Edge x, float low, float high, const char* levels = "256") {
  const Edge from = b.constant(numbers({}, {low})), to = b.constant(numbers({}, {high}));
  return b.op("FakeQuantize", 1, {x, from, to, from, to}, {{"levels", levels}});
}

// Weights on grids of their own for each output channel, from -127 to 127 steps.
Tensor weights_on_grids(const Shape& shape) {
  std::vector<float> values = test::random_ints(ElementType::i8, shape, -127, 127, 5).to_floats();
  const size_t depth = values.size() / static_cast<size_t>(shape[0]);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= 0.001f * static_cast<float>(1 + i / depth);
  return numbers(shape, values);
}

Edge conv_on_grids(GraphBuilder& b, Edge x, const char* type, const Shape& filter) {
  return b.op(
      type, 1, {x, b.constant(weights_on_grids(filter))},
      {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
}

size_t convolutions_of_bytes(const Graph& graph) {
  return static_cast<size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const auto& n) {
        return n->type.ends_with("Convolution") &&
               n->inputs[0].node->outputs[n->inputs[0].port].type == ElementType::u8;
      }));
}

// All values within `steps` of the last quantisation before the output, whose step is `step`.
void expect_same_values_but(Graph& graph, float step, const PassContext& context = dot_context()) {
  std::vector<Tensor> inputs;
  for (const Node* parameter : graph.parameters)
    inputs.push_back(random_tensor(parameter->shape(), -2, 2, 7));
  const Tensor before = evaluate_graph(graph, inputs)[0];
  run_passes(graph, context, "fuse_tails");
  const Tensor after = evaluate_graph(graph, inputs)[0];
  for (int64_t k = 0; k < before.elements(); ++k)
    ASSERT_NEAR(before.data<float>()[k], after.data<float>()[k], step) << "element " << k;
}

TEST(Quantize, ConvolutionsTakeBytes) {
  GraphBuilder b;
  Edge x = fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f);  // zero at 128
  x = b.op("ReLU", 1, {conv_on_grids(b, x, "Convolution", {4, 3, 3, 3})});
  x = b.op("MaxPool", 1, {x},
           {{"kernel", "2,2"},
            {"strides", "1,1"},
            {"pads_begin", "0,0"},
            {"pads_end", "0,0"},
            {"rounding_type", "floor"}});
  x = fake_quantize(b, x, 0, 10.2f);
  x = conv_on_grids(b, x, "GroupConvolution", {4, 1, 1, 3, 3});
  b.result(fake_quantize(b, x, -10, 9.921875f));
  auto graph = b.finish();
  expect_same_values_but(*graph, 20.f / 256 * 1.01f);
  EXPECT_EQ(convolutions_of_bytes(*graph), 2u);
  EXPECT_EQ(count_of(*graph, "Quantize"), 1u);  // of the input; the other one is in the convolution
  EXPECT_EQ(count_of(*graph, "ReLU"), 0u);      // bytes from 0 on
  EXPECT_EQ(count_of(*graph, "Dequantize"), 0u);
  EXPECT_EQ(count_of(*graph, "FakeQuantize"),
            0u);  // in the tail, as floats: nobody computes with those bytes
}

// Weights that are no bytes without their zero point: integers all the same.
TEST(Quantize, WeightsMayHaveZeroPoints) {
  const Shape filter{4, 3, 3, 3};
  const auto convolve = [&](float span) {
    std::vector<float> values = random_tensor(filter, -127, 127, 5).to_floats();
    values[0] = -128, values[1] = values[0] + span;
    for (float& value : values) value = 0.25f * (std::floor(value) + 50);
    GraphBuilder b;
    b.result(b.op(
        "Convolution", 1,
        {fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f),
         b.constant(numbers(filter, values))},
        {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}}));
    auto graph = b.finish();
    expect_same_values_but(*graph, 1e-3f);
    return convolutions_of_bytes(*graph);
  };
  EXPECT_EQ(convolve(255), 1u);
  EXPECT_EQ(convolve(256), 0u);  // too far apart for bytes
}

TEST(Quantize, SumsReadBytes) {
  GraphBuilder b;
  const Edge x = fake_quantize(b, b.parameter({1, 4, 6, 6}), -2, 1.984375f);
  const Edge y = fake_quantize(b, conv_on_grids(b, x, "Convolution", {4, 4, 3, 3}), -10, 9.921875f);
  const Edge sum = fake_quantize(b, b.op("Add", 1, {x, y}), -12, 11.90625f);
  b.result(conv_on_grids(b, sum, "Convolution", {4, 4, 3, 3}));
  auto graph = b.finish();
  expect_same_values_but(
      *graph, 24.f / 256 * 0.508f * 4);  // a few in the middle between two bytes go the other way
  EXPECT_EQ(convolutions_of_bytes(*graph), 2u);
  EXPECT_EQ(count_of(*graph, "Add"), 0u);
  EXPECT_EQ(count_of(*graph, "Dequantize"), 0u);
}

// Floats between two quantisations, the second in the tail of the first: the first becomes its
// steps as well, which make an exact 0 of what lies at the zero point.
TEST(Quantize, FloatsInBetweenAreSpelledOut) {
  GraphBuilder b;
  const Edge x = fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f);
  const Edge product = b.op("Multiply", 1, {x, b.parameter({1, 3, 6, 6})});
  b.result(conv_on_grids(b, fake_quantize(b, product, -4, 3.96875f), "Convolution", {4, 3, 3, 3}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 8.f / 256 * 0.508f * 4);  // as in SumsReadBytes
  EXPECT_EQ(convolutions_of_bytes(*graph), 1u);
  EXPECT_EQ(count_of(*graph, "FakeQuantize"), 0u);
  EXPECT_EQ(functions_of(*graph, "Multiply"),
            (std::vector<std::string>{"add", "to_level", "multiply", "add", "multiply", "multiply",
                                      "add", "to_byte"}));
}

TEST(Quantize, LeavesFloatsThatNobodyCounts) {
  GraphBuilder b;
  const Edge x = fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f);
  b.result(conv(b, x, 3, 4, 3, "1,1", 9));  // weights on no grid
  auto graph = b.finish();
  expect_same_values_but(*graph, 1e-4f);
  EXPECT_EQ(convolutions_of_bytes(*graph), 0u);
  EXPECT_EQ(functions_of(*graph, "Multiply"),
            (std::vector<std::string>{"add", "to_level", "multiply", "add"}));
  EXPECT_EQ(count_of(*graph, "Quantize"), 0u);
}

// Where no product of bytes is to be had: rounding and limits only, the rest in the weights.
TEST(ScaleQuantization, GoesIntoTheWeightsAround) {
  GraphBuilder b;
  Edge x = fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f);
  x = b.op("ReLU", 1, {conv_on_grids(b, x, "Convolution", {4, 3, 3, 3})});
  x = fake_quantize(b, x, 0, 10.2f);
  x = conv_on_grids(b, x, "GroupConvolution", {4, 1, 1, 3, 3});
  b.result(fake_quantize(b, x, -10, 9.921875f));
  auto graph = b.finish();
  expect_same_values_but(*graph, 20.f / 256 * 1.01f, cpu_context());
  EXPECT_EQ(count_of(*graph, "ReLU"), 0u);
  EXPECT_EQ(functions_of(*graph, "Convolution"), std::vector<std::string>{"to_level"});
  EXPECT_EQ(functions_of(*graph, "GroupConvolution"),
            (std::vector<std::string>{"add", "to_level", "multiply", "add"}));
}

TEST(ScaleQuantization, FactorsMayDifferByChannel) {
  GraphBuilder b;
  const Edge x = b.op("Add", 1,
                      {conv(b, b.parameter({2, 3, 6, 6}), 3, 6, 3, "1,1", 4),
                       b.constant(random_tensor({1, 6, 1, 1}, -1, 1, 8))});
  const Edge low = b.constant(random_tensor({1, 6, 1, 1}, -2, -1, 1)),
             high = b.constant(random_tensor({1, 6, 1, 1}, 1, 2, 2));
  const Edge quantised = b.op("FakeQuantize", 1, {x, low, high, low, high}, {{"levels", "16"}});
  b.result(conv_on_grids(b, quantised, "GroupConvolution", {6, 1, 1, 3, 3}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 1e-3f, cpu_context());
  EXPECT_EQ(functions_of(*graph, "Convolution"),
            (std::vector<std::string>{"add", "to_level", "add"}));
}

TEST(ScaleQuantization, LeavesWhatOthersRead) {
  GraphBuilder b;
  const Edge x = b.op("ReLU", 1, {conv(b, b.parameter({1, 3, 6, 6}), 3, 4, 3, "1,1", 4)});
  const Edge quantised = fake_quantize(b, x, 0, 2);
  b.result(conv_on_grids(b, quantised, "GroupConvolution", {4, 1, 1, 3, 3}));
  b.result(b.op("Add", 1, {x, quantised}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 2.f / 255 * 4, cpu_context());
  EXPECT_EQ(functions_of(*graph, "Convolution"),
            (std::vector<std::string>{"relu", "keep", "multiply", "to_level", "multiply"}));
}

TEST(ScaleQuantization, LimitsStandForTheClampInFrontWhereTheyAreTighter) {
  for (const float high : {6.f, 8.f}) {
    GraphBuilder b;
    const Edge x = b.op("Clamp", 1, {conv(b, b.parameter({1, 3, 6, 6}), 3, 4, 3, "1,1", 4)},
                        {{"min", "0"}, {"max", "6"}});
    b.result(fake_quantize(b, x, 0, high));
    auto graph = b.finish();
    expect_same_values_but(*graph, high / 255 * 1.01f, cpu_context());
    EXPECT_EQ(functions_of(*graph, "Convolution"),
              high == 6 ? (std::vector<std::string>{"to_level", "multiply"})
                        : (std::vector<std::string>{"clamp", "multiply", "to_level", "multiply"}));
  }
}

TEST(Quantize, LeavesVectors) {
  GraphBuilder b;
  const Edge low = b.constant(numbers({5}, {-1, -2, -3, -4, -5})),
             high = b.constant(numbers({5}, {1, 2, 3, 4, 5}));
  b.result(b.op("FakeQuantize", 1, {b.parameter({5}), low, high, low, high}, {{"levels", "256"}}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 1e-4f);
  EXPECT_EQ(count_of(*graph, "Quantize"), 0u);
}

TEST(Quantize, NeedsADotProduct) {
  GraphBuilder b;
  b.result(conv_on_grids(b, fake_quantize(b, b.parameter({1, 3, 6, 6}), 0, 2), "Convolution",
                         {4, 3, 3, 3}));
  auto graph = b.finish();
  run_passes(*graph, cpu_context(), "quantize");
  EXPECT_EQ(count_of(*graph, "Quantize"), 0u);
}

TEST(Quantize, StaysInFloatsWhereAskedTo) {
  GraphBuilder b;
  b.result(conv_on_grids(b, fake_quantize(b, b.parameter({1, 3, 6, 6}), 0, 2), "Convolution",
                         {4, 3, 3, 3}));
  auto graph = b.finish();
  PassContext context = dot_context();
  context.integers = false;
  run_passes(*graph, context, "quantize");
  EXPECT_EQ(count_of(*graph, "Quantize"), 0u);
  EXPECT_EQ(convolutions_of_bytes(*graph), 0u);
}

TEST(Precision, SumsOfIntegersAreFloats) {
  GraphBuilder b;
  const Edge filter = b.constant(test::random_ints(ElementType::i32, {4, 3, 3, 3}, -127, 127, 5));
  b.result(
      b.op("Convolution", 1, {b.parameter({1, 3, 6, 6}, ElementType::i32), filter},
           {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}}));
  const auto graph = b.finish();
  Config config;
  EXPECT_FALSE(half_activations(config, *graph, true)) << "127 * 127 * 27 is no f16";
  config.precision = Precision::f16;
  EXPECT_FALSE(half_activations(config, *graph, true));
}

TEST(Precision, OfQuantisedModels) {
  GraphBuilder b;
  b.result(fake_quantize(b, b.parameter({1, 3}), 0, 2));
  const auto graph = b.finish();
  Config config;
  EXPECT_TRUE(half_activations(config, *graph, true));
  config.fp16_for_quantized_models = false;
  EXPECT_FALSE(half_activations(config, *graph, true));
  config.precision = Precision::f16;
  EXPECT_TRUE(half_activations(config, *graph, true));
}

}  // namespace
}  // namespace clinfer
