// Quantised models in integers: each graph keeps its values, except those in the middle between two
// steps.
#include "tests/engine/passes/precision/quantized_models.h"

namespace clinfer {
namespace {

using test::conv;
using test::conv_on_grids;
using test::count_of;
using test::cpu_context;
using test::expect_same_values_but;
using test::fake_quantize;
using test::functions_of;
using test::GraphBuilder;
using test::numbers;
using test::random_tensor;

PassContext dot_context() {
  PassContext context = cpu_context();
  context.traits.vector_width = 16;
  context.traits.dot = DotProduct::avx512;
  return context;
}

size_t convolutions_of_bytes(const Graph& graph) {
  return static_cast<size_t>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const auto& n) {
        return n->type.ends_with("Convolution") &&
               n->inputs[0].node->outputs[n->inputs[0].port].type == ElementType::u8;
      }));
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
  expect_same_values_but(*graph, 20.f / 256 * 1.01f, dot_context());
  EXPECT_EQ(convolutions_of_bytes(*graph), 2u);
  EXPECT_EQ(count_of(*graph, "Quantize"), 1u);  // of the input; the other one is in the convolution
  EXPECT_EQ(count_of(*graph, "ReLU"), 0u);      // bytes from 0 on
  EXPECT_EQ(count_of(*graph, "Dequantize"), 0u);
  // The tail computes it as floats, as no later layer reads the bytes.
  EXPECT_EQ(count_of(*graph, "FakeQuantize"), 0u);
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
    expect_same_values_but(*graph, 1e-3f, dot_context());
    return convolutions_of_bytes(*graph);
  };
  EXPECT_EQ(convolve(255), 1u);
  EXPECT_EQ(convolve(256), 0u);  // too far apart for bytes
}

// A number times bytes is bytes of another step, also for several readers.
TEST(Quantize, AFactorScalesTheStep) {
  GraphBuilder b;
  const Edge steps = fake_quantize(b, b.parameter({1, 4, 6, 6}), -2, 1.984375f);
  const Edge x = b.op("Multiply", 1, {steps, b.constant(numbers({}, {0.25f}))});
  b.result(conv_on_grids(b, x, "Convolution", {4, 4, 3, 3}));
  b.result(conv_on_grids(b, x, "GroupConvolution", {4, 1, 1, 3, 3}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 1e-3f, dot_context());
  EXPECT_EQ(convolutions_of_bytes(*graph), 2u);
  EXPECT_EQ(count_of(*graph, "Quantize"), 1u);
}

TEST(Quantize, SumsReadBytes) {
  GraphBuilder b;
  const Edge x = fake_quantize(b, b.parameter({1, 4, 6, 6}), -2, 1.984375f);
  const Edge y = fake_quantize(b, conv_on_grids(b, x, "Convolution", {4, 4, 3, 3}), -10, 9.921875f);
  const Edge sum = fake_quantize(b, b.op("Add", 1, {x, y}), -12, 11.90625f);
  b.result(conv_on_grids(b, sum, "Convolution", {4, 4, 3, 3}));
  auto graph = b.finish();
  // A few in the middle between two bytes go the other way.
  expect_same_values_but(*graph, 24.f / 256 * 0.508f * 4, dot_context());
  EXPECT_EQ(convolutions_of_bytes(*graph), 2u);
  EXPECT_EQ(count_of(*graph, "Add"), 0u);
  EXPECT_EQ(count_of(*graph, "Dequantize"), 0u);
}

// Nothing but the sum reads the first summand, which waits for the second one as bytes.
TEST(Quantize, SummandsWaitAsBytes) {
  GraphBuilder b;
  const Edge x = fake_quantize(b, b.parameter({1, 4, 6, 6}), -2, 1.984375f);
  const Edge w = fake_quantize(b, b.parameter({1, 4, 6, 6}), -2, 1.984375f);
  const Edge y = fake_quantize(b, conv_on_grids(b, x, "Convolution", {4, 4, 3, 3}), -10, 9.921875f);
  const Edge z = fake_quantize(b, conv_on_grids(b, w, "Convolution", {4, 4, 3, 3}), -10, 9.921875f);
  const Edge sum = fake_quantize(b, b.op("Add", 1, {z, y}), -12, 11.90625f);
  b.result(conv_on_grids(b, sum, "Convolution", {4, 4, 3, 3}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 24.f / 256 * 0.508f * 4, dot_context());  // as in SumsReadBytes
  EXPECT_EQ(convolutions_of_bytes(*graph), 3u);
  EXPECT_EQ(count_of(*graph, "Add"), 0u);
  const auto makes_bytes = [](const auto& node) {
    return node->is("Convolution") && node->outputs[0].type == ElementType::u8;
  };
  EXPECT_EQ(std::count_if(graph->nodes().begin(), graph->nodes().end(), makes_bytes), 2);
}

// Floats between two quantisations, the second in the tail of the first: the first becomes its
// steps as well, which make an exact 0 of what lies at the zero point.
TEST(Quantize, FloatsInBetweenAreSpelledOut) {
  GraphBuilder b;
  const Edge x = fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f);
  const Edge product = b.op("Multiply", 1, {x, b.parameter({1, 3, 6, 6})});
  b.result(conv_on_grids(b, fake_quantize(b, product, -4, 3.96875f), "Convolution", {4, 3, 3, 3}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 8.f / 256 * 0.508f * 4, dot_context());  // as in SumsReadBytes
  EXPECT_EQ(convolutions_of_bytes(*graph), 1u);
  EXPECT_EQ(count_of(*graph, "FakeQuantize"), 0u);
  EXPECT_EQ(functions_of(*graph, "Multiply"),
            (std::vector<std::string>{"add", "to_level", "multiply", "add", "multiply", "multiply",
                                      "add", "to_byte"}));
}

// An image of bytes that grows by repeating its pixels is one of bytes.
TEST(Quantize, ImagesGrowAsBytes) {
  for (const char* mode : {"nearest", "linear"}) {
    GraphBuilder b;
    const Edge x = fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f);
    const Edge y =
        fake_quantize(b, conv_on_grids(b, x, "Convolution", {4, 3, 3, 3}), -10, 9.921875f);
    const Edge large = b.op("Interpolate", 11,
                            {y, b.constant(numbers({2}, {2, 2})),
                             b.constant(Tensor::of<int64_t>(ElementType::i64, {2}, {2, 3}))},
                            {{"mode", mode},
                             {"shape_calculation_mode", "scales"},
                             {"coordinate_transformation_mode", "asymmetric"},
                             {"nearest_mode", "floor"},
                             {"antialias", "false"},
                             {"pads_begin", "0,0,0,0"},
                             {"pads_end", "0,0,0,0"}});
    b.result(conv_on_grids(b, large, "Convolution", {4, 4, 3, 3}));
    auto graph = b.finish();
    expect_same_values_but(*graph, 20.f / 256 * 0.508f * 4, dot_context());
    EXPECT_EQ(convolutions_of_bytes(*graph), mode == std::string("nearest") ? 2u : 1u);
  }
}

// The factors and summands of a picture go into its quantisation, also by channel; a value that
// others read stays.
TEST(Quantize, TakesThePicturesScale) {
  for (const bool read_twice : {false, true}) {
    GraphBuilder b;
    const Edge scaled =
        b.op("Multiply", 1,
             {b.parameter({1, 3, 6, 6}), b.constant(numbers({1, 3, 1, 1}, {1, 0.5f, 0.8f}))});
    const Edge x = b.op("Add", 1, {scaled, b.constant(numbers({}, {0.3f}))});
    b.result(conv_on_grids(b, fake_quantize(b, x, -2, 1.984375f), "Convolution", {4, 3, 3, 3}));
    if (read_twice) b.result(x);
    auto graph = b.finish();
    expect_same_values_but(*graph, 4.f / 256 * 0.508f * 4, dot_context());
    EXPECT_EQ(convolutions_of_bytes(*graph), 1u);
    for (const auto& node : graph->nodes()) {
      if (!node->is("Quantize")) continue;
      EXPECT_EQ(node->inputs[0].node->is("Parameter"), !read_twice);
    }
  }
}

// A GPU with matrix instructions of warpgroups.
PassContext matrix_context() {
  PassContext context = dot_context();
  context.traits = DeviceTraits();
  context.traits.compute_units = 0;
  context.traits.max_work_group = 1024;
  context.traits.local_memory = 227 << 10;
  context.traits.dot = DotProduct::ptx;
  context.traits.matrix = MatrixUnit::emulated;
  return context;
}

size_t convolutions_of_float8(const Graph& graph) {
  return static_cast<size_t>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const auto& n) {
        return n->is("Convolution") &&
               n->inputs[0].node->outputs[n->inputs[0].port].type == ElementType::f8e4m3;
      }));
}

// Rounds to floats of 8 bits as tools write it for IR, by a scale for all or for each output
// channel.
Edge fake_convert(GraphBuilder& b, const Edge& x, const Edge& scale) {
  const Edge rounded = b.op("ToFloat8", 1, {b.op("Multiply", 1, {x, scale})},
                            {{"type", "f8e4m3"}, {"saturate", "true"}});
  return b.op("Divide", 1, {rounded, scale});
}

Edge conv_of_float8(GraphBuilder& b, const Edge& x, const Shape& filter, const Tensor& weights) {
  std::vector<float> scales;
  for (int64_t c = 0; c < filter[0]; ++c) scales.push_back(300.f + static_cast<float>(c));
  return b.op(
      "Convolution", 1,
      {x, fake_convert(b, b.constant(weights), b.constant(numbers({filter[0], 1, 1, 1}, scales)))},
      {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
}

// Values stay in 8 bits from one layer to the next, and where a sum reads them later.
TEST(Quantize, ConvolutionsTakeFloatsOf8Bits) {
  const Shape filter{64, 64, 3, 3};
  const auto build = [&](const char* saturate_type, const Tensor& weights) {
    GraphBuilder b;
    const auto number = [&](float value) { return b.constant(numbers({}, {value})); };
    const Edge x = fake_convert(b, b.parameter({1, 64, 6, 6}), number(200));
    const Edge y =
        fake_convert(b, b.op("ReLU", 1, {conv_of_float8(b, x, filter, weights)}), number(20));
    const Edge z = b.op("Add", 1, {conv_of_float8(b, y, filter, weights), x});
    b.result(conv_of_float8(b, fake_convert(b, z, number(20)), filter, weights));
    auto graph = b.finish();
    for (const auto& node : graph->nodes())
      if (node->is("ToFloat8")) node->attributes.set("type", saturate_type);
    return graph;
  };
  const Tensor weights = random_tensor(filter, -0.1f, 0.1f, 3);
  auto graph = build("f8e4m3", weights);
  // Values of about 1, whose steps are a sixteenth, become another one where they lie in the
  // middle.
  expect_same_values_but(*graph, 0.1f, matrix_context());
  EXPECT_EQ(convolutions_of_float8(*graph), 3u);
  EXPECT_EQ(count_of(*graph, "Quantize"), 1u);  // of the input; the others are in convolutions
  EXPECT_EQ(count_of(*graph, "Dequantize") + count_of(*graph, "Add") + count_of(*graph, "ReLU"),
            0u);
  // Another format, and devices without such instructions.
  graph = build("f8e5m2", weights);
  run_passes(*graph, matrix_context(), "fuse_tails");
  EXPECT_EQ(convolutions_of_float8(*graph), 0u);
  graph = build("f8e4m3", weights);
  expect_same_values_but(*graph, 0.1f, dot_context());
  EXPECT_EQ(convolutions_of_float8(*graph), 0u);
  EXPECT_EQ(count_of(*graph, "Quantize"), 0u);
}

// Weights that are no numbers of the format: what rounds the data stays.
TEST(Quantize, LeavesFloatsOf8BitsThatNothingMultiplies) {
  GraphBuilder b;
  const Edge x = fake_convert(b, b.parameter({1, 64, 6, 6}), b.constant(numbers({}, {200})));
  b.result(conv(b, x, 64, 64, 3, "1,1", 9));
  auto graph = b.finish();
  run_passes(*graph, matrix_context(), "fuse_tails");
  EXPECT_EQ(convolutions_of_float8(*graph), 0u);
  EXPECT_EQ(count_of(*graph, "Quantize"), 0u);
}

TEST(Quantize, LeavesFloatsThatNobodyCounts) {
  GraphBuilder b;
  const Edge x = fake_quantize(b, b.parameter({1, 3, 6, 6}), -2, 1.984375f);
  b.result(conv(b, x, 3, 4, 3, "1,1", 9));  // weights on no grid
  auto graph = b.finish();
  expect_same_values_but(*graph, 1e-4f, dot_context());
  EXPECT_EQ(convolutions_of_bytes(*graph), 0u);
  EXPECT_EQ(functions_of(*graph, "Multiply"),
            (std::vector<std::string>{"add", "to_level", "multiply", "add"}));
  EXPECT_EQ(count_of(*graph, "Quantize"), 0u);
}

TEST(Quantize, LeavesVectors) {
  GraphBuilder b;
  const Edge low = b.constant(numbers({5}, {-1, -2, -3, -4, -5})),
             high = b.constant(numbers({5}, {1, 2, 3, 4, 5}));
  b.result(b.op("FakeQuantize", 1, {b.parameter({5}), low, high, low, high}, {{"levels", "256"}}));
  auto graph = b.finish();
  expect_same_values_but(*graph, 1e-4f, dot_context());
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

}  // namespace
}  // namespace clinfer
