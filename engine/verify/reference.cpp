// Computes networks on the host to check a device.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "engine/compile/first_tier.h"
#include "engine/compile/model_compiler.h"
#include "engine/graph/evaluate.h"
#include "engine/host/model.h"
#include "engine/runtime/model.h"
#include "engine/verify.h"
#include "engine/verify/layer_values.h"
#include "engine/verify/rough.h"
#include "kernels/base/host_type.h"
#include "kernels/custom/custom_layer.h"

namespace clinfer {

namespace {

constexpr double kLongest = 60;  // seconds of one core for an inference

// A layer whose output differs by more than this share of its largest value computes something
// else. Layers are compared from the device's own inputs, so that only one layer's rounding counts.
double most_of_layer(Precision precision) {
  switch (precision) {
    case Precision::f16:
      return 0.01;
    case Precision::bf16:
      return 0.03;
    default:
      return 0.001;
  }
}

// Returns whether the operation's output may change as a whole when an input changes by rounding.
bool selects(const Node& node) {
  static const auto& kParts = *new std::vector<std::string>{"DetectionOutput",
                                                            "NonMaxSuppression",
                                                            "Nms",
                                                            "TopK",
                                                            "Proposal",
                                                            "NonZero",
                                                            "Unique",
                                                            "ArgM",
                                                            "ExperimentalDetectron",
                                                            "CTC",
                                                            "Bucketize",
                                                            "SearchSorted"};
  return std::any_of(kParts.begin(), kParts.end(), [&](const std::string& part) {
    return node.type.find(part) != std::string::npos;
  });
}

// Returns whether the node selects, or reads what one of `selected` made, and then adds it to them.
// To be called for nodes in order.
bool is_selected_by(const Node& node, std::set<const Node*>& selected) {
  const bool is_after = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Edge& input) {
    return selected.contains(input.node);
  });
  if (is_after || selects(node)) selected.insert(&node);
  return is_after || selects(node);
}

std::vector<bool> selected_outputs(const Graph& graph) {
  std::set<const Node*> after;
  for (const auto& node : graph.nodes()) is_selected_by(*node, after);
  std::vector<bool> selected;
  for (const Node* result : graph.results) {
    const Edge& from = result->inputs[0];
    selected.push_back(after.contains(result) || !is_float(from.node->outputs[from.port].type));
  }
  return selected;
}

// Computes a node, by the first tier's fast versions where all values are floats.
std::vector<Tensor> outputs_of(const Node& node, const std::vector<Tensor>& inputs,
                               const host::Work& work) {
  const auto floats = [](const auto& tensors) {
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const auto& tensor) { return is_float(tensor.type()); });
  };
  const bool makes_floats =
      std::all_of(node.outputs.begin(), node.outputs.end(),
                  [](const NodeOutput& output) { return is_float(output.type); });
  const std::unique_ptr<host::Operation> fast =
      makes_floats && floats(inputs) ? host::fast_operation(node) : nullptr;
  if (!fast) return evaluate_node(node, inputs);
  std::vector<Tensor> values, outputs;
  for (const Tensor& input : inputs) values.push_back(input.convert(ElementType::f32));
  for (const NodeOutput& output : node.outputs)
    outputs.push_back(Tensor::allocate(ElementType::f32, output.shape));
  fast->run(work, values, outputs);
  return outputs;
}

// Returns the model with the engine's own operations in place of the user's kernels, whose source
// the host cannot run.
std::shared_ptr<const Model> without_custom_layers(std::shared_ptr<const Model> model) {
  const auto& nodes = model->graph().nodes();
  const auto custom =
      std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return is_custom(*node); });
  if (custom == nodes.end()) return model;
  const std::string what = label(**custom) + " is computed by a kernel of the user";
  if (model->is_from_memory())
    throw Error(ErrorCode::unsupported,
                what + ", and a model from memory cannot be read again without it");
  InputShapes shapes;
  for (size_t i = 0; i < model->inputs().size(); ++i)
    shapes.inputs.emplace_back(std::to_string(i), model->inputs()[i].shape);
  try {
    return Model::read(model->path(), shapes);
  } catch (const Error& error) {
    throw Error(ErrorCode::unsupported, what + " alone: " + error.what());
  }
}

using Order = std::array<size_t, 4>;  // of four dimensions

// Returns a tensor whose dimension d is dimension order[d] of `value`.
Tensor permuted(const Tensor& value, const Order& order) {
  const TensorDesc whole = TensorDesc::row_major(value.type(), value.shape());
  TensorDesc turned{value.type(), Shape(4), Shape(4)};
  for (size_t d = 0; d < 4; ++d) {
    turned.shape[d] = whole.shape[order[d]];
    turned.strides[d] = whole.strides[order[d]];
  }
  return gather_from(turned, value.raw(), ElementType::f32);
}

Order inverse(const Order& order) {
  Order back{};
  for (size_t d = 0; d < 4; ++d) back[order[d]] = d;
  return back;
}

// Computes what a custom layer replaces: `own` is the layer in the model read without custom
// layers, `placed` the one that the device ran, `inputs` its inputs. Tensors of a placed layer have
// four dimensions in the order of their formats. Returns nothing if the tensors do not fit.
std::vector<Tensor> outputs_of_custom(const Node& own, const Node& placed,
                                      const std::vector<Tensor>& inputs, const host::Work& work) {
  if (own.inputs.size() != inputs.size() || own.outputs.size() != placed.outputs.size()) return {};
  std::vector<Tensor> own_inputs, outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Edge& from = own.inputs[i];
    if (from.node->is("Constant")) {
      own_inputs.push_back(from.node->constant);
      continue;
    }
    const Shape& shape = from.node->shape(from.port);
    if (inputs[i].shape().size() != 4 || count(shape) != inputs[i].elements()) return {};
    own_inputs.push_back(permuted(inputs[i], inverse(memory_order(placed.custom->input_formats[i])))
                             .reshaped(shape));
  }
  for (size_t port = 0; const Tensor& output : outputs_of(own, own_inputs, work)) {
    Shape four = output.shape();
    if (four.size() > 4) return {};
    four.resize(4, 1);
    outputs.push_back(permuted(output.convert(ElementType::f32).reshaped(four),
                               memory_order(placed.custom->output_formats[port++])));
  }
  return outputs;
}

class HostReference final : public Reference {
 public:
  HostReference(std::shared_ptr<const Model> model, const Config& config, const GoesOn& goes_on)
      : model_(std::move(model)), config_(config) {
    config_.max_num_threads = 1;
    own_ = without_custom_layers(model_);
    host_ = make_first_tier(own_, config_, goes_on, kLongest);
    request_ = std::make_unique<host::HostRequest>(host_);
    selected_ = selected_outputs(model_->graph());
    const auto& nodes = model_->graph().nodes();
    is_quantised_ = config.quantized_in_integers &&
                    std::any_of(nodes.begin(), nodes.end(),
                                [](const auto& node) { return node->is("FakeQuantize"); });
  }

  const CompiledModel& network() const override { return *host_; }
  InferRequest& request() override { return *request_; }
  bool is_selected(size_t output) const override { return selected_.at(output); }

  std::vector<Tensor> compute(const GoesOn& goes_on) override {
    return request_->infer({1, goes_on});
  }

  std::vector<Tensor> compute_roughly(Precision precision, unsigned seed,
                                      const GoesOn& goes_on) override {
    Roughness rough(precision, is_quantised_, seed);
    // Leaves what is selected as it is: classes and numbers of images must stay whole.
    std::set<const Node*> selected;
    return request_->infer({1, goes_on, [&](const Node& node, std::span<Tensor> outputs) {
                              if (is_selected_by(node, selected)) return;
                              for (Tensor& output : outputs) output = rough.roughen(output);
                            }});
  }

  LayerDifference find_layer(const SetFrame& set_frame, const GoesOn& goes_on) override {
    Config config = config_;
    config.max_num_threads = 0;
    config.batch = host_->batch();
    config.partial_batches = config.half_outputs = config.perf_count = false;
    config.first_tier = false;
    config.streams = 1;
    config.va_display = {};
    const auto compiled = compile_model(
        model_, config, [&](const std::string&, size_t, size_t) { return goes_on(), true; }, {},
        {.expose_layers = true, .one_stream = true});
    const auto request = compiled->create_request();
    set_frame(*request);
    LayerDifference found = first_difference(*compiled, *request, goes_on);
    if (found.layer.empty() || !found.in_frame) return found;
    // The layer reads the frame: checks whether it agrees on the host's conversion.
    for (size_t i = 0; i < request_->inputs().size(); ++i)
      request->set_input(i, request_->inputs()[i]);
    const LayerDifference other = first_difference(*compiled, *request, goes_on);
    found.in_frame = other.layer != found.layer;
    return found;
  }

 private:
  // Runs the request and compares the layers in order. in_frame tells whether the layer found reads
  // an input of the network.
  LayerDifference first_difference(const DeviceModel& compiled, InferRequest& request,
                                   const GoesOn& goes_on) {
    request.start();
    while (!request.wait(std::chrono::milliseconds(20))) goes_on();
    const Graph& graph = *compiled.network().plan().graph;
    const LayerValues device(graph, request_->inputs(), request);
    const double most = most_of_layer(compiled.precision());
    const host::Work work{1, goes_on};
    for (const auto& node : graph.nodes()) {
      if (!node->def || (!node->def->evaluate && !node->custom) || node->is("Reorder")) continue;
      goes_on();
      const std::optional<std::vector<Tensor>> inputs = device.inputs_of(*node);
      if (!inputs) continue;
      const std::vector<Tensor> own = computed(*node, *inputs, work);
      for (size_t port = 0; port < own.size(); ++port) {
        const Tensor* value = device.find({node.get(), static_cast<int>(port)});
        if (value == nullptr || value->elements() != own[port].elements()) continue;
        const TensorDifference d = difference_of(*value, own[port]);
        // Integers are levels of a quantised layer; rounding may choose the next one.
        const double allowed = is_float(node->outputs[port].type)
                                   ? most * d.largest_value
                                   : std::max(1.0, most * d.largest_value);
        if (d.not_finite == 0 && d.largest <= allowed) continue;
        const bool reads_input =
            std::any_of(node->inputs.begin(), node->inputs.end(),
                        [](const Edge& input) { return copied_by(input).node->is("Parameter"); });
        return {node->name, node->custom ? node->custom->type : node->type,
                d.not_finite != 0 ? INFINITY : d.largest, d.largest_value, reads_input};
      }
    }
    return {};
  }

  // Computes a layer, by the engine's own operation for a custom one.
  std::vector<Tensor> computed(const Node& node, const std::vector<Tensor>& inputs,
                               const host::Work& work) const {
    if (!node.custom) return outputs_of(node, inputs, work);
    for (const auto& own : own_->graph().nodes())
      if (own->name == node.name && own->def && own->def->evaluate)
        return outputs_of_custom(*own, node, inputs, work);
    return {};
  }

  const std::shared_ptr<const Model> model_;
  Config config_;
  std::shared_ptr<const Model> own_;  // with the engine's operations in place of custom layers
  std::shared_ptr<host::HostModel> host_;
  std::unique_ptr<host::HostRequest> request_;
  std::vector<bool> selected_;
  bool is_quantised_ = false;
};

}  // namespace

TensorDifference difference_of(const Tensor& value, const Tensor& reference) {
  TensorDifference d;
  const std::vector<float> a = value.to_floats(), b = reference.to_floats();
  double squares = 0, squares_b = 0;
  size_t count = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!std::isfinite(b[i])) continue;
    if (!std::isfinite(a[i])) {
      ++d.not_finite;
      continue;
    }
    const double error = std::abs(static_cast<double>(a[i]) - b[i]);
    squares += error * error;
    squares_b += static_cast<double>(b[i]) * b[i];
    d.largest = std::max(d.largest, error);
    d.largest_value = std::max<double>(d.largest_value, std::abs(b[i]));
    ++count;
  }
  if (count == 0) return d;
  d.typical = std::sqrt(squares / static_cast<double>(count));
  d.typical_value = std::sqrt(squares_b / static_cast<double>(count));
  return d;
}

std::unique_ptr<Reference> Reference::make(std::shared_ptr<const Model> model, const Config& config,
                                           const GoesOn& goes_on) {
  return std::make_unique<HostReference>(std::move(model), config, goes_on);
}

}  // namespace clinfer
