// Convolutions over the patches of a picture.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::convolved;
using test::count_of;
using test::find;
using test::GraphBuilder;

PassContext nvidia() {
  PassContext context;
  context.traits.vendor = Vendor::nvidia;
  context.traits.matrix = MatrixUnit::ptx;
  context.activations = ElementType::f16;
  return context;
}

TEST(CopyPatches, BecomeChannels) {
  for (const int64_t side : {8, 16}) {
    GraphBuilder b;
    const std::string step = std::to_string(side) + "," + std::to_string(side);
    b.result(
        convolved(b, b.parameter({2, 3, 2 * side, 3 * side}), 5, side, step.c_str(), "0,0", "0,0"));
    const auto graph = b.finish();
    const std::vector<Tensor> inputs = test::random_inputs(*graph);
    const Tensor before = evaluate_graph(*graph, inputs)[0];
    run_passes(*graph, nvidia(), "copy_patches");
    ASSERT_EQ(count_of(*graph, "SpaceToDepth"), 1u);
    EXPECT_EQ(find(*graph, "Convolution")->inputs[1].node->constant.shape(),
              (Shape{5, 3 * side * side, 1, 1}));
    const Tensor after = evaluate_graph(*graph, inputs)[0];
    ASSERT_EQ(after.shape(), before.shape());
    for (int64_t i = 0; i < before.elements(); ++i)
      EXPECT_NEAR(after.data<float>()[i], before.data<float>()[i], 1e-2) << i;
  }
}

TEST(CopyPatches, NotOtherWindows) {
  struct Layer {
    int64_t channels, height, kernel;
    const char *strides, *pads;
  };
  for (const Layer& layer : {Layer{3, 32, 16, "8,8", "0,0"},
                             {3, 30, 16, "16,16", "1,1"},
                             {3, 40, 16, "16,16", "0,0"},
                             {16, 32, 16, "16,16", "0,0"},
                             {3, 32, 4, "4,4", "0,0"}}) {
    GraphBuilder b;
    b.result(convolved(b, b.parameter({1, layer.channels, layer.height, 32}), 5, layer.kernel,
                       layer.strides, layer.pads, layer.pads));
    const auto graph = b.finish();
    run_passes(*graph, nvidia(), "copy_patches");
    EXPECT_EQ(count_of(*graph, "SpaceToDepth"), 0u) << layer.strides << " " << layer.pads;
  }
  GraphBuilder b;
  b.result(convolved(b, b.parameter({1, 3, 32, 32}), 5, 16, "16,16", "0,0", "0,0"));
  const auto graph = b.finish();
  run_passes(*graph, test::cpu_context(), "copy_patches");
  EXPECT_EQ(count_of(*graph, "SpaceToDepth"), 0u) << "a CPU reads windows as they lie";
}

}  // namespace
}  // namespace clinfer
