// The values of all layers that a device computed, of a network compiled with exposed layers.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/graph/graph.h"

namespace clinfer {

// Follows Reorders back to the output that they copy.
Edge copied_by(Edge edge);

class LayerValues {
 public:
  // `inputs`: the values of the network's inputs; `finished`: a request whose outputs are those of
  // graph.results.
  LayerValues(const Graph& graph, std::span<const Tensor> inputs, const InferRequest& finished);

  // Returns null if the value was not kept.
  const Tensor* find(const Edge& edge) const;
  // Returns the inputs of a node; nothing if one of them was not kept.
  std::optional<std::vector<Tensor>> inputs_of(const Node& node) const;

 private:
  std::map<std::pair<const Node*, int>, Tensor> values_;
};

}  // namespace clinfer
