// Constants on their way to the device.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/runtime/device_network.h"

namespace clinfer {

// All bytes, and by name where each constant lies among them.
struct HostWeights {
  std::vector<std::byte> bytes;
  std::map<std::string, std::pair<size_t, size_t>> places;  // offset and size
  std::unordered_multimap<uint64_t, std::pair<size_t, size_t>> by_hash;

  // Offset of `piece`, which is added unless the same bytes are known: under this name, or under
  // others, as the iterations of an unrolled loop have them.
  size_t add(const std::string& name, std::span<const std::byte> piece);
};

// Adds the constants of a plan, those that kernels read as they are and the packed ones of each
// step, and notes their offsets in the plan. Packs on `threads` threads (0: all cores).
void collect_weights(SizedPlan& sized, HostWeights& weights, unsigned threads);

DeviceMemory upload(const DeviceNetwork& network, HostWeights& weights);

}  // namespace clinfer
