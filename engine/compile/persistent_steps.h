// Chooses the steps of a plan that become persistent kernels.
#pragma once

#include <vector>

#include "engine/runtime/device_network.h"

namespace clinfer {

// A persistent kernel holds compute units that launches of other streams could have: it needs at
// least so many work-groups.
inline constexpr unsigned kFewestGroups = 16;

// Groups consecutive steps whose launches can all be part of a persistent kernel, as many as fit
// into one. `groups`: work-groups of such a launch. Empty where that would save too little time,
// unless `forced`.
std::vector<PersistentSteps> make_persistent_steps(const SizedPlan& sized,
                                                   const ocl::Context& context,
                                                   const DeviceTraits& traits, unsigned groups,
                                                   bool forced);

}  // namespace clinfer
