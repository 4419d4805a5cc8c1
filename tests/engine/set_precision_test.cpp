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

}  // namespace
}  // namespace clinfer
