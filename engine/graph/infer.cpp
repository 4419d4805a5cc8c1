// Element types and shapes of all outputs, front to back. Where a shape depends on values that
// constants and shapes determine (ShapeOf chains), those values are computed too.
#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/graph/inference.h"
#include "kernels/base/host_type.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;  // of one tensor
constexpr int64_t kMostShapeElements = int64_t{1}
                                       << 16;         // of a tensor that shapes are computed from
constexpr size_t kMostShapeBytes = size_t{64} << 20;  // on the way to one such tensor
constexpr size_t kMostDimensions = 16;

void check_shape(const Shape& shape, size_t port) {
  const std::string which = "output " + std::to_string(port) + " would have ";
  if (shape.size() > kMostDimensions)
    throw Error(ErrorCode::unsupported, which + std::to_string(shape.size()) + " dimensions");
  int64_t elements = 1;
  for (int64_t dim : shape) {
    if (dim < 0)
      throw Error(ErrorCode::bad_model, which + "the impossible shape " + to_string(shape));
    // Dimensions beside a 0 count as well, so that no product of some of them overflows later.
    if (__builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements) ||
        elements > kMostElements)
      throw Error(ErrorCode::unsupported,
                  which + "the shape " + to_string(shape) + ", which is too large");
  }
}

void infer_with(Node& node, std::span<const ValueInfo> inputs) {
  const size_t stated = node.outputs.size();
  const std::vector<ValueInfo> infos = node.def->infer_shapes(
      {node.type, node.opset, node.attributes, inputs, std::max<size_t>(stated, 1), node.bodies});
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

// Runs `work`; puts the layer's name in front of errors that it throws.
template <typename Work>
void naming(const Node& node, Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    throw Error(error.code(), label(node) + ": " + error.what());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, label(node) + ": not enough memory");
  } catch (const std::exception& error) {
    throw Error(ErrorCode::bad_model, label(node) + ": " + error.what());
  }
}

// True if the node's type and shapes follow from what the graph itself states, not from the def.
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
    // How much is found in known values is known as well.
    if (node.def->rows_depend_on_data) complete(node, infos);
    try {
      infer_with(node, infos);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported || !complete(node, infos)) throw;
      infer_with(node, infos);
    }
  }
  note(node);
}

void Inference::note(const Node& node) {
  if (is_determined(node)) determined_.insert(&node);
}

void Inference::set_value(const Node& parameter, Tensor value) {
  values_[&parameter] = {std::move(value)};
  note(parameter);
}

Tensor Inference::value(const Edge& edge) {
  if (!determined_.contains(edge.node)) return {};
  compute(edge.node);
  return values_.at(edge.node)[edge.port];
}

// Gives the inputs the values of all of them that are determined; false if these are no more than
// the constants.
bool Inference::complete(const Node& node, std::vector<ValueInfo>& infos) {
  bool more = false;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!infos[i].value.empty()) continue;
    infos[i].value = value(node.inputs[i]);
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

// Computes the nodes that `wanted` depends on, then `wanted`; without recursion, since a chain may
// be long.
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
  return evaluate_node(node, inputs);
}

size_t own_inputs(const Node& node) {
  return node.tail.empty() ? node.inputs.size() : std::min(node.own_inputs, node.inputs.size());
}

bool depends_on_values(const Node& node, const std::unordered_set<const Node*>& dependent) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Edge& input) {
    const Node& from = *input.node;
    return dependent.count(&from) ||
           (from.def && from.def->rows_depend_on_data && from.bodies.empty());
  });
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
    results.push_back({output.type, output.shape, known.value(from)});
  }
  return results;
}

void infer_node_shapes(Node& node) {
  naming(node, [&] {
    if (!infer_own(node)) infer_with(node, known_inputs(node));
  });
}

void infer_shapes(Graph& graph, std::span<const ValueInfo> parameters) {
  IterationLimit limit(IterationLimit::kToInferShapes);
  Inference inference(graph, parameters);
  for (const auto& node : graph.nodes()) naming(*node, [&] { inference.infer(*node); });
}

}  // namespace clinfer
