// Turns loops whose body is a recurrent cell, as converters of older models write recurrent layers,
// into sequence operations, for which there are kernels.
#include <optional>

#include "engine/graph/evaluate.h"
#include "engine/passes/loops/loop_slices.h"
#include "engine/passes/passes.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

bool is_cell(const Node& node) {
  return node.is("LSTMCell") || node.is("GRUCell") || node.is("RNNCell");
}

// Returns the only operation that does more than change a shape; null if there are several.
Node* only_cell(const Graph& graph) {
  Node* cell = nullptr;
  for (const auto& node : graph.nodes()) {
    if (!node->def || reshapes(*node) || !graph.has_users(node.get())) continue;
    if (!is_cell(*node) || cell) return nullptr;
    cell = node.get();
  }
  return cell;
}

class CellLoop {
 public:
  CellLoop(Graph& graph, Node* loop, const Graph& inside, Node* cell, int64_t count)
      : graph_(graph),
        loop_(loop),
        body_(static_cast<const GraphBody&>(*loop->bodies[0])),
        inside_(inside),
        cell_(cell),
        count_(count),
        states_(cell->is("LSTMCell") ? 2 : 1) {}

  // Replaces the loop by the sequence. Returns false if the loop is none.
  bool replace() {
    const Body::Port* const steps = port_of(before_reshapes(cell_->inputs[0]));
    if (!steps || !steps->sliced || steps->part != 1 ||
        !covers(*steps, outer_shape(*steps), count_))
      return false;
    for (size_t s = 0; s < states_; ++s)
      if (!is_state(s)) return false;
    if (!are_weights_constant() || !gives_only_states(*steps)) return false;
    write(*steps);
    return true;
  }

 private:
  const Shape& outer_shape(const Body::Port& port) const {
    const Edge& outer = loop_->inputs[port.outer];
    return outer.node->shape(outer.port);
  }

  // Returns the input that feeds a parameter of the body; null if the edge is no parameter.
  const Body::Port* port_of(const Edge& edge) const {
    const auto found = std::find(inside_.parameters.begin(), inside_.parameters.end(), edge.node);
    if (found == inside_.parameters.end()) return nullptr;
    const auto parameter = static_cast<size_t>(found - inside_.parameters.begin());
    const auto port = std::find_if(body_.inputs.begin(), body_.inputs.end(),
                                   [&](const Body::Port& p) { return p.inner == parameter; });
    return port == body_.inputs.end() ? nullptr : &*port;
  }

  const Body::BackEdge* back_edge_to(size_t parameter) const {
    for (const Body::BackEdge& edge : body_.back_edges)
      if (edge.parameter == parameter) return &edge;
    return nullptr;
  }

  // Returns which output of the cell a result of the body is, if it is one.
  std::optional<int> output_of(size_t result) const {
    const Edge from = before_reshapes(inside_.results[result]->inputs[0]);
    return from.node == cell_ ? std::optional(from.port) : std::nullopt;
  }

  // Returns whether state s of the cell starts with an input of the loop and continues with the
  // cell's own output.
  bool is_state(size_t s) const {
    const Body::Port* const first = port_of(before_reshapes(cell_->inputs[1 + s]));
    if (!first || first->sliced) return false;
    const Body::BackEdge* const edge = back_edge_to(first->inner);
    return edge && output_of(edge->result) == static_cast<int>(s);
  }

  const Tensor* constant(const Edge& edge) const {
    const Edge from = before_reshapes(edge);
    if (const Tensor* value = constant_value(from)) return value;
    const Body::Port* const port = port_of(from);
    return port && !port->sliced && !back_edge_to(port->inner)
               ? constant_value(loop_->inputs[port->outer])
               : nullptr;
  }

  bool are_weights_constant() const {
    for (size_t i = 1 + states_; i < std::min<size_t>(cell_->inputs.size(), 4 + states_); ++i)
      if (!constant(cell_->inputs[i])) return false;
    return true;
  }

  // Returns whether the loop's outputs are only the first state of all steps, in the order of the
  // input, and last states.
  bool gives_only_states(const Body::Port& steps) const {
    for (const Body::Port& port : body_.outputs) {
      const auto output = output_of(port.inner);
      if (!output) return false;
      if (port.sliced && (*output != 0 || port.part != 1 || port.stride != steps.stride ||
                          !covers(port, loop_->shape(static_cast<int>(port.outer)), count_)))
        return false;
    }
    return true;
  }

  Edge reshape(const Edge& edge, const Shape& shape) {
    return reshaped(graph_, loop_, edge, shape);
  }

  // Swaps the first two dimensions.
  Edge swapped(const Edge& edge) {
    const Shape& shape = edge.node->shape(edge.port);
    if (shape[0] == 1 || shape[1] == 1) return reshape(edge, {shape[1], shape[0], shape[2]});
    Insertion add(graph_, loop_, loop_->name + "/slices");
    return add.op("Transpose", 1, {edge, add.ints({1, 0, 2})});
  }

  void write(const Body::Port& steps) {
    const Shape x = cell_->inputs[0].node->shape(cell_->inputs[0].port);
    const int64_t images = x[0], hidden = cell_->shape()[1];
    const bool in_order =
        (steps.axis == 1 || steps.axis == -2) && outer_shape(steps) == Shape{images, count_, x[1]};
    const Edge whole = loop_->inputs[steps.outer];
    std::vector<Edge> inputs{in_order ? whole
                                      : swapped(reshape(slices_first(graph_, loop_, whole, steps),
                                                        {count_, images, x[1]}))};
    for (size_t s = 0; s < states_; ++s) {
      const Body::Port* const first = port_of(before_reshapes(cell_->inputs[1 + s]));
      inputs.push_back(reshape(loop_->inputs[first->outer], {images, 1, hidden}));
    }
    Insertion add(graph_, loop_, loop_->name);
    inputs.push_back(add.ints(std::vector<int64_t>(static_cast<size_t>(images), count_)));
    for (size_t i = 0; i < 3; ++i) inputs.push_back(weights(add, i, hidden));
    std::map<std::string, std::string> attributes = cell_->attributes.all();
    attributes["direction"] = steps.stride > 0 ? "forward" : "reverse";
    const std::string type = cell_->type.substr(0, cell_->type.size() - 4) + "Sequence";
    const Edge sequence = add.op(type, 5, inputs, attributes, 1 + states_);
    sequence.node->computes = loop_->computes;
    for (const Body::Port& port : body_.outputs) {
      const int outer = static_cast<int>(port.outer);
      const Shape shape = loop_->shape(outer);
      Edge value{sequence.node, 1 + *output_of(port.inner)};
      if (port.sliced) {
        const Edge all = reshape(sequence, {images, count_, hidden});
        if ((port.axis == 1 || port.axis == -2) && shape == Shape{images, count_, hidden}) {
          value = all;
        } else {
          Shape parts = inside_.results[port.inner]->inputs[0].node->shape(
              inside_.results[port.inner]->inputs[0].port);
          parts.insert(parts.begin(), count_);
          value = slices_joined(graph_, loop_, reshape(swapped(all), parts), port, shape);
        }
      }
      graph_.replace_uses({loop_, outer}, reshape(value, shape));
    }
  }

  // Returns W, R or B with an added dimension for the direction.
  Edge weights(Insertion& add, size_t i, int64_t hidden) {
    const size_t input = 1 + states_ + i;
    const bool after = cell_->attributes.get_bool("linear_before_reset", false);
    const int64_t gates = cell_->is("LSTMCell") ? 4 : cell_->is("GRUCell") ? 3 : 1;
    if (input >= cell_->inputs.size())
      return add.constant(
          Tensor::of(ElementType::f32, {1, (gates + (after ? 1 : 0)) * hidden},
                     std::vector<float>(static_cast<size_t>((gates + (after ? 1 : 0)) * hidden))));
    const Edge& edge = cell_->inputs[input];
    Shape shape = edge.node->shape(edge.port);
    shape.insert(shape.begin(), 1);
    return reshape(add.constant(*constant(edge)), shape);
  }

  Graph& graph_;
  Node* const loop_;
  const GraphBody& body_;
  const Graph& inside_;
  Node* const cell_;
  const int64_t count_;
  const size_t states_;
};

bool replace_loop(Graph& graph, Node* node, const PassContext& context) {
  const auto& body = static_cast<const GraphBody&>(*node->bodies[0]);
  const std::vector<ValueInfo> inputs = known_inputs(*node);
  try {
    const auto count = iterations(node->type, body, inputs);
    if (!count || *count < 1) return false;
    std::unique_ptr<Graph> inside;
    follow_iterations(body, inputs,
                      [&](std::span<const ValueInfo> parameters, std::vector<ValueInfo>&) {
                        inside = body.instance(parameters);
                        return false;
                      });
    fold_constants(*inside, context);
    Node* const cell = only_cell(*inside);
    return cell && CellLoop(graph, node, *inside, cell, *count).replace();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) return false;
    throw Error(error.code(), label(*node) + ": " + error.what(), error.place());
  }
}

}  // namespace

void find_sequences(Graph& graph, const PassContext& context) {
  bool changed = false;
  std::unordered_set<const Node*> dependent;
  for (Node* node : nodes_of(graph)) {
    if (depends_on_values(*node, dependent)) {
      dependent.insert(node);
      continue;
    }
    if (node->is("TensorIterator") || node->is("Loop"))
      changed |= replace_loop(graph, node, context);
  }
  if (!changed) return;
  graph.remove_dead();
  fold_constants(graph, context);
}

}  // namespace clinfer
