// Convolutions and matrix products by sub-groups that read blocks of memory and broadcast values
// (convolution_subgroup.cl): Intel's GPUs.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/convolution_tile.h"

namespace clinfer {

std::string reject_subgroup(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits);
std::vector<TuningPoint> subgroup_space(const OpDesc& desc, const TileProblem& problem,
                                        const DeviceTraits& traits);
TuningPoint subgroup_heuristic(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits);
std::vector<double> subgroup_costs(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits);
KernelPlan subgroup_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                         const TuningPoint& point);

}  // namespace clinfer
