// Divides a network into parts for HETERO, each on one device.
#pragma once

#include <memory>
#include <vector>

#include "engine/devices/affinity.h"

namespace clinfer {

// A part as a network of its own. Constants are in every part that reads them; they share their
// data.
struct Subgraph {
  // The origin of an input: an input of the whole network, or an output of another part.
  struct Source {
    bool of_network = false;
    size_t part = 0;   // if not of the network; smaller than the part's own index
    size_t index = 0;  // among the network's inputs, or that part's outputs
  };
  size_t device = 0;
  std::unique_ptr<Graph> graph;
  std::vector<Source> inputs;
};

struct Partition {
  std::vector<Subgraph> parts;  // ordered so that no part needs a later one
  struct Output {
    size_t part = 0, index = 0;
  };
  std::vector<Output> outputs;                      // where the network's outputs come from
  std::unordered_map<const Node*, size_t> part_of;  // of all nodes of the whole graph that compute
};

// Puts neighbours on the same device into one part, unless another device computes between them.
// `inseparable`: layers that become one part whatever is between them. It contains, with each node,
// all nodes that need it, and all of them are on the same device.
Partition split(const Graph& graph, const Affinities& affinities,
                const std::unordered_set<const Node*>& inseparable = {});

}  // namespace clinfer
