// Plans single layers for devices.
#include "engine/compile/layer_devices.h"

#include <algorithm>

#include "engine/compile/device_choice.h"
#include "engine/graph/insertion.h"
#include "engine/ocl/choose.h"
#include "engine/plan/plan.h"
#include "kernels/custom/custom_layer.h"

namespace clinfer {

namespace {

// Returns a graph of this layer alone, fed by Parameters. Compiling it shows whether a device has
// kernels for the layer.
std::unique_ptr<Graph> alone(const Node& node) {
  auto graph = std::make_unique<Graph>();
  Insertion insertion(*graph, nullptr, node.name);
  std::vector<Edge> inputs;
  for (const Edge& input : node.inputs) {
    const NodeOutput& value = input.node->outputs[static_cast<size_t>(input.port)];
    const Tensor* constant = constant_value(input);
    inputs.push_back(constant ? insertion.constant(*constant)
                              : insertion.parameter(value.type, value.shape));
  }
  Node* const twin = insertion.copy(node);
  twin->inputs = std::move(inputs);
  for (size_t port = 0; port < twin->outputs.size(); ++port)
    insertion.result({twin, static_cast<int>(port)});
  return graph;
}

PassContext context_for(const Config& config, const Graph& graph, const ocl::ChosenDevice& device) {
  const bool half = half_activations(config, graph, device.traits.fp16 && device.info.fp16);
  PassContext context{device.traits, half ? ElementType::f16 : ElementType::f32};
  context.traits.ordered_sums = config.ordered_sums;
  context.unroll_loops = config.unroll_loops;
  context.integers = config.quantized_in_integers;
  return context;
}

// Returns whether a value of CONFIG_FILE names the file that "FILE:LINE" is about.
bool names(const std::string& config_file, const std::string& where) {
  const std::string file = where.substr(0, where.rfind(':'));
  const auto ends_name = [&](size_t at) {
    return at >= config_file.size() || config_file[at] == ' ' || config_file[at] == '"';
  };
  for (size_t at = config_file.find(file); at != std::string::npos;
       at = config_file.find(file, at + 1))
    if ((at == 0 || ends_name(at - 1)) && ends_name(at + file.size())) return true;
  return false;
}

}  // namespace

LayerDevices::LayerDevices(const Config& config, const Graph& graph,
                           std::vector<std::string> devices)
    : devices_(std::move(devices)) {
  const bool differ = std::ranges::any_of(
      config.device_settings,
      [](const Config::DeviceSetting& setting) { return setting.key == "CONFIG_FILE"; });
  for (const std::string& device : devices_) {
    const Config one = config_for(config, device);
    contexts_.push_back(context_for(one, graph, ocl::choose_device(device)));
    if (differ) config_files_.push_back(one.config_file);
  }
}

std::string LayerDevices::why_not(const Node& node, size_t device, bool& on_host) const {
  on_host = false;
  if (node.custom != nullptr && !config_files_.empty() &&
      !names(config_files_[device], node.custom->layer->where))
    return "its kernel, " + node.custom->layer->where + ", is for another device";
  try {
    auto graph = alone(node);
    run_passes(*graph, contexts_[device]);
    const Plan plan = make_plan(std::move(graph), contexts_[device].traits);
    for (const NodeRun& run : node_runs(plan)) {
      if (run.where != NodeRun::Where::host) continue;
      on_host = true;
      return run.how;
    }
    return "";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) return error.what();
    throw;
  }
}

Affinities LayerDevices::affinities(const Graph& graph, const Progress& progress) const {
  if (states_affinities(graph)) return stated_affinities(graph, devices_, ocl::full_device_name);
  size_t asked = 0;
  return automatic_affinities(graph, devices_.size(), [&](const Node& node, size_t device) {
    if (progress && ++asked % 16 == 0 &&
        !progress("asking devices for kernels", asked, graph.nodes().size()))
      throw Error(ErrorCode::cancelled, "compiling was cancelled");
    bool on_host = false;
    return why_not(node, device, on_host).empty();
  });
}

}  // namespace clinfer
