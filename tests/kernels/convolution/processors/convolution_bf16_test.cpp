// Convolutions and products of matrices with products of bf16, by the processor's instructions where it
// has them and by plain C that takes their place.
#include <bit>
#include <cmath>

#include "kernels/op.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/op_runner.h"

namespace clinfer::test {
namespace {

const Tolerance kBf16Sums{1e-4, 1e-4};
// A processor leaves such operations to other kernels; plain C takes them.
const char* const kTooDear = "converting the data would cost more than the products save";

// The nearest value of bf16, the even one of two.
float rounded(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t down = bits & 0xffff0000U, rest = bits & 0xffffU;
  const bool up = rest > 0x8000U || (rest == 0x8000U && (bits & 0x10000U) != 0);
  return std::bit_cast<float>(up ? down + 0x10000U : down);
}

Tensor rounded(const Tensor& tensor) {
  std::vector<float> values = tensor.to_floats();
  for (float& value : values) value = rounded(value);
  return Tensor::of(ElementType::f32, tensor.shape(), values);
}

class Bf16Products : public testing::TestWithParam<Bf16> {
 protected:
  void SetUp() override {
    traits_ = device_traits();
    if (GetParam() == Bf16::avx512 && traits_.bf16 != Bf16::avx512)
      GTEST_SKIP() << "the device is no CPU with AVX512_BF16";
    traits_.bf16 = GetParam();
  }
  // With data and weights that bf16 holds, only the order of the sums differs.
  void check_bf16(OpDesc desc, std::vector<Tensor> inputs) const {
    inputs[0] = rounded(inputs[0]);
    inputs[1] = desc.constants[1] = rounded(inputs[1]);
    desc.attributes.set("products", "bf16");
    const std::string name = desc.type == "MatMul" ? "fc_bf16" : "conv_bf16";
    for (const KernelFamily* family : find_op(desc.type, 1)->families)
      if (family->name == name && family->reject(desc, traits_) == kTooDear) return;
    EXPECT_GE(check_op(desc, inputs, kBf16Sums, &traits_, name), 1u);
  }
  DeviceTraits traits_;
};

// Tiles of pixels and vectors of channels that are whole, in part, and fewer than one; even and odd
// depths, several chunks; borders, strides, dilations and groups.
const ConvolutionCase kBf16Cases[] = {
    {"Convolution", {1, 64, 8, 8}, {32, 64, 1, 1}, "1,1", "0,0", "1,1"},
    {"Convolution", {2, 37, 9, 7}, {50, 37, 1, 1}, "1,1", "0,0", "1,1"},
    {"Convolution", {1, 515, 3, 3}, {24, 515, 1, 1}, "1,1", "0,0", "1,1"},
    {"Convolution", {1, 1030, 1, 1}, {70, 1030, 1, 1}, "1,1", "0,0", "1,1"},
    {"Convolution", {1, 32, 9, 11}, {90, 32, 1, 1}, "2,2", "1,1", "1,1"},
    {"Convolution", {1, 8, 15, 14}, {256, 8, 3, 3}, "2,2", "1,1", "1,1"},
    {"Convolution", {2, 72, 7, 9}, {64, 72, 3, 3}, "1,1", "1,1", "1,1"},
    {"Convolution", {1, 22, 8, 9}, {27, 22, 3, 3}, "1,1", "2,2", "2,2"},
    {"Convolution", {1, 9, 4, 3}, {25, 9, 5, 6}, "1,1", "3,4", "1,1"},
    {"Convolution", {2, 64, 5, 21}, {28, 64, 7, 5}, "1,2", "3,2", "1,1"},
    {"Convolution", {1, 160, 4, 5}, {48, 160, 1, 1}, "2,2", "1,1", "1,1"},
    {"GroupConvolution", {1, 48, 6, 8}, {3, 32, 16, 3, 3}, "1,1", "1,1", "1,1"},
    {"GroupConvolution", {2, 74, 5, 5}, {2, 93, 37, 1, 1}, "1,1", "0,0", "1,1"},
};

// Every second case runs on views.
TEST_P(Bf16Products, AddUp) {
  bool view = false;
  for (const ConvolutionCase& c : kBf16Cases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f32, inputs);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0]);
      desc.outputs[0] = with_gaps(desc.outputs[0]);
    }
    view = !view;
    check_bf16(desc, inputs);
  }
}

TEST_P(Bf16Products, Tails) {
  for (const size_t i : {1, 6}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kBf16Cases[i], ElementType::f32, inputs);
    add_functions(desc, inputs);
    check_bf16(desc, inputs);
  }
}

TEST_P(Bf16Products, ProductsOfMatrices) {
  for (const Shape& data : {Shape{1, 700}, {5, 100}, {33, 64}, {2, 3, 20, 70}}) {
    std::vector<Tensor> inputs{random_tensor(data, -1, 1, 1),
                               random_tensor({data.back(), 45}, -1, 1, 2)};
    check_bf16(make_desc("MatMul", 1, {}, inputs, {false, true}), inputs);
  }
}

// Values are rounded to the nearest one, and those that are not finite stay so.
TEST_P(Bf16Products, Round) {
  constexpr int64_t kCount = 4096, kOutputs = 256;
  std::vector<float> values = random_tensor({kCount}, -3, 3, 7).to_floats();
  const float special[] = {0.f,
                           -0.f,
                           INFINITY,
                           -INFINITY,
                           std::nanf(""),
                           std::bit_cast<float>(0x7f800001U),
                           std::bit_cast<float>(0x3f808000U),
                           std::bit_cast<float>(0x3f818000U),
                           1e38f};
  std::copy(std::begin(special), std::end(special), values.begin());
  // Each pixel has a value and zeros; the first weight is 1.
  std::vector<float> data(static_cast<size_t>(kCount * 16), 0.f), weights(16 * kOutputs, 0.f);
  for (size_t i = 0; i < values.size(); ++i) data[i * 16] = values[i];
  for (size_t c = 0; c < kOutputs; ++c) weights[c] = 1;
  std::vector<Tensor> inputs{Tensor::of(ElementType::f32, {kCount, 16}, data),
                             Tensor::of(ElementType::f32, {16, kOutputs}, weights)};
  OpDesc desc = make_desc("MatMul", 1, {}, inputs, {false, true});
  desc.attributes.set("products", "bf16");
  const auto context = ocl::Context::create(ocl::select_device(""));
  for (const KernelFamily* family : find_op("MatMul", 1)->families) {
    if (family->name != "fc_bf16") continue;
    ASSERT_EQ(family->reject(desc, traits_), "");
    const KernelPlan plan = family->plan(desc, traits_, family->heuristic(desc, traits_));
    const std::vector<float> got = run_op(*context, desc, plan, inputs).outputs[0].to_floats();
    for (size_t i = 0; i < values.size(); ++i) {
      const float first = got[i * kOutputs], last = got[(i + 1) * kOutputs - 1];
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(first)) << i;
      } else {
        EXPECT_EQ(first, rounded(values[i])) << i;
        EXPECT_EQ(last, first) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Units, Bf16Products, testing::Values(Bf16::avx512, Bf16::emulated),
                         [](const testing::TestParamInfo<Bf16>& unit) {
                           return unit.param == Bf16::avx512 ? "Processor" : "StandIn";
                         });

TEST(Bf16Traits, OthersAreLeftToOthers) {
  std::vector<Tensor> inputs;
  DeviceTraits traits = device_traits();
  traits.bf16 = Bf16::avx512;
  const auto reason = [&](const ConvolutionCase& c, const DeviceTraits& device,
                          const char* products = "bf16") {
    OpDesc desc = describe(c, ElementType::f32, inputs);
    desc.inputs[0] = TensorDesc::channels_last(ElementType::f32, inputs[0].shape());
    desc.outputs[0] = TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape);
    desc.attributes.set("products", products);
    for (const KernelFamily* family : find_op(c.type, 1)->families)
      if (family->name == "conv_bf16") return family->reject(desc, device);
    return std::string("there is no such family");
  };
  const ConvolutionCase many{"Convolution", {1, 64, 9, 9}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"};
  EXPECT_EQ(reason(many, traits), "");
  EXPECT_EQ(reason(many, traits, "f32"), "bf16 was not asked for (INFERENCE_PRECISION=bf16)");
  DeviceTraits without = traits;
  without.bf16 = Bf16::none;
  EXPECT_EQ(reason(many, without), "the device has no products of bf16");
  const ConvolutionCase first{"Convolution", {1, 3, 9, 9}, {32, 3, 7, 7}, "1,1", "3,3", "1,1"};
  EXPECT_EQ(reason(first, traits), kTooDear);
  traits.bf16 = Bf16::emulated;
  EXPECT_EQ(reason(first, traits), "");
}

}  // namespace
}  // namespace clinfer::test
