// Builds small graphs in tests.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/insertion.h"

namespace clinfer::test {

inline size_t count_of(const Graph& graph, const std::string& type) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [&](const auto& n) { return n->is(type); }));
}

// The first node of a type, or nullptr.
inline Node* find(const Graph& graph, const std::string& type) {
  for (const auto& node : graph.nodes())
    if (node->is(type)) return node.get();
  return nullptr;
}

// Adds to the end of its own graph. Nodes are called in0, in1, ..., out0, ..., and by their type.
class GraphBuilder {
 public:
  Edge parameter(const Shape& shape, ElementType type = ElementType::f32) {
    return add("in" + std::to_string(graph_->parameters.size())).parameter(type, shape);
  }
  Edge constant(const Tensor& value) { return add("constant").constant(value); }
  Edge number(float value, const Shape& shape = {}) {
    return constant(Tensor::of<float>(ElementType::f32, shape, {value}));
  }
  Edge ints(const std::vector<int64_t>& values) { return add("constant").ints(values); }
  Edge op(const std::string& type, int opset, std::vector<Edge> inputs,
          const std::map<std::string, std::string>& attributes = {}, size_t outputs = 1) {
    return add(type + std::to_string(graph_->nodes().size()))
        .op(type, opset, std::move(inputs), attributes, outputs);
  }
  void result(const Edge& edge) {
    add("out" + std::to_string(graph_->results.size())).result(edge);
  }
  Graph& graph() { return *graph_; }
  std::unique_ptr<Graph> finish() { return std::move(graph_); }

 private:
  Insertion add(std::string name) { return {*graph_, nullptr, std::move(name)}; }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
};

}  // namespace clinfer::test
