// Convolution by Winograd's algorithm: on borders, with parts of tiles, units and vectors, how exact it is,
// and what it leaves to others.
#include <algorithm>
#include <cmath>

#include "kernels/kernel.h"
#include "kernels/op.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/op_runner.h"
#include "tests/kernels/op_test.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

const Tolerance kTransformedSums{1e-4, 1e-4};

const KernelFamily& winograd() {
  const auto& families = find_op("Convolution", 1)->families;
  return **std::find_if(families.begin(), families.end(),
                        [](const KernelFamily* family) { return family->name == "conv_winograd"; });
}

DeviceTraits cpu(unsigned vector_width = 16) {
  DeviceTraits traits = device_traits();
  traits.is_cpu = true;
  traits.vector_width = vector_width;
  traits.fp16 = false;
  return traits;
}

OpDesc describe_winograd(const Shape& data, const Shape& filter, std::vector<Tensor>& inputs,
                         const char* begin = "1,1", const char* end = "1,1",
                         const char* strides = "1,1") {
  inputs = {random_tensor(data, -1, 1, 1), random_tensor(filter, -1, 1, 2)};
  return make_desc(
      "Convolution", 1,
      attributes(
          {{"strides", strides}, {"pads_begin", begin}, {"pads_end", end}, {"dilations", "1,1"}}),
      inputs, {false, true});
}

void check_winograd(const OpDesc& desc, const std::vector<Tensor>& inputs) {
  for (const unsigned width : {8, 16}) {
    const DeviceTraits traits = cpu(width);
    EXPECT_GE(check_op(desc, inputs, kTransformedSums, &traits, "conv_winograd"), 1u) << width;
  }
}

TEST(Winograd, BordersAndPartsOfTiles) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_winograd({2, 56, 13, 18}, {40, 56, 3, 3}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 8, 8);
  inputs.push_back(random_tensor({1, 40, 1, 1}, -1, 1, 3));
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, {1, 40, 1, 1}));
  desc.constants.push_back(inputs.back());
  desc.tail.push_back({"add", 0, 0, 2});
  desc.tail.push_back({"relu"});
  inputs.push_back(random_tensor(desc.outputs[0].shape, -1, 1, 4));
  desc.inputs.push_back(TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape));
  desc.constants.push_back({});
  desc.tail.push_back({"add", 0, 0, 3});
  check_winograd(desc, inputs);
}

TEST(Winograd, PadsOfAnySize) {
  std::vector<Tensor> inputs;
  for (const auto& [begin, end] :
       {std::pair{"0,0", "0,0"}, {"2,0", "1,2"}, {"-1,2", "1,-2"}, {"5,1", "1,1"}}) {
    const OpDesc desc = describe_winograd({1, 48, 17, 21}, {80, 48, 3, 3}, inputs, begin, end);
    check_winograd(desc, inputs);
  }
}

TEST(Winograd, ManyUnitsAndBlocks) {
  std::vector<Tensor> inputs;
  const OpDesc desc = describe_winograd({1, 64, 50, 61}, {136, 64, 3, 3}, inputs);
  check_winograd(desc, inputs);
}

// Beside sums in double, the mean error is at most 4 times the direct kernel's, the largest 10 times.
TEST(Winograd, IsNearlyAsExact) {
  const auto context = ocl::Context::create(ocl::select_device(""));
  const DeviceTraits traits = cpu();
  for (const int64_t channels : {32, 128}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe_winograd({1, channels, 28, 28}, {64, channels, 3, 3}, inputs);
    desc.inputs[0] = TensorDesc::channels_last(ElementType::f32, inputs[0].shape());
    desc.outputs[0] = TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape);
    const std::vector<float> want = reference(desc, inputs)[0].to_floats();
    const auto errors = [&](const char* name) {
      for (const KernelFamily* family : find_op("Convolution", 1)->families) {
        if (family->name != name) continue;
        EXPECT_EQ(family->reject(desc, traits), "");
        const KernelPlan plan = family->plan(desc, traits, family->heuristic(desc, traits));
        const std::vector<float> got = run_op(*context, desc, plan, inputs).outputs[0].to_floats();
        std::pair<double, double> mean_and_largest;
        for (size_t i = 0; i < want.size(); ++i) {
          const double error = std::abs(double{got[i]} - double{want[i]});
          mean_and_largest.first += error / static_cast<double>(want.size());
          mean_and_largest.second = std::max(mean_and_largest.second, error);
        }
        return mean_and_largest;
      }
      ADD_FAILURE() << "no family " << name;
      return std::pair<double, double>{};
    };
    const auto [mean, largest] = errors("conv_winograd");
    const auto [direct_mean, direct_largest] = errors("conv_tile");
    EXPECT_GT(direct_mean, 0);
    EXPECT_LE(mean, 4 * direct_mean) << channels;
    EXPECT_LE(largest, 10 * direct_largest) << channels;
  }
}

const ConvolutionCase kBytes{"Convolution", {2, 40, 17, 21}, {36, 40, 3, 3}, "1,1",
                             "1,1",         "1,1",           "100"};

// Bytes where the device has no instruction for four products: sums, and bytes that are made of them.
TEST(Winograd, ConvolvesBytes) {
  for (const unsigned width : {8, 16})
    for (const bool shifted : {false, true}) {
      DeviceTraits traits = cpu(width);
      traits.dot = DotProduct::pairs;
      std::vector<Tensor> inputs;
      OpDesc desc = describe(kBytes, ElementType::u8, inputs, shifted);
      desc.inputs[0] = with_gaps(desc.inputs[0], 8, 4);
      EXPECT_GE(check_op(desc, inputs, {1, 1e-5}, &traits, "conv_winograd"), 1u) << width;
      desc.outputs.push_back(with_gaps(desc.outputs[0], 3, 5));
      desc.tail.push_back({"keep"});
      quantize_output(desc, inputs, 0.0005f, 255);
      EXPECT_GE(check_op(desc, inputs, {1, 1e-5}, &traits, "conv_winograd"), 1u) << width;
    }
}

TEST(Winograd, LeavesOthersToOthers) {
  const DeviceTraits traits = cpu();
  const auto reason = [&](const Shape& data, const Shape& filter, const DeviceTraits& device,
                          const char* strides = "1,1") {
    std::vector<Tensor> inputs;
    OpDesc desc = describe_winograd(data, filter, inputs, "1,1", "1,1", strides);
    desc.inputs[0] = TensorDesc::channels_last(ElementType::f32, inputs[0].shape());
    desc.outputs[0] = TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape);
    return winograd().reject(desc, device);
  };
  EXPECT_EQ(reason({1, 64, 28, 28}, {64, 64, 3, 3}, traits), "");
  EXPECT_EQ(reason({1, 64, 28, 28}, {64, 64, 3, 3}, cpu(4)),
            "no CPU with vectors of 8 or 16 floats");
  EXPECT_EQ(reason({1, 40, 28, 28}, {64, 40, 3, 3}, traits), "");
  EXPECT_EQ(reason({1, 64, 28, 28}, {64, 64, 3, 3}, traits, "2,2"), "not 3x3 with stride 1");
  EXPECT_EQ(reason({1, 64, 28, 28}, {64, 64, 5, 5}, traits), "not 3x3 with stride 1");
  EXPECT_EQ(reason({1, 44, 28, 28}, {64, 44, 3, 3}, traits),
            "too few channels, or input channels in no whole vectors");
  EXPECT_EQ(reason({1, 64, 28, 28}, {12, 64, 3, 3}, traits),
            "too few channels, or input channels in no whole vectors");
  EXPECT_EQ(reason({1, 64, 28, 28}, {12, 64, 3, 3}, cpu(8)), "");
  EXPECT_EQ(reason({1, 128, 12, 21}, {24, 128, 3, 3}, traits), "too few products");
  EXPECT_EQ(reason({1, 128, 12, 21}, {24, 128, 3, 3}, cpu(8)), "");
  EXPECT_EQ(reason({1, 512, 7, 7}, {512, 512, 3, 3}, traits),
            "too few outputs for so many weights");
  EXPECT_EQ(reason({4, 512, 7, 7}, {512, 512, 3, 3}, traits), "");
  EXPECT_EQ(reason({1, 64, 100, 1}, {64, 64, 3, 3}, traits), "tiles that are half empty");
  std::vector<Tensor> inputs;
  DeviceTraits adds_four = traits;
  adds_four.dot = DotProduct::avx512;
  EXPECT_EQ(winograd().reject(describe(kBytes, ElementType::u8, inputs), adds_four),
            "the device adds four products of bytes at a time");
}

}  // namespace
}  // namespace clinfer::test
