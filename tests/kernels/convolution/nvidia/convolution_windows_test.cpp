// Convolution of images by warpgroup matrix instructions that read windows in place. Devices without these
// compute the same places in plain C.
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

constexpr const char* kWindowsFamily = "conv_windows";

DeviceTraits windows_traits() {
  DeviceTraits traits = matrix_traits();
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  return traits;
}

// Units that overlap and that do not; one to three units of a row of the kernel, so that steps take units
// of one row, of two, or a single one; tiles that end within the image; several blocks of channels.
const ConvolutionCase kWindowCases[] = {
    {"Convolution", {2, 3, 9, 11}, {20, 3, 7, 7}, "2,2", "3,3", "1,1", "3"},
    {"Convolution", {1, 3, 8, 71}, {32, 3, 3, 3}, "1,1", "1,1", "1,1", "0"},
    {"Convolution", {3, 1, 7, 6}, {9, 1, 5, 5}, "1,1", "2,2", "1,1", "255"},
    {"Convolution", {1, 4, 9, 140}, {24, 4, 3, 3}, "2,2", "1,1", "2,1", "0"},
    {"Convolution", {1, 3, 11, 9}, {72, 3, 6, 6}, "2,2", "2,2", "1,1", "128"},
    {"Convolution", {1, 2, 5, 16}, {12, 2, 2, 9}, "1,2", "0,4", "1,1", "7"},
};
// Windows that begin 16 bytes apart only in bytes.
const ConvolutionCase kFourApart{
    "Convolution", {1, 3, 13, 17}, {16, 3, 4, 4}, "4,4", "0,0", "1,1", "9"};

TEST(ConvolutionWindows, HalvesAddUpInFloats) {
  const DeviceTraits traits = windows_traits();
  bool view = false;
  for (const ConvolutionCase& c : kWindowCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0], 2, 3);
      desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
    }
    view = !view;
    check_op(desc, inputs, kHalf, &traits, kWindowsFamily);
  }
}

TEST(ConvolutionWindows, BytesAddUpExactly) {
  const DeviceTraits traits = windows_traits();
  bool view = true;
  for (const ConvolutionCase& c : kWindowCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 1, 5);
    view = !view;
    check_op(desc, inputs, kExact, &traits, kWindowsFamily);
  }
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(kFourApart, ElementType::u8, inputs);
  check_op(desc, inputs, kExact, &traits, kWindowsFamily);
}

TEST(ConvolutionWindows, Tails) {
  const DeviceTraits traits = windows_traits();
  std::vector<Tensor> inputs;
  OpDesc halves = describe(kWindowCases[0], ElementType::f16, inputs);
  add_constant(halves, inputs, "multiply", random_tensor({1, 20, 1, 1}));
  add_activation(halves, inputs, "add",
                 random_tensor(halves.outputs[0].shape).convert(ElementType::f16));
  halves.tail.push_back({"relu"});
  check_op(halves, inputs, kHalf, &traits, kWindowsFamily);
  for (const size_t i : {1, 4}) {
    OpDesc bytes = describe(kWindowCases[i], ElementType::u8, inputs);
    quantize_output(bytes, inputs, 0.002f, 255);
    check_op(bytes, inputs, kOneByte, &traits, kWindowsFamily);
  }
}

std::string why(const ConvolutionCase& c, ElementType type, bool shifted = false,
                size_t local_memory = 227 << 10) {
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(c, type, inputs, shifted);
  DeviceTraits traits = gpu_traits();
  traits.matrix = MatrixUnit::emulated;
  traits.local_memory = local_memory;
  for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
    if (family->name == kWindowsFamily) return family->reject(desc, traits);
  return "there is no such family";
}

TEST(ConvolutionWindows, RefusesOtherPictures) {
  const auto refuses = [](const ConvolutionCase& c, ElementType type, const char* reason) {
    EXPECT_NE(why(c, type).find(reason), std::string::npos) << why(c, type) << ": " << reason;
  };
  EXPECT_EQ(why(kWindowCases[0], ElementType::f16), "");
  EXPECT_EQ(why(kFourApart, ElementType::u8), "");
  refuses(kFourApart, ElementType::f16, "within 16 bytes");
  refuses({"Convolution", {1, 5, 9, 9}, {8, 5, 3, 3}, "1,1", "1,1", "1,1"}, ElementType::f16,
          "more than four channels");
  refuses({"Convolution", {1, 3, 9, 9}, {8, 3, 1, 1}, "1,1", "0,0", "1,1"}, ElementType::u8,
          "few taps");
  refuses({"Convolution", {1, 3, 9, 9}, {8, 3, 3, 3}, "1,1", "1,1", "1,2"}, ElementType::u8,
          "columns of the kernel are apart");
  refuses({"Convolution", {1, 3, 9, 9}, {8, 3, 3, 3}, "3,3", "1,1", "1,1"}, ElementType::u8,
          "within 16 bytes");
  refuses({"Convolution", {1, 3, 9, 9}, {7, 3, 3, 3}, "1,1", "1,1", "1,1"}, ElementType::u8,
          "fewer than eight");
  EXPECT_NE(why(kWindowCases[0], ElementType::u8, true).find("shift"), std::string::npos);
  EXPECT_NE(why(kWindowCases[0], ElementType::u8, false, 4096).find("local memory"),
            std::string::npos);
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(kWindowCases[0], ElementType::f16, inputs);
  EXPECT_TRUE(
      refusals(desc, gpu_traits()).contains("the device has no warpgroup matrix instructions"));
}

// The instructions of one line are in one statement, with the units of each step as numbers.
TEST(ConvolutionWindows, StepsTakeTwoUnits) {
  std::vector<Tensor> inputs;
  const DeviceTraits traits = hopper("NVIDIA H200");
  const auto steps = [&](size_t i, ElementType type) {
    const OpDesc desc = describe(kWindowCases[i], type, inputs);
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
      if (family->name == kWindowsFamily) {
        EXPECT_EQ(family->reject(desc, traits), "");
        const KernelPlan plan = family->plan(desc, traits, family->heuristic(desc, traits));
        size_t count = 0;
        for (const auto& [name, text] : plan.launches[0].defines)
          for (size_t at = 0; name.starts_with("MULTIPLY") &&
                              (at = text.find("mma_async", at)) != std::string::npos;
               ++at)
            ++count;
        return count;
      }
    return size_t{0};
  };
  EXPECT_EQ(steps(0, ElementType::u8), 7u);    // two units for each of seven rows
  EXPECT_EQ(steps(0, ElementType::f16), 14u);  // four
  EXPECT_EQ(steps(1, ElementType::u8), 2u);    // one for each of three rows
}

}  // namespace
}  // namespace clinfer::test
