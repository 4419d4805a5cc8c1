// Work sizes. In kernels without tiles a work-item computes one element (or one small unit), and
// the size of the work-group is the only tuning parameter. In kernels with tiles on a CPU, a
// work-item computes several tiles.
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

// Returns points of kernels whose work-items compute TILE_P neighbouring pixels of a row and VECTOR
// channels, in groups of LANES along the channels and ROWS tiles. `tiles`, `cpu_tiles`: the values
// of TILE_P.
std::vector<TuningPoint> row_tile_space(int64_t channels, const DeviceTraits& traits,
                                        const std::vector<int>& tiles,
                                        const std::vector<int>& cpu_tiles);

// Returns how many of `tiles` each work-item of a CPU device computes in a loop, if each tile is
// computed for `blocks` blocks of `flops`: few enough for many work-items, which balance the cores,
// and so many that starting work-items costs little.
int64_t tiles_per_item(int64_t tiles, int64_t blocks, double flops, const DeviceTraits& traits,
                       int shares_a_core = 8);

}  // namespace clinfer
