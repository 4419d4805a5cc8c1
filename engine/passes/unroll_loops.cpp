// Writes the bodies of loops out: once per iteration of a TensorIterator or Loop that runs a known
// number of times, once for the branch of an If whose condition is constant. States and slices
// become edges and views. Loops that would grow too long stay, and run as loops.
#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

constexpr int64_t kMostNodes = 4096;       // that one loop may become
constexpr int64_t kMostWritten = 1 << 14;  // that all may become, those inside of others too

// What is to be written instead of a node: the body of each iteration with its shapes.
struct Iterations {
  const GraphBody* body;
  std::vector<std::unique_ptr<Graph>> graphs;
};

class Unroller {
 public:
  Unroller(Graph& graph, Node* node, const GraphBody& body)
      : graph_(graph), node_(node), body_(body) {
    for (const auto& other : graph.nodes) next_id_ = std::max(next_id_, other->id + 1);
  }

  void write_out(const std::vector<std::unique_ptr<Graph>>& iterations) {
    std::vector<Edge> parameters(body_.parameter_count());
    for (const Body::Port& port : body_.inputs)
      if (!port.sliced) parameters[port.inner] = as_stated(node_->inputs[port.outer], port.inner);

    std::vector<Edge> results;
    std::vector<std::vector<Edge>> parts(body_.outputs.size());
    const auto count = static_cast<int64_t>(iterations.size());
    for (int64_t i = 0; i < count; ++i) {
      for (const Body::Port& port : body_.inputs)
        if (port.sliced) parameters[port.inner] = as_stated(slice(port, i), port.inner);
      if (body_.counter)
        parameters[*body_.counter] = constant(number_of(body_.parameter(*body_.counter), i));
      results = iteration(*iterations[static_cast<size_t>(i)], parameters, i);
      for (size_t k = 0; k < parts.size(); ++k) parts[k].push_back(results[body_.outputs[k].inner]);
      for (const Body::BackEdge& edge : body_.back_edges)
        parameters[edge.parameter] = results[edge.result];
    }
    std::vector<std::pair<Edge, Edge>> replaced;
    for (size_t k = 0; k < parts.size(); ++k) {
      const Body::Port& port = body_.outputs[k];
      const Edge output{node_, static_cast<int>(port.outer)};
      if (port.sliced) {
        if (port.stride < 0) std::reverse(parts[k].begin(), parts[k].end());
        replaced.emplace_back(output, together(port, parts[k]));
      } else if (count > 0) {
        replaced.emplace_back(output, results[port.inner]);
      } else {  // a state is what it was; nothing else has a value
        const auto state =
            std::find_if(body_.back_edges.begin(), body_.back_edges.end(),
                         [&](const Body::BackEdge& edge) { return edge.result == port.inner; });
        replaced.emplace_back(output, state != body_.back_edges.end() ? parameters[state->parameter]
                                                                      : together(port, {}));
      }
    }
    // Shapes may vary from one iteration to the next, and layers behind have been told of one.
    for (const auto& [from, to] : replaced)
      if (to.node->shape(to.port) != from.node->shape(from.port))
        throw Error(ErrorCode::unsupported, label(*node_) + ": its output was to have the shape " +
                                                to_string(from.node->shape(from.port)) +
                                                ", and comes out as " +
                                                to_string(to.node->shape(to.port)) + " after " +
                                                std::to_string(count) + " iterations");
    splice();
    for (const auto& [from, to] : replaced) graph_.replace_uses(from, to);
  }

 private:
  static size_t axis_of(const Body::Port& port, const Shape& shape) {
    return static_cast<size_t>(port.axis < 0 ? port.axis + static_cast<int64_t>(shape.size())
                                             : port.axis);
  }

  Node* fresh(std::string type, const std::string& name) {
    fresh_.push_back(std::make_unique<Node>());
    Node* node = fresh_.back().get();
    node->id = next_id_++;
    node->type = std::move(type);
    node->name = node_->name + "/" + name;
    return node;
  }

  Edge constant(Tensor value) {
    Node* node = fresh("Constant", "constant");
    node->constant = std::move(value);
    infer_node_shapes(*node);
    return {node, 0};
  }

  // The body has been told of integers as it states them.
  Edge as_stated(const Edge& edge, size_t parameter) {
    const ElementType stated = body_.parameter(parameter).type,
                      type = edge.node->outputs[edge.port].type;
    if (type == stated || is_float(type) || is_float(stated)) return edge;
    Node* node = fresh("Convert", "stated");
    node->attributes.set("destination_type", std::string(name_of(stated)));
    node->inputs = {edge};
    return finished(node);
  }

  Edge slice(const Body::Port& port, int64_t i) {
    const Edge whole = node_->inputs[port.outer];
    const size_t axis = axis_of(port, whole.node->shape(whole.port));
    const int64_t begin = part_begin(port, whole.node->shape(whole.port)[axis], i);
    const auto number = [&](size_t v) {
      return constant(
          Tensor::of(ElementType::i64, {1}, std::vector<int64_t>{static_cast<int64_t>(v)}));
    };
    const auto first = static_cast<size_t>(begin);
    const std::vector<Edge> inputs{whole, number(first),
                                   number(first + static_cast<size_t>(port.part)), number(1),
                                   number(axis)};
    Node* node = fresh("Slice", "part" + std::to_string(i));
    node->opset = 8;
    node->inputs = inputs;
    return finished(node);
  }

  Edge together(const Body::Port& port, const std::vector<Edge>& parts) {
    const NodeOutput& output = node_->outputs[port.outer];
    if (parts.empty()) return constant(Tensor::allocate(output.type, output.shape));
    Node* node = fresh("Concat", "together");
    node->attributes.set("axis", std::to_string(axis_of(port, output.shape)));
    node->inputs = parts;
    return finished(node);
  }

  static Edge finished(Node* node) {
    node->def = find_op(node->type, node->opset);
    node->outputs.resize(1);
    infer_node_shapes(*node);
    return {node, 0};
  }

  // Copies the body's nodes, with its parameters as given; constants only once.
  std::vector<Edge> iteration(const Graph& pattern, const std::vector<Edge>& parameters,
                              int64_t i) {
    std::unordered_map<const Node*, Edge> first;  // output 0 of each node of the pattern
    for (size_t k = 0; k < parameters.size(); ++k) first[pattern.parameters[k]] = parameters[k];
    const auto mapped = [&](const Edge& edge) {
      const Edge to = first.at(edge.node);
      return Edge{to.node, to.port + edge.port};
    };
    std::vector<Edge> results(pattern.results.size());
    for (const auto& node : pattern.nodes) {
      if (node->is("Parameter")) continue;
      if (node->is("Result")) {
        const auto at = std::find(pattern.results.begin(), pattern.results.end(), node.get());
        results[static_cast<size_t>(at - pattern.results.begin())] = mapped(node->inputs[0]);
        continue;
      }
      if (node->is("Constant")) {
        Edge& shared = constants_[node->id];
        if (!shared.node) shared = constant(node->constant);
        first[node.get()] = shared;
        continue;
      }
      Node* copy = fresh(node->type, node->name + "/" + std::to_string(i));
      const int id = copy->id;
      std::string name = std::move(copy->name);
      *copy = *node;
      copy->id = id;
      copy->name = std::move(name);
      for (Edge& input : copy->inputs) input = mapped(input);
      first[node.get()] = {copy, 0};
    }
    return results;
  }

  void splice() {
    const auto at = std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                                 [&](const auto& n) { return n.get() == node_; });
    graph_.nodes.insert(at, std::make_move_iterator(fresh_.begin()),
                        std::make_move_iterator(fresh_.end()));
    fresh_.clear();
  }

  Graph& graph_;
  Node* node_;
  const GraphBody& body_;
  int next_id_ = 0;
  std::vector<std::unique_ptr<Node>> fresh_;
  std::unordered_map<int, Edge> constants_;  // of the body, by id
};

// Which of the node's bodies to write out, and how often; count -1: none. `most`: nodes.
std::pair<size_t, int64_t> decide(const Node& node, std::span<const ValueInfo> inputs, bool unroll,
                                  int64_t most) {
  if (node.is("If")) {
    const auto branch = chosen_branch(inputs);
    return {branch.value_or(0), branch ? 1 : -1};
  }
  if (!unroll) return {0, -1};
  const auto& body = static_cast<const GraphBody&>(*node.bodies[0]);
  const auto count = iterations(node.type, body, inputs);
  const auto size = static_cast<int64_t>(body.node_count());
  return {0, count && *count <= most / std::max<int64_t>(size, 1) ? *count : -1};
}

// None where the node is to stay, also because shapes in its body depend on values that are not
// known.
std::optional<Iterations> iterations_of(const Node& node, bool unroll, int64_t most) {
  const std::vector<ValueInfo> inputs = known_inputs(node);
  try {
    const auto [which, count] = decide(node, inputs, unroll, most);
    if (count < 0) return {};
    Iterations all{static_cast<const GraphBody*>(node.bodies[which].get()), {}};
    if (count > 0)
      follow_iterations(*all.body, inputs,
                        [&, count = count](std::span<const ValueInfo> parameters,
                                           std::vector<ValueInfo>& results) {
                          all.graphs.push_back(all.body->instance(parameters));
                          results = known_results(*all.graphs.back(), parameters);
                          return static_cast<int64_t>(all.graphs.size()) < count;
                        });
    return all;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) return {};
    throw Error(error.code(), label(node) + ": " + error.what());
  }
}

}  // namespace

void unroll_loops(Graph& graph, const PassContext& context) {
  int64_t left = kMostWritten;
  IterationLimit limit(IterationLimit::kToSimplify);
  // A round for each depth: loops inside of others may depend on the counters around them, which
  // are constants once the round is over.
  for (bool changed = true; changed;) {
    changed = false;
    int last = 0;
    for (const auto& node : graph.nodes) last = std::max(last, node->id);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      Node* node = graph.nodes[i].get();
      if (node->bodies.empty() || node->id > last) continue;
      const auto all = iterations_of(*node, context.unroll_loops, std::min(kMostNodes, left));
      if (!all) continue;
      left -= static_cast<int64_t>(all->graphs.size() * all->body->node_count());
      Unroller(graph, node, *all->body).write_out(all->graphs);
      node->bodies.clear();  // it has no users left
      changed = true;
    }
    if (!changed) continue;
    graph.remove_dead();
    fold_constants(graph, context);
  }
}

}  // namespace clinfer
