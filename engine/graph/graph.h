// The graph between the reader and the plan: nodes in topological order, edges by node and port.
// Passes rewrite it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

struct Node;

// Output `port` of `node`.
struct Edge {
  Node* node = nullptr;
  int port = 0;
  friend bool operator==(const Edge&, const Edge&) = default;
};

struct NodeOutput {
  ElementType type = ElementType::f32;
  Shape shape;
  std::vector<std::string> names;
  TensorDesc
      desc;  // memory layout, set by the layout pass; the offset counts from the start of `storage`
  Edge storage;  // whose memory this is: a null node for its own, else that output's (views, parts
                 // of a concat)
};

// Types "Parameter", "Result" and "Constant" are the graph's own; all others have a def.
struct Node {
  int id = 0;  // unique within the graph; the IR's layer id while it comes from there
  std::string name;
  std::string type;
  int opset = 1;
  Attributes attributes;
  const OpDef* def = nullptr;
  std::vector<Edge> inputs;
  std::vector<NodeOutput> outputs;
  Tensor constant;           // of a Constant
  std::vector<PostOp> tail;  // fused; operands are among inputs, from own_inputs on
  size_t own_inputs = 0;     // inputs of the operation itself (set by the fusion pass)
  // Of TensorIterator, Loop and If: GraphBody.
  std::vector<std::shared_ptr<const Body>> bodies = {};

  bool is(std::string_view t) const { return type == t; }
  const Shape& shape(int port = 0) const { return outputs[port].shape; }
};

// Owns its nodes. `nodes` is a topological order; passes keep it so.
class Graph {
 public:
  std::string name;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Node*> parameters;  // in the order of the file
  std::vector<Node*> results;     // in the order of the file

  // Inserts before `before` (nullptr: at the end) a new node with a fresh id.
  Node* insert(const Node* before, std::string type, std::string name);
  Node* insert_constant(const Node* before, std::string name, Tensor value);
  // All consumers of an edge, once per use.
  std::vector<Node*> users(const Edge& edge) const;
  std::vector<Node*> users(const Node* node) const;
  // Every use of `from` reads `to` instead.
  void replace_uses(const Edge& from, const Edge& to);
  // Removes nodes that no Result needs. Parameters stay.
  void remove_dead();
  // Sorts `nodes` topologically (stable); throws Error{bad_model} that names a node on a cycle.
  void sort();
  // Deep copy; constants share their data.
  std::unique_ptr<Graph> clone() const;
};

// The network inside a TensorIterator, Loop or If. Its graph's shapes are those that the file
// states
// (-1: open); infer_shapes and evaluate work on copies.
struct GraphBody final : Body {
  explicit GraphBody(std::unique_ptr<const Graph> graph);
  size_t node_count() const override { return graph_->nodes.size(); }
  size_t parameter_count() const override { return parameters_.size(); }
  const ValueInfo& parameter(size_t i) const override { return parameters_.at(i); }
  bool is_constant(size_t result) const override { return !varying_.contains(result); }
  std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> parameters) const override;
  std::vector<Tensor> evaluate(std::span<const Tensor> parameters) const override;
  // A copy with all shapes inferred, its nodes in the same order and with the same ids.
  std::unique_ptr<Graph> instance(std::span<const ValueInfo> parameters) const;

 private:
  std::unique_ptr<const Graph> graph_;
  std::vector<ValueInfo> parameters_;
  std::unordered_set<size_t> varying_;  // results that a parameter leads to
};

const Tensor* constant_value(const Edge& edge);  // of a Constant node, else nullptr
size_t own_inputs(const Node& node);  // inputs of the operation itself, without those of its tail

// Whether the node's shapes depend on values that only an inference has: an input comes from an
// operation that gives as many rows as it finds, or from one of the nodes in `dependent`.
bool depends_on_values(const Node& node, const std::unordered_set<const Node*>& dependent);

// Set element types and shapes of the outputs (floats are f32). Throw with the layer's name, type
// and opset in front. For one node: only Constant inputs have values. For a graph, in order: folds
// nothing, but where a shape depends on values that constants and shapes determine (a ShapeOf
// chain), or the values that `parameters` have, these are computed on the way, so that a re-batched
// graph can be inferred.
void infer_node_shapes(Node& node);
void infer_shapes(Graph& graph, std::span<const ValueInfo> parameters = {});

// OpDesc of a node: layouts from NodeOutput::desc where set, else the default of the op's
// LayoutRule.
OpDesc describe(const Node& node);

std::string to_dot(const Graph& graph);  // Graphviz

size_t bytes_of_outputs(const Node& node);  // each output dense, in its own type

// For messages: `layer "conv1" (Convolution, opset1, id 7)`.
std::string label(const Node& node);

}  // namespace clinfer
