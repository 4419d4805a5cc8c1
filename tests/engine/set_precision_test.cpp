// Storage types: what loses by f16 keeps f32.
#include <gtest/gtest.h>

#include "engine/passes/passes.h"
#include "tests/engine/graph_builder.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::GraphBuilder;

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
  auto graph = b.finish();
  PassContext context;
  context.activations = ElementType::f16;
  set_precision(*graph, context);
  return regions.node->outputs[0].type;
}

TEST(SetPrecision, RegionsStayWide) {
  EXPECT_EQ(type_of_regions(false), ElementType::f32);
  EXPECT_EQ(type_of_regions(true), ElementType::f16);
}

// Priors are pixels even where a kernel reads them.
TEST(SetPrecision, PriorsStayWide) {
  GraphBuilder b;
  const Edge priors = b.constant(Tensor::allocate(ElementType::f32, {1, 2, 8})),
             scores = b.op("Abs", 1, {b.parameter({1, 4})}),
             boxes =
                 b.op("DetectionOutput", 8, {b.op("Abs", 1, {b.parameter({1, 8})}), scores, priors},
                      {{"keep_top_k", "4"}, {"nms_threshold", "0.5"}, {"normalized", "true"}});
  b.result(boxes);
  auto graph = b.finish();
  PassContext context;
  context.activations = ElementType::f16;
  set_precision(*graph, context);
  EXPECT_EQ(priors.node->outputs[0].type, ElementType::f32);
  EXPECT_EQ(scores.node->outputs[0].type, ElementType::f16);
  EXPECT_EQ(boxes.node->outputs[0].type, ElementType::f32);
}

// What the application gives to the host alone never sees f16.
TEST(SetPrecision, InputsOfTheHostStayWide) {
  GraphBuilder b;
  const Edge boxes = b.parameter({1, 8, 4}), scores = b.parameter({1, 2, 8}),
             data = b.parameter({1, 3, 4, 4});
  b.result(b.op("MatrixNms", 8, {boxes, scores}, {{"keep_top_k", "4"}, {"nms_top_k", "8"}}, 3));
  b.result(b.op("Abs", 1, {data}));
  auto graph = b.finish();
  PassContext context;
  context.activations = ElementType::f16;
  set_precision(*graph, context);
  EXPECT_EQ(boxes.node->outputs[0].type, ElementType::f32);
  EXPECT_EQ(scores.node->outputs[0].type, ElementType::f32);
  EXPECT_EQ(data.node->outputs[0].type, ElementType::f16);
}

// A convolution of `channels` at every `step`-th pixel of a picture, `last` behind it.
std::unique_ptr<Graph> map_of(int64_t channels, int64_t step, const char* last) {
  GraphBuilder b;
  const auto zeros = [&](const Shape& shape) {
    return b.constant(Tensor::allocate(ElementType::f32, shape));
  };
  const std::string strides = std::to_string(step) + "," + std::to_string(step);
  const Edge features =
                 b.op("Convolution", 1, {b.parameter({1, 3, 16, 24}), zeros({channels, 3, 1, 1})},
                      {{"strides", strides.c_str()}}),
             sums = b.op("Convolution", 1, {features, zeros({1, channels, 1, 1})}),
             biased = b.op("Add", 1, {zeros({1, 1, 1, 1}), sums}), values = b.op(last, 1, {biased});
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

}  // namespace
}  // namespace clinfer
