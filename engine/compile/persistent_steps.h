// Chooses the steps of a plan that become persistent kernels.
#pragma once

#include <vector>

#include "engine/runtime/network/device_network.h"

namespace clinfer {

// Groups consecutive steps whose launches can all be part of a persistent kernel, as many as take no
// longer than a launch may. `groups`: number of work-groups of such a launch.
std::vector<PersistentSteps> make_persistent_steps(const SizedPlan& sized,
                                                   const ocl::Context& context,
                                                   const DeviceTraits& traits, unsigned groups);

}  // namespace clinfer
