// Computes at load what does not depend on the network's inputs (prior boxes, ShapeOf chains,
// converted weights). What would take far more memory than the model does stays for the device: a
// few bytes of a file can ask for a broadcast to gigabytes.
#include <algorithm>
#include <unordered_set>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

// All values computed here, in bytes: so many times those of the model's constants, and so many
// besides.
constexpr size_t kMostGrowth = 8, kFreeBytes = size_t{64} << 20;

size_t bytes_of_constants(const Graph& graph) {
  size_t bytes = 0;
  for (const auto& node : graph.nodes)
    if (node->is("Constant")) bytes += node->constant.bytes();
  return bytes;
}

}  // namespace

void fold_constants(Graph& graph, const PassContext&) {
  // A tensor without elements has its value, whatever gives it: kernels need not take such.
  const auto value_of = [](const Edge& edge) -> Tensor {
    const NodeOutput& output = edge.node->outputs[edge.port];
    const Tensor* constant = constant_value(edge);
    return constant                   ? *constant
           : count(output.shape) == 0 ? Tensor::allocate(output.type, output.shape)
                                      : Tensor();
  };
  size_t left = kMostGrowth * bytes_of_constants(graph) + kFreeBytes;
  std::unordered_set<const Node*> dependent;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node* node = graph.nodes[i].get();
    if (depends_on_values(*node, dependent)) {
      dependent.insert(node);  // not even its shape is known
      continue;
    }
    if (!node->def || !node->def->evaluate || node->inputs.empty()) continue;
    std::vector<Tensor> values;
    if (node->is("ShapeOf")) {
      const Edge& input = node->inputs[0];
      const Shape& shape = input.node->shape(input.port);
      values = {Tensor::of(node->outputs[0].type, {static_cast<int64_t>(shape.size())}, shape)};
    } else {
      std::vector<Tensor> inputs;
      for (const Edge& input : node->inputs)
        if (Tensor value = value_of(input); !value.empty()) inputs.push_back(std::move(value));
      if (inputs.size() != node->inputs.size()) continue;
      const size_t bytes = bytes_of_outputs(*node);
      if (bytes > left) continue;
      left -= bytes;
      try {
        values = evaluate_node(*node, inputs);
      } catch (const Error& error) {
        throw Error(error.code(), label(*node) + ": " + error.what());
      }
    }
    std::unordered_set<int> used;  // of a node that may have very many outputs
    for (const Node* user : graph.users(node))
      for (const Edge& input : user->inputs)
        if (input.node == node) used.insert(input.port);
    for (size_t port = 0; port < values.size(); ++port) {
      if (!used.contains(static_cast<int>(port))) continue;
      Node* constant = graph.insert_constant(node, node->name, values[port]);
      constant->outputs[0].names = node->outputs[port].names;
      graph.replace_uses({node, static_cast<int>(port)}, {constant, 0});
      ++i;  // the node moved one place back
    }
  }
  graph.remove_dead();
}

}  // namespace clinfer
