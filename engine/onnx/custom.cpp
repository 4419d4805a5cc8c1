// Writes nodes that a user's own kernel computes.
#include "engine/onnx/graph_reader.h"

namespace clinfer {

namespace {

// Returns an attribute as a model's XML file would have it; nullopt for types that have no such
// text.
std::optional<std::string> attribute_text(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return std::to_string(attribute.i());
    case onnx::AttributeProto::FLOAT:
      return text_of(std::vector<float>{attribute.f()});
    case onnx::AttributeProto::STRING:
      return attribute.s();
    case onnx::AttributeProto::INTS:
      return text_of(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return text_of(std::vector<float>(attribute.floats().begin(), attribute.floats().end()));
    default:
      return {};
  }
}

}  // namespace

void GraphReader::note_shapes(const onnx::GraphProto& graph) {
  for (const auto* list : {&graph.value_info(), &graph.output()})
    for (const onnx::ValueInfoProto& info : *list) {
      const auto& tensor = info.type().tensor_type();
      if (!tensor.has_shape()) continue;
      Shape shape;
      for (const auto& dim : tensor.shape().dim())
        shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
      stated_shapes_[info.name()] = std::move(shape);
    }
}

std::vector<Edge> GraphReader::read_custom(const onnx::NodeProto& node,
                                           const std::vector<Edge>& inputs,
                                           const OnnxNode::Attributes& attributes,
                                           std::shared_ptr<const CustomLayer> layer) {
  std::vector<CustomUse::Stated> stated_inputs, stated_outputs;
  for (const Edge& input : inputs) {
    if (!input.node) unsupported_node("a custom layer cannot leave out an input");
    const NodeOutput& value = input.node->outputs[input.port];
    stated_inputs.push_back({value.shape, value.type});
  }
  for (const std::string& name : node.output()) {
    const auto found = stated_shapes_.find(name);
    stated_outputs.push_back(
        {found == stated_shapes_.end() ? std::nullopt : std::optional(found->second), {}});
  }
  AttributePairs texts;
  for (const auto& [name, attribute] : attributes)
    if (auto text = attribute_text(*attribute)) texts.emplace_back(name.c_str(), std::move(*text));
  const std::string name =
      node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  Node* made = writer_.custom(name, node.op_type(), std::move(layer), inputs, texts,
                              std::move(stated_inputs), std::move(stated_outputs));
  std::vector<Edge> outputs;
  for (int i = 0; i < node.output_size(); ++i) outputs.push_back({made, i});
  return outputs;
}

}  // namespace clinfer
