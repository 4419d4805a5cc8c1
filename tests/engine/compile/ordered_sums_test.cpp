// EXECUTION_MODE=accuracy: the kernels that a model then gets, and their records in tuning files.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compile/model_compiler.h"
#include "engine/plan/plan.h"
#include "tests/kernels/op_test.h"
#include "tests/small_ir.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

// A convolution that Winograd's kernels take otherwise, an average of its channels, and a softmax.
std::shared_ptr<const Model> model_with_sums() {
  test::SmallIr ir;
  const int in = ir.input({1, 64, 28, 28});
  const int filters =
      ir.constant({64, 64, 3, 3}, test::random_tensor({64, 64, 3, 3}, -1, 1, 1).to_floats());
  const int sums = ir.add("Convolution", 1,
                          "strides=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\" dilations=\"1,1\"",
                          {in, filters}, {1, 64, 28, 28});
  const int pooled = ir.add("AvgPool", 1,
                            "kernel=\"28,28\" strides=\"1,1\" pads_begin=\"0,0\" pads_end=\"0,0\" "
                            "exclude-pad=\"true\" rounding_type=\"floor\"",
                            {sums}, {1, 64, 1, 1});
  ir.result(ir.add("SoftMax", 8, "axis=\"1\"", {pooled}, {1, 64, 1, 1}));
  return ir.read();
}

std::shared_ptr<DeviceModel> compiled_with(const std::string& settings) {
  Config config;
  config.cache_dir = "";
  config.set_all(settings);
  return compile_model(model_with_sums(), config, {}, {}, {.one_stream = true});
}

std::string family_of(const DeviceNetwork& network, const std::string& type) {
  for (const Step& step : network.plan().steps)
    if (step.desc.type == type) return step.family->name;
  throw std::logic_error("the network has no " + type);
}

TEST(AccuracyMode, TakesOrderedKernelsAlone) {
  const auto usual = compiled_with("TUNING_DB=NO")->shared_network();
  EXPECT_EQ(family_of(*usual, "Convolution"), "conv_winograd");
  EXPECT_FALSE(usual->traits.ordered_sums);

  const auto ordered = compiled_with("TUNING_DB=NO,EXECUTION_MODE=accuracy")->shared_network();
  EXPECT_TRUE(ordered->traits.ordered_sums);
  EXPECT_EQ(family_of(*ordered, "Convolution"), "conv_tile");
  for (const Step& step : ordered->plan().steps) {
    ASSERT_NE(step.family, nullptr);
    EXPECT_EQ(step.family->own_order, "") << step.desc.name;
    const std::vector<TuningPoint> space = step.family->space(step.desc, ordered->traits);
    EXPECT_TRUE(std::ranges::count(space, step.point) == 1) << step.desc.name;
  }
}

// Records of the two modes lie side by side in a tuning file.
TEST(AccuracyMode, HasRecordsOfItsOwn) {
  const TemporaryFolder folder;
  const std::string file = "TUNING_DB=NO,TUNING_FILE=" + folder / "tuning.json";
  const std::string modes[] = {file, file + ",EXECUTION_MODE=accuracy"};
  for (const std::string& mode : modes) {
    const auto model = compiled_with(mode + ",TUNING_MODE=TUNING_CREATE,TUNING_SECONDS=2");
    EXPECT_GT(model->tuning().measured, 0u);
  }
  for (const std::string& mode : modes) {
    const auto model = compiled_with(mode);
    EXPECT_GT(model->tuning().hits, 0u);
    EXPECT_EQ(model->tuning().lapsed, 0u);
  }
}

}  // namespace
}  // namespace clinfer
