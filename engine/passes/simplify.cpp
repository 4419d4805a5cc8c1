// Removes operations whose output is their input: conversions to the same type, reshapes to the same shape, identity
// transposes, concats of one.
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

bool is_identity(const Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1) return false;
  const NodeOutput& in = node.inputs[0].node->outputs[node.inputs[0].port];
  const NodeOutput& out = node.outputs[0];
  if (in.type != out.type || in.shape != out.shape) return false;
  if (node.is("Convert") || node.is("ConvertLike") || node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze"))
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

}  // namespace

void simplify(Graph& graph, const PassContext&) {
  for (const auto& node : graph.nodes)
    if (is_identity(*node)) graph.replace_uses({node.get(), 0}, node->inputs[0]);
  graph.remove_dead();
}

}  // namespace clinfer
