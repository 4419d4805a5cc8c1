// Collects constants and uploads them.
#include "engine/compile/weights.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/hash.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

namespace {

constexpr size_t kWeightAlignment = 512;  // the same as that of regions

size_t aligned(size_t bytes) {
  return (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

}  // namespace

size_t HostWeights::add(const std::string& name, std::span<const std::byte> piece) {
  const auto holds = [&](const std::pair<size_t, size_t>& place) {
    return place.second == piece.size() &&
           std::memcmp(bytes.data() + place.first, piece.data(), piece.size()) == 0;
  };
  std::pair<size_t, size_t>& place = places[name];
  if (piece.empty()) {
    place = {};
    return 0;
  }
  if (holds(place)) return place.first;
  const uint64_t hash = hash_of({reinterpret_cast<const char*>(piece.data()), piece.size()});
  const auto [begin, end] = by_hash.equal_range(hash);
  const auto same =
      std::find_if(begin, end, [&](const auto& known) { return holds(known.second); });
  if (same != end) return (place = same->second).first;
  place = {aligned(bytes.size()), piece.size()};
  bytes.resize(place.first + place.second);
  std::memcpy(bytes.data() + place.first, piece.data(), piece.size());
  by_hash.emplace(hash, place);
  return place.first;
}

void collect_weights(SizedPlan& sized, HostWeights& weights, unsigned threads) {
  std::vector<Step>& steps = sized.plan.steps;
  std::vector<std::vector<std::vector<std::byte>>> packed(steps.size());
  parallel_for(steps.size(), threads, [&](size_t s) {
    for (const auto& make : steps[s].kernels.packed) packed[s].push_back(make());
  });
  for (Region& region : sized.plan.regions) {
    if (region.memory != Memory::weights) continue;
    std::vector<std::byte> bytes(region.bytes);
    scatter_to(region.root.node->constant, region.root.node->outputs[0].desc, bytes.data());
    region.offset = weights.add(region.root.node->name, bytes);
  }
  sized.packed_offsets.clear();
  for (size_t s = 0; s < steps.size(); ++s) {
    std::vector<size_t> offsets;
    for (size_t i = 0; i < packed[s].size(); ++i)
      offsets.push_back(weights.add(steps[s].node->name + "\n" + std::to_string(i), packed[s][i]));
    sized.packed_offsets.push_back(std::move(offsets));
    steps[s].kernels.packed.clear();  // frees what holds the unpacked weights
  }
}

DeviceMemory upload(const DeviceNetwork& network, HostWeights& weights) {
  std::vector<std::byte>& host = weights.bytes;
  host.resize(std::max<size_t>(host.size(), 4));
  return make_memory(network, host.size(), host.data());
}

}  // namespace clinfer
