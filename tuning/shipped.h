// Records measured beforehand and built into the program (tuning/db/).
#pragma once

#include "tuning/tuning_cache.h"

namespace clinfer {

struct ShippedRecord {
  const TuningRecord* record = nullptr;  // lives as long as the program
  bool same_device = false;  // false: the record of a relative, which is a guess and not a choice
};

// Returns the shipped records of an operation: those of this device (for CPUs, of this kind),
// followed by those of its relatives if `relatives` is set. Thread-safe.
std::vector<ShippedRecord> shipped_records(const std::string& op, const DeviceTraits& traits,
                                           bool relatives);

// Returns whether there are records of this device (for CPUs, of this kind), so that the engine's
// untuned choices were compared with measurements on it. Thread-safe.
bool has_shipped_records(const DeviceTraits& traits);

}  // namespace clinfer
