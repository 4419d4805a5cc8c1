// Performance counters by layer of the model.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/runtime/device_network.h"
#include "kernels/custom/custom_layer.h"

namespace clinfer {

std::string name_of(StepProfile::Status status) {
  using Status = StepProfile::Status;
  return status == Status::executed        ? "EXECUTED"
         : status == Status::optimized_out ? "OPTIMIZED_OUT"
                                           : "NOT_RUN";
}

namespace {

StepProfile not_executed(const Graph::Layer& layer, StepProfile::Status status,
                         const std::string& into, const std::string& reason) {
  StepProfile row{layer.name, layer.type, "", 0, 0};
  row.status = status;
  row.fused_into = into;
  row.reason = reason;
  return row;
}

// A layer in a node without a step.
StepProfile without_step(const Graph::Layer& layer, const Node& node) {
  using Status = StepProfile::Status;
  if (node.is("Constant") || layer.type == "Constant")
    return not_executed(layer, Status::not_run, "", "constant");
  if (node.is("Parameter") && layer.type == "Parameter")
    return not_executed(layer, Status::not_run, "", "an input");
  if (node.is("Result")) return not_executed(layer, Status::not_run, "", "an output");
  const std::string into = layer.name == node.name ? "" : node.name;
  const std::string reason = node.is("Parameter")         ? "changes nothing"
                             : node.is("Concat")          ? "its inputs are written in place"
                             : node.def && node.def->view ? "a view of the same memory"
                                                          : "no elements";
  return not_executed(layer, Status::optimized_out, into, into.empty() ? reason : "");
}

std::string host_text(unsigned threads) {
  return threads == 1 ? "host" : "host, " + std::to_string(threads) + " threads";
}

StepProfile transfer(const char* name, double device_ns, double host_ns, double n) {
  return {name, "Transfer", "", device_ns / n / 1e3, host_ns / n / 1e3};
}

}  // namespace

std::vector<StepProfile> DeviceNetwork::profile() const {
  if (!options.perf_count)
    throw Error(ErrorCode::bad_argument, "performance counters were not enabled (PERF_COUNT=YES)");
  const std::lock_guard lock(mutex_);
  const Graph& graph = *whole.plan.graph;
  std::vector<StepProfile> rows;
  std::vector<bool> listed(graph.layers.size());
  const double n = std::max<double>(1, static_cast<double>(inferences_));
  double busy = 0;
  if (overhead_.upload_ns > 0) rows.push_back(transfer("(upload)", overhead_.upload_ns, 0, n));
  if (overhead_.preprocess_ns > 0)
    rows.push_back(transfer("(preprocess)", overhead_.preprocess_ns, 0, n));
  std::unordered_set<const Node*> stepped;
  for (size_t s = 0; s < whole.plan.steps.size(); ++s) {
    const Step& step = whole.plan.steps[s];
    const Node& node = *step.node;
    stepped.insert(&node);
    rows.push_back({node.name, node.custom ? node.custom->type : node.type,
                    step.family ? to_string(KernelChoice{step.family, step.point})
                                : host_text(host_threads_[s]),
                    device_ns_[s] / n / 1e3, host_ns_[s] / n / 1e3});
    busy += device_ns_[s] + host_ns_[s];
    std::vector<int> numbers = node.computes;
    std::sort(numbers.begin(), numbers.end());
    for (const int number : numbers) {
      if (listed[static_cast<size_t>(number)]) continue;
      listed[static_cast<size_t>(number)] = true;
      const Graph::Layer& layer = graph.layers[static_cast<size_t>(number)];
      if (layer.type == "Constant")
        rows.push_back(not_executed(layer, StepProfile::Status::not_run, node.name, "constant"));
      else if (layer.name != node.name)
        rows.push_back(not_executed(layer, StepProfile::Status::optimized_out, node.name, ""));
    }
  }
  std::vector<const Node*> others(graph.layers.size());
  for (const auto& node : graph.nodes())
    if (!stepped.contains(node.get()))
      for (const int number : node->computes) others[static_cast<size_t>(number)] = node.get();
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    if (listed[i]) continue;
    const Graph::Layer& layer = graph.layers[i];
    rows.push_back(others[i]
                       ? without_step(layer, *others[i])
                       : not_executed(layer, StepProfile::Status::not_run, "", "nothing needs it"));
  }
  rows.push_back(transfer("(download)", overhead_.download_ns, overhead_.convert_ns, n));
  busy +=
      overhead_.upload_ns + overhead_.preprocess_ns + overhead_.download_ns + overhead_.convert_ns;
  rows.push_back(transfer("(gaps)", 0, std::max(overhead_.total_ns - busy, 0.0), n));
  return rows;
}

}  // namespace clinfer
