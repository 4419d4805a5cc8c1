// Draws for HETERO which device computes what, in Graphviz's format, with a colour for each device
// or part.
#pragma once

#include <string>
#include <vector>

#include "engine/devices/partition.h"

namespace clinfer {

// Marks each layer with "device=NAME".
std::string draw_affinities(const Graph& graph, const Affinities& affinities,
                            const std::vector<std::string>& devices);

// Marks each layer with "subgraph=N" and "device=NAME".
std::string draw_parts(const Graph& graph, const Partition& partition,
                       const std::vector<std::string>& devices);

}  // namespace clinfer
