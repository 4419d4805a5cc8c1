// Which tuning points Intel's GPUs get: those whose values fit the registers by the rule of
// kernels/registers.h. tests/kernels/ocloc says what the compiler makes of them.
#include "engine/ocl/compiler/programs.h"
#include "kernels/registers.h"
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"

namespace clinfer::test {
namespace {

TEST(Registers, HoldValuesInThreeQuarters) {
  const DeviceTraits narrow = intel_gpu("skl", 24), wide = intel_gpu("pvc", 512);
  EXPECT_TRUE(fits_registers(narrow, 96 * 32, 0));
  EXPECT_FALSE(fits_registers(narrow, 96 * 32 + 4, 0));
  EXPECT_TRUE(fits_registers(wide, 96 * 64, 0));
  EXPECT_FALSE(fits_registers(wide, 96 * 64 + 4, 0));
  // Addresses have 64 bits where registers are wide.
  EXPECT_TRUE(fits_registers(narrow, 90 * 32, 3));
  EXPECT_FALSE(fits_registers(narrow, 90 * 32, 4));
  EXPECT_TRUE(fits_registers(wide, 84 * 64, 3));
  EXPECT_FALSE(fits_registers(wide, 84 * 64, 4));
  for (const DeviceTraits& traits : {narrow, wide}) {
    EXPECT_TRUE(fits_registers_of_items(traits, 4 * 96, 0));
    EXPECT_FALSE(fits_registers_of_items(traits, 4 * 97, 0));
  }
}

// CPUs have a cache for what they spill, also those with sub-groups.
TEST(Registers, LimitIntelsGpusAlone) {
  DeviceTraits cpu = cpu_with_avx2();
  cpu.sub_groups = 8 + 16 + 32;
  for (const DeviceTraits& traits : {cpu, hopper("NVIDIA H200"), gpu_traits()})
    EXPECT_TRUE(fits_registers(traits, 1 << 20, 1 << 20));
}

// In sub-groups of 32, which their compiler would take, kernels would spill.
TEST(Registers, AreFilledBySixteenLanesWhereTheyAreWide) {
  const auto is_narrow = [](const DeviceTraits& traits) {
    return ocl::compiler_options(traits).find("-DSUB_GROUP=16") != std::string::npos;
  };
  EXPECT_TRUE(is_narrow(intel_gpu("pvc", 512)));
  EXPECT_FALSE(is_narrow(intel_gpu("skl", 24)));
  EXPECT_FALSE(is_narrow(hopper("NVIDIA H200")));
}

// Points with few and with many values.
class IntelTiles : public testing::Test {
 protected:
  void expect(const char* family, const DeviceTraits& traits, const Values& few,
              const Values& many) const {
    EXPECT_TRUE(offers(family, desc_, traits, few)) << family << traits.name;
    EXPECT_FALSE(offers(family, desc_, traits, many)) << family << traits.name;
  }
  void expect_of_items(const char* family, const Values& few, const Values& many) const {
    EXPECT_TRUE(offers(family, desc_, hopper("NVIDIA H200"), many)) << family;
    for (const char* device : {"skl", "dg2", "pvc"})
      expect(family, intel_gpu(device, 512), few, many);
  }
  void describe_as(const ConvolutionCase& c, ElementType type) {
    desc_ = describe(c, type, inputs_);
  }
  const ConvolutionCase around_{"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3},
                                "1,1",         "1,1",           "1,1"};
  const ConvolutionCase row_{"Convolution", {1, 64, 72, 72}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"};
  const DeviceTraits skl_ = intel_gpu("skl", 24), dg2_ = intel_gpu("dg2", 512),
                     pvc_ = intel_gpu("pvc", 512);
  std::vector<Tensor> inputs_;
  OpDesc desc_;
};

TEST_F(IntelTiles, OfConvolutionsFit) {
  describe_as(around_, ElementType::f16);
  expect_of_items("conv_tile", {{"VECTOR", 8}, {"TILE_P", 2}}, {{"VECTOR", 4}, {"TILE_P", 8}});
  // Places take more registers where these are wide, and fewer along a row of pixels.
  const Values four{{"VECTOR", 8}, {"TILE_P", 4}}, eight{{"VECTOR", 4}, {"TILE_P", 8}};
  EXPECT_TRUE(offers("conv_tile", desc_, skl_, four));
  EXPECT_FALSE(offers("conv_tile", desc_, pvc_, four));
  describe_as(row_, ElementType::f16);
  EXPECT_TRUE(offers("conv_tile", desc_, skl_, eight));
  EXPECT_TRUE(offers("conv_tile", desc_, pvc_, four));
  // They do for the tail as well.
  add_activation(desc_, inputs_, "add", random_tensor({1, 64, 72, 1}, -1, 1, 3));
  EXPECT_FALSE(offers("conv_tile", desc_, skl_, eight));

  describe_as(around_, ElementType::u8);
  expect_of_items("conv_int8", {{"VECTOR", 4}, {"TILE_P", 4}}, {{"VECTOR", 8}, {"TILE_P", 8}});
  // Sums of the pixels' bytes, of which plain arithmetic has one for each channel.
  const Values sums{{"VECTOR", 8}, {"TILE_P", 4}};
  EXPECT_TRUE(offers("conv_int8", desc_, skl_, sums));
  desc_ = describe(around_, ElementType::u8, inputs_, true);
  EXPECT_FALSE(offers("conv_int8", desc_, skl_, sums));
  EXPECT_TRUE(offers("conv_int8", desc_, dg2_, sums));
}

TEST_F(IntelTiles, OfSubGroupsFit) {
  describe_as(around_, ElementType::f16);
  const Values blocks{{"VECTORS", 2}, {"TILE_P", 8}, {"READS", 1}, {"PIXELS", 1}};
  expect("conv_subgroup", skl_, {{"VECTORS", 2}, {"TILE_P", 4}, {"PIXELS", 1}}, blocks);
  expect("conv_subgroup", skl_, {{"VECTORS", 2}, {"TILE_P", 8}, {"READS", 1}, {"PIXELS", 8}},
         {{"VECTORS", 2}, {"TILE_P", 16}, {"PIXELS", 16}});
  expect("conv_xmx8", dg2_, {{"VECTORS", 2}, {"TILE_P", 2}, {"READS", 2}},
         {{"VECTORS", 4}, {"TILE_P", 2}, {"READS", 2}});
  expect("conv_xmx16", pvc_, {{"VECTORS", 2}, {"TILE_P", 16}, {"READS", 4}, {"PIXELS", 8}},
         {{"VECTORS", 4}, {"TILE_P", 16}, {"READS", 4}, {"PIXELS", 8}});
  describe_as(row_, ElementType::f16);
  EXPECT_TRUE(offers("conv_subgroup", desc_, skl_, blocks));
  EXPECT_TRUE(offers("conv_xmx8", desc_, dg2_, {{"VECTORS", 4}, {"TILE_P", 2}, {"READS", 1}}));
}

TEST_F(IntelTiles, OfOtherKindsFit) {
  const Values small{{"VECTOR", 8}, {"TILE_P", 2}}, large{{"VECTOR", 8}, {"TILE_P", 4}};
  describe_as({"GroupConvolution", {1, 32, 72, 72}, {32, 1, 1, 5, 5}, "1,1", "2,2", "1,1"},
              ElementType::f32);
  expect_of_items("conv_depthwise", {{"VECTOR", 4}, {"TILE_P", 4}}, large);
  describe_as({"GroupConvolution", {1, 32, 72, 72}, {32, 1, 1, 3, 3}, "1,1", "1,1", "1,1"},
              ElementType::f16);
  EXPECT_TRUE(offers("conv_depthwise", desc_, skl_, large));

  inputs_ = {random_tensor({1, 32, 9, 9}, -1, 1, 1), random_tensor({32, 32, 2, 2}, -1, 1, 2)};
  desc_ = make_desc(
      "ConvolutionBackpropData", 1,
      attributes(
          {{"strides", "2,2"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}, {"dilations", "1,1"}}),
      inputs_, {false, true});
  expect_of_items("deconv_tile", small, {{"VECTOR", 16}, {"TILE_P", 4}});

  inputs_ = {random_tensor({1, 16, 30, 40}, -1, 1, 1)};
  desc_ = make_desc(
      "MaxPool", 1,
      attributes(
          {{"kernel", "3,3"}, {"strides", "2,2"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}}),
      inputs_, {});
  expect("pool_tile", pvc_, small, {{"VECTOR", 8}, {"TILE_P", 8}});

  const Tensor value = random_tensor({1, 16, 30, 40}, -1, 1, 1);
  inputs_ = {value, value};
  desc_ = make_desc("Add", 1, {}, inputs_, {});
  for (int more = 0; more < 7; ++more) add_activation(desc_, inputs_, "multiply", value);
  expect_of_items("elementwise", {{"V", 4}}, {{"V", 8}});
}

}  // namespace
}  // namespace clinfer::test
