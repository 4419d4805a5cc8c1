// Convolutions and matrix products of f32 data with products of bf16 and sums of f32
// (convolution_bf16.cl), for processors with instructions for them. They compute operations whose
// attribute "products" is "bf16"; data and outputs stay f32.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// Returns whether the operation asks for products of bf16.
bool takes_bf16(const OpDesc& desc);

std::string reject_bf16(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> bf16_space(const OpDesc& desc, const TileProblem& problem,
                                    const DeviceTraits& traits);
TuningPoint bf16_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits);
std::vector<double> bf16_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits);
KernelPlan bf16_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& point);

}  // namespace clinfer
