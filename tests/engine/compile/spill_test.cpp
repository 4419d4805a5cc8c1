// Replacement of untuned kernels that spill registers, as the driver reports, by others of their family.
#include <gtest/gtest.h>

#include "engine/compile/model_compiler.h"
#include "engine/plan/plan.h"
#include "tests/engine/compile/spill_layer.h"
#include "tests/kernels/op_test.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

// A network of one convolution.
std::shared_ptr<const Model> convolution() {
  test::SmallIr ir;
  const int in = ir.input({1, 16, 12, 12});
  const int filters =
      ir.constant({32, 16, 3, 3}, test::random_tensor({32, 16, 3, 3}, -1, 1, 1).to_floats());
  ir.result(ir.add("Convolution", 1,
                   "strides=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\" dilations=\"1,1\"",
                   {in, filters}, {1, 32, 12, 12}));
  return ir.read();
}

// Compiles it while as many kernels spill as the layer was told.
std::shared_ptr<const DeviceNetwork> compiled(int spilling) {
  Config config;
  config.cache_dir = "";
  config.tuning_db = false;
  spill_layer_begin("convolution", spilling);
  return compile_model(convolution(), config, {}, {}, {.one_stream = true})->shared_network();
}

const Step& convolution_of(const DeviceNetwork& network) {
  for (const Step& step : network.plan().steps)
    if (step.desc.type == "Convolution") return step;
  throw std::logic_error("the network has no convolution");
}

TEST(Spills, TheNextCandidateIsTaken) {
  const auto network = compiled(0);
  const Step& untuned = convolution_of(*network);
  EXPECT_EQ(spill_layer_asked(), 1);
  EXPECT_EQ(untuned.point, untuned.family->heuristic(untuned.desc, network->traits));

  for (const int spilling : {1, 3}) {
    const auto other = compiled(spilling);
    const Step& taken = convolution_of(*other);
    EXPECT_EQ(spill_layer_asked(), spilling + 1);
    EXPECT_EQ(taken.family, untuned.family);
    EXPECT_NE(taken.point, untuned.point) << spilling;
  }
}

// If all spill, a few are tried, and the last one spills least here.
TEST(Spills, TheLeastIsTakenIfAllSpill) {
  const auto network = compiled(1000);
  EXPECT_EQ(spill_layer_asked(), 8);
  const auto before = compiled(7);
  EXPECT_EQ(convolution_of(*network).point, convolution_of(*before).point);
}

}  // namespace
}  // namespace clinfer
