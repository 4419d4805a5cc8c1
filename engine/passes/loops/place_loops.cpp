// Turns loops that are not unrolled into DeviceLoop where the device has kernels for their bodies.
// A DeviceLoop's sliced inputs and outputs have their parts along the first dimension.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/graph/evaluate.h"
#include "engine/passes/loops/loop_slices.h"
#include "engine/passes/passes.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

constexpr int64_t kMostIterations = 1 << 20;
// Limit for the nodes of all bodies; beyond it, loops inside of bodies stay loops.
constexpr size_t kMostBodyNodes = 1 << 14;

[[noreturn]] void refuse_loop(const std::string& why) { throw Error(ErrorCode::unsupported, why); }

// Moves one loop to the device.
class LoopMove {
 public:
  LoopMove(Graph& graph, Node* loop, const PassContext& context)
      : graph_(graph),
        loop_(loop),
        body_(static_cast<const GraphBody&>(*loop->bodies[0])),
        context_(context) {}

  // Returns the number of nodes of the compiled body. Throws Error{unsupported} if the loop has to
  // stay on the host.
  size_t run() {
    const std::vector<ValueInfo> inputs = known_inputs(*loop_);
    const auto count = iterations(loop_->type, body_, inputs);
    if (!count) refuse_loop("how often it runs depends on values");
    if (*count == 0) refuse_loop("it does not run");
    if (*count > kMostIterations)
      refuse_loop("it runs more than " + std::to_string(kMostIterations) + " times");
    count_ = *count;
    infer_any_iteration(inputs);
    take_constants(inputs);
    give_results();
    fold_constants(*inside_, context_);
    take_inputs();
    move_out();
    auto body = std::make_shared<GraphBody>(std::move(inside_));
    body->inputs = inputs_;
    body->outputs = outputs_;
    body->back_edges = states_;
    const size_t nodes = compiled_body(*body, context_, false)->nodes().size();
    insert(std::move(body));
    return nodes;
  }

 private:
  const Body::BackEdge* back_edge_to(size_t parameter) const {
    for (const Body::BackEdge& edge : body_.back_edges)
      if (edge.parameter == parameter) return &edge;
    return nullptr;
  }

  // Infers shapes of the body that hold in every iteration.
  void infer_any_iteration(const std::vector<ValueInfo>& inputs) {
    std::vector<ValueInfo> all;
    follow_iterations(body_, inputs,
                      [&](std::span<const ValueInfo> parameters, std::vector<ValueInfo>&) {
                        all.assign(parameters.begin(), parameters.end());
                        return false;
                      });
    for (const Body::Port& port : body_.inputs)
      if (port.sliced || back_edge_to(port.inner)) all[port.inner].value = {};
    if (body_.counter) all[*body_.counter].value = {};
    inside_ = body_.instance(all);
    for (const Body::BackEdge& edge : body_.back_edges) {
      const NodeOutput &from = output(inside_->results.at(edge.result)->inputs[0]),
                       &to = inside_->parameters.at(edge.parameter)->outputs[0];
      if (from.shape != to.shape || from.type != to.type)
        refuse_loop("a state changes its shape or type in an iteration");
    }
  }

  static const NodeOutput& output(const Edge& edge) { return edge.node->outputs[edge.port]; }

  // Moves constants from outside into the body, because kernels pack their weights.
  void take_constants(const std::vector<ValueInfo>& inputs) {
    Node* const first = inside_->nodes().front().get();
    for (const Body::Port& port : body_.inputs) {
      if (port.sliced || back_edge_to(port.inner) || inputs[port.outer].value.empty()) continue;
      Node* const parameter = inside_->parameters[port.inner];
      const Edge value =
          Insertion(*inside_, first, parameter->name)
              .constant(inputs[port.outer].value.convert(parameter->outputs[0].type));
      inside_->replace_uses({parameter, 0}, value);
    }
  }

  // Makes the body's results: one for each output of the new operation, then one for each state.
  void give_results() {
    const std::vector<Node*> old = std::exchange(inside_->results, {});
    const auto add = [&](size_t result) {
      const Edge edge = old.at(result)->inputs[0];
      Insertion(*inside_, nullptr, old[result]->name).result(edge);
      return inside_->results.size() - 1;
    };
    for (const bool sliced : {true, false})
      for (const Body::Port& port : body_.outputs) {
        if (port.sliced != sliced) continue;
        const Edge edge = old.at(port.inner)->inputs[0];
        if (sliced && (port.part != output(edge).shape.at(axis_of(port, edge)) ||
                       !covers(port, loop_->shape(static_cast<int>(port.outer)), count_)))
          refuse_loop("an output's parts leave gaps, or are not joined in their order");
        // The last part of a joined output exists already.
        const auto joined =
            std::find_if(body_.outputs.begin(), body_.outputs.end(), [&](const Body::Port& other) {
              return other.sliced &&
                     before_reshapes(old.at(other.inner)->inputs[0]) == before_reshapes(edge);
            });
        if (!sliced && joined != body_.outputs.end()) {
          last_parts_.push_back({&port, &*joined});
          continue;
        }
        const size_t result = add(port.inner);
        outputs_.push_back({result, result, sliced, 0, 0, -1, port.stride < 0 ? -1 : 1, 1});
        outer_outputs_.push_back(&port);
      }
    for (const Body::BackEdge& edge : body_.back_edges)
      states_.push_back({add(edge.result), edge.parameter});
    for (Node* result : old) inside_->disconnect(result);
    inside_->remove_dead();
  }

  static size_t axis_of(const Body::Port& port, const Edge& edge) {
    const auto rank = static_cast<int64_t>(output(edge).shape.size());
    return static_cast<size_t>(port.axis < 0 ? port.axis + rank : port.axis);
  }

  // Lists the new operation's inputs, by parameter of the body.
  void take_inputs() {
    for (const Body::Port& port : body_.inputs) {
      if (port.sliced) {
        const Edge& whole = loop_->inputs[port.outer];
        if (!covers(port, output(whole).shape, count_))
          refuse_loop("an input's parts leave gaps, or are not all of it");
      }
      inputs_.push_back(
          {inputs_.size(), port.inner, port.sliced, 0, 0, -1, port.stride < 0 ? -1 : 1, 1});
      outer_inputs_.push_back(&port);
    }
    if (body_.counter) inputs_.push_back({inputs_.size(), *body_.counter, true, 0, 0, -1, 1, 1});
  }

  // ---- what needs no state is computed for all iterations at once, before the loop ---------------

  // A value of the body for all iterations, [iterations, shape...], and the stride between its
  // parts.
  struct All {
    Edge edge;
    int64_t stride = 1;
    bool computed = false;  // by more than changes of the shape
  };

  void move_out() {
    std::map<const Node*, All> all;
    for (size_t i = 0; i < outer_inputs_.size(); ++i) {
      Node* const parameter = inside_->parameters[inputs_[i].inner];
      if (inputs_[i].sliced && is_float(parameter->outputs[0].type))
        all[parameter] = {input(i, {}), inputs_[i].stride, false};
    }
    for (Node* node : nodes_of(*inside_))
      if (const auto moved = moved_out(*node, all)) all[node] = *moved;
    for (Node* node : nodes_of(*inside_)) {
      const auto found = all.find(node);
      if (found == all.end() || !found->second.computed) continue;
      const std::vector<Node*> users = inside_->users({node, 0});
      if (std::all_of(users.begin(), users.end(),
                      [&](const Node* user) { return all.contains(user); }))
        continue;
      const Edge part =
          Insertion(*inside_, node, node->name).parameter(node->outputs[0].type, node->shape());
      inside_->replace_uses({node, 0}, part);
      inputs_.push_back({inputs_.size(), inside_->parameters.size() - 1, true, 0, 0, -1,
                         found->second.stride, 1});
      moved_[inputs_.size() - 1] = found->second.edge;
    }
    inside_->remove_dead();
  }

  // Returns the node computed for all iterations at once; nothing if it reads states or joins
  // elements of several parts.
  std::optional<All> moved_out(const Node& node, const std::map<const Node*, All>& all) {
    constexpr int64_t kMostElements = int64_t{1} << 24;
    if (node.inputs.empty() || node.outputs.size() != 1 || !node.def || is_custom(node)) return {};
    const auto data = all.find(node.inputs[0].node);
    const bool is_product =
        node.is("MatMul") && data != all.end() && !node.attributes.get_bool("transpose_a", false) &&
        constant_value(node.inputs[1]) && output(node.inputs[1]).shape.size() == 2 &&
        output(node.inputs[0]).shape.size() >= 2;
    if (reshapes(node) && data != all.end()) {
      Shape shape = node.shape();
      shape.insert(shape.begin(), count_);
      return All{reshaped(graph_, loop_, data->second.edge, shape), data->second.stride,
                 data->second.computed};
    }
    if (!is_product && !node.def->as_tail) return {};
    if (count(node.shape()) > kMostElements / count_) return {};
    All result;
    result.computed = true;
    std::vector<Edge> inputs;
    bool any = false;
    Insertion add(graph_, loop_, loop_->name + "/" + node.name);
    for (const Edge& edge : node.inputs) {
      if (const auto found = all.find(edge.node); found != all.end()) {
        if ((any && found->second.stride != result.stride) ||
            (!is_product && output(edge).shape != node.shape()))
          return {};
        any = true;
        result.stride = found->second.stride;
        inputs.push_back(found->second.edge);
      } else if (const Tensor* value = constant_value(edge)) {
        if (!is_product && value->shape().size() > node.shape().size()) return {};
        inputs.push_back(add.constant(*value));
      } else {
        return {};
      }
    }
    if (!any) return {};
    result.edge = add.op(node.type, node.opset, inputs, node.attributes.all());
    return result;
  }

  Edge input(size_t i, const ValueInfo& stated) {
    if (const auto moved = moved_.find(i); moved != moved_.end()) return moved->second;
    if (i >= outer_inputs_.size()) return counter(stated);
    const Body::Port& port = *outer_inputs_[i];
    Edge edge = loop_->inputs[port.outer];
    // Converts integers that were narrowed outside of the body.
    if (!is_float(output(edge).type) && output(edge).type != stated.type)
      edge =
          Insertion(graph_, loop_, loop_->name + "/stated")
              .op("Convert", 1, {edge}, {{"destination_type", std::string(name_of(stated.type))}});
    return port.sliced ? slices_first(graph_, loop_, edge, port) : edge;
  }

  // Returns the counter's values in all iterations.
  Edge counter(const ValueInfo& stated) {
    Shape shape = stated.shape;
    shape.insert(shape.begin(), count_);
    std::vector<int64_t> numbers(static_cast<size_t>(count_));
    for (int64_t i = 0; i < count_; ++i) numbers[static_cast<size_t>(i)] = i;
    return Insertion(graph_, loop_, loop_->name + "/counter")
        .constant(Tensor::of(stated.type, shape, numbers));
  }

  void insert(std::shared_ptr<GraphBody> body) {
    std::vector<Edge> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs.push_back(input(i, body->parameter(inputs_[i].inner)));
    Node* const node = Insertion(graph_, loop_, loop_->name)
                           .op("DeviceLoop", 1, inputs,
                               {{"iterations", std::to_string(count_)},
                                {"integers", context_.integers ? "true" : "false"}},
                               outputs_.size(), {body})
                           .node;
    node->computes = loop_->computes;
    for (size_t k = 0; k < outer_outputs_.size(); ++k) {
      const Body::Port& port = *outer_outputs_[k];
      const int outer = static_cast<int>(port.outer);
      const Edge value{node, static_cast<int>(k)};
      replace(outer,
              port.sliced ? slices_joined(graph_, loop_, value, port, loop_->shape(outer)) : value);
    }
    for (const auto& [port, joined] : last_parts_) {
      const auto at = std::find(outer_outputs_.begin(), outer_outputs_.end(), joined);
      const Edge parts{node, static_cast<int>(at - outer_outputs_.begin())};
      const int64_t last = joined->stride > 0 ? count_ - 1 : 0;
      Insertion add(graph_, loop_, loop_->name + "/last");
      const Edge part =
          add.op("Slice", 8,
                 {parts, add.ints({last}), add.ints({last + 1}), add.ints({1}), add.ints({0})});
      const int outer = static_cast<int>(port->outer);
      replace(outer, reshaped(graph_, loop_, part, loop_->shape(outer)));
    }
  }

  void replace(int outer, const Edge& value) {
    if (value.node->shape(value.port) != loop_->shape(outer))
      throw std::logic_error("a loop's output has another shape on the device");
    graph_.replace_uses({loop_, outer}, value);
  }

  Graph& graph_;
  Node* const loop_;
  const GraphBody& body_;
  const PassContext& context_;
  int64_t count_ = 0;
  std::unique_ptr<Graph> inside_;
  std::vector<Body::Port> inputs_, outputs_;  // of the new operation
  std::map<size_t, Edge> moved_;              // inputs that are computed before the loop
  std::vector<Body::BackEdge> states_;
  std::vector<const Body::Port*> outer_inputs_, outer_outputs_;  // of the loop, in their order
  std::vector<std::pair<const Body::Port*, const Body::Port*>> last_parts_;
};

// Gives each output of the loop a tensor of its own in the body, and each state one that is
// computed.
void copy_shared_results(Graph& graph, const GraphBody& body) {
  std::set<std::pair<const Node*, int>> taken;
  const auto copy = [&](Node* result) {
    const Edge from = result->inputs[0];
    const NodeOutput& tensor = from.node->outputs[from.port];
    const Edge to = Insertion(graph, result, result->name).op("Reorder", 1, {from});
    to.node->outputs[0].type = tensor.type;
    to.node->outputs[0].desc = TensorDesc::row_major(tensor.type, tensor.shape);
    result->inputs.set(0, to);
  };
  for (size_t i = 0; i < graph.results.size(); ++i) {
    Node* const result = graph.results[i];
    const Edge edge = result->inputs[0], root = storage_root(edge);
    const TensorDesc& desc = edge.node->outputs[edge.port].desc;
    const bool computed = !root.node->is("Constant") && !root.node->is("Parameter");
    const bool whole = computed && desc.offset == 0 && desc.is_row_major() &&
                       root.node->outputs[root.port].desc.span() == desc.elements();
    const bool is_output = i < body.outputs.size();
    if (!computed || !desc.is_row_major() ||
        (is_output && (!whole || taken.contains({root.node, root.port}))))
      copy(result);
    const Edge own = storage_root(result->inputs[0]);
    taken.insert({own.node, own.port});
  }
}

// Tells kernels that inputs and outputs of the loop begin at any element.
void unalign(Graph& graph, const GraphBody& body) {
  std::set<std::pair<const Node*, int>> roots;
  for (const Node* parameter : graph.parameters) roots.insert({parameter, 0});
  for (size_t i = 0; i < graph.results.size(); ++i) {
    const Edge root = storage_root(graph.results[i]->inputs[0]);
    if (i < body.outputs.size()) roots.insert({root.node, root.port});
  }
  for (const auto& node : graph.nodes())
    for (size_t port = 0; port < node->outputs.size(); ++port) {
      const Edge root = storage_root({node.get(), static_cast<int>(port)});
      if (roots.contains({root.node, root.port})) ++node->outputs[port].desc.offset;
    }
}

void check_kernels(const Graph& graph, const PassContext& context) {
  for (const auto& node : graph.nodes()) {
    if (!node->def || node->def->view || node->is("Concat")) continue;
    int64_t elements = 0;
    for (const NodeOutput& output : node->outputs) elements += count(output.shape);
    if (elements == 0) continue;
    std::string reasons;
    if (is_custom(*node)) refuse_loop(label(*node) + " in it is a custom layer");
    if (accepting_families(*node->def, describe(*node), context.traits, &reasons).empty() ||
        node->def->rows_depend_on_data)
      refuse_loop(label(*node) + " in it has no kernel" + (reasons.empty() ? "" : ": " + reasons));
  }
}

}  // namespace

std::unique_ptr<Graph> compiled_body(const GraphBody& body, const PassContext& context,
                                     bool aligned) {
  PassContext inside = context;
  inside.is_body = inside.half_outputs = true;
  inside.loops_on_device = inside.expose_layers = false;
  std::unique_ptr<Graph> graph = body.graph().clone();
  graph->note_layers();
  run_passes(*graph, inside);
  copy_shared_results(*graph, body);
  if (!aligned) unalign(*graph, body);
  check_kernels(*graph, inside);
  return graph;
}

void place_loops(Graph& graph, const PassContext& context) {
  if (context.is_body)  // refused before all other passes visit the loop
    for (const auto& node : graph.nodes())
      if (!node->bodies.empty()) refuse_loop(label(*node) + " in it has no kernel");
  if (!context.loops_on_device) return;
  bool changed = false;
  std::unordered_set<const Node*> dependent;
  // Loops inside of loops may cause any amount of work: unroll_loops() may have left thousands, in
  // each of which it is called again.
  IterationLimit limit(IterationLimit::kToSimplify);
  PassContext bodies = context;
  size_t nodes = 0;
  for (Node* node : nodes_of(graph)) {
    const bool loop = node->is("TensorIterator") || node->is("Loop");
    if (depends_on_values(*node, dependent)) {
      dependent.insert(node);
      if (loop) node->attributes.set(kOnHost, "its shapes depend on values");
      continue;
    }
    if (!loop) continue;
    try {
      changed = true;
      nodes += LoopMove(graph, node, bodies).run();
      bodies.unroll_loops = context.unroll_loops && nodes < kMostBodyNodes;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      node->attributes.set(kOnHost, error.what());
    }
  }
  if (!changed) return;
  graph.remove_dead();
  fold_constants(graph, context);
}

}  // namespace clinfer
