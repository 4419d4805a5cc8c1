// Nodes, appended in a topological order.
#include "engine/onnx/graph_writer.h"

#include <charconv>

namespace clinfer {

namespace {

constexpr int kMostNodes = 1 << 18;  // functions inside functions can ask for any number

template <typename List, typename Text>
std::string joined(const List& values, Text&& text) {
  std::string list;
  for (const auto value : values) list += (list.empty() ? "" : ",") + text(value);
  return list;
}

}  // namespace

std::string text_of(double value) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

std::string text_of(const std::vector<int64_t>& values) {
  return joined(values, [](int64_t value) { return std::to_string(value); });
}

std::string text_of(const std::vector<float>& values) {
  return joined(values, [](float value) {
    char buffer[64];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  });
}

Node* GraphWriter::append(const std::string& name, const std::string& type) {
  if (next_id_ >= kMostNodes)
    throw Error(ErrorCode::unsupported,
                "the model would have more than " + std::to_string(kMostNodes) + " operations");
  auto node = std::make_unique<Node>();
  node->id = next_id_++;
  node->name = name;
  node->type = type;
  return graph_->append(std::move(node));
}

Edge GraphWriter::parameter(const std::string& name, ElementType type, const Shape& shape,
                            Tensor value) {
  Node* node = append(name, "Parameter");
  node->outputs.resize(1);
  node->outputs[0].type = type;
  node->outputs[0].shape = shape;
  graph_->parameters.push_back(node);
  inference_.infer(*node);
  if (!value.empty()) inference_.set_value(*node, std::move(value));
  return {node, 0};
}

Edge GraphWriter::constant(const std::string& name, Tensor value) {
  Node* node = append(name, "Constant");
  node->constant = std::move(value);
  inference_.infer(*node);
  return {node, 0};
}

Edge GraphWriter::add(const std::string& name, const std::string& type, int opset,
                      std::vector<Edge> inputs, const AttributePairs& attributes, size_t outputs,
                      std::vector<std::shared_ptr<const Body>> bodies) {
  Node* node = append(name, type);
  node->opset = opset;
  for (const auto& [key, value] : attributes) node->attributes.set(key, value);
  node->def = find_op(type, opset);
  if (!node->def)
    throw Error(ErrorCode::unsupported, "needs " + type + "-" + std::to_string(opset));
  node->inputs = std::move(inputs);
  node->outputs.resize(outputs);
  node->bodies = std::move(bodies);
  inference_.infer(*node);
  return {node, 0};
}

void GraphWriter::result(const std::string& name, const Edge& value) {
  Node* node = append(name, "Result");
  node->inputs = {value};
  inference_.infer(*node);
  graph_->results.push_back(node);
}

Tensor GraphWriter::known(const Edge& edge) {
  if (const Tensor* constant = constant_value(edge)) return *constant;
  return inference_.value(edge);
}

std::unique_ptr<Graph> GraphWriter::finish() {
  graph_->remove_dead();
  return std::move(graph_);
}

}  // namespace clinfer
