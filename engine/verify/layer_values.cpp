// Collects the values of layers.
#include "engine/verify/layer_values.h"

#include <algorithm>

namespace clinfer {

Edge copied_by(Edge edge) {
  while (edge.node->is("Reorder")) edge = edge.node->inputs[0];
  return edge;
}

LayerValues::LayerValues(const Graph& graph, std::span<const Tensor> inputs,
                         const InferRequest& finished) {
  for (size_t i = 0; i < std::min(graph.parameters.size(), inputs.size()); ++i)
    values_[{graph.parameters[i], 0}] = inputs[i];
  for (size_t i = 0; i < graph.results.size(); ++i) {
    const Edge from = copied_by(graph.results[i]->inputs[0]);
    values_[{from.node, from.port}] = finished.output(i);
  }
}

const Tensor* LayerValues::find(const Edge& edge) const {
  const auto found = values_.find({edge.node, edge.port});
  return found != values_.end() ? &found->second : nullptr;
}

std::optional<std::vector<Tensor>> LayerValues::inputs_of(const Node& node) const {
  std::vector<Tensor> inputs;
  for (const Edge& input : node.inputs) {
    const Edge from = copied_by(input);
    const Tensor* const value = from.node->is("Constant") ? &from.node->constant : find(from);
    if (value == nullptr) return std::nullopt;
    inputs.push_back(*value);
  }
  return inputs;
}

}  // namespace clinfer
