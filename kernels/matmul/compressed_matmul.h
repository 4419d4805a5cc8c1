// A product with constant weights of few bits that stay compressed in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/packed_bits.h"
#include "kernels/base/tensor.h"

namespace clinfer {

// CompressedMatMul: y[..., n] = sum over k of x[..., k] * (code[n][k] - zero[n][g]) * scale[n][g],
// with g = k / (K / G). Inputs, all constant but x:
//   x      [..., K]
//   codes  [N, K * bits / 8], u8: integers from 0 on, the first ones in a byte's lowest bits
//   scales [N, G], floats
//   zeros  [N, G], floats
// Attribute: bits (2, 4, 8).

// Decompresses weights.
class CompressedWeights {
 public:
  // Takes the operands of a CompressedMatMul but x.
  CompressedWeights(const Tensor& codes, const Tensor& scales, const Tensor& zeros, int bits)
      : codes_(codes), scales_(scales.to_floats()), zeros_(zeros.to_floats()), bits_(bits) {
    groups_ = scales.shape()[1];
    group_ = depth() / groups_;
  }
  int64_t columns() const { return codes_.shape()[0]; }
  int64_t depth() const { return codes_.shape()[1] * 8 / bits_; }
  // The integer that stands for weight k of column n.
  int code(int64_t n, int64_t k) const {
    return static_cast<int>(bits_at(codes_.data<uint8_t>() + n * codes_.shape()[1], k, bits_));
  }
  // Writes weights k to k + count of column n, `step` floats apart.
  void write(int64_t n, int64_t k, int64_t count, float* to, int64_t step = 1) const {
    for (const int64_t end = k + count; k < end; ++k, to += step) {
      const auto at = static_cast<size_t>(n * groups_ + k / group_);
      *to = (static_cast<float>(code(n, k)) - zeros_[at]) * scales_[at];
    }
  }

 private:
  Tensor codes_;
  std::vector<float> scales_, zeros_;
  int bits_;
  int64_t groups_ = 1, group_ = 1;
};

// Packs `codes` [N, K] of u8, whose values are below 2^bits, as CompressedMatMul has them. K must be
// a multiple of 8 / bits.
Tensor packed_codes(const Tensor& codes, int bits);

}  // namespace clinfer
