// HETERO: compiles parts of a network for several devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/compile/device_choice.h"
#include "engine/compile/first_tier.h"

namespace clinfer {

// The device of each layer by affinity, a part for each stretch of layers on one device, and a model
// of them. A network that is on one device as a whole is compiled for that, as if it were named.
std::shared_ptr<CompiledModel> compile_hetero(const std::shared_ptr<const Model>& model,
                                              const Config& config, DeviceChoice choice,
                                              const Progress& progress, const Offer& offer);

}  // namespace clinfer
