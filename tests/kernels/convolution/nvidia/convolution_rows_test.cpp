// Convolution of pixels whose channels are no whole words, by matrix instructions. Devices without these
// emulate them.
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

// Pixels that begin at words and between them; borders on all sides; runs of one word and of many; lines
// and columns past the end; more channels than a block has.
const ConvolutionCase kRowCases[] = {
    {"Convolution", {2, 3, 9, 11}, {20, 3, 7, 7}, "2,2", "3,3", "1,1", "3"},
    {"Convolution", {1, 3, 8, 71}, {32, 3, 3, 3}, "1,1", "1,1", "1,1", "128"},
    {"Convolution", {3, 1, 7, 6}, {9, 1, 5, 5}, "1,1", "2,2", "1,1", "255"},
    {"Convolution", {1, 18, 5, 6}, {24, 18, 3, 3}, "2,1", "1,1", "2,1", "0"},
    {"Convolution", {1, 3, 8, 7}, {9, 3, 3, 5}, "1,3", "1,4", "1,1", "77"},
    {"Convolution", {2, 5, 6, 9}, {136, 5, 1, 2}, "1,2", "0,0", "1,1", "1"},
    {"Convolution", {1, 50, 6, 5}, {16, 50, 3, 3}, "1,1", "1,1", "1,1", "9"},
    {"Convolution", {2, 3, 9, 68}, {12, 3, 3, 3}, "2,2", "1,1", "1,1", "200"},
    {"Convolution", {2, 3, 6, 16}, {12, 3, 3, 5}, "2,4", "0,2", "1,1", "6"},
    {"Convolution", {1, 3, 7, 10}, {8, 3, 5, 5}, "2,2", "2,2", "1,1", "5"},
    {"Convolution", {1, 3, 6, 20}, {8, 3, 3, 3}, "1,1", "1,1", "1,1", "8"},
};
// Kernels of one pixel, of bytes.
const ConvolutionCase kPointCases[] = {
    {"Convolution", {2, 15, 5, 7}, {58, 15, 1, 1}, "1,1", "0,0", "1,1", "3"},
    {"Convolution", {1, 6, 6, 9}, {20, 6, 1, 1}, "2,2", "0,0", "1,1", "128"},
    {"Convolution", {1, 8, 9, 40}, {32, 8, 1, 1}, "1,1", "0,0", "1,1", "0"},
};

TEST(ConvolutionRows, HalvesAddUpInFloats) {
  const DeviceTraits traits = matrix_traits();
  bool view = false;
  for (const ConvolutionCase& c : kRowCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    desc.inputs[0].offset = c.data[3] % 2 ? 3 : 4;  // whole words are copied at once
    if (view) desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
    view = !view;
    check_op(desc, inputs, kHalf, &traits, "conv_rows");
  }
}

TEST(ConvolutionRows, BytesAddUpExactly) {
  const DeviceTraits traits = matrix_traits();
  for (size_t i = 0; i < std::size(kRowCases); ++i) {
    const ConvolutionCase& c = kRowCases[i];
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs, i % 2 == 0);
    desc.inputs[0].offset = c.data[3] % 4 ? 3 : 8;
    check_op(desc, inputs, kExact, &traits, "conv_rows");
  }
  for (const ConvolutionCase& c : kPointCases)
    for (const bool shifted : {false, true}) {
      std::vector<Tensor> inputs;
      const OpDesc desc = describe(c, ElementType::u8, inputs, shifted);
      check_op(desc, inputs, kExact, &traits, "conv_rows");
    }
}

TEST(ConvolutionRows, Tails) {
  const DeviceTraits traits = matrix_traits();
  for (const size_t i : {0, 5}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kRowCases[i], ElementType::f16, inputs);
    add_constant(desc, inputs, "multiply", random_tensor({1, kRowCases[i].filter[0], 1, 1}));
    add_activation(desc, inputs, "add",
                   random_tensor(desc.outputs[0].shape).convert(ElementType::f16));
    desc.tail.push_back({"relu"});
    check_op(desc, inputs, kHalf, &traits, "conv_rows");
  }
  std::vector<Tensor> inputs;
  OpDesc desc = describe(kRowCases[1], ElementType::u8, inputs);
  quantize_output(desc, inputs, 0.002f, 255);
  check_op(desc, inputs, kOneByte, &traits, "conv_rows");
}

// The device gives each work-group as much local memory as the plan says, and aligns it.
TEST(ConvolutionRows, LocalMemoryIsWholePairsOfWords) {
  for (const ConvolutionCase& c : kRowCases) {
    std::vector<Tensor> inputs;
    const OpDesc desc = describe(c, ElementType::f16, inputs);
    const DeviceTraits traits = hopper("NVIDIA H200");
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
      if (family->name == "conv_rows")
        for (const TuningPoint& point : family->space(desc, traits)) {
          const KernelSpec spec = family->plan(desc, traits, point).launches[0];
          EXPECT_EQ(spec.shared % 8, 0u) << c.data[3];
        }
  }
}

TEST(ConvolutionRows, RefusesWhatIsNoRun) {
  const auto why = [](const ConvolutionCase& c, int64_t gap, size_t local_memory = 48 << 10) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0], gap, 0);
    DeviceTraits traits = matrix_traits();
    traits.local_memory = local_memory;
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
      if (family->name == "conv_rows") return family->reject(desc, traits);
    return std::string("there is no such family");
  };
  const ConvolutionCase few{"Convolution", {1, 3, 5, 7}, {8, 3, 3, 3}, "1,1", "1,1", "1,1"};
  EXPECT_EQ(why(few, 0), "");
  EXPECT_NE(why(few, 1).find("no runs"), std::string::npos);
  EXPECT_NE(
      why({"Convolution", {1, 3, 5, 7}, {8, 3, 3, 3}, "1,1", "1,1", "1,2"}, 0).find("no runs"),
      std::string::npos);
  EXPECT_NE(
      why({"Convolution", {1, 3, 5, 7}, {8, 3, 1, 1}, "1,1", "0,0", "1,1"}, 0).find("no runs"),
      std::string::npos);
  EXPECT_NE(why({"Convolution", {1, 16, 5, 7}, {8, 16, 3, 3}, "1,1", "1,1", "1,1"}, 0)
                .find("whole words"),
            std::string::npos);
  EXPECT_NE(why(few, 0, 256).find("local memory"), std::string::npos);
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(few, ElementType::f16, inputs);
  EXPECT_TRUE(
      refusals(desc, gpu_traits()).contains("the device has no matrix instructions of warps"));
}

}  // namespace
}  // namespace clinfer::test
