// Collects performance counters by layer of the model.
#include <algorithm>
#include <span>
#include <unordered_set>

#include "engine/runtime/network/device_network.h"
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

// Describes a layer of a node that has no step.
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

// Makes a row for each layer of a plan, in the order of the steps. Layers inside a loop follow the
// loop.
class LayerRows {
 public:
  LayerRows(const Plan& plan, std::vector<StepProfile>& rows, const std::string& prefix = "")
      : plan_(plan), rows_(rows), prefix_(prefix), listed_(plan.graph->layers.size()) {}

  // Adds the layers of a step. `launch_us` has the time of each launch of the step.
  void add_step(size_t s, std::span<const double> launch_us, double host_us,
                const std::string& host) {
    const Step& step = plan_.steps[s];
    const Node& node = *step.node;
    stepped_.insert(&node);
    double device_us = 0;
    for (const double us : launch_us) device_us += us;
    // Leaves the time to the rows of the loop's layers.
    if (step.loop) device_us = 0;
    push({node.name, node.custom ? node.custom->type : node.type,
          step.loop     ? std::to_string(step.loop->count) + " iterations"
          : step.family ? to_string(KernelChoice{step.family, step.point})
                        : host,
          device_us, host_us});
    std::vector<int> numbers = node.computes;
    std::sort(numbers.begin(), numbers.end());
    for (const int number : numbers) {
      if (listed_[static_cast<size_t>(number)]) continue;
      listed_[static_cast<size_t>(number)] = true;
      const Graph::Layer& layer = plan_.graph->layers[static_cast<size_t>(number)];
      if (layer.type == "Constant")
        push(not_executed(layer, StepProfile::Status::not_run, node.name, "constant"));
      else if (layer.name != node.name)
        push(not_executed(layer, StepProfile::Status::optimized_out, node.name, ""));
    }
    if (step.loop) add_body(*step.loop, node.name, launch_us);
  }

  // Adds the layers that no step computes.
  void add_others() {
    const Graph& graph = *plan_.graph;
    std::vector<const Node*> others(graph.layers.size());
    for (const auto& node : graph.nodes())
      if (!stepped_.contains(node.get()))
        for (const int number : node->computes) others[static_cast<size_t>(number)] = node.get();
    for (size_t i = 0; i < graph.layers.size(); ++i) {
      if (listed_[i]) continue;
      const Graph::Layer& layer = graph.layers[i];
      push(others[i] ? without_step(layer, *others[i])
                     : not_executed(layer, StepProfile::Status::not_run, "", "nothing needs it"));
    }
  }

 private:
  void push(StepProfile row) {
    row.layer = prefix_ + row.layer;
    if (!row.fused_into.empty()) row.fused_into = prefix_ + row.fused_into;
    rows_.push_back(std::move(row));
  }

  // Adds the layers of a loop's body. Their times are sums over all iterations.
  void add_body(const Loop& loop, const std::string& name, std::span<const double> launch_us) {
    LayerRows inside(*loop.body, rows_, prefix_ + name + "/");
    for (size_t s = 0; s < loop.body->steps.size(); ++s) {
      const size_t launches = loop.body->steps[s].kernels.launches.size();
      inside.add_step(s, launch_us.first(launches), 0, "");
      launch_us = launch_us.subspan(launches);
    }
    inside.add_others();
  }

  const Plan& plan_;
  std::vector<StepProfile>& rows_;
  const std::string prefix_;
  std::unordered_set<const Node*> stepped_;
  std::vector<bool> listed_;  // by layer
};

}  // namespace

std::vector<StepProfile> DeviceNetwork::profile() const {
  if (!options.perf_count)
    throw Error(ErrorCode::bad_argument, "performance counters were not enabled (PERF_COUNT=YES)");
  const std::lock_guard lock(mutex_);
  std::vector<StepProfile> rows;
  const double n = std::max<double>(1, static_cast<double>(inferences_));
  double busy = 0;
  if (overhead_.upload_ns > 0) rows.push_back(transfer("(upload)", overhead_.upload_ns, 0, n));
  if (overhead_.preprocess_ns > 0)
    rows.push_back(transfer("(preprocess)", overhead_.preprocess_ns, 0, n));
  LayerRows layers(whole.plan, rows);
  for (size_t s = 0; s < whole.plan.steps.size(); ++s) {
    std::vector<double> launch_us;
    for (const double ns : launch_ns_[s]) {
      launch_us.push_back(ns / n / 1e3);
      busy += ns;
    }
    layers.add_step(s, launch_us, host_ns_[s] / n / 1e3, host_text(host_threads_[s]));
    busy += host_ns_[s];
  }
  layers.add_others();
  rows.push_back(transfer("(download)", overhead_.download_ns, overhead_.convert_ns, n));
  busy +=
      overhead_.upload_ns + overhead_.preprocess_ns + overhead_.download_ns + overhead_.convert_ns;
  rows.push_back(transfer("(gaps)", 0, std::max(overhead_.total_ns - busy, 0.0), n));
  return rows;
}

}  // namespace clinfer
