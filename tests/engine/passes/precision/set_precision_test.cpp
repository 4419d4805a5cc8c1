// Storage types: what loses by f16 keeps f32.
#include <gtest/gtest.h>

#include "engine/passes/passes.h"
#include "tests/engine/passes/precision/quantized_models.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::GraphBuilder;

// The graph so far, with the storage types of a device that computes in f16.
std::unique_ptr<Graph> in_half(GraphBuilder& b, MatrixUnit matrix = MatrixUnit::none) {
  auto graph = b.finish();
  PassContext context;
  context.traits.matrix = matrix;
  context.activations = ElementType::f16;
  set_precision(*graph, context);
  return graph;
}

Edge one(GraphBuilder& b) {
  return b.constant(Tensor::of(ElementType::f32, {}, std::vector<float>{1}));
}

Edge bytes_of(GraphBuilder& b, const Edge& floats) {
  return b.op("Quantize", 1, {floats, one(b), one(b)}, {{"levels", "256"}});
}

Edge floats_of(GraphBuilder& b, const Edge& bytes) {
  return b.op("Dequantize", 1, {bytes, one(b), one(b)});
}

// Proposal on the host gives regions; ROIPooling and a Result read them, a device operation only
// where `on_device`.
ElementType type_of_regions(bool on_device) {
  GraphBuilder b;
  const Edge regions =
      b.op("Proposal", 4,
           {b.parameter({1, 2, 4, 4}), b.parameter({1, 4, 4, 4}),
            b.constant(Tensor::of(ElementType::f32, {3}, std::vector<float>{64, 64, 1}))},
           {{"base_size", "16"},
            {"pre_nms_topn", "10"},
            {"post_nms_topn", "5"},
            {"nms_thresh", "0.7"},
            {"feat_stride", "16"},
            {"min_size", "1"},
            {"ratio", "1"},
            {"scale", "2"}},
           2);
  b.result(b.op("ROIPooling", 2, {b.parameter({1, 3, 4, 4}), regions},
                {{"pooled_h", "2"}, {"pooled_w", "2"}, {"spatial_scale", "0.1"}}));
  b.result(on_device ? b.op("Abs", 1, {regions}) : regions);
  const auto graph = in_half(b);
  return regions.node->outputs[0].type;
}

// Only where they were asked for.
TEST(SetPrecision, MarksProductsOfBf16) {
  for (const bool wanted : {true, false}) {
    GraphBuilder b;
    const Edge product =
        b.op("MatMul", 1, {b.parameter({4, 8}), b.constant(test::random_tensor({8, 32}, -1, 1, 1))},
             {{"transpose_a", "false"}, {"transpose_b", "false"}});
    const Edge other = b.op("Abs", 1, {product});
    b.result(other);
    auto graph = b.finish();
    PassContext context;
    context.bf16_products = wanted;
    set_precision(*graph, context);
    EXPECT_EQ(product.node->attributes.has("products"), wanted);
    EXPECT_FALSE(other.node->attributes.has("products"));
    EXPECT_EQ(product.node->outputs[0].type, ElementType::f32);
  }
}

TEST(SetPrecision, RegionsStayWide) {
  EXPECT_EQ(type_of_regions(false), ElementType::f32);
  EXPECT_EQ(type_of_regions(true), ElementType::f16);
}

Edge zeros(GraphBuilder& b, const Shape& shape) {
  return b.constant(Tensor::allocate(ElementType::f32, shape));
}

Edge reshaped(GraphBuilder& b, const Edge& data, const std::vector<int64_t>& shape) {
  const Shape rank{static_cast<int64_t>(shape.size())};
  return b.op("Reshape", 1, {data, b.constant(Tensor::of(ElementType::i64, rank, shape))},
              {{"special_zero", "false"}});
}

Edge detections(GraphBuilder& b, const Edge& boxes, const Edge& scores, const Edge& priors) {
  return b.op("DetectionOutput", 8, {boxes, scores, priors},
              {{"keep_top_k", "4"}, {"nms_threshold", "0.5"}, {"normalized", "true"}});
}

// A convolution's sums of two classes for two boxes.
Edge sums_of_scores(GraphBuilder& b) {
  return b.op("Convolution", 1, {b.parameter({1, 3, 1, 1}), zeros(b, {4, 3, 1, 1})});
}

// Priors are pixels even where a kernel reads them.
TEST(SetPrecision, PriorsStayWide) {
  GraphBuilder b;
  const Edge priors = zeros(b, {1, 2, 8}), scores = reshaped(b, sums_of_scores(b), {1, 4}),
             boxes = detections(b, b.op("Abs", 1, {b.parameter({1, 8})}), scores, priors);
  b.result(boxes);
  const auto graph = in_half(b);
  EXPECT_EQ(priors.node->outputs[0].type, ElementType::f32);
  EXPECT_EQ(scores.node->outputs[0].type, ElementType::f16);  // nothing is there to convert them
  EXPECT_EQ(boxes.node->outputs[0].type, ElementType::f32);
}

// Types of the sums, of the probabilities, of what both are moved to, and of what comes of a
// `rival`, an operation that reads the probabilities as well.
std::vector<ElementType> types_of_scores(const char* rival) {
  GraphBuilder b;
  const Edge sums = reshaped(b, sums_of_scores(b), {1, 2, 2}),
             scores = b.op("SoftMax", 8, {sums}, {{"axis", "2"}}),
             moved = reshaped(b, scores, {1, 4}),
             other = std::string(rival) == "MatMul" ? b.op(rival, 1, {scores, zeros(b, {2, 2})})
                                                    : b.op(rival, 1, {scores});
  b.result(detections(b, b.parameter({1, 8}), moved, zeros(b, {1, 2, 8})));
  b.result(other);
  const auto graph = in_half(b);
  std::vector<ElementType> types;
  for (const Edge& edge : {sums, scores, moved, other}) types.push_back(edge.node->outputs[0].type);
  return types;
}

// Near 1, f16 has many scores be equal, and what suppresses what would be chance.
TEST(SetPrecision, ScoresToSortStayWide) {
  const ElementType f16 = ElementType::f16, f32 = ElementType::f32;
  EXPECT_EQ(types_of_scores("Abs"), (std::vector{f16, f32, f32, f16}));
  EXPECT_EQ(types_of_scores("MatMul"), (std::vector{f16, f16, f16, f16}));
}

// Maxima of what the application gives: the places are those of what it gave.
TEST(SetPrecision, PlacesOfMaximaAreFoundInWideFloats) {
  GraphBuilder b;
  const Edge data = b.parameter({1, 3, 4, 4}), listed = b.parameter({1, 8});
  const Edge maxima =
      b.op("MaxPool", 8, {data},
           {{"kernel", "2,2"}, {"strides", "2,2"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}}, 2);
  b.result(maxima);
  b.result({maxima.node, 1});
  const Edge most = b.op(
      "TopK", 3, {listed, b.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{2}))},
      {{"axis", "1"}, {"mode", "max"}, {"sort", "value"}}, 2);
  b.result({most.node, 1});
  const auto graph = in_half(b);
  for (const Edge& edge : {data, maxima, listed, most})
    EXPECT_EQ(edge.node->outputs[0].type, ElementType::f32);
}

// An input that only the host reads never becomes f16.
TEST(SetPrecision, InputsOfTheHostStayWide) {
  GraphBuilder b;
  const Edge boxes = b.parameter({1, 8, 4}), scores = b.parameter({1, 2, 8}),
             data = b.parameter({1, 3, 4, 4});
  b.result(b.op("MatrixNms", 8, {boxes, scores}, {{"keep_top_k", "4"}, {"nms_top_k", "8"}}, 3));
  b.result(b.op("Abs", 1, {data}));
  const auto graph = in_half(b);
  EXPECT_EQ(boxes.node->outputs[0].type, ElementType::f32);
  EXPECT_EQ(scores.node->outputs[0].type, ElementType::f32);
  EXPECT_EQ(data.node->outputs[0].type, ElementType::f16);
}

// Types of what lies between a layer of bytes and the next one: two convolutions of floats, the
// second of `terms` products to a sum, then a function whose result becomes bytes where
// `quantized`, and stays floats else. In front, the picture, which becomes bytes itself unless a
// convolution `sums` it up.
std::vector<ElementType> types_between_bytes(int64_t terms, bool quantized, bool sums = false,
                                             MatrixUnit matrix = MatrixUnit::none) {
  GraphBuilder b;
  const Edge picture = b.parameter({1, 3, 4, 4}),
             source = sums ? b.op("Convolution", 1, {picture, zeros(b, {3, 3, 1, 1})}) : picture,
             bytes = bytes_of(b, source), first = floats_of(b, bytes),
             second = b.op("Convolution", 1, {first, zeros(b, {terms, 3, 1, 1})}),
             third = b.op("Convolution", 1, {second, zeros(b, {8, terms, 1, 1})}),
             last = b.op("Sqrt", 1, {third}), next = quantized ? bytes_of(b, last) : last;
  b.result(next);
  const auto graph = in_half(b, matrix);
  std::vector<ElementType> types;
  for (const Edge& edge : {picture, first, second, second.node->inputs[1], third, last})
    types.push_back(edge.node->outputs[0].type);
  return types;
}

// Rounded to f16, they would become other bytes, a difference that later layers amplify.
TEST(SetPrecision, FloatsBeforeBytesStayWide) {
  const ElementType f16 = ElementType::f16, f32 = ElementType::f32;
  EXPECT_EQ(types_between_bytes(512, true), (std::vector{f32, f32, f32, f32, f32, f32}));
  EXPECT_EQ(types_between_bytes(512, false), (std::vector{f32, f16, f16, f16, f16, f16}));
  // Long sums are for matrix instructions; pictures have few digits.
  EXPECT_EQ(types_between_bytes(513, true), (std::vector{f32, f16, f16, f16, f16, f16}));
  EXPECT_EQ(types_between_bytes(512, true, true), (std::vector{f16, f32, f32, f32, f32, f32}));
  // Matrix instructions take f16, and are worth it for shorter sums.
  EXPECT_EQ(types_between_bytes(15, true, false, MatrixUnit::ptx),
            (std::vector{f32, f32, f32, f32, f32, f32}));
  EXPECT_EQ(types_between_bytes(16, true, false, MatrixUnit::ptx),
            (std::vector{f32, f16, f16, f16, f16, f16}));
}

// A summand in the kernel that makes the bytes is rounded there like the sum.
TEST(SetPrecision, SummandsOfBytesStayWide) {
  GraphBuilder b;
  const auto floats = [&] { return floats_of(b, bytes_of(b, b.parameter({1, 3, 4, 4}))); };
  const Edge summand = floats(), alone = floats(), sum = bytes_of(b, floats());
  sum.node->own_inputs = 3;
  sum.node->inputs.push_back(summand);
  sum.node->tail = {{.function = "add", .operand = 3}};
  b.result(sum);
  b.result(alone);
  const auto graph = in_half(b);
  EXPECT_EQ(summand.node->outputs[0].type, ElementType::f32);
  EXPECT_EQ(alone.node->outputs[0].type, ElementType::f16);
}

// A convolution of `channels` at every `step`-th pixel of a picture, followed by `last`.
std::unique_ptr<Graph> map_of(int64_t channels, int64_t step, const char* last) {
  GraphBuilder b;
  const std::string strides = std::to_string(step) + "," + std::to_string(step);
  const Edge features = b.op("Convolution", 1,
                             {b.parameter({1, 3, 16, 24}), zeros(b, {channels, 3, 1, 1})},
                             {{"strides", strides.c_str()}}),
             sums = b.op("Convolution", 1, {features, zeros(b, {1, channels, 1, 1})}),
             biased = b.op("Add", 1, {zeros(b, {1, 1, 1, 1}), sums}),
             values = b.op(last, 1, {biased});
  b.result(b.op("Convert", 1, {values}, {{"destination_type", "f32"}}));
  return b.finish();
}

// The map of a text detector rounds too coarsely in f16.
TEST(HalfActivations, NotForNarrowMapsOfProbabilities) {
  Config config;
  EXPECT_FALSE(half_activations(config, *map_of(24, 1, "Sigmoid"), true));
  EXPECT_FALSE(half_activations(config, *map_of(24, 2, "Sigmoid"), true));
  EXPECT_TRUE(half_activations(config, *map_of(24, 4, "Sigmoid"), true));  // a detector's cells
  EXPECT_TRUE(half_activations(config, *map_of(64, 1, "Sigmoid"), true));
  EXPECT_TRUE(half_activations(config, *map_of(24, 1, "ReLU"), true));  // a picture
  config.precision = Precision::f16;
  EXPECT_TRUE(half_activations(config, *map_of(24, 1, "Sigmoid"), true));
}

TEST(HalfActivations, OfQuantisedModels) {
  GraphBuilder b;
  b.result(test::fake_quantize(b, b.parameter({1, 3}), 0, 2));
  const auto graph = b.finish();
  Config config;
  EXPECT_TRUE(half_activations(config, *graph, true));
  config.fp16_for_quantized_models = false;
  EXPECT_FALSE(half_activations(config, *graph, true));
  config.precision = Precision::f16;
  EXPECT_TRUE(half_activations(config, *graph, true));
}

TEST(HalfActivations, SumsOfIntegersAreFloats) {
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

}  // namespace
}  // namespace clinfer
