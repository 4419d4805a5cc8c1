// Chooses the steps of a plan that become persistent kernels.
#pragma once

#include <vector>

#include "engine/runtime/device_network.h"

namespace clinfer {

// The fewest work-groups for which a persistent kernel is worth it. It holds compute units that
// launches of other streams could use.
inline constexpr unsigned kFewestGroups = 16;

// Groups consecutive steps whose launches can all be part of a persistent kernel, as many as fit
// into one. `groups`: number of work-groups of such a launch. Returns nothing if that would save
// too little time, unless `forced`.
std::vector<PersistentSteps> make_persistent_steps(const SizedPlan& sized,
                                                   const ocl::Context& context,
                                                   const DeviceTraits& traits, unsigned groups,
                                                   bool forced);

}  // namespace clinfer
