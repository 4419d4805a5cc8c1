// Convolutions and matrix products of bytes: u8 activations with a zero point and constant integer
// weights. The sums are exact in 32 bits; the tail turns them into floats or bytes. Weights are i8,
// or i16 if those of one output channel span less than 256: subtracting the channel's shift makes
// them bytes, and the kernel adds the shift times the sum of the data's bytes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// Returns whether the operation's data are bytes. Its attribute "zero_point" (default 0) is then
// the byte that represents 0, and its outputs are the sums of weight * (byte - zero_point). The
// data may have one zero point per channel.
bool takes_bytes(const OpDesc& desc);
std::vector<float> zero_points(const OpDesc& desc);
// Returns the data with the zero point subtracted, as floats, row-major with channels as dimension
// 1. Data that are not bytes are returned unchanged.
std::vector<float> data_values(const OpDesc& desc, const Tensor& data);

// Returns the reason why sums of products of bytes would not be exact or are not supported, or "".
std::string reject_byte_sums(const OpDesc& desc, const TileProblem& problem);
// has_shifts() returns whether the weights have shifts; shift_of() returns the shift of one output
// channel's weights, which may be 0.
bool has_shifts(const OpDesc& desc);
int shift_of(std::span<const float> weights);
// Return constants of the kernels, one i32 per output channel; each group has `padded` channels.
// start_sums() returns the initial values of the sums: minus the contribution of the zero point,
// plus the correction for the way in which `dot` computes products, plus `from`.
std::vector<std::byte> start_sums(const std::vector<float>& weights, const ConvShape& s,
                                  int64_t padded, int zero, DotProduct dot, int32_t from = 0);
std::vector<std::byte> shifts(const std::vector<float>& weights, const ConvShape& s,
                              int64_t padded);

// The bits of 1.5 * 2^23. A float with these bits plus a small sum, of less than 2^22, is that much
// larger: sums that start there become floats by a subtraction. NVIDIA's GPUs have an eighth of the
// units for conversions of integers.
inline constexpr int32_t kBitsOfSmallSums = 0x4B400000;
// Returns whether all sums are small, whatever bytes the data hold.
bool has_small_sums(const OpDesc& desc);

// Implement the tile kernel for bytes (convolution_int8.cl).
std::string reject_int8(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> int8_space(const OpDesc& desc, const TileProblem& problem,
                                    const DeviceTraits& traits);
TuningPoint int8_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits);
std::vector<double> int8_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits);
KernelPlan int8_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& point);

}  // namespace clinfer
