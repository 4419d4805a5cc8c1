// Adds a Result for every layer that is left after fusion, after the model's own, so that the
// device's values can be compared layer by layer.
#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

void expose_layers(Graph& graph, const PassContext& context) {
  if (!context.expose_layers) return;
  for (Node* layer : nodes_of(graph))
    for (size_t port = 0; layer->def && port < layer->outputs.size(); ++port)
      Insertion(graph, nullptr, layer->name).result({layer, static_cast<int>(port)});
}

}  // namespace clinfer
