// HETERO: Graphviz drawings of who computes what, with a colour for each device or part.
#pragma once

#include <string>
#include <vector>

#include "engine/devices/partition.h"

namespace clinfer {

// Each layer with "device=NAME".
std::string draw_affinities(const Graph& graph, const Affinities& affinities,
                            const std::vector<std::string>& devices);

// Each layer with "subgraph=N" and "device=NAME".
std::string draw_parts(const Graph& graph, const Partition& partition,
                       const std::vector<std::string>& devices);

}  // namespace clinfer
