// Removes operations whose output is their input: conversions to the same type, reshapes to the
// same shape, identity transposes, concats of one. Drops outputs that nothing reads from operations
// that can leave them out.
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

bool is_identity(const Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1) return false;
  const NodeOutput& in = node.inputs[0].node->outputs[node.inputs[0].port];
  const NodeOutput& out = node.outputs[0];
  if (in.type != out.type || in.shape != out.shape) return false;
  if (node.is("Convert") || node.is("ConvertLike") || node.is("Reshape") || node.is("Squeeze") ||
      node.is("Unsqueeze"))
    return true;
  if (node.is("Concat")) return node.inputs.size() == 1;
  if (node.is("Transpose")) {
    const Tensor* order = constant_value(node.inputs[1]);
    if (!order || order->elements() == 0) return order && in.shape.size() <= 1;
    const std::vector<int64_t> axes = order->to_ints();
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i] != static_cast<int64_t>(i)) return false;
    return true;
  }
  return false;
}

// The indices of a MaxPool, say: shapes inferred for one output less must come out as one less.
void drop_unread_outputs(const Graph& graph, Node& node) {
  while (node.def && node.outputs.size() > 1 &&
         graph.users({&node, static_cast<int>(node.outputs.size()) - 1}).empty()) {
    Node trial = node;
    trial.outputs.pop_back();
    try {
      infer_node_shapes(trial);
    } catch (const Error&) {
      return;
    }
    if (trial.outputs.size() == node.outputs.size()) return;
    node.outputs.pop_back();
  }
}

}  // namespace

void simplify(Graph& graph, const PassContext&) {
  for (const auto& node : graph.nodes)
    if (is_identity(*node)) graph.replace_uses({node.get(), 0}, node->inputs[0]);
  graph.remove_dead();
  for (const auto& node : graph.nodes) drop_unread_outputs(graph, *node);
}

}  // namespace clinfer
