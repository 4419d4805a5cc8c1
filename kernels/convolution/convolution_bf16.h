// Convolutions and matrix products of f32 data with products of bf16 and sums of f32
// (convolution_bf16.cl), for processors that have instructions for them. Taken by operations whose
// attribute "products" is "bf16"; data and outputs stay f32.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/convolution_tile.h"

namespace clinfer {

// True if products of bf16 were asked for.
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
