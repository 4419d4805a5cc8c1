// Quantised models in floats, for devices without products of bytes.
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
using test::random_tensor;

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

}  // namespace
}  // namespace clinfer
