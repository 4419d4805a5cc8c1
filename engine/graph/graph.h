// The graph between the reader and the plan: nodes in topological order, edges by node and port.
// Passes rewrite it through Insertion (insertion.h). Each edit takes constant time: the graph keeps
// its nodes in a list, and each node knows its users.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
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
  // Memory layout, set by the layout pass. The offset counts from the start of `storage`.
  TensorDesc desc;
  // The output in whose memory this one lies (views, parts of a concat); a null node: its own.
  Edge storage;
};

// The edges that a node reads. Once the node is in a graph, every change updates the users of the
// producers. A copy belongs to no graph.
class Inputs {
 public:
  Inputs() = default;
  Inputs(const Inputs& other) : edges_(other.edges_) {}
  Inputs& operator=(const Inputs& other) { return *this = std::vector<Edge>(other.edges_); }
  Inputs& operator=(std::vector<Edge> edges);
  Inputs& operator=(std::initializer_list<Edge> edges) { return *this = std::vector<Edge>(edges); }
  void set(size_t i, const Edge& edge);
  void push_back(const Edge& edge);

  const Edge& operator[](size_t i) const { return edges_[i]; }
  const Edge& at(size_t i) const { return edges_.at(i); }
  size_t size() const { return edges_.size(); }
  bool empty() const { return edges_.empty(); }
  auto begin() const { return edges_.begin(); }
  auto end() const { return edges_.end(); }
  operator const std::vector<Edge>&() const { return edges_; }

 private:
  friend class Graph;
  void register_use(size_t i);
  void remove_use(size_t i);

  std::vector<Edge> edges_;
  std::vector<uint32_t> places_;  // of each use in the producer's list of uses
  Node* owner_ = nullptr;         // the node in the graph; nullptr: in no graph
};

// Types "Parameter", "Result" and "Constant" are the graph's own; all others have a def. A copy of
// a node belongs to no graph; assigning to a node leaves it at its position, with its users.
struct Node {
  int id = 0;  // unique within the graph; the IR's layer id where the node comes from there
  std::string name;
  std::string type;
  int opset = 1;
  Attributes attributes;
  const OpDef* def = nullptr;
  Inputs inputs;
  std::vector<NodeOutput> outputs;
  Tensor constant;           // of a Constant
  std::vector<PostOp> tail;  // fused operations; their operands are the inputs from own_inputs on
  size_t own_inputs = 0;     // inputs of the operation itself (set by the fusion pass)
  // The bodies of TensorIterator, Loop and If (GraphBody).
  std::vector<std::shared_ptr<const Body>> bodies = {};
  // The use of a layer that a user's kernel computes; its def is custom_op().
  std::shared_ptr<const CustomUse> custom = {};
  // The layers of the model that this node computes, as numbers in Graph::layers; in no order.
  std::vector<int> computes = {};

  bool is(std::string_view t) const { return type == t; }
  const Shape& shape(int port = 0) const { return outputs[port].shape; }

 private:
  friend class Graph;
  friend class Inputs;
  struct Use {
    Node* reader;
    uint32_t input;
  };
  struct Membership {
    Membership() = default;
    Membership(const Membership&) {}
    Membership& operator=(const Membership&) { return *this; }
    std::list<std::unique_ptr<Node>>::iterator place;
    uint64_t order = 0;                  // ascends along the list
    std::vector<std::vector<Use>> uses;  // by output, in no order
    bool needed = false;                 // used by remove_dead() alone
    Node* last_reader = nullptr;  // that lost its edge from here; valid while this has no users
  };
  Membership graph_;
};

// Owns its nodes. They are in topological order, which passes keep.
class Graph {
 public:
  using Nodes = std::list<std::unique_ptr<Node>>;

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::vector<Node*> parameters;  // in the order of the file
  std::vector<Node*> results;     // in the order of the file

  // The layers of the model, by name and type, once note_layers() was called.
  struct Layer {
    std::string name, type;
  };
  std::vector<Layer> layers;
  // Lets nodes know from now on which layers they compute: each its own. replace_uses() hands on
  // what a node computed; a node that loses its last reader, and has no replacement, was made part
  // of that reader.
  void note_layers();

  // A node inserted in front of the current one during a walk is not visited.
  const Nodes& nodes() const { return nodes_; }

  // Inserts before `before` (nullptr: at the end) a new node with a fresh id.
  Node* insert(const Node* before, std::string type, std::string name);
  // Adds a finished node with its own id at the end.
  Node* append(std::unique_ptr<Node> node);
  // The node that follows, or nullptr at the end.
  Node* next(const Node* node) const;
  bool is_before(const Node* a, const Node* b) const { return a->graph_.order < b->graph_.order; }
  // Moves a node to the position right after another.
  void move_after(Node* node, const Node* other);

  // All readers of an edge or a node in the order of the nodes, once per use.
  std::vector<Node*> users(const Edge& edge) const;
  std::vector<Node*> users(const Node* node) const;
  size_t use_count(const Edge& edge) const;
  bool has_users(const Node* node) const;
  // The node that reads this value, if exactly one does, once; else nullptr.
  Node* only_user(const Edge& edge) const;

  // Every use of `from` reads `to` instead.
  void replace_uses(const Edge& from, const Edge& to);
  // The node reads nothing any more, so its producers lose a user. It must have no users itself:
  // remove_dead() then removes it.
  void disconnect(Node* node) { node->inputs = {}; }
  // Removes nodes that no Result needs. Parameters stay.
  void remove_dead();
  // Sorts the nodes topologically (stable); throws Error{bad_model} that names a node on a cycle.
  void sort();
  // Deep copy; constants share their data.
  std::unique_ptr<Graph> clone() const;

 private:
  Node* add(Nodes::iterator before, std::unique_ptr<Node> node);
  void set_order(Nodes::iterator at);
  void make_room(Nodes::iterator at);

  Nodes nodes_;
  int last_id_ = -1;  // the largest
};

// The network inside a TensorIterator, Loop or If. Its graph's shapes are those that the file
// states
// (-1: open); infer_shapes and evaluate work on copies.
struct GraphBody final : Body {
  explicit GraphBody(std::unique_ptr<const Graph> graph);
  size_t node_count() const override { return graph_->nodes().size(); }
  size_t parameter_count() const override { return parameters_.size(); }
  const ValueInfo& parameter(size_t i) const override { return parameters_.at(i); }
  bool is_constant(size_t result) const override { return !varying_.contains(result); }
  std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> parameters) const override;
  std::vector<Tensor> evaluate(std::span<const Tensor> parameters) const override;
  const Graph& graph() const { return *graph_; }
  // A copy with all shapes inferred, its nodes in the same order and with the same ids.
  std::unique_ptr<Graph> instance(std::span<const ValueInfo> parameters) const;

 private:
  std::unique_ptr<const Graph> graph_;
  std::vector<ValueInfo> parameters_;
  std::unordered_set<size_t> varying_;  // results that a parameter leads to
};

const Tensor* constant_value(const Edge& edge);  // of a Constant node, else nullptr
// The output that owns the memory in which this one lies.
Edge storage_root(Edge edge);
// Reshape, Squeeze and Unsqueeze: another shape for the elements in their order.
bool reshapes(const Node& node);
size_t own_inputs(const Node& node);  // inputs of the operation itself, without those of its tail

// Returns whether the node's shapes depend on values that only an inference has: an input comes
// from an operation that gives as many rows as it finds, or from one of the nodes in `dependent`.
bool depends_on_values(const Node& node, const std::unordered_set<const Node*>& dependent);

// Set element types and shapes of the outputs (floats are f32). Throw with the layer's name, type
// and opset in front. For one node: only Constant inputs have values. For a graph, in order: folds
// nothing, but where a shape depends on values that constants and shapes determine (a ShapeOf
// chain), or the values that `parameters` have, these are computed too, so that a re-batched graph
// can be inferred.
void infer_node_shapes(Node& node);
void infer_shapes(Graph& graph, std::span<const ValueInfo> parameters = {});

// OpDesc of a node: layouts from NodeOutput::desc where set, else the default of the op's
// LayoutRule.
OpDesc describe(const Node& node);

// Graphviz. `more` gives further lines of a node: its kernel, for example.
std::string to_dot(const Graph& graph,
                   const std::function<std::vector<std::string>(const Node&)>& more = {});
// Names of the layers that the node computes, without its own and without constants.
std::vector<std::string> fused_layers(const Graph& graph, const Node& node);

// Returns whether a user's kernel computes the node, or one inside it. Such a node has no version
// for the host.
bool is_custom(const Node& node);

size_t bytes_of_outputs(const Node& node);  // each output dense, in its own type

// Names a node in messages: `layer "conv1" (Convolution, opset1, id 7)`.
std::string label(const Node& node);

}  // namespace clinfer
