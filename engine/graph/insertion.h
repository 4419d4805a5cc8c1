// Adds nodes to a graph: the one way in which passes, readers and tests do. An operation that is
// added has its definition and its shapes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/inference.h"

namespace clinfer {

class Insertion {
 public:
  using AttributeTexts = std::map<std::string, std::string>;  // by name, as Attributes::all()

  // Inserts right before `before` (nullptr: at the end). The new nodes are called `name`, or as
  // `before` is. `inference` infers their shapes and keeps values for later nodes; nullptr: each by
  // itself.
  Insertion(Graph& graph, const Node* before, std::string name, Inference* inference = nullptr)
      : graph_(graph), before_(before), name_(std::move(name)), inference_(inference) {}
  Insertion(Graph& graph, const Node* before) : Insertion(graph, before, before->name) {}

  // The edge is the operation's first output. Throws as infer_node_shapes() does, and
  // Error{unsupported} for an operation that does not exist.
  Edge op(const std::string& type, int opset, std::vector<Edge> inputs,
          const AttributeTexts& attributes = {}, size_t outputs = 1,
          std::vector<std::shared_ptr<const Body>> bodies = {});
  // A node like `node`, name and shapes included, with an id of its own.
  Node* copy(const Node& node);
  Edge constant(Tensor value);
  Edge floats(const Shape& shape, const std::vector<float>& values);
  Edge ints(const std::vector<int64_t>& values);  // of one dimension
  // They join the graph's lists of parameters and results.
  Edge parameter(ElementType type, const Shape& shape);
  Node* result(const Edge& edge);

 private:
  void infer(Node& node);

  Graph& graph_;
  const Node* const before_;
  const std::string name_;
  Inference* const inference_;
};

// The nodes as they are now: for walks that should not visit nodes they add themselves.
std::vector<Node*> nodes_of(const Graph& graph);

}  // namespace clinfer
