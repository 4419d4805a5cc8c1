// Registers of Intel's GPUs: a thread has 128.
#pragma once

#include "kernels/kernel.h"

namespace clinfer {

// GPUs without sub-groups of eight have registers of 64 bytes, others of 32.
inline bool has_wide_registers(const DeviceTraits& traits) {
  return traits.sub_groups != 0 && (traits.sub_groups & 8) == 0;
}

}  // namespace clinfer
