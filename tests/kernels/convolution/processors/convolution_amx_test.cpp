// Convolutions and products of bytes by the tiles of AMX, where the processor has it and by plain C that
// takes its place: sums are exact.
#include "kernels/op.h"
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"

namespace clinfer::test {
namespace {

class Amx : public testing::TestWithParam<MatrixUnit> {
 protected:
  void SetUp() override {
    traits_ = device_traits();
    if (GetParam() == MatrixUnit::amx && traits_.matrix != MatrixUnit::amx)
      GTEST_SKIP() << (traits_.no_amx.empty() ? "the device is no CPU with AMX" : traits_.no_amx);
    traits_.matrix = GetParam();
  }
  void check_amx(const OpDesc& desc, const std::vector<Tensor>& inputs,
                 Tolerance tolerance = kExact) const {
    const std::string family = desc.type == "MatMul" ? "fc_amx" : "conv_amx";
    EXPECT_GE(check_op(desc, inputs, tolerance, &traits_, family), 1u);
  }
  DeviceTraits traits_;
};

// Tiles of pixels and of channels that are whole, in part, and fewer than one; one step and several,
// with and without missing bytes; borders, strides, dilations and groups.
const ConvolutionCase kAmxCases[] = {
    {"Convolution", {1, 64, 8, 8}, {32, 64, 1, 1}, "1,1", "0,0", "1,1", "0"},
    {"Convolution", {2, 37, 9, 7}, {50, 37, 1, 1}, "1,1", "0,0", "1,1", "128"},
    {"Convolution", {1, 200, 3, 3}, {16, 200, 1, 1}, "1,1", "0,0", "1,1", "3"},
    {"Convolution", {1, 256, 2, 2}, {40, 256, 1, 1}, "1,1", "0,0", "1,1", "77"},
    {"Convolution", {1, 32, 9, 11}, {90, 32, 1, 1}, "2,2", "1,1", "1,1", "9"},
    {"Convolution", {1, 4, 15, 14}, {256, 4, 3, 3}, "2,2", "1,1", "1,1", "0"},
    {"Convolution", {2, 32, 7, 9}, {64, 32, 3, 3}, "1,1", "1,1", "1,1", "254"},
    {"Convolution", {1, 22, 8, 9}, {17, 22, 3, 3}, "1,1", "2,2", "2,2", "7"},
    {"Convolution", {1, 5, 4, 3}, {19, 5, 5, 6}, "1,1", "3,4", "1,1", "200"},
    {"Convolution", {2, 64, 5, 21}, {18, 64, 7, 5}, "1,2", "3,2", "1,1", "77"},
    {"GroupConvolution", {1, 48, 6, 8}, {3, 96, 16, 3, 3}, "1,1", "1,1", "1,1", "100"},
    {"GroupConvolution", {2, 72, 5, 5}, {2, 93, 36, 1, 1}, "1,1", "0,0", "1,1", "8"},
};

// Every second case runs on views.
TEST_P(Amx, AddsUpExactly) {
  bool view = false;
  for (const ConvolutionCase& c : kAmxCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0], 8, 4);
      desc.outputs[0] = with_gaps(desc.outputs[0]);
    }
    view = !view;
    check_amx(desc, inputs);
  }
}

// The largest sums of either sign.
TEST_P(Amx, ExtremeBytes) {
  for (const auto weight : {-128, 127}) {
    std::vector<Tensor> inputs;
    const OpDesc desc = describe(kAmxCases[6], ElementType::u8, inputs);
    inputs[0] = random_ints(ElementType::u8, inputs[0].shape(), 255, 255);
    OpDesc extreme = desc;
    inputs[1] = extreme.constants[1] =
        random_ints(ElementType::i8, inputs[1].shape(), weight, weight);
    check_amx(extreme, inputs);
  }
}

TEST_P(Amx, TailsAndBytes) {
  for (const size_t i : {1, 6}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kAmxCases[i], ElementType::u8, inputs);
    const Shape channels{1, desc.outputs[0].shape[1], 1, 1};
    add_constant(desc, inputs, "multiply", random_tensor(channels, 0.001f, 0.002f, 3));
    add_constant(desc, inputs, "add", random_tensor(channels, 90, 160, 4));
    add_bytes(desc, inputs);
    desc.tail.push_back({"to_byte", 0, 255});
    desc.outputs[0].type = ElementType::u8;
    check_amx(desc, inputs, kOneByte);
  }
}

TEST_P(Amx, ProductsOfMatrices) {
  for (const Shape& data : {Shape{5, 100}, {33, 64}, {2, 3, 20, 70}}) {
    std::vector<Tensor> inputs{random_ints(ElementType::u8, data, 0, 255, 1),
                               random_ints(ElementType::i8, {data.back(), 45}, -128, 127, 2)};
    check_amx(make_desc("MatMul", 1, attributes({{"zero_point", "30"}}), inputs, {false, true}),
              inputs);
  }
}

INSTANTIATE_TEST_SUITE_P(Units, Amx, testing::Values(MatrixUnit::amx, MatrixUnit::emulated_amx),
                         [](const testing::TestParamInfo<MatrixUnit>& unit) {
                           return unit.param == MatrixUnit::amx ? "Processor" : "StandIn";
                         });

TEST(AmxTraits, SayWhyThereIsNone) {
  const DeviceTraits& traits = device_traits();
  EXPECT_EQ(traits.matrix == MatrixUnit::amx,
            traits.is_cpu && traits.vendor == Vendor::pocl && traits.no_amx.empty());
}

TEST(AmxTraits, OthersAreLeftToOthers) {
  std::vector<Tensor> inputs;
  const auto reason = [&](const ConvolutionCase& c, const DeviceTraits& traits) {
    OpDesc desc = describe(c, ElementType::u8, inputs);
    desc.inputs[0] = TensorDesc::channels_last(ElementType::u8, inputs[0].shape());
    desc.outputs[0] = TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape);
    for (const KernelFamily* family : find_op(c.type, 1)->families)
      if (family->name == "conv_amx") return family->reject(desc, traits);
    return std::string("there is no such family");
  };
  DeviceTraits traits = cpu_with_dot_products();
  EXPECT_EQ(reason(kAmxCases[0], traits), "the device has no AMX");
  traits.no_amx = "the system grants this process no AMX: Operation not permitted";
  EXPECT_EQ(reason(kAmxCases[0], traits), traits.no_amx);
  traits.matrix = MatrixUnit::amx;
  EXPECT_EQ(reason(kAmxCases[0], traits), "");
  const char* few = "too few products, or outputs of a channel";
  EXPECT_EQ(reason({"Convolution", {1, 3, 9, 9}, {16, 3, 3, 3}, "1,1", "1,1", "1,1", "0"}, traits),
            few);
  EXPECT_EQ(
      reason({"Convolution", {1, 64, 1, 1}, {64, 64, 1, 1}, "1,1", "0,0", "1,1", "0"}, traits),
      few);
  EXPECT_EQ(
      reason({"Convolution", {1, 16, 9, 9}, {16, 16, 3, 3}, "1,1", "1,1", "1,1", "0"}, traits),
      "copying the data would cost more than the products save");
}

}  // namespace
}  // namespace clinfer::test
