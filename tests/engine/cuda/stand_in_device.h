// The device of the stand-in for CUDA's driver.
#pragma once

#include <cstring>
#include <memory>

#include "engine/cuda/device.h"

namespace clinfer::test {

inline std::shared_ptr<const cuda::Device> stand_in_device() {
  cuda::Device::Uuid uuid;
  std::memcpy(uuid.data(), "a device of CUDA", uuid.size());
  return cuda::Device::find(uuid);
}

}  // namespace clinfer::test
