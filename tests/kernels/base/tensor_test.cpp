// Tensors: conversions between types.
#include "kernels/base/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

namespace clinfer {
namespace {

// Follows the definition of binary16; a NaN keeps its bits.
TEST(Tensor, EveryHalfAsAFloat) {
  std::vector<uint16_t> halves(1 << 16);
  std::iota(halves.begin(), halves.end(), uint16_t{0});
  const TensorDesc desc = TensorDesc::row_major(ElementType::f16, {1 << 16});
  const Tensor floats = gather_from(desc, halves.data(), ElementType::f32);
  for (const uint16_t half : halves) {
    const uint32_t exponent = half >> 10 & 31u, mantissa = half & 1023u;
    float size = std::ldexp(static_cast<float>(1024 + mantissa), static_cast<int>(exponent) - 25);
    if (exponent == 31) size = std::bit_cast<float>(0x7f800000u | mantissa << 13);
    if (exponent == 0) size = std::ldexp(static_cast<float>(mantissa), -24);
    const uint32_t expected = std::bit_cast<uint32_t>(size) | (half & 0x8000u) << 16;
    ASSERT_EQ(std::bit_cast<uint32_t>(floats.data<float>()[half]), expected) << half;
    ASSERT_EQ(std::bit_cast<uint32_t>(half_to_float(half)), expected) << half;
  }
}

TEST(Tensor, ConvertedToItsOwnTypeIsACopy) {
  Tensor value = Tensor::of<float>(ElementType::f32, {2}, {1, 2});
  const Tensor copy = value.convert(ElementType::f32);
  value.mutable_data<float>()[0] = 3;
  EXPECT_EQ(copy.to_floats(), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace clinfer
