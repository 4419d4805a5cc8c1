// Convolutions and matrix products by the matrix instructions (dpas) of sub-groups of eight lanes
// (convolution_xmx8.cl), for Intel's DG2, Meteor Lake and Arrow Lake.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/intel/convolution_subgroup.h"

namespace clinfer {

std::string reject_xmx8(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> xmx8_space(const OpDesc& desc, const TileProblem& problem,
                                    const DeviceTraits& traits);
TuningPoint xmx8_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits);
SubgroupCycles xmx8_cycles(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits, const TuningPoint& point);
std::vector<double> xmx8_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits);
KernelPlan xmx8_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& point);

}  // namespace clinfer
