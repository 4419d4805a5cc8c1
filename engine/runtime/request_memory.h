// Memory of a request on the device.
#pragma once

#include <map>
#include <vector>

#include "engine/runtime/device_network.h"

namespace clinfer {

// Memory::request, all of it. A request has more than one where applications keep results that lie in it.
struct RequestMemory {
  RequestMemory(const DeviceNetwork& network, size_t bytes);
  // Releases the kernels from the last to the first. PoCL searches each among those of its program,
  // from the newest on: of 50,000, the other order took minutes.
  ~RequestMemory();

  DeviceMemory all;
  SubBuffers parts;
  // Kernels by plan, step and launch; a persistent kernel is with the first of its steps. Kernels
  // of plans for part of a batch are bound when they are first wanted.
  std::map<const SizedPlan*, std::vector<std::vector<cl::Kernel>>> kernels;
  // The launches of the steps up to `end`; null where these have none.
  struct Segment {
    size_t end = 0;
    std::unique_ptr<cuda::Graph> graph;
  };
  // By plan and first step, likewise.
  std::map<const SizedPlan*, std::map<size_t, Segment>> graphs;
  // Results that the host reads where they lie: mapped until the next inference in this memory. Not
  // until they are released, which any thread may do at any time: PoCL 3.1 wants one thread at a time.
  std::vector<void*> mapped;
};

}  // namespace clinfer
