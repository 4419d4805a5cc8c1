// Registers of Intel's GPUs: a thread has 128, and kernels spill that need more (tests/kernels/ocloc).
#pragma once

#include "kernels/kernel.h"

namespace clinfer {

// Returns whether a family must leave out points that spill on this device. The CPU runtime of
// Intel's has sub-groups as well.
inline bool has_few_registers(const DeviceTraits& traits) {
  return !traits.is_cpu && traits.sub_groups != 0;
}

// GPUs without sub-groups of eight have registers of 64 bytes, others of 32.
inline bool has_wide_registers(const DeviceTraits& traits) {
  return traits.sub_groups != 0 && (traits.sub_groups & 8) == 0;
}

// Returns whether addresses have 64 bits: where registers are wide, and by newer compilers, which
// of the others know only those with dot products.
inline bool has_long_addresses(const DeviceTraits& traits) {
  return has_wide_registers(traits) || traits.dot != DotProduct::none;
}

}  // namespace clinfer
