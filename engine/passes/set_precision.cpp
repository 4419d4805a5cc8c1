// Decides what tensors are stored in: floats as the device computes best, 64-bit integers as 32
// bits, booleans as bytes. Constants keep their values; only the type in which a kernel would see
// them changes. What the host computes, or the application gives, for operations that run on the
// host stays f32, and so do boxes and scores (Proposal, NonMaxSuppression, DetectionOutput)
// wherever they are computed: f16 is too coarse for pixels, and the order of scores would change.
#include <algorithm>

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
  const std::vector<Node*> users = graph.users({&node, port});
  return (node.is("Constant") || is_wide(node)) &&
         std::all_of(users.begin(), users.end(),
                     [&](const Node* user) { return takes_wide(*user); });
}

}  // namespace

bool half_activations(const Config& config, const Graph& graph, bool device_has_fp16) {
  if (config.precision != Precision::automatic) return config.precision == Precision::f16;
  const bool quantised = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                     [](const auto& node) { return node->is("FakeQuantize"); });
  return device_has_fp16 && (config.fp16_for_quantized_models || !quantised);
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
