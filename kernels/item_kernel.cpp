// Chooses points and work sizes.
#include "kernels/item_kernel.h"

#include <algorithm>
#include <cmath>

namespace clinfer {

std::vector<TuningPoint> item_space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (int local : {64, 128, 256})
    if (static_cast<size_t>(local) <= traits.max_work_group) space.push_back({{{"LOCAL", local}}});
  if (space.empty()) space.push_back({{{"LOCAL", 1}}});
  return space;
}

TuningPoint item_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return item_space(desc, traits)[0];
}

void set_items(KernelSpec& spec, int64_t items, const TuningPoint& point) {
  const auto local = static_cast<size_t>(point["LOCAL"]);
  spec.defines.emplace_back("LOCAL", std::to_string(local));
  spec.local = {local, 1, 1};
  spec.global = {(static_cast<size_t>(items) + local - 1) / local * local, 1, 1};
}

std::vector<TuningPoint> row_tile_space(int64_t channels, const DeviceTraits& traits,
                                        const std::vector<int>& tiles,
                                        const std::vector<int>& cpu_tiles) {
  std::vector<TuningPoint> space;
  const auto add = [&](int vector, int tile_p, int lanes, int rows) {
    space.push_back({{{"VECTOR", vector}, {"TILE_P", tile_p}, {"LANES", lanes}, {"ROWS", rows}}});
  };
  for (int vector : {8, 4, 16, 2, 1}) {
    if (vector > channels || (!traits.is_cpu && vector > 8)) continue;
    if (traits.is_cpu) {
      for (int tile_p : cpu_tiles) add(vector, tile_p, 1, 1);
      continue;
    }
    for (int tile_p : tiles)
      for (int lanes : {32, 16, 8, 4, 2, 1})
        if (lanes == 1 || lanes * vector < 2 * channels)
          for (int items : {128, 64, 256})
            if (static_cast<size_t>(items) <= traits.max_work_group)
              add(vector, tile_p, lanes, items / lanes);
  }
  if (space.empty()) add(1, 1, 1, 1);
  return space;
}

int64_t tiles_per_item(int64_t tiles, int64_t blocks, double flops, const DeviceTraits& traits,
                       int shares_a_core) {
  // Each share should take at least some microseconds (a core computes roughly 50 flops per
  // nanosecond).
  const double shares =
      static_cast<double>(shares_a_core) * traits.compute_units / static_cast<double>(blocks);
  const double least = 4000.0 * 50.0 / std::max(flops, 1.0);
  const double even = std::ceil(static_cast<double>(tiles) / std::max(shares, 1.0));
  const double most = std::ceil(static_cast<double>(tiles * blocks) / (2.0 * traits.compute_units));
  return std::clamp<int64_t>(
      static_cast<int64_t>(std::min(std::max(even, least), std::max(most, 1.0))), 1, tiles);
}

}  // namespace clinfer
