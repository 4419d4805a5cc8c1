// Memory of a request on the device.
#pragma once

#include <map>
#include <vector>

#include "engine/runtime/network/device_network.h"

namespace clinfer {

// The whole of Memory::request. A request has several of these where applications keep results that
// lie in one.
struct RequestMemory {
  RequestMemory(const DeviceNetwork& network, size_t bytes);
  // Gives the kernels back to their programs.
  ~RequestMemory();

  DeviceMemory all;
  SubBuffers parts;
  // Kernels by step and launch; a persistent kernel is stored at the first of its steps.
  struct Kernels {
    std::shared_ptr<const ocl::Programs> programs;
    std::vector<std::vector<cl::Kernel>> steps;
  };
  // The kernels of a plan for part of a batch are bound when first needed.
  std::map<const SizedPlan*, Kernels> kernels;
  // The tensors that these kernels use in buffers of the application (InPlace), by plan and storage
  // root.
  std::map<const SizedPlan*, std::map<std::pair<const Node*, int>, BoundBuffer>> elsewhere;
  // The launches of the steps up to `end`. `graph` is null if these steps have no launches.
  struct Segment {
    size_t end = 0;
    std::unique_ptr<cuda::Graph> graph;
  };
  // Graphs by plan and first step, made when first needed.
  std::map<const SizedPlan*, std::map<size_t, Segment>> graphs;
  // Results that the host reads in place. They stay mapped until the next inference in this memory:
  // any thread may release a result at any time, but PoCL 3.1 does not support unmapping by several
  // threads.
  std::vector<void*> mapped;
};

}  // namespace clinfer
