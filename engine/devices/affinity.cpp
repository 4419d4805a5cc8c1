// Chooses a device for each layer, as the model states it or automatically.
#include "engine/devices/affinity.h"

#include <algorithm>
#include <optional>

#include "engine/graph/affinity.h"
#include "engine/plan/work.h"

namespace clinfer {

namespace {

// Work that a host does in a millisecond or two, in elements read and written, or in multiply-adds.
constexpr double kLittleWork = 1e6;

bool computes(const Node& node) {
  return !node.is("Parameter") && !node.is("Constant") && !node.is("Result");
}

bool moves_data(const Node& node) {
  return reshapes(node) || node.is("Transpose") || (node.def && node.def->view);
}

bool host_is_fast(const Node& node) {
  double work = multiply_adds(describe(node));
  for (const NodeOutput& output : node.outputs) work += static_cast<double>(count(output.shape));
  for (const Edge& input : node.inputs)
    if (!input.node->is("Constant"))
      work += static_cast<double>(count(input.node->shape(input.port)));
  return work <= kLittleWork;
}

// Returns the device of all nodes in the list that compute; nothing if they have several devices or
// none of them computes.
template <typename Nodes>
std::optional<size_t> common_device(const Nodes& nodes, const Affinities& affinities) {
  std::optional<size_t> common;
  for (const Node* node : nodes) {
    const auto found = affinities.find(node);
    if (found == affinities.end()) continue;
    if (common && *common != found->second) return std::nullopt;
    common = found->second;
  }
  return common;
}

std::vector<const Node*> producers(const Node& node) {
  std::vector<const Node*> all;
  for (const Edge& input : node.inputs) all.push_back(input.node);
  return all;
}

size_t preferred_device(const Node& node, size_t devices, const HasKernels& has_kernels,
                        const Affinities& known) {
  const std::optional<size_t> before = common_device(producers(node), known);
  if (before && moves_data(node) && has_kernels(node, *before)) return *before;
  for (size_t device = 0; device < devices; ++device)
    if (has_kernels(node, device) && (device == 0 || is_custom(node) || !host_is_fast(node)))
      return device;
  for (const Node* producer : producers(node))
    if (const auto found = known.find(producer); found != known.end()) return found->second;
  return 0;
}

}  // namespace

bool states_affinities(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return computes(*node) && node->attributes.has(kAffinity);
  });
}

Affinities stated_affinities(const Graph& graph, const std::vector<std::string>& devices,
                             const std::function<std::string(const std::string&)>& full_name) {
  Affinities affinities;
  std::string list;
  for (const std::string& device : devices) list += (list.empty() ? "" : ", ") + device;
  for (const auto& node : graph.nodes()) {
    if (!computes(*node)) continue;
    if (!node->attributes.has(kAffinity))
      throw Error(ErrorCode::bad_model,
                  label(*node) +
                      " has no affinity in its rt_info, although other layers have one: "
                      "give each layer one, or none of them");
    const std::string stated = node->attributes.get_string(kAffinity);
    const auto found = std::find(devices.begin(), devices.end(), full_name(stated));
    if (found == devices.end())
      throw Error(ErrorCode::bad_model, label(*node) + " has the affinity \"" + printable(stated) +
                                            "\", which is none of the devices of HETERO: " + list);
    affinities[node.get()] = static_cast<size_t>(found - devices.begin());
  }
  return affinities;
}

Affinities automatic_affinities(const Graph& graph, size_t devices, const HasKernels& has_kernels) {
  Affinities affinities;
  for (const auto& node : graph.nodes())
    if (computes(*node))
      affinities[node.get()] = preferred_device(*node, devices, has_kernels, affinities);
  // A single layer between layers of another device joins them.
  for (const auto& node : graph.nodes()) {
    if (!computes(*node)) continue;
    const auto before = common_device(producers(*node), affinities),
               after = common_device(graph.users(node.get()), affinities);
    if (before && after && *before == *after && has_kernels(*node, *before))
      affinities[node.get()] = *before;
  }
  return affinities;
}

std::unordered_set<const Node*> inseparable_layers(const Graph& graph) {
  std::unordered_set<const Node*> dependent, together;
  for (const auto& node : graph.nodes())
    if (depends_on_values(*node, dependent)) {
      dependent.insert(node.get());
      for (const Edge& input : node->inputs)
        if (input.node->def && input.node->def->rows_depend_on_data) together.insert(input.node);
    }
  for (const auto& node : graph.nodes())
    if (computes(*node) &&
        (dependent.contains(node.get()) ||
         std::any_of(node->inputs.begin(), node->inputs.end(),
                     [&](const Edge& input) { return together.contains(input.node); })))
      together.insert(node.get());
  return together;
}

std::string put_together(const Graph& graph, const std::unordered_set<const Node*>& inseparable,
                         Affinities& affinities, const std::vector<std::string>& devices) {
  const Node* first = nullptr;
  std::string moved;
  for (const auto& node : graph.nodes()) {
    if (!inseparable.contains(node.get())) continue;
    if (first == nullptr) first = node.get();
    size_t& device = affinities[node.get()];
    if (device != affinities[first] && moved.empty()) moved = label(*node);
    device = affinities[first];
  }
  if (moved.empty()) return "";
  return moved + " stays on " + devices[affinities[first]] + " with " + label(*first) +
         ": how many rows that hands on is only known when it has run";
}

}  // namespace clinfer
