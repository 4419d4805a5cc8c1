// Kernels without tiles: a work-item computes one element (or one small thing), and the size of the
// work-group is all there is to tune.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

std::vector<TuningPoint> item_space(const OpDesc& desc, const DeviceTraits& traits);
TuningPoint item_heuristic(const OpDesc& desc, const DeviceTraits& traits);
// Sets the work sizes for `items` work-items, rounded up to whole groups (a kernel returns at once
// in those beyond), and defines LOCAL, the size of the group.
void set_items(KernelSpec& spec, int64_t items, const TuningPoint& point);

}  // namespace clinfer
