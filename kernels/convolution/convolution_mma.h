// Convolutions and matrix products by matrix instructions (convolution_mma.cl): f16 data with sums
// in f32, and bytes with exact sums in 32 bits.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/convolution_tile.h"

namespace clinfer {

// Whether the channels of each pixel are whole words that a work-item can read at once, and fill half of
// a step. (convolution_rows.cl takes others.)
bool pixels_are_words(const OpDesc& desc, const TileProblem& problem);

std::string reject_mma(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> mma_space(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits);
TuningPoint mma_heuristic(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits);
std::vector<double> mma_costs(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits);
KernelPlan mma_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                    const TuningPoint& point);

}  // namespace clinfer
