// Points and work sizes of kernels without tiles.
#include "kernels/item_kernel.h"

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

}  // namespace clinfer
