// Register limits of Intel's GPUs: a thread has 128, and kernels that need more spill
// (tests/kernels/ocloc).
#pragma once

#include "kernels/kernel.h"

namespace clinfer {

// Returns whether a family must leave out points that spill on this device. Intel's runtime for
// CPUs has sub-groups as well.
inline bool has_few_registers(const DeviceTraits& traits) {
  return !traits.is_cpu && traits.sub_groups != 0;
}

// Returns whether registers have 64 bytes, as on GPUs without sub-groups of eight; on others they
// have 32.
inline bool has_wide_registers(const DeviceTraits& traits) {
  return traits.sub_groups != 0 && (traits.sub_groups & 8) == 0;
}

// Returns whether addresses have 64 bits. They have where registers are wide, and with newer
// compilers, which support only those other GPUs that have dot products.
inline bool has_long_addresses(const DeviceTraits& traits) {
  return has_wide_registers(traits) || traits.dot != DotProduct::none;
}

}  // namespace clinfer
