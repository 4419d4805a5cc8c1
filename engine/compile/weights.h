// Constants on their way to the device.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/runtime/network/device_network.h"

namespace clinfer {

// The bytes of all constants, and where each one lies, by name.
struct HostWeights {
  std::vector<std::byte> bytes;
  std::map<std::string, std::pair<size_t, size_t>> places;  // (offset, size) in bytes
  std::unordered_multimap<uint64_t, std::pair<size_t, size_t>> by_hash;

  // Returns the offset of `piece`. Adds it unless the same bytes are there already, under this or
  // another name, as for the iterations of an unrolled loop.
  size_t add(const std::string& name, std::span<const std::byte> piece);
};

// Adds the constants of a plan (those that kernels read unchanged, and the packed ones of each
// step) and notes their offsets in the plan. Packs on `threads` threads (0: one for each core).
void collect_weights(SizedPlan& sized, HostWeights& weights, unsigned threads);

DeviceMemory upload(const DeviceNetwork& network, HostWeights& weights);

}  // namespace clinfer
