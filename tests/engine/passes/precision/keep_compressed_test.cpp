// Weights of few bits, as exporters write them, stay compressed.
#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/engine/graph/graph_text.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::attributes;
using test::GraphBuilder;
using test::random_ints;
using test::random_tensor;

PassContext context_of(const DeviceTraits& traits) {
  PassContext context;
  context.traits = traits;
  return context;
}

// How a model states its weights: the integers' type and shape, and the shapes of scales and zeros
// ({} and -1: none).
struct Form {
  ElementType type = ElementType::u8;
  Shape integers, scales;
  bool zeros = true;
  int64_t low = 0, high = 15;
  Shape matrix = {};  // the shape that a Reshape makes, if there is one
  bool by_column = true;
  bool halves = false;  // floats are f16 in between
  bool turned = false;  // a Transpose stands before the product
};

std::unique_ptr<Graph> graph_of(const Form& form, const Shape& x) {
  GraphBuilder b;
  const Edge data = b.parameter(x);
  Edge weights = b.op("Convert", 1,
                      {b.constant(random_ints(form.type, form.integers, form.low, form.high, 2))},
                      {{"destination_type", form.halves ? "f16" : "f32"}});
  if (form.zeros)
    weights = b.op(
        "Subtract", 1,
        {weights, b.op("Convert", 1,
                       {b.constant(random_ints(form.type, form.scales, form.low, form.high, 3))},
                       {{"destination_type", form.halves ? "f16" : "f32"}})});
  weights = b.op("Multiply", 1, {weights, b.constant(random_tensor(form.scales, 0.01f, 0.1f, 4))});
  if (!form.matrix.empty())
    weights = b.op("Reshape", 1, {weights, b.ints(form.matrix)}, {{"special_zero", "false"}});
  if (form.halves) weights = b.op("Convert", 1, {weights}, {{"destination_type", "f32"}});
  if (form.turned) weights = b.op("Transpose", 1, {weights, b.ints({1, 0})});
  b.result(b.op("MatMul", 1, {data, weights},
                {{"transpose_b", form.by_column != form.turned ? "true" : "false"}}));
  return b.finish();
}

// Runs the pass, and returns the graph as text; expects the same values as before.
std::string kept(const Form& form, const Shape& x = {3, 64},
                 const DeviceTraits& traits = test::device_traits()) {
  const auto graph = graph_of(form, x);
  const std::vector<Tensor> inputs{random_tensor(x, -1, 1, 1)};
  const std::vector<float> before = evaluate_graph(*graph, inputs)[0].to_floats();
  keep_compressed(*graph, context_of(traits));
  const std::vector<float> after = evaluate_graph(*graph, inputs)[0].to_floats();
  EXPECT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-4) << i;
  return test::text_of(*graph);
}

std::string product_of(const std::string& codes, const std::string& scales) {
  return "a = CompressedMatMul(in0, u8" + codes + ", f32" + scales + ", f32" + scales +
         ")\nresult a\n";
}

TEST(KeepCompressed, FormsOfExporters) {
  using enum ElementType;
  // OpenVINO: a scale for each column, symmetric or with zeros, floats in f16.
  EXPECT_EQ(kept({i8, {10, 64}, {10, 1}, false, -128, 127}), product_of("[10,64]", "[10,1]"));
  EXPECT_EQ(kept({u8, {10, 64}, {10, 1}, true, 0, 255}), product_of("[10,64]", "[10,1]"));
  EXPECT_EQ(kept({u8, {10, 64}, {10, 1}, true, 0, 15, {}, true, true}),
            product_of("[10,32]", "[10,1]"));
  // Groups, which a Reshape joins; i4 and u4.
  EXPECT_EQ(kept({u8, {10, 4, 16}, {10, 4, 1}, true, 0, 15, {10, 64}}),
            product_of("[10,32]", "[10,4]"));
  EXPECT_EQ(kept({i8, {10, 4, 16}, {10, 4, 1}, false, -8, 7, {10, 64}, true, true}),
            product_of("[10,32]", "[10,4]"));
  // ONNX: columns last, in blocks or not.
  EXPECT_EQ(kept({i8, {64, 10}, {1, 10}, true, -128, 127, {}, false}),
            product_of("[10,64]", "[10,1]"));
  EXPECT_EQ(kept({u8, {2, 32, 10}, {2, 1, 10}, true, 0, 15, {64, 10}, false}),
            product_of("[10,32]", "[10,2]"));
  // One scale for all; a Transpose; two bits.
  EXPECT_EQ(kept({i8, {10, 64}, {}, false, -128, 127}), product_of("[10,64]", "[10,1]"));
  EXPECT_EQ(kept({u8, {10, 4, 16}, {10, 4, 1}, true, 0, 15, {10, 64}, true, false, true}),
            product_of("[10,32]", "[10,4]"));
  EXPECT_EQ(kept({u8, {10, 4, 16}, {10, 4, 1}, true, 0, 3, {10, 64}}),
            product_of("[10,16]", "[10,4]"));
}

// Words of 32 bits have to end with the groups.
TEST(KeepCompressed, TakesMoreBitsForSmallGroups) {
  EXPECT_EQ(kept({ElementType::u8, {10, 16, 4}, {10, 16, 1}, true, 0, 15, {10, 64}}),
            product_of("[10,64]", "[10,16]"));
}

TEST(KeepCompressed, LeavesOthersAlone) {
  const auto left = [](const std::string& text) {
    return text.find("Compressed") == std::string::npos;
  };
  // Scales along the sum; more rows than a GPU multiplies by few bits; an odd depth.
  EXPECT_TRUE(left(kept({ElementType::u8, {10, 64}, {1, 64}})));
  EXPECT_TRUE(left(kept({ElementType::u8, {10, 64}, {10, 1}}, {17, 64}, test::gpu_traits())));
  EXPECT_FALSE(left(kept({ElementType::u8, {10, 64}, {10, 1}}, {16, 64}, test::gpu_traits())));
  DeviceTraits cpu = test::device_traits();
  for (const unsigned width : {8u, 16u}) {
    cpu.vector_width = width;
    EXPECT_FALSE(left(kept({ElementType::u8, {10, 64}, {10, 1}}, {2, 4, 64}, cpu)));
    EXPECT_EQ(left(kept({ElementType::u8, {10, 64}, {10, 1}}, {3, 3, 64}, cpu)), width == 8);
  }
  EXPECT_TRUE(left(kept({ElementType::u8, {10, 63}, {10, 1}}, {3, 63})));
}

// Data that are quantised, too, meet the weights as integers.
TEST(KeepCompressed, LeavesProductsOfIntegersAlone) {
  const auto graph = test::graph_of(R"(
    x = parameter f32[3,64]
    low = f32[] -1
    high = f32[] 1
    q = FakeQuantize-1(x, low, high, low, high) levels=256
    w = random[10,64]
    i = Convert-1(w) destination_type=i8
    f = Convert-1(i) destination_type=f32
    s = f32[] 0.5
    m = Multiply-1(f, s)
    y = MatMul-1(q, m) transpose_b=true
    result y
  )");
  fold_constants(*graph, context_of(test::device_traits()));
  keep_compressed(*graph, context_of(test::device_traits()));
  EXPECT_EQ(test::text_of(*graph).find("Compressed"), std::string::npos);
}

}  // namespace
}  // namespace clinfer
