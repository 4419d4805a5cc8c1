// Adds nodes to a graph, with definition and shapes. Passes, readers and tests add nodes in this
// way only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/inference.h"

namespace clinfer {

class Insertion {
 public:
  using AttributeTexts = std::map<std::string, std::string>;  // by name, as in Attributes::all()

  // Inserts right before `before` (nullptr: at the end). New nodes are called `name` (or like
  // `before`). `inference` infers their shapes and keeps values for later nodes; with nullptr each
  // node is inferred by itself.
  Insertion(Graph& graph, const Node* before, std::string name, Inference* inference = nullptr)
      : graph_(graph), before_(before), name_(std::move(name)), inference_(inference) {}
  Insertion(Graph& graph, const Node* before) : Insertion(graph, before, before->name) {}

  // Adds an operation and returns its first output. Throws as infer_node_shapes() does, and
  // Error{unsupported} if there is no such operation.
  Edge op(const std::string& type, int opset, std::vector<Edge> inputs,
          const AttributeTexts& attributes = {}, size_t outputs = 1,
          std::vector<std::shared_ptr<const Body>> bodies = {});
  // Adds a copy of `node`, including name and shapes, with a new id.
  Node* copy(const Node& node);
  Edge constant(Tensor value);
  Edge floats(const Shape& shape, const std::vector<float>& values);
  Edge ints(const std::vector<int64_t>& values);  // makes a list
  // Add to the graph's lists of parameters and results.
  Edge parameter(ElementType type, const Shape& shape);
  Node* result(const Edge& edge);

 private:
  void infer(Node& node);

  Graph& graph_;
  const Node* const before_;
  const std::string name_;
  Inference* const inference_;
};

// Returns the nodes as they are now, for walks that must not visit nodes that they add.
std::vector<Node*> nodes_of(const Graph& graph);

}  // namespace clinfer
