// Describes nodes: as an OpDesc for kernels, and as a Graphviz drawing for people.

#include "engine/graph/graph.h"
#include "kernels/base/numbers.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

bool has_layout(const NodeOutput& output) {
  return output.desc.shape == output.shape && output.desc.strides.size() == output.shape.size();
}

// Returns the layout that `rule` asks for. Operations that take any layout get that of images.
TensorDesc default_layout(LayoutRule rule, bool is_output, const NodeOutput& tensor) {
  if (rule == LayoutRule::any_to_rows && !is_output) rule = LayoutRule::follow;
  return has_channels_last(rule, tensor.shape)
             ? TensorDesc::channels_last(tensor.type, tensor.shape)
             : TensorDesc::row_major(tensor.type, tensor.shape);
}

std::string tensor_text(const NodeOutput& output) {
  std::string text = std::string(name_of(output.type)) + to_string(output.shape);
  if (has_layout(output) && !output.desc.is_row_major())
    text += output.desc.is_channels_last() ? " channels-last"
                                           : " strides " + to_string(output.desc.strides) + "+" +
                                                 std::to_string(output.desc.offset);
  return text;
}

}  // namespace

OpDesc describe(const Node& node) {
  OpDesc desc;
  desc.name = node.name;
  desc.type = node.type;
  desc.opset = node.opset;
  desc.attributes = node.attributes;
  const LayoutRule rule = node.def ? node.def->layout : LayoutRule::row_major;
  for (const Edge& input : node.inputs) {
    const NodeOutput& tensor = input.node->outputs[input.port];
    const Tensor* constant = constant_value(input);
    if (has_layout(tensor)) {
      desc.inputs.push_back(tensor.desc);
      desc.inputs.back().type = tensor.type;
    } else if (constant) {
      desc.inputs.push_back(TensorDesc::row_major(tensor.type, tensor.shape));
    } else {
      desc.inputs.push_back(default_layout(rule, false, tensor));
    }
    desc.constants.push_back(constant ? *constant : Tensor());
  }
  for (const NodeOutput& output : node.outputs) {
    desc.outputs.push_back(has_layout(output) ? output.desc : default_layout(rule, true, output));
    desc.outputs.back().type = output.type;
  }
  desc.tail = node.tail;
  desc.own_inputs = own_inputs(node);
  desc.bodies = node.bodies;
  desc.custom = node.custom;
  return desc;
}

std::string to_dot(const Graph& graph,
                   const std::function<std::vector<std::string>(const Node&)>& more) {
  PlainStream dot;
  dot << "digraph \"" << quoted_line(graph.name)
      << "\" {\n  node [shape=box, fontname=\"sans\"];\n";
  for (const auto& node : graph.nodes()) {
    dot << "  n" << node->id << " [label=\"" << quoted_line(printable(node->name)) << "\\n"
        << quoted_line(printable(node->type));
    if (node->def) dot << "-" << node->opset;
    for (const PostOp& op : node->tail) dot << "\\n+ " << op.function;
    for (const NodeOutput& output : node->outputs) dot << "\\n" << tensor_text(output);
    std::string fused;
    for (const std::string& name : fused_layers(graph, *node))
      fused += (fused.empty() ? "fused: " : ", ") + name;
    if (!fused.empty()) dot << "\\n" << quoted_line(printable(fused));
    if (more)
      for (const std::string& line : more(*node)) dot << "\\n" << quoted_line(printable(line));
    dot << "\"";
    if (node->is("Parameter") || node->is("Result")) dot << ", shape=ellipse, color=blue";
    if (node->is("Constant")) dot << ", color=gray, fontcolor=gray40";
    dot << "];\n";
  }
  for (const auto& node : graph.nodes())
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Edge& input = node->inputs[i];
      dot << "  n" << input.node->id << " -> n" << node->id << " [label=\"" << input.port << ":"
          << i << "\"];\n";
    }
  dot << "}\n";
  return dot.str();
}

}  // namespace clinfer
