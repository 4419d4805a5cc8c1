// Decides what tensors are stored in: floats as the device computes best, 64-bit integers as 32
// bits, booleans as bytes. Constants keep their values; only the type in which a kernel would see
// them changes. What the host computes, or the application gives, for operations that run on the
// host stays f32, and so do boxes and scores (Proposal, NonMaxSuppression, DetectionOutput)
// wherever they are computed: f16 is too coarse for pixels, and the order of scores would change.
#include <algorithm>
#include <initializer_list>

#include "engine/passes/passes.h"

namespace clinfer {

namespace {

bool is_wide(const Node& node) {
  if (node.is("Parameter")) return true;
  return node.def &&
         (node.def->stays_wide || (node.def->families.empty() && !node.def->host_reason.empty()));
}

bool stays_wide(const Graph& graph, Node& node, int port) {
  const auto takes_wide = [&](const Node& user) {
    if (node.is("Constant")) return user.def && user.def->stays_wide;
    return user.is("Result") || (user.def && !user.def->host_reason.empty());
  };
  if (!node.is("Constant") && !is_wide(node)) return false;
  const std::vector<Node*> users = graph.users({&node, port});
  return std::all_of(users.begin(), users.end(),
                     [&](const Node* user) { return takes_wide(*user); });
}

int64_t pixels_of_picture(const Graph& graph) {
  int64_t most = 0;
  for (const Node* parameter : graph.parameters)
    if (const Shape& shape = parameter->shape(); shape.size() == 4 && count(shape) > 0)
      most = std::max(most, count(shape) / (shape[0] * std::min(shape[1], shape[3])));
  return most;
}

// Sums of so many channels average little of what rounding adds to each.
constexpr int64_t kFewChannels = 32;
// A map of a quarter of the picture's pixels has half its width and height.
constexpr int64_t kLeastShare = 4;

// Whether an output is a probability for each pixel that a convolution sums up from few channels,
// as text detectors for small devices have it. Between text and ground such a map is as steep as
// training made it, so that the roundings of all layers, few of which average out, are seen in it:
// up to 0.03 where one layer alone moves nothing by more than half a unit in the last place.
bool is_narrow_probability_map(const Graph& graph, const Node& result) {
  const auto is_one_of = [](const Node& node, std::initializer_list<const char*> types) {
    return std::any_of(types.begin(), types.end(), [&](const char* type) { return node.is(type); });
  };
  Edge at = result.inputs[0];
  const auto go_back_through = [&](std::initializer_list<const char*> types) {
    while (is_one_of(*at.node, types)) {
      const auto& inputs = at.node->inputs;
      const bool first = inputs.size() < 2 || !inputs[0].node->is("Constant");
      at = inputs[first ? 0 : 1];
    }
  };
  go_back_through({"Convert", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Clamp"});
  if (!is_one_of(*at.node, {"Sigmoid", "HardSigmoid", "SoftMax"})) return false;
  at = at.node->inputs[0];
  go_back_through({"Add", "Subtract", "Multiply", "Convert", "Reshape", "Transpose"});
  if (!is_one_of(*at.node, {"Convolution", "ConvolutionBackpropData"})) return false;
  const Edge data = at.node->inputs[0];
  const Shape& map = at.node->shape();
  return map.size() == 4 && data.node->shape(data.port)[1] <= kFewChannels &&
         map[2] * map[3] * kLeastShare >= pixels_of_picture(graph);
}

}  // namespace

bool half_activations(const Config& config, const Graph& graph, bool device_has_fp16) {
  if (config.precision != Precision::automatic) return config.precision == Precision::f16;
  const bool quantised = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                     [](const auto& node) { return node->is("FakeQuantize"); });
  return device_has_fp16 && (config.fp16_for_quantized_models || !quantised) &&
         std::none_of(graph.results.begin(), graph.results.end(), [&](const Node* result) {
           return is_narrow_probability_map(graph, *result);
         });
}

void set_precision(Graph& graph, const PassContext& context) {
  for (const auto& node : graph.nodes)
    for (size_t port = 0; port < node->outputs.size(); ++port) {
      NodeOutput& output = node->outputs[port];
      if (is_float(output.type))
        output.type = stays_wide(graph, *node, static_cast<int>(port)) ? ElementType::f32
                                                                       : context.activations;
      else if (output.type == ElementType::boolean)
        output.type = ElementType::u8;
      else if (size_of(output.type) == 8 || output.type == ElementType::u32 ||
               size_of(output.type) == 2)
        output.type = ElementType::i32;
    }
}

}  // namespace clinfer
