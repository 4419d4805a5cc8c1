// Builds small graphs in tests.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer::test {

inline size_t count_of(const Graph& graph, const std::string& type) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                           [&](const auto& n) { return n->is(type); }));
}

class GraphBuilder {
 public:
  Edge parameter(const Shape& shape, ElementType type = ElementType::f32) {
    Node* node =
        graph_->insert(nullptr, "Parameter", "in" + std::to_string(graph_->parameters.size()));
    node->outputs = {{type, shape, {}, {}, {}}};
    graph_->parameters.push_back(node);
    return {node, 0};
  }
  Edge constant(const Tensor& value) {
    return {graph_->insert_constant(nullptr, "constant", value), 0};
  }
  Edge op(const std::string& type, int opset, std::initializer_list<Edge> inputs,
          std::initializer_list<std::pair<const char*, const char*>> attributes = {},
          size_t outputs = 1) {
    Node* node = graph_->insert(nullptr, type, type + std::to_string(graph_->nodes.size()));
    node->opset = opset;
    node->def = find_op(type, opset);
    if (!node->def) throw Error(ErrorCode::unsupported, "no " + type);
    node->inputs = inputs;
    node->outputs.resize(outputs);
    for (const auto& [name, value] : attributes) node->attributes.set(name, value);
    infer_node_shapes(*node);
    return {node, 0};
  }
  void result(const Edge& edge) {
    Node* node = graph_->insert(nullptr, "Result", "out" + std::to_string(graph_->results.size()));
    node->inputs = {edge};
    graph_->results.push_back(node);
  }
  std::unique_ptr<Graph> finish() { return std::move(graph_); }

 private:
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
};

}  // namespace clinfer::test
