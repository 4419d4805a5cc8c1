// Infers element types and shapes of all outputs, front to back. Where a shape depends on values
// that constants and shapes determine (ShapeOf chains), computes those values, too.
#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/graph/inference.h"
#include "kernels/base/host_type.h"
#include "kernels/custom/custom_layer.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

constexpr int64_t kMostTensorElements = int64_t{1} << 31;  // of one tensor
constexpr int64_t kMostShapeElements = int64_t{1}
                                       << 16;  // of a tensor from which shapes are computed
constexpr size_t kMostDimensions = 16;

void check_shape(const Shape& shape, size_t port) {
  const std::string which = "output " + std::to_string(port) + " would have ";
  if (shape.size() > kMostDimensions)
    throw Error(ErrorCode::unsupported, which + std::to_string(shape.size()) + " dimensions");
  int64_t elements = 1;
  for (int64_t dim : shape) {
    if (dim < 0)
      throw Error(ErrorCode::bad_model, which + "the impossible shape " + to_string(shape));
    // Counts dimensions beside a 0 as well, so that no product of some of them overflows later.
    if (__builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements) ||
        elements > kMostTensorElements)
      throw Error(ErrorCode::unsupported,
                  which + "the shape " + to_string(shape) + ", which is too large");
  }
}

void set_outputs(Node& node, const std::vector<ValueInfo>& infos) {
  const size_t stated = node.outputs.size();
  if (infos.size() < stated)
    throw Error(ErrorCode::bad_model, "has " + std::to_string(stated) +
                                          " outputs, the operation gives " +
                                          std::to_string(infos.size()));
  for (size_t i = 0; i < infos.size(); ++i) check_shape(infos[i].shape, i);
  node.outputs.resize(infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    node.outputs[i].type = host_type(infos[i].type);
    node.outputs[i].shape = infos[i].shape;
  }
}

void infer_with(Node& node, std::span<const ValueInfo> inputs) {
  set_outputs(node, inferred_outputs(node, inputs));
}

// Runs `work`; puts the layer's name in front of errors that it throws.
template <typename Work>
void naming(const Node& node, Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    throw Error(error.code(), label(node) + ": " + error.what(), error.place());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, label(node) + ": not enough memory");
  } catch (const std::exception& error) {
    throw Error(ErrorCode::bad_model, label(node) + ": " + error.what());
  }
}

// Infers types and shapes that follow from what the graph states. Returns false if the node's def
// has to infer them.
bool infer_own(Node& node) {
  if (node.is("Constant")) {
    node.outputs.resize(1);
    node.outputs[0].type = node.constant.type();
    node.outputs[0].shape = node.constant.shape();
    check_shape(node.outputs[0].shape, 0);
    return true;
  }
  if (node.is("Parameter")) {
    if (node.outputs.size() != 1) throw Error(ErrorCode::bad_model, "must have one output");
    check_shape(node.outputs[0].shape, 0);
    return true;
  }
  if (node.is("Result")) {
    if (node.inputs.size() != 1) throw Error(ErrorCode::bad_model, "must have one input");
    node.outputs.clear();
    return true;
  }
  if (!node.def) throw Error(ErrorCode::unsupported, "there is no such operation here");
  return false;
}

}  // namespace

Inference::Inference(const Graph& graph, std::span<const ValueInfo> parameters) {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].value.empty()) values_[graph.parameters[i]] = {parameters[i].value};
}

void Inference::infer(Node& node) {
  if (!infer_own(node)) {
    std::vector<ValueInfo> infos = known_inputs(node);
    // The number of rows that are found in known values is known as well.
    if (node.def->rows_depend_on_data) complete(node, infos);
    try {
      infer_with(node, infos);
    } catch (const Error& error) {
      const bool either = node.is("If") && fewer_.contains(node.inputs[0].node);
      if (error.code() != ErrorCode::unsupported || !(complete(node, infos) || either)) throw;
      infer_completed(node, infos);
    }
  }
  note(node);
}

// Infers shapes for fewer rows where those for the most rows are impossible, as for rows that fill
// up to a fixed number. Branches of an If that depends on the number may differ in size.
void Inference::infer_completed(Node& node, std::span<const ValueInfo> infos) {
  try {
    infer_with(node, infos);
  } catch (const Error&) {
    if (node.is("If") && fewer_.contains(node.inputs[0].node)) {
      set_outputs(node, infer_branches(node, infos));
      return;
    }
    const auto varies = [&](const Edge& input) { return fewer_.contains(input.node); };
    if (std::ranges::none_of(node.inputs, varies)) throw;
    const std::vector<ValueInfo> fewer = inputs_with_fewer(node);
    if (std::ranges::any_of(fewer, is_unknown)) throw;
    infer_with(node, std::span(fewer).first(infos.size()));
  }
}

void Inference::note(const Node& node) {
  if (is_determined(node)) determined_.insert(&node);
  note_fewer(node);
}

Tensor Inference::value(const Edge& edge) {
  if (!determined_.contains(edge.node)) return {};
  compute(edge.node);
  return values_.at(edge.node)[edge.port];
}

bool decides(const Node& node, size_t input) {
  return (node.is("If") && input == 0) || (node.is("Loop") && input == 1);
}

// Adds the values of all inputs that are determined to `infos`. Returns false if only Constants
// are. Takes exact values where they decide which graph an operation runs, or what it finds in
// them.
bool Inference::complete(const Node& node, std::vector<ValueInfo>& infos) {
  bool more = false;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!infos[i].value.empty()) continue;
    const bool exact = decides(node, i) || (node.def->rows_depend_on_data && node.bodies.empty());
    infos[i].value = exact ? exact_value(node.inputs[i]) : value(node.inputs[i]);
    more |= !infos[i].value.empty();
  }
  return more;
}

bool Inference::is_determined(const Node& node) const {
  if (node.is("Constant")) return true;
  if (node.is("Parameter")) return values_.contains(&node);
  if (!node.def || !node.def->evaluate || node.inputs.empty()) return false;
  const auto small = [](const NodeOutput& output) {
    return count(output.shape) <= kMostShapeElements;
  };
  if (!std::all_of(node.outputs.begin(), node.outputs.end(), small)) return false;
  return node.is("ShapeOf") ||
         std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Edge& e) {
           return determined_.contains(e.node) && small(e.node->outputs[e.port]);
         });
}

// Computes the nodes that `wanted` depends on, then `wanted` itself. Does without recursion, since
// a chain may be long.
void Inference::compute(const Node* wanted) {
  std::vector<const Node*> open{wanted};
  while (!open.empty()) {
    const Node* node = open.back();
    if (values_.count(node)) {
      open.pop_back();
      continue;
    }
    const size_t before = open.size();
    if (!node->is("ShapeOf"))
      for (const Edge& input : node->inputs)
        if (!values_.count(input.node)) open.push_back(input.node);
    if (open.size() != before) continue;
    open.pop_back();
    naming(*node, [&] { values_[node] = values_of(*node); });
  }
}

std::vector<Tensor> Inference::values_of(const Node& node) {
  if (node.is("Constant")) return {node.constant};
  if (node.is("ShapeOf")) return {shape_value(node)};
  std::vector<Tensor> inputs;
  for (const Edge& input : node.inputs) inputs.push_back(values_.at(input.node)[input.port]);
  const size_t bytes = bytes_to_evaluate(node, inputs);
  if (bytes > kMostShapeBytes)
    throw Error(ErrorCode::unsupported, "computing a shape would take " + std::to_string(bytes) +
                                            " bytes of the host's memory; the most is " +
                                            std::to_string(kMostShapeBytes));
  IterationLimit::count(work_to_evaluate(node, inputs) / IterationLimit::kOfANode);
  return evaluate_node(node, inputs);
}

size_t own_inputs(const Node& node) {
  return node.tail.empty() ? node.inputs.size() : std::min(node.own_inputs, node.inputs.size());
}

// Returns whether the output has as many rows as an operation finds. A loop joins parts of as many
// iterations as there are, unless their number is constant.
static bool has_found_rows(const Edge& output) {
  const Node& node = *output.node;
  if (!node.def || !node.def->rows_depend_on_data) return false;
  if (node.bodies.empty()) return true;
  const Body& body = *node.bodies[0];
  const bool joined =
      std::any_of(body.outputs.begin(), body.outputs.end(), [&](const Body::Port& port) {
        return port.sliced && port.outer == static_cast<size_t>(output.port);
      });
  const bool constant = node.is("Loop") && constant_value(node.inputs[0]) &&
                        constant_value(node.inputs[1]) &&
                        (!body.condition || body.is_constant(*body.condition));
  return joined && !constant;
}

bool depends_on_values(const Node& node, const std::unordered_set<const Node*>& dependent) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Edge& input) {
    return dependent.contains(input.node) || has_found_rows(input);
  });
}

std::vector<ValueInfo> inferred_outputs(const Node& node, std::span<const ValueInfo> inputs) {
  const ShapeContext context{node.type,
                             node.opset,
                             node.attributes,
                             inputs.first(std::min(inputs.size(), own_inputs(node))),
                             std::max<size_t>(node.outputs.size(), 1),
                             node.bodies};
  if (!node.custom) return node.def->infer_shapes(context);
  if (!node.custom->placed()) return custom_outputs(*node.custom, context);
  std::vector<ValueInfo> outputs;
  for (const NodeOutput& output : node.outputs) outputs.push_back({output.type, output.shape});
  return outputs;
}

std::vector<ValueInfo> known_inputs(const Node& node) {
  std::vector<ValueInfo> infos;
  infos.reserve(node.inputs.size());
  for (const Edge& input : node.inputs) {
    const NodeOutput& tensor = input.node->outputs[input.port];
    const Tensor* constant = constant_value(input);
    infos.push_back({tensor.type, tensor.shape, constant ? *constant : Tensor()});
  }
  infos.resize(own_inputs(node));
  return infos;
}

Tensor shape_value(const Node& node) {
  const Shape& shape = node.inputs[0].node->shape(node.inputs[0].port);
  return Tensor::of(node.outputs[0].type, {static_cast<int64_t>(shape.size())}, shape);
}

std::vector<ValueInfo> known_results(const Graph& graph, std::span<const ValueInfo> parameters) {
  Inference known(graph, parameters);
  for (const auto& node : graph.nodes()) known.note(*node);
  std::vector<ValueInfo> results;
  for (const Node* result : graph.results) {
    const Edge& from = result->inputs[0];
    const NodeOutput& output = from.node->outputs[from.port];
    results.push_back({output.type, output.shape, known.exact_value(from)});
  }
  return results;
}

// Returns the number of nodes of a graph and of all bodies in it.
static int64_t stated_nodes(const Graph& graph) {
  int64_t count = 0;
  for (const auto& node : graph.nodes()) {
    ++count;
    for (const auto& body : node->bodies)
      count += stated_nodes(static_cast<const GraphBody&>(*body).graph());
  }
  return count;
}

void infer_node_shapes(Node& node) {
  naming(node, [&] {
    if (!infer_own(node)) infer_with(node, known_inputs(node));
  });
}

void infer_shapes(Graph& graph, std::span<const ValueInfo> parameters) {
  IterationLimit limit(IterationLimit::kToInferShapes +
                       IterationLimit::kForEachStated * stated_nodes(graph));
  Inference inference(graph, parameters);
  for (const auto& node : graph.nodes()) naming(*node, [&] { inference.infer(*node); });
}

}  // namespace clinfer
