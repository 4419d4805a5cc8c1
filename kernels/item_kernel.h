// Kernels without tiles: a work-item computes one element (or one small unit), and the only tuning
// parameter is the size of the work-group.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

std::vector<TuningPoint> item_space(const OpDesc& desc, const DeviceTraits& traits);
TuningPoint item_heuristic(const OpDesc& desc, const DeviceTraits& traits);
// Sets the work sizes for `items` work-items, rounded up to whole groups, and defines LOCAL, the
// size of the group. A kernel returns at once in work-items past `items`.
void set_items(KernelSpec& spec, int64_t items, const TuningPoint& point);

}  // namespace clinfer
