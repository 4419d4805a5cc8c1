// Convolutions and matrix products by the matrix instructions (dpas) of sub-groups of sixteen lanes
// (convolution_subgroup.cl with MATRIX), for Intel's Ponte Vecchio, Lunar Lake and later.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/intel/convolution_subgroup.h"

namespace clinfer {

// Returns why sub-groups of `lanes` lanes do not compute the problem by matrix instructions, as far
// as the reason does not depend on their number, or "".
std::string reject_xmx(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                       int lanes);

std::string reject_xmx16(const OpDesc& desc, const TileProblem& problem,
                         const DeviceTraits& traits);
std::vector<TuningPoint> xmx16_space(const OpDesc& desc, const TileProblem& problem,
                                     const DeviceTraits& traits);
TuningPoint xmx16_heuristic(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits);
SubgroupCycles xmx16_cycles(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits, const TuningPoint& point);
std::vector<double> xmx16_costs(const OpDesc& desc, const TileProblem& problem,
                                const DeviceTraits& traits);
KernelPlan xmx16_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                      const TuningPoint& point);

}  // namespace clinfer
