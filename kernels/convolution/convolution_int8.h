// Convolutions and products of bytes: u8 activations with a zero point, constant integers as
// weights, exact sums in 32 bits that the tail turns into floats or bytes again. Weights are i8; or
// i16, of which those of one output channel lie less than 256 apart: less the channel's shift they
// are bytes, too, and the sum of the data's bytes times the shift makes up for it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/convolution/convolution_tile.h"

namespace clinfer {

// Whether the operation's data are bytes: then its attribute "zero_point" (0 unless given) is the
// byte that stands for 0, and its outputs are sum of weight * (byte - zero_point). There may be one
// for each channel of the data.
bool takes_bytes(const OpDesc& desc);
std::vector<float> zero_points(const OpDesc& desc);
// The data as what they stand for, row-major with channels as dimension 1; as they are where they
// are no bytes.
std::vector<float> data_values(const OpDesc& desc, const Tensor& data);

// Why sums of products of bytes would not be exact or are not supported, or "".
std::string reject_byte_sums(const OpDesc& desc, const TileProblem& problem);
// Whether the weights have shifts; that of one output channel's weights, which may be 0.
bool has_shifts(const OpDesc& desc);
int shift_of(std::span<const float> weights);
// Constants of the kernels, i32 for each output channel; groups have `padded` channels each. What
// the zero point's share of each output is, negative, and what the device's products leave out:
// products are added to that.
std::vector<std::byte> start_sums(const std::vector<float>& weights, const ConvShape& s,
                                  int64_t padded, int zero, DotProduct dot);
std::vector<std::byte> shifts(const std::vector<float>& weights, const ConvShape& s,
                              int64_t padded);

// The tile kernel for bytes (convolution_int8.cl).
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
