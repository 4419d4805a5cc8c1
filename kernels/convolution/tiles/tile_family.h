// Makes kernel families of operations that can be computed as a convolution: Convolution,
// GroupConvolution, and MatMul with constant weights.
#pragma once

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// Returns the family whose functions are `space` and so on, which also take an operation's
// TileProblem. `own_order` becomes KernelFamily::own_order.
template <TileProblem (*problem)(const OpDesc&), auto space, auto heuristic, auto plan, auto costs>
KernelFamily tile_family(const char* name, int version,
                         std::string (*reject)(const OpDesc&, const DeviceTraits&),
                         const char* own_order = "") {
  return {name,
          version,
          reject,
          [](const OpDesc& desc, const DeviceTraits& traits) {
            return space(desc, problem(desc), traits);
          },
          [](const OpDesc& desc, const DeviceTraits& traits) {
            return heuristic(desc, problem(desc), traits);
          },
          [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
            return plan(desc, problem(desc), traits, point);
          },
          [](const OpDesc& desc, const DeviceTraits& traits) {
            return costs(desc, problem(desc), traits);
          },
          own_order};
}

}  // namespace clinfer
