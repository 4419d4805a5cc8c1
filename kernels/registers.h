// The rule by which families leave out points whose values do not fit the registers of Intel's
// GPUs. Only the compiler knows what a kernel spills, and the engine asks it
// (Tuning::avoid_spills). But some drivers do not say, and a kernel that is tried is compiled: so
// untuned choices are to fit nearly always (tests/kernels/ocloc).
#pragma once

#include "kernels/kernel.h"

namespace clinfer {

// Returns whether registers have 64 bytes, as on GPUs without sub-groups of eight; on others they
// have 32.
inline bool has_wide_registers(const DeviceTraits& traits) {
  return traits.sub_groups != 0 && (traits.sub_groups & 8) == 0;
}

// Returns whether a thread has registers for the values that it keeps while its inner loop runs:
// `bytes` of sums and of the operands of a step, and `coordinates`, numbers by which it finds the
// pixels of its tile. A coordinate takes two registers, its own and one of an address that is made
// of it; where registers are wide, addresses have 64 bits, and it takes four. All this may take
// three quarters of the 128 registers; the compiler needs the rest. True on devices that have no
// such limit: CPUs have caches for what they spill, and other GPUs have more registers.
inline bool fits_registers(const DeviceTraits& traits, int64_t bytes, int64_t coordinates) {
  if (traits.is_cpu || traits.sub_groups == 0) return true;
  const bool wide = has_wide_registers(traits);
  return bytes + (wide ? 4 * 64 : 2 * 32) * coordinates <= 96 * (wide ? 64 : 32);
}

// Returns the same for a kernel whose sub-groups the compiler chooses, by the bytes of a work-item.
// They have at least eight work-items, or sixteen where registers are wide: four bytes of each fill
// a register.
inline bool fits_registers_of_items(const DeviceTraits& traits, int64_t bytes,
                                    int64_t coordinates) {
  return fits_registers(traits, (has_wide_registers(traits) ? 16 : 8) * bytes, coordinates);
}

}  // namespace clinfer
