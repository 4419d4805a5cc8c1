// Records measured beforehand and built into the program (tuning/db/).
#pragma once

#include "tuning/tuning_cache.h"

namespace clinfer {

struct ShippedRecord {
  const TuningRecord* record = nullptr;  // lives as long as the program
  bool same_device = false;              // else of a relative: a guess, not a choice
};

// The shipped records of an operation: of this device (of this kind, for CPUs), and after them those
// of its relatives if they are asked for. Thread-safe.
std::vector<ShippedRecord> shipped_records(const std::string& op, const DeviceTraits& traits,
                                           bool relatives);

// Returns whether there are records of this device (of this kind, for CPUs): what the engine
// chooses without tuning was compared with measurements there. Thread-safe.
bool has_shipped_records(const DeviceTraits& traits);

}  // namespace clinfer
