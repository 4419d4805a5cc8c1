// The graph between the reader and the plan: nodes in topological order, edges by node and port.
// Passes rewrite it through Insertion (insertion.h). Each edit takes constant time: the graph keeps
// its nodes in a list, and each node knows its users.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

struct Node;

// An output of a node, by its port number.
struct Edge {
  Node* node = nullptr;
  int port = 0;
  friend bool operator==(const Edge&, const Edge&) = default;
};

struct NodeOutput {
  ElementType type = ElementType::f32;
  Shape shape;
  std::vector<std::string> names;
  // The memory layout, which the layout pass sets. Its offset counts from the start of `storage`.
  TensorDesc desc;
  // The output in whose memory this one lies (views, parts of a concat). A null node: it has its
  // own memory.
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
  std::vector<uint32_t> places_;  // position of each use in the producer's list of uses
  Node* owner_ = nullptr;         // nullptr while the node is in no graph
};

// A node. Types "Parameter", "Result" and "Constant" are the graph's own; all others have a def. A
// copy of a node belongs to no graph. Assigning to a node leaves it at its position, with its
// users.
struct Node {
  int id = 0;  // unique within the graph; for nodes of an IR file, the layer's id there
  std::string name;
  std::string type;
  int opset = 1;
  Attributes attributes;
  const OpDef* def = nullptr;
  Inputs inputs;
  std::vector<NodeOutput> outputs;
  Tensor constant;  // value, if this is a Constant
  // Fused operations; their operands are the inputs from index own_inputs on.
  std::vector<PostOp> tail;
  size_t own_inputs = 0;  // number of the operation's own inputs; set by the fusion pass
  // The bodies of TensorIterator, Loop and If (GraphBody).
  std::vector<std::shared_ptr<const Body>> bodies = {};
  // A layer's use of a kernel of the user. Its def is custom_op().
  std::shared_ptr<const CustomUse> custom = {};
  // The model's layers that this node computes, as indices into Graph::layers, unordered.
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
    uint64_t order = 0;                  // ascends along the list of nodes
    std::vector<std::vector<Use>> uses;  // by output; unordered
    bool needed = false;                 // only used by remove_dead()
    // The last node that lost its edge from here; valid while this node has no users.
    Node* last_reader = nullptr;
  };
  Membership graph_;
};

// A network, which owns its nodes. They are in topological order, which passes must keep.
class Graph {
 public:
  using Nodes = std::list<std::unique_ptr<Node>>;

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::vector<Node*> parameters;  // in the order of the file
  std::vector<Node*> results;     // in the order of the file
  // Values of states (states.h) after a reset, by name; zeros where there is none. Graphs in the
  // cache do not have them.
  std::map<std::string, Tensor> initial_states;

  // The model's layers, filled by note_layers().
  struct Layer {
    std::string name, type;
  };
  std::vector<Layer> layers;
  // From now on each node keeps a list of the layers that it computes, at first its own.
  // replace_uses() passes the list on to the replacement. A node that loses its last reader without
  // being replaced was made part of that reader, and its layers become the reader's.
  void note_layers();

  // The nodes in topological order. A walk does not visit nodes that are inserted in front of the
  // current one.
  const Nodes& nodes() const { return nodes_; }

  // Inserts a new node with a fresh id before `before` (nullptr: at the end).
  Node* insert(const Node* before, std::string type, std::string name);
  // Adds a finished node, which keeps its id, at the end.
  Node* append(std::unique_ptr<Node> node);
  // Returns the next node in topological order, or nullptr at the end.
  Node* next(const Node* node) const;
  bool is_before(const Node* a, const Node* b) const { return a->graph_.order < b->graph_.order; }
  // Moves a node to the position right after `other`.
  void move_after(Node* node, const Node* other);

  // Return all readers of an edge or a node in the order of the nodes, once per use.
  std::vector<Node*> users(const Edge& edge) const;
  std::vector<Node*> users(const Node* node) const;
  size_t use_count(const Edge& edge) const;
  bool has_users(const Node* node) const;
  // Returns the node that reads this value, if there is exactly one use; else nullptr.
  Node* only_user(const Edge& edge) const;

  // Makes every reader of `from` read `to` instead.
  void replace_uses(const Edge& from, const Edge& to);
  // Removes the node's inputs, so that its producers lose a user. The node must have no users;
  // remove_dead() then removes it.
  void disconnect(Node* node) { node->inputs = {}; }
  // Removes nodes that no Result needs, but no Parameters.
  void remove_dead();
  // Sorts the nodes topologically (stable). Throws Error{bad_model}, which names a node on the
  // cycle, if there is one.
  void sort();
  // Returns a deep copy, which shares the data of constants.
  std::unique_ptr<Graph> clone() const;

 private:
  Node* add(Nodes::iterator before, std::unique_ptr<Node> node);
  void set_order(Nodes::iterator at);
  void make_room(Nodes::iterator at);

  Nodes nodes_;
  int last_id_ = -1;  // the largest id so far
};

// The network inside a TensorIterator, Loop or If. Its graph has the shapes that the file states
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
  // Returns a copy with all shapes inferred, its nodes in the same order and with the same ids.
  std::unique_ptr<Graph> instance(std::span<const ValueInfo> parameters) const;

 private:
  std::unique_ptr<const Graph> graph_;
  std::vector<ValueInfo> parameters_;
  std::unordered_set<size_t> varying_;  // indices of results that depend on a parameter
};

const Tensor* constant_value(const Edge& edge);  // the value of a Constant node, else nullptr
// Returns the output that owns the memory in which this one lies.
Edge storage_root(Edge edge);
// Returns whether the node only changes the shape (Reshape, Squeeze, Unsqueeze).
bool reshapes(const Node& node);
// Number of the operation's own inputs, without those of its tail.
size_t own_inputs(const Node& node);

// Returns whether the node's shapes depend on values that only an inference has: one of its inputs
// comes from an operation that gives as many rows as it finds, or from one of the nodes in
// `dependent`.
bool depends_on_values(const Node& node, const std::unordered_set<const Node*>& dependent);

// Set element types and shapes of the outputs (floats are f32). Throw with the layer's name, type
// and opset in front. infer_node_shapes() knows the values of Constant inputs only. infer_shapes()
// goes through the graph in order and folds nothing, but where a shape depends on values that
// follow from constants, shapes (a ShapeOf chain) or the values of `parameters`, it computes these,
// too, so that a graph can be inferred for another batch.
void infer_node_shapes(Node& node);
void infer_shapes(Graph& graph, std::span<const ValueInfo> parameters = {});

// Returns the OpDesc of a node. Layouts come from NodeOutput::desc if it is set, else from the
// default of the operation's LayoutRule.
OpDesc describe(const Node& node);

// Returns the graph in Graphviz's format. `more` returns further lines of a node, for example its
// kernel.
std::string to_dot(const Graph& graph,
                   const std::function<std::vector<std::string>(const Node&)>& more = {});
// Returns the names of the layers that the node computes, without its own name and without
// constants.
std::vector<std::string> fused_layers(const Graph& graph, const Node& node);

// Returns whether a user's kernel computes the node, or a node inside of it. Such a node has no
// version for the host.
bool is_custom(const Node& node);

size_t bytes_of_outputs(const Node& node);  // assumes dense outputs in their own types

// Names a node in messages: `layer "conv1" (Convolution, opset1, id 7)`.
std::string label(const Node& node);

}  // namespace clinfer
