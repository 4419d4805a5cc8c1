// Unrolls loops: inserts the body of a TensorIterator or Loop once per iteration if their number is
// known, and the branch of an If whose condition is constant. States and slices become edges and
// views. Loops that would grow too long stay loops.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/evaluate.h"
#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

constexpr int64_t kMostUnrolledNodes = 4096;  // into which one loop may be unrolled
constexpr int64_t kMostWritten = 1 << 14;     // for all loops, nested ones included

// The replacement of a node: the body of each iteration, with its shapes.
struct Iterations {
  const GraphBody* body;
  std::vector<std::unique_ptr<Graph>> graphs;
};

class Unroller {
 public:
  Unroller(Graph& graph, Node* node, const GraphBody& body)
      : graph_(graph), node_(node), body_(body) {}

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
      } else {  // a state keeps its value; other outputs have none
        const auto state =
            std::find_if(body_.back_edges.begin(), body_.back_edges.end(),
                         [&](const Body::BackEdge& edge) { return edge.result == port.inner; });
        replaced.emplace_back(output, state != body_.back_edges.end() ? parameters[state->parameter]
                                                                      : together(port, {}));
      }
    }
    // Refuses shapes that vary between iterations, because later layers expect a fixed one.
    for (const auto& [from, to] : replaced)
      if (to.node->shape(to.port) != from.node->shape(from.port))
        throw Error(ErrorCode::unsupported, label(*node_) + ": its output was to have the shape " +
                                                to_string(from.node->shape(from.port)) +
                                                ", and comes out as " +
                                                to_string(to.node->shape(to.port)) + " after " +
                                                std::to_string(count) + " iterations");
    for (const auto& [from, to] : replaced) graph_.replace_uses(from, to);
  }

 private:
  static size_t axis_of(const Body::Port& port, const Shape& shape) {
    return static_cast<size_t>(port.axis < 0 ? port.axis + static_cast<int64_t>(shape.size())
                                             : port.axis);
  }

  Insertion add(const std::string& name) { return {graph_, node_, node_->name + "/" + name}; }

  Edge constant(Tensor value) { return add("constant").constant(std::move(value)); }

  // Converts an integer to the type that the body states for it.
  Edge as_stated(const Edge& edge, size_t parameter) {
    const ElementType stated = body_.parameter(parameter).type,
                      type = edge.node->outputs[edge.port].type;
    if (type == stated || is_float(type) || is_float(stated)) return edge;
    return add("stated").op("Convert", 1, {edge},
                            {{"destination_type", std::string(name_of(stated))}});
  }

  Edge slice(const Body::Port& port, int64_t i) {
    const Edge whole = node_->inputs[port.outer];
    const size_t axis = axis_of(port, whole.node->shape(whole.port));
    const int64_t begin = part_begin(port, whole.node->shape(whole.port)[axis], i);
    const auto number = [&](int64_t v) { return add("constant").ints({v}); };
    const std::vector<Edge> inputs{whole, number(begin), number(begin + port.part), number(1),
                                   number(static_cast<int64_t>(axis))};
    return add("part" + std::to_string(i)).op("Slice", 8, inputs);
  }

  Edge together(const Body::Port& port, const std::vector<Edge>& parts) {
    const NodeOutput& output = node_->outputs[port.outer];
    if (parts.empty()) return constant(Tensor::allocate(output.type, output.shape));
    return add("together")
        .op("Concat", 1, parts, {{"axis", std::to_string(axis_of(port, output.shape))}});
  }

  // Copies the body's nodes with the given parameters; constants only once.
  std::vector<Edge> iteration(const Graph& pattern, const std::vector<Edge>& parameters,
                              int64_t i) {
    std::unordered_map<const Node*, Edge> first;  // output 0 of the copy, by node of the pattern
    for (size_t k = 0; k < parameters.size(); ++k) first[pattern.parameters[k]] = parameters[k];
    const auto mapped = [&](const Edge& edge) {
      const Edge to = first.at(edge.node);
      return Edge{to.node, to.port + edge.port};
    };
    for (const auto& node : pattern.nodes()) {
      if (node->is("Parameter") || node->is("Result")) continue;
      if (node->is("Constant")) {
        Edge& shared = constants_[node->id];
        if (!shared.node) shared = constant(node->constant);
        first[node.get()] = shared;
        continue;
      }
      Node twin = *node;
      twin.name = node_->name + "/" + node->name + "/" + std::to_string(i);
      std::vector<Edge> inputs;
      for (const Edge& input : node->inputs) inputs.push_back(mapped(input));
      twin.inputs = std::move(inputs);
      first[node.get()] = {add("").copy(twin), 0};
    }
    std::vector<Edge> results;
    for (const Node* result : pattern.results) results.push_back(mapped(result->inputs[0]));
    return results;
  }

  Graph& graph_;
  Node* node_;
  const GraphBody& body_;
  std::unordered_map<int, Edge> constants_;  // of the body, by id
};

// Returns the body to write out, and how often; a count of -1: none. `most`: limit of nodes.
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

// Returns nothing if the node has to stay, also because shapes in its body depend on values that
// are not known.
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
    throw Error(error.code(), label(node) + ": " + error.what(), error.place());
  }
}

}  // namespace

void unroll_loops(Graph& graph, const PassContext& context) {
  int64_t left = kMostWritten;
  IterationLimit limit(IterationLimit::kToSimplify);
  // Runs a round for each depth of nesting: inner loops may depend on the counters of outer ones,
  // which are constants after the round.
  for (bool changed = true; changed;) {
    changed = false;
    // The number of iterations, too, may depend on values.
    std::unordered_set<const Node*> dependent;
    for (Node* node : nodes_of(graph)) {
      if (depends_on_values(*node, dependent)) {
        dependent.insert(node);
        continue;
      }
      if (node->bodies.empty()) continue;
      const auto all =
          iterations_of(*node, context.unroll_loops, std::min(kMostUnrolledNodes, left));
      if (!all) continue;
      left -= static_cast<int64_t>(all->graphs.size() * all->body->node_count());
      Unroller(graph, node, *all->body).write_out(all->graphs);
      node->bodies.clear();  // it has no users any more
      changed = true;
    }
    if (!changed) continue;
    graph.remove_dead();
    fold_constants(graph, context);
  }
}

}  // namespace clinfer
