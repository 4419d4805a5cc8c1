// Computes at load what does not depend on the network's inputs (prior boxes, ShapeOf chains,
// converted weights).
#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"

namespace clinfer {

void fold_constants(Graph& graph, const PassContext&) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node* node = graph.nodes[i].get();
    if (!node->def || !node->def->evaluate || node->inputs.empty()) continue;
    std::vector<Tensor> values;
    if (node->is("ShapeOf")) {
      const Edge& input = node->inputs[0];
      const Shape& shape = input.node->shape(input.port);
      values = {Tensor::of(node->outputs[0].type, {static_cast<int64_t>(shape.size())}, shape)};
    } else {
      std::vector<Tensor> inputs;
      for (const Edge& input : node->inputs)
        if (const Tensor* constant = constant_value(input)) inputs.push_back(*constant);
      if (inputs.size() != node->inputs.size()) continue;
      try {
        values = evaluate_node(*node, inputs);
      } catch (const Error& error) {
        throw Error(error.code(), label(*node) + ": " + error.what());
      }
    }
    for (size_t port = 0; port < values.size(); ++port) {
      Node* constant = graph.insert_constant(node, node->name, values[port]);
      constant->outputs[0].names = node->outputs[port].names;
      graph.replace_uses({node, static_cast<int>(port)}, {constant, 0});
      ++i;  // the node moved one place back
    }
  }
  graph.remove_dead();
}

}  // namespace clinfer
