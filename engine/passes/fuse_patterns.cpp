// Recognises groups of operations that are one operation of the registry.
#include "engine/passes/passes.h"

namespace clinfer {

void fuse_patterns(Graph& graph, const PassContext&) {
  const OpDef* swish = find_op("Swish", 4);
  if (!swish) return;
  for (const auto& node : graph.nodes) {
    if (!node->is("Multiply") || node->inputs.size() != 2) continue;
    for (int side : {0, 1}) {
      const Edge gate = node->inputs[side], x = node->inputs[1 - side];
      if (!gate.node->is("Sigmoid") || !(gate.node->inputs[0] == x) ||
          node->shape() != x.node->shape(x.port))
        continue;
      node->type = "Swish";
      node->opset = 4;
      node->def = swish;
      node->attributes = {};
      node->inputs = {x};
      break;
    }
  }
  graph.remove_dead();
}

}  // namespace clinfer
