// Convolutions that quantise what they read and store maxima, and those that must not.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::graph_of;

PassContext matrix_context() {
  PassContext context;
  context.traits = test::gpu_traits();
  context.traits.matrix = MatrixUnit::emulated;
  context.traits.local_memory = 227 << 10;
  context.activations = ElementType::f16;
  return context;
}

const std::string kConvolution = R"(
  x = parameter f32[1,3,24,26]
  w = random[16,3,3,3]
  c = Convolution-1(x, w) strides=2,2 dilations=1,1 pads_begin=1,1 pads_end=1,1
)";
const std::string kWindow =
    " strides=2,2 pads_begin=1,1 pads_end=1,1 kernel=3,3 rounding_type=floor\n";

// How many convolutions with maxima there are after the pass; the values stay the same.
size_t pooled(const std::string& lines, const PassContext& context = matrix_context()) {
  const auto graph = graph_of(kConvolution + lines);
  const std::vector<Tensor> inputs = test::random_inputs(*graph);
  const std::vector<float> before = evaluate_graph(*graph, inputs)[0].to_floats();
  run_passes(*graph, context, "fuse_quantization");
  const std::vector<float> after = evaluate_graph(*graph, inputs)[0].to_floats();
  EXPECT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 0.02f);
  EXPECT_EQ(count_of(*graph, "MaxPool") + count_of(*graph, "FusedConvolution"), 1u);
  return count_of(*graph, "FusedConvolution");
}

TEST(FuseConvolutions, MaximaOfAConvolutionWithItsTail) {
  EXPECT_EQ(pooled("b = random[1,16,1,1]\ns = Add-1(c, b)\nr = ReLU-1(s)\ny = MaxPool-1(r)" +
                   kWindow + "result y\n"),
            1u);
}

TEST(FuseConvolutions, NotBehindFunctionsThatTurnTheOrder) {
  EXPECT_EQ(pooled("f = f32[] -2\ns = Multiply-1(c, f)\nr = Sigmoid-1(s)\ny = MaxPool-1(r)" +
                   kWindow + "result y\n"),
            0u);
}

TEST(FuseConvolutions, NotWhereOthersReadTheOutputs) {
  EXPECT_EQ(pooled("r = ReLU-1(c)\ny = MaxPool-1(r)" + kWindow + "result y\nresult r\n"), 0u);
}

TEST(FuseConvolutions, NotWithoutAKernelForIt) {
  PassContext context = matrix_context();
  context.traits.matrix = MatrixUnit::none;
  EXPECT_EQ(pooled("y = MaxPool-1(c)" + kWindow + "result y\n", context), 0u);
}

// A quantised model: the convolution makes bytes of the picture, and stores maxima of bytes.
TEST(FuseConvolutions, QuantizesThePicture) {
  const auto graph = graph_of(R"(
    x = parameter f32[1,3,24,26]
    low = f32[] -4
    high = f32[] 4
    q = FakeQuantize-1(x, low, high, low, high) levels=256
    k = random[16,3,3,3]
    wl = f32[] -1
    wh = f32[] 1
    w = FakeQuantize-1(k, wl, wh, wl, wh) levels=255
    c = Convolution-1(q, w) strides=2,2 dilations=1,1 pads_begin=1,1 pads_end=1,1
    r = ReLU-1(c)
    p = MaxPool-1(r))" + kWindow +
                              R"(
    zero = f32[] 0
    most = f32[] 16
    o = FakeQuantize-1(p, zero, most, zero, most) levels=256
    v = random[16,16,1,1]
    vq = FakeQuantize-1(v, wl, wh, wl, wh) levels=255
    y = Convolution-1(o, vq) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
    result y
  )");
  const std::vector<Tensor> inputs = test::random_inputs(*graph);
  const std::vector<float> before = evaluate_graph(*graph, inputs)[0].to_floats();
  PassContext context = matrix_context();
  context.traits.dot = DotProduct::khr;
  run_passes(*graph, context, "fuse_quantization");
  EXPECT_EQ(count_of(*graph, "Quantize") + count_of(*graph, "MaxPool"), 0u);
  EXPECT_EQ(count_of(*graph, "FusedConvolution"), 1u);
  const std::vector<float> after = evaluate_graph(*graph, inputs)[0].to_floats();
  EXPECT_EQ(before.size(), after.size());
  // A sum that lies half-way between two levels may become either.
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 0.4f);
}

}  // namespace
}  // namespace clinfer
