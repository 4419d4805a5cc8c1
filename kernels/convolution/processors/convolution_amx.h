// Convolutions and matrix products of bytes by the tiles of AMX (convolution_amx.cl), for
// processors that have them.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

std::string reject_amx(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> amx_space(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits);
TuningPoint amx_heuristic(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits);
std::vector<double> amx_costs(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits);
KernelPlan amx_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                    const TuningPoint& point);

}  // namespace clinfer
