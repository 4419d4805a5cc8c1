// Decides for HETERO which device computes which layer.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer {

// The device of each node that computes, as an index into a list of devices. Parameters, Constants
// and Results have none.
using Affinities = std::unordered_map<const Node*, size_t>;

// Says whether a device has kernels for a layer.
using HasKernels = std::function<bool(const Node& node, size_t device)>;

// Returns whether any layer names its device (kAffinity). In that case all layers must.
bool states_affinities(const Graph& graph);

// Returns the affinities that the layers state. `full_name` turns a name in the file into one of
// `devices`. Throws Error{bad_model} for a layer without a device, and for one whose device is not
// in the list.
Affinities stated_affinities(const Graph& graph, const std::vector<std::string>& devices,
                             const std::function<std::string(const std::string&)>& full_name);

// Puts each layer on the first device that has kernels for it. A layer stays with the layer before
// it if no device has kernels for it, if the first device's host computes it as fast as it could be
// handed over (which is not so for kernels of the user), or if it only moves data.
Affinities automatic_affinities(const Graph& graph, size_t devices, const HasKernels& has_kernels);

// Returns layers whose shapes depend on what an inference finds, and all layers after them. They
// have to stay together, because tensors between them have no fixed size.
std::unordered_set<const Node*> inseparable_layers(const Graph& graph);

// Puts these layers on the device of the first one. Returns a warning if that overrules
// `affinities`, else "".
std::string put_together(const Graph& graph, const std::unordered_set<const Node*>& inseparable,
                         Affinities& affinities, const std::vector<std::string>& devices);

}  // namespace clinfer
