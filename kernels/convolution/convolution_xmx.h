// Convolutions and matrix products by the matrix instructions (dpas) of the sub-groups of Intel's
// GPUs (convolution_subgroup.cl with MATRIX).
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/convolution_subgroup.h"

namespace clinfer {

std::string reject_xmx(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> xmx_space(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits);
TuningPoint xmx_heuristic(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits);
SubgroupCycles xmx_cycles(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits, const TuningPoint& point);
std::vector<double> xmx_costs(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits);
KernelPlan xmx_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                    const TuningPoint& point);

}  // namespace clinfer
