// Adds a Result for every layer that is left after fusion, behind the model's own, so that what the
// device computes can be compared layer by layer.
#include "engine/passes/passes.h"

namespace clinfer {

void expose_layers(Graph& graph, const PassContext& context) {
  if (!context.expose_layers) return;
  std::vector<Node*> layers;
  for (const auto& node : graph.nodes)
    if (node->def) layers.push_back(node.get());
  for (Node* layer : layers)
    for (size_t port = 0; port < layer->outputs.size(); ++port) {
      Node* result = graph.insert(nullptr, "Result", layer->name);
      result->inputs = {{layer, static_cast<int>(port)}};
      graph.results.push_back(result);
    }
}

}  // namespace clinfer
