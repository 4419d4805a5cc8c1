// Depthwise convolution of bytes by dot products. Devices without the instruction compute the same sums.
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

constexpr const char* kFamily = "conv_depthwise_dot";

// Both sizes of the kernel with each stride; borders on all sides and on none; tiles, lines and lanes past
// the end; one zero point, and one for each channel.
const ConvolutionCase kDotCases[] = {
    {"GroupConvolution", {1, 24, 9, 7}, {24, 1, 1, 3, 3}, "1,1", "1,1", "1,1", "3"},
    {"GroupConvolution", {2, 64, 6, 13}, {64, 1, 1, 3, 3}, "2,2", "1,1", "1,1", "0"},
    {"GroupConvolution", {1, 8, 11, 10}, {8, 1, 1, 5, 5}, "1,1", "2,2", "1,1", "255"},
    {"GroupConvolution", {2, 12, 9, 11}, {12, 1, 1, 5, 5}, "2,2", "2,2", "1,1", "128"},
    {"GroupConvolution", {1, 40, 7, 9}, {40, 1, 1, 3, 3}, "2,1", "0,2", "1,1", "77"},
    {"GroupConvolution", {1, 4, 3, 3}, {4, 1, 1, 3, 3}, "1,2", "1,1", "1,1", "3,0,255,128"},
    {"GroupConvolution", {3, 16, 8, 5}, {16, 1, 1, 5, 5}, "1,2", "3,0", "1,1", "9"},
};

TEST(ConvolutionDepthwiseDot, BytesAddUpExactly) {
  const DeviceTraits traits = matrix_traits();
  bool view = false;
  for (const ConvolutionCase& c : kDotCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 8, 16);
    if (view) desc.outputs[0] = with_gaps(desc.outputs[0], 8, 8);
    view = !view;
    check_op(desc, inputs, kExact, &traits, kFamily);
  }
}

TEST(ConvolutionDepthwiseDot, MakesBytes) {
  const DeviceTraits traits = matrix_traits();
  for (const size_t i : {1, 3}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kDotCases[i], ElementType::u8, inputs);
    add_bytes(desc, inputs);
    quantize_output(desc, inputs, 1e-3f, 255);
    check_op(desc, inputs, kOneByte, &traits, kFamily);
  }
}

// The largest sums, of both signs.
TEST(ConvolutionDepthwiseDot, HoldsTheLargestSums) {
  const DeviceTraits traits = matrix_traits();
  for (const char* zero : {"0", "255"})
    for (const float weight : {-128.f, 127.f}) {
      std::vector<Tensor> inputs;
      ConvolutionCase c = kDotCases[2];
      c.zero_point = zero;
      OpDesc desc = describe(c, ElementType::u8, inputs);
      const auto fill = [&](size_t i, float value) {
        const std::vector<float> values(static_cast<size_t>(inputs[i].elements()), value);
        inputs[i] = Tensor::of<float>(inputs[i].type(), inputs[i].shape(), values);
      };
      fill(0, zero[0] == '0' ? 255.f : 0.f);
      fill(1, weight);
      desc.constants[1] = inputs[1];
      check_op(desc, inputs, kExact, &traits, kFamily);
    }
}

TEST(ConvolutionDepthwiseDot, RefusesWhatItCannotRead) {
  const auto why = [](const ConvolutionCase& c, int64_t gap, bool shifted = false) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs, shifted);
    desc.inputs[0] = with_gaps(desc.inputs[0], gap, 0);
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
      if (family->name == kFamily) return family->reject(desc, matrix_traits());
    return std::string("no family");
  };
  const ConvolutionCase good = kDotCases[0];
  EXPECT_EQ(why(good, 4), "");
  EXPECT_NE(why(good, 2).find("whole words"), std::string::npos) << why(good, 2);
  EXPECT_NE(why(good, 4, true).find("shift"), std::string::npos);
  ConvolutionCase dilated = good, other = good;
  dilated.dilations = "2,2";
  EXPECT_NE(why(dilated, 4).find("dilations"), std::string::npos);
  other.filter = {24, 1, 1, 3, 5};
  EXPECT_NE(why(other, 4).find("3x3"), std::string::npos);
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(good, ElementType::u8, inputs);
  EXPECT_TRUE(refusals(desc, gpu_traits()).contains("no GPU of NVIDIA's with dot products"));
}

}  // namespace
}  // namespace clinfer::test
