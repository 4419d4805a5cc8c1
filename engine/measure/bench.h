// The network on which kernels are measured.
#pragma once

#include <memory>
#include <vector>

#include "engine/runtime/device_network.h"

namespace clinfer {

// A built network whose steps each have their own launches. It holds its share of the device if any
// of its kernels will be parts of persistent kernels.
struct Bench {
  std::shared_ptr<const DeviceNetwork> network;
  std::vector<bool> parts;  // by step: true if its kernels will be parts of persistent kernels
};

}  // namespace clinfer
