// The number of streams with the best throughput.
#pragma once

#include <memory>

#include "engine/runtime/device_network.h"

namespace clinfer {

// Gives the network the number of streams that has the best throughput: the one in its program
// cache, else measured now and kept there. Throws Error{cancelled} where `progress` says so.
void choose_streams(const std::shared_ptr<DeviceNetwork>& network, const Progress& progress);

}  // namespace clinfer
