// Convolutions whose taps share squares of pixels. Devices without the instructions emulate them.
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

DeviceTraits squares_traits() {
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 1;  // so that a work-group takes several tiles
  traits.max_work_group = 512;
  traits.grid_barrier = GridBarrier::none;
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  return traits;
}

TEST(ConvolutionSquares, Halves) {
  const ConvolutionCase cases[] = {
      {"Convolution", {1, 32, 28, 30}, {64, 32, 3, 3}, "1,1", "1,1", "1,1"},
      {"Convolution", {2, 64, 33, 42}, {40, 64, 3, 3}, "2,2", "1,1", "1,1"},
      {"Convolution", {1, 32, 41, 34}, {24, 32, 5, 3}, "2,1", "2,1", "1,1"},
      {"Convolution", {1, 64, 19, 60}, {56, 64, 2, 3}, "1,2", "0,1", "1,2"},
      {"Convolution", {1, 16, 29, 36}, {32, 16, 3, 3}, "2,2", "1,1", "1,1"},
      {"Convolution", {2, 16, 21, 44}, {40, 16, 3, 5}, "1,1", "1,2", "2,1"},
  };
  bool view = false;
  for (const ConvolutionCase& c : cases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0], 8, 16);
      desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
    }
    add_functions(desc, inputs);
    view = !view;
    const DeviceTraits traits = squares_traits();
    check_op(desc, inputs, kHalf, &traits, "conv_squares");
  }
}

// Sums as they are, and converted to bytes; zero points stand for pixels outside of the input.
TEST(ConvolutionSquares, Bytes) {
  const ConvolutionCase cases[] = {
      {"Convolution", {1, 64, 28, 30}, {64, 64, 3, 3}, "1,1", "1,1", "1,1", "7"},
      {"Convolution", {2, 128, 33, 34}, {40, 128, 3, 3}, "2,2", "1,1", "1,1", "0"},
      {"Convolution", {1, 32, 35, 30}, {64, 32, 3, 3}, "1,1", "1,1", "1,1", "9"},
      {"Convolution", {2, 32, 31, 42}, {32, 32, 3, 3}, "2,2", "1,1", "1,1", "0"},
  };
  for (const bool quantised : {false, true})
    for (const ConvolutionCase& c : cases) {
      std::vector<Tensor> inputs;
      OpDesc desc = describe(c, ElementType::u8, inputs);
      if (quantised) {
        desc.inputs[0] = with_gaps(desc.inputs[0], 16, 16);
        quantize_output(desc, inputs, 5e-4f, 255);
      }
      const DeviceTraits traits = squares_traits();
      check_op(desc, inputs, quantised ? kOneByte : kExact, &traits, "conv_squares");
    }
}

TEST(ConvolutionSquares, LeavesOtherPixels) {
  const auto reasons = [](const ConvolutionCase& c) {
    std::vector<Tensor> inputs;
    return refusals(describe(c, ElementType::f16, inputs), hopper("NVIDIA H200"));
  };
  EXPECT_TRUE(reasons({"Convolution", {8, 48, 80, 80}, {64, 48, 3, 3}, "1,1", "1,1", "1,1"})
                  .contains("the channels of a pixel are not 32, 64 or 128 bytes"));
  EXPECT_TRUE(reasons({"Convolution", {8, 64, 80, 80}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"})
                  .contains("a single tap"));
  EXPECT_TRUE(reasons({"Convolution", {8, 64, 80, 80}, {64, 64, 3, 3}, "3,3", "1,1", "1,1"})
                  .contains("steps of more than two pixels"));
  EXPECT_TRUE(reasons({"Convolution", {8, 64, 80, 80}, {72, 64, 3, 3}, "1,1", "1,1", "1,1"})
                  .contains("more than 64 output channels"));
  EXPECT_TRUE(reasons({"Convolution", {2, 64, 80, 80}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"})
                  .contains("fewer than four squares for each compute unit"));
}

}  // namespace
}  // namespace clinfer::test
