// Chooses the number of streams with the best throughput.
#pragma once

#include <memory>

#include "engine/runtime/network/device_network.h"

namespace clinfer {

// Gives the network the number of streams that has the best throughput: the one stored in its
// program cache, or one that is measured now and stored. Throws Error{cancelled} if `progress`
// returns false.
void choose_streams(const std::shared_ptr<DeviceNetwork>& network, const Progress& progress);

}  // namespace clinfer
