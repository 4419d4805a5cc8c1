// Adds nodes to a graph.
#include "engine/graph/insertion.h"

namespace clinfer {

Edge Insertion::op(const std::string& type, int opset, std::vector<Edge> inputs,
                   const AttributeTexts& attributes, size_t outputs,
                   std::vector<std::shared_ptr<const Body>> bodies) {
  const OpDef* def = find_op(type, opset);
  if (!def)
    throw Error(ErrorCode::unsupported,
                "there is no operation " + type + " of opset" + std::to_string(opset));
  Node* node = graph_.insert(before_, type, name_);
  node->opset = opset;
  node->def = def;
  node->inputs = std::move(inputs);
  node->outputs.resize(outputs);
  node->bodies = std::move(bodies);
  for (const auto& [key, value] : attributes) node->attributes.set(key, value);
  infer(*node);
  return {node, 0};
}

Node* Insertion::copy(const Node& node) {
  Node* twin = graph_.insert(before_, node.type, node.name);
  const int id = twin->id;
  *twin = node;
  twin->id = id;
  return twin;
}

Edge Insertion::constant(Tensor value) {
  Node* node = graph_.insert(before_, "Constant", name_);
  node->constant = std::move(value);
  infer(*node);
  return {node, 0};
}

Edge Insertion::floats(const Shape& shape, const std::vector<float>& values) {
  return constant(Tensor::of(ElementType::f32, shape, values));
}

Edge Insertion::ints(const std::vector<int64_t>& values) {
  return constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
}

Edge Insertion::parameter(ElementType type, const Shape& shape) {
  Node* node = graph_.insert(before_, "Parameter", name_);
  node->outputs.resize(1);
  node->outputs[0].type = type;
  node->outputs[0].shape = shape;
  graph_.parameters.push_back(node);
  if (inference_) inference_->infer(*node);
  return {node, 0};
}

Node* Insertion::result(const Edge& edge) {
  Node* node = graph_.insert(before_, "Result", name_);
  node->inputs = {edge};
  if (inference_) inference_->infer(*node);
  graph_.results.push_back(node);
  return node;
}

void Insertion::infer(Node& node) {
  if (inference_)
    inference_->infer(node);
  else
    infer_node_shapes(node);
}

std::vector<Node*> nodes_of(const Graph& graph) {
  std::vector<Node*> nodes;
  nodes.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  return nodes;
}

}  // namespace clinfer
