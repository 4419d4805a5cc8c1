// Compiles parts of a network for several devices (HETERO).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/compile/device_choice.h"
#include "engine/compile/first_tier.h"

namespace clinfer {

// Assigns each layer to a device by affinity, makes a part of each run of layers on one device, and
// returns a model of the parts. A network that fits on one device as a whole is compiled for that
// device alone.
std::shared_ptr<CompiledModel> compile_hetero(const std::shared_ptr<const Model>& model,
                                              const Config& config, DeviceChoice choice,
                                              const Progress& progress, const Offer& offer);

}  // namespace clinfer
