// Builds and runs a network on the host.
#include "engine/host/network.h"

#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
#include "kernels/base/host_type.h"

namespace clinfer::host {

namespace {

// The last pass to run: later ones are about the device's memory and number formats.
constexpr const char* kLastPass = "fuse_tails";

DeviceTraits plain_traits() {
  DeviceTraits traits;
  traits.is_cpu = true;
  return traits;
}

// Returns whether the node, or a branch of it, runs a body several times.
bool is_loop(const Node& node) {
  if (node.is("Loop") || node.is("TensorIterator")) return true;
  return std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) {
    const auto* graph = dynamic_cast<const GraphBody*>(body.get());
    return graph && std::any_of(graph->graph().nodes().begin(), graph->graph().nodes().end(),
                                [](const auto& inner) { return is_loop(*inner); });
  });
}

}  // namespace

Network::Network(std::unique_ptr<Graph> graph, bool unroll_loops,
                 const std::function<void()>& may_go_on) {
  PassContext context{plain_traits(), ElementType::f32};
  context.unroll_loops = unroll_loops;
  context.integers = context.loops_on_device = false;
  run_passes(*graph, context, kLastPass,
             [&](size_t, const std::string&, const Graph&) { may_go_on(); });
  graph_ = std::move(graph);
  for (const auto& node : graph_->nodes()) {
    may_go_on();
    add(*node);
  }
  for (const Node* parameter : graph_->parameters)
    parameters_.push_back(first_value_.at(parameter));
  for (const Node* result : graph_->results) {
    const Edge& from = result->inputs[0];
    results_.push_back(first_value_.at(from.node) + static_cast<size_t>(from.port));
  }
  keep_constants_read();
  // Releases each value after its last reader.
  std::vector<bool> kept(constants_.size(), false);
  for (const size_t result : results_) kept[result] = true;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    for (const size_t input : step->inputs)
      if (!kept[input] && constants_[input].empty()) {
        kept[input] = true;
        step->released.push_back(input);
      }
    for (size_t i = 0; i < step->node->outputs.size(); ++i)
      if (!kept[step->first_output + i]) step->released.push_back(step->first_output + i);
  }
  first_value_.clear();
  varying_.clear();
}

// Keeps only the constants that are read while the network runs, in the form in which the host
// stores them.
void Network::keep_constants_read() {
  std::vector<bool> read(constants_.size(), false);
  for (const size_t result : results_) read[result] = true;
  for (const Step& step : steps_)
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (!step.operation || step.operation->reads(i)) read[step.inputs[i]] = true;
  for (size_t value = 0; value < constants_.size(); ++value) {
    Tensor& constant = constants_[value];
    if (constant.empty()) continue;
    const ElementType type = host_type(constant.type());
    if (!read[value])
      constant = {};
    else if (constant.type() != type)
      constant = constant.convert(type);
  }
}

void Network::add(const Node& node) {
  const auto value_of = [&](const Edge& edge) {
    return first_value_.at(edge.node) + static_cast<size_t>(edge.port);
  };
  if (node.is("Result")) return;
  const size_t first = constants_.size();
  first_value_[&node] = first;
  constants_.resize(first + node.outputs.size());
  if (node.is("Parameter")) return;
  if (node.is("Constant")) {
    constants_[first] = node.constant;
    return;
  }
  if (!node.def || !node.def->evaluate)
    throw Error(ErrorCode::unsupported, label(node) + " has no version for the host");
  // Refuses loops, which may take any time; passes have unrolled those whose work is known.
  if (is_loop(node))
    throw Error(ErrorCode::unsupported, label(node) + " may take any time on the host");
  Step step;
  step.node = &node;
  step.first_output = first;
  for (const Edge& input : node.inputs) step.inputs.push_back(value_of(input));
  step.sizes_vary = depends_on_values(node, varying_);
  if (step.sizes_vary || node.def->rows_depend_on_data) varying_.insert(&node);
  if (!step.sizes_vary && !node.def->rows_depend_on_data) step.operation = fast_operation(node);
  double seconds = step.operation ? step.operation->seconds : 0;
  if (!step.operation)
    if (const auto plain = make_plain(*node.def, describe(node))) seconds = plain->seconds;
  seconds_ += seconds;
  if (seconds > most_) {
    most_ = seconds;
    longest_ = label(node);
  }
  steps_.push_back(std::move(step));
}

std::unique_ptr<Operation> fast_operation(const Node& node) {
  OpDesc desc = describe(node);
  for (auto* tensors : {&desc.inputs, &desc.outputs})
    for (TensorDesc& tensor : *tensors)
      tensor = TensorDesc::row_major(host_type(tensor.type), tensor.shape);
  desc.own_inputs = own_inputs(node);
  try {
    if (auto made = make_convolution(desc)) return made;
    if (auto made = make_deconvolution(desc)) return made;
    if (auto made = make_matrix_product(desc)) return made;
    if (auto made = make_pooling(desc)) return made;
    if (auto made = make_elementwise(*node.def, desc)) return made;
    return make_plain(*node.def, desc);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return nullptr;  // nullptr: evaluate_node() computes it
  }
}

std::vector<Tensor> Network::run(const Step& step, const Work& work,
                                 std::span<const Tensor> inputs) const {
  if (!step.operation) return evaluate_node(*step.node, inputs, step.sizes_vary);
  const Node& node = *step.node;
  if (reshapes(node) && node.tail.empty()) return {inputs[0].reshaped(node.shape())};
  std::vector<Tensor> outputs;
  for (const NodeOutput& output : node.outputs)
    outputs.push_back(Tensor::allocate(host_type(output.type), output.shape));
  step.operation->run(work, inputs, outputs);
  return outputs;
}

std::vector<Tensor> Network::infer(const Work& work, std::span<const Tensor> inputs) const {
  std::vector<Tensor> values = constants_;
  for (size_t i = 0; i < parameters_.size(); ++i) values[parameters_[i]] = inputs[i];
  for (const Step& step : steps_) {
    work.may_go_on();
    std::vector<Tensor> arguments;
    for (const size_t input : step.inputs) arguments.push_back(values[input]);
    try {
      std::vector<Tensor> outputs = run(step, work, arguments);
      if (work.after_layer) work.after_layer(*step.node, outputs);
      std::move(outputs.begin(), outputs.end(),
                values.begin() + static_cast<std::ptrdiff_t>(step.first_output));
    } catch (const Error& error) {
      throw Error(error.code(), label(*step.node) + ": " + error.what(), error.place());
    }
    for (const size_t value : step.released) values[value] = {};
  }
  std::vector<Tensor> results;
  for (const size_t result : results_) results.push_back(values[result]);
  return results;
}

}  // namespace clinfer::host
