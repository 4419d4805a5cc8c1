// HETERO: the network in parts, each on one device.
#pragma once

#include <memory>
#include <vector>

#include "engine/devices/affinity.h"

namespace clinfer {

// A part as a network of its own. Constants are in every part that reads them; they share their
// data.
struct Subgraph {
  // An input: of the whole network, or the output of another part.
  struct Source {
    bool of_network = false;
    size_t part = 0;   // if it is not of the network; smaller than the part's own number
    size_t index = 0;  // among those inputs, or that part's outputs
  };
  size_t device = 0;
  std::unique_ptr<Graph> graph;
  std::vector<Source> inputs;
};

struct Partition {
  std::vector<Subgraph> parts;  // none needs a later one
  struct Output {
    size_t part = 0, index = 0;
  };
  std::vector<Output> outputs;                      // where the network's outputs come from
  std::unordered_map<const Node*, size_t> part_of;  // of nodes of the whole graph that compute
};

// Puts neighbours on the same device into one part, unless another device computes between them.
// `inseparable`: one part whatever is between them; with a node it has all that need it, and all of
// them have the same device.
Partition split(const Graph& graph, const Affinities& affinities,
                const std::unordered_set<const Node*>& inseparable = {});

}  // namespace clinfer
