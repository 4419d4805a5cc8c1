// Evaluates a graph on the host, node by node. Drops each value after its last use.
#include "engine/graph/evaluate.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "kernels/base/host_type.h"
#include "kernels/expand.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

Tensor as_type(const Tensor& tensor, ElementType type) {
  return tensor.type() == type ? tensor : tensor.convert(type);
}

// Returns the number of outputs of the operation itself, without the one that its tail keeps.
size_t own_outputs(const Node& node) { return node.outputs.size() - (keeps(node.tail) ? 1 : 0); }

std::vector<ValueInfo> infos_of(std::span<const Tensor> values) {
  std::vector<ValueInfo> infos;
  for (const Tensor& value : values) infos.push_back({value.type(), value.shape(), value});
  return infos;
}

}  // namespace

size_t bytes_to_evaluate(const Node& node, std::span<const Tensor> inputs) {
  const std::vector<ValueInfo> infos = infos_of(inputs.first(own_inputs(node)));
  return bytes_of_outputs(node) +
         bytes_of_steps(*node.def, {node.type, node.opset, node.attributes, infos,
                                    own_outputs(node), node.bodies});
}

double work_to_evaluate(const Node& node, std::span<const Tensor> inputs) {
  double work = 0;
  for (const NodeOutput& output : node.outputs) work += static_cast<double>(count(output.shape));
  // Counts the multiplications for each number of the output: the row of a factor of a product, the
  // weights of a channel of a convolution.
  double each = 1;
  if (inputs.size() > 1 && (node.is("MatMul") || node.is("Einsum") || node.is("Inverse") ||
                            std::string_view(node.type).find("Convolution") != std::string::npos)) {
    const Tensor& factor = inputs[node.is("MatMul") || node.is("Einsum") ? 0 : 1];
    each =
        static_cast<double>(factor.elements()) /
        static_cast<double>(factor.shape().empty() ? 1 : std::max<int64_t>(factor.shape()[0], 1));
    const Shape& shape = factor.shape();
    if (node.is("MatMul") && !shape.empty())
      each = static_cast<double>(node.attributes.get_bool("transpose_a", false) && shape.size() > 1
                                     ? shape[shape.size() - 2]
                                     : shape.back());
  }
  if (node.is("CompressedMatMul")) each = static_cast<double>(inputs[0].shape().back());
  work *= each;
  for (const Tensor& input : inputs) work += static_cast<double>(input.elements());
  return work;
}

std::vector<Tensor> evaluate_node(const Node& node, std::span<const Tensor> inputs,
                                  bool sizes_vary) {
  if (node.is("Constant")) return {as_type(node.constant, host_type(node.constant.type()))};
  if (!node.def || !node.def->evaluate)
    throw Error(ErrorCode::unsupported, "the operation has no version for the host");
  OpDesc desc = describe(node);
  std::vector<Tensor> values;
  values.reserve(inputs.size());
  for (const Tensor& input : inputs) values.push_back(as_type(input, host_type(input.type())));
  std::vector<Tensor> outputs;
  outputs.reserve(node.outputs.size());
  if (sizes_vary) {
    for (size_t i = 0; i < values.size(); ++i)
      desc.inputs[i] = TensorDesc::row_major(values[i].type(), values[i].shape());
    const std::vector<ValueInfo> infos =
        infos_of(std::span<const Tensor>(values).first(desc.own_inputs));
    for (const ValueInfo& output : node.def->infer_shapes(
             {node.type, node.opset, node.attributes, infos, own_outputs(node), node.bodies}))
      outputs.push_back(Tensor::allocate(host_type(output.type), output.shape));
  } else {
    for (const NodeOutput& output : node.outputs)
      outputs.push_back(Tensor::allocate(
          quantizes(node.tail) ? ElementType::f32 : host_type(output.type), output.shape));
  }
  outputs.resize(node.outputs.size());
  // Skips empty outputs, because an intermediate sum could still span a whole plane.
  const auto own = std::span<Tensor>(outputs).first(own_outputs(node));
  if (!std::ranges::all_of(own, [](const Tensor& output) { return output.elements() == 0; }))
    node.def->evaluate(desc, std::span<const Tensor>(values).first(desc.own_inputs), own);
  apply_tail(desc, values, outputs);
  return outputs;
}

std::vector<Tensor> evaluate_graph(const Graph& graph, std::span<const Tensor> inputs,
                                   const NodeWatcher& watch) {
  if (inputs.size() != graph.parameters.size())
    throw Error(ErrorCode::bad_argument, "the model has " +
                                             std::to_string(graph.parameters.size()) + " inputs, " +
                                             std::to_string(inputs.size()) + " are given");
  std::unordered_map<const Node*, std::vector<Tensor>> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = *graph.parameters[i];
    if (inputs[i].shape() != node.shape())
      throw Error(ErrorCode::bad_argument, "input \"" + printable(node.name) + "\" has the shape " +
                                               to_string(node.shape()) + ", the value given " +
                                               to_string(inputs[i].shape()));
    values[&node] = {as_type(inputs[i], host_type(node.outputs[0].type))};
  }
  std::unordered_map<const Node*, size_t> uses;
  for (const auto& node : graph.nodes())
    for (const Edge& input : node->inputs) ++uses[input.node];

  std::unordered_map<const Node*, Tensor> results;
  std::unordered_set<const Node*> varying;
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> arguments;
    arguments.reserve(node->inputs.size());
    for (const Edge& input : node->inputs) {
      arguments.push_back(values.at(input.node)[input.port]);
      if (--uses[input.node] == 0) values.erase(input.node);
    }
    if (node->is("Result")) {
      results[node.get()] = arguments[0];
      continue;
    }
    if (node->is("Parameter")) continue;
    try {
      const bool sizes_vary = depends_on_values(*node, varying);
      if (sizes_vary) varying.insert(node.get());
      std::vector<Tensor> outputs = evaluate_node(*node, arguments, sizes_vary);
      if (watch) watch(*node, outputs);
      if (uses[node.get()] != 0) values[node.get()] = std::move(outputs);
    } catch (const Error& error) {
      throw Error(error.code(), label(*node) + ": " + error.what(), error.place());
    }
  }
  std::vector<Tensor> ordered;
  for (const Node* node : graph.results) ordered.push_back(results.at(node));
  return ordered;
}

}  // namespace clinfer
