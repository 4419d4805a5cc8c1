// Makes a plan: which operations run, where, and by which kernels.
#include "engine/plan/plan.h"

#include "engine/passes/passes.h"
#include "engine/plan/loop.h"

namespace clinfer {

const Region& Plan::region_of(const Edge& edge) const {
  const Edge root = storage_root(edge);
  const auto found = region_by_root.find({root.node, root.port});
  if (found != region_by_root.end()) return regions[found->second];
  throw Error(ErrorCode::bad_argument, "no memory was planned for " + label(*root.node));
}

size_t Plan::kernel_count() const {
  size_t kernels = 0;
  for (const Step& step : steps) kernels += step.kernels.launches.size();
  return kernels;
}

namespace {

// Returns the duration in seconds from which on a launch is cut. Launches of an inference that are
// not cut are enqueued together; where these would occupy a CPU for more than a second, shorter
// launches are cut as well. GPUs are much faster than assumed here.
double longest_launch(const Plan& plan, const DeviceTraits& traits) {
  double seconds = 0;
  for (const Step& step : plan.steps)
    if (!step.on_host && !step.loop) seconds += assumed_seconds(step.desc, traits);
  return traits.is_cpu && seconds > 1 ? kSecondsOfPart / 4 : kSecondsOfLaunch;
}

// Plans the launches of all steps, whose families and points are chosen. Loops have theirs already.
void plan_launches(Plan& plan, const DeviceTraits& traits) {
  const double longest = longest_launch(plan, traits);
  for (Step& step : plan.steps) {
    if (step.on_host || step.loop) continue;
    step.kernels = step.family->plan(step.desc, traits, step.point);
    step.cuts.clear();
    const double seconds = assumed_seconds(step.desc, traits);
    std::vector<KernelSpec>& launches = step.kernels.launches;
    for (size_t l = 0; l < launches.size(); ++l)
      if (const Cut cut = cut_of(launches[l], seconds, longest)) {
        step.cuts.resize(launches.size());
        step.cuts[l] = cut;
        launches[l] = can_be_cut(std::move(launches[l]));
      }
  }
}

}  // namespace

void choose_kernels(Plan& plan, const DeviceTraits& traits, const KernelChooser& choose) {
  for (Step& step : plan.steps) {
    if (step.on_host) continue;
    if (step.loop) {
      plan_loop(step, traits, choose);
      continue;
    }
    const KernelChoice choice =
        choose(step.desc, accepting_families(*step.node->def, step.desc, traits));
    step.family = choice.family;
    step.point = choice.point;
  }
  plan_launches(plan, traits);
  plan_memory(plan);
}

namespace {

// Returns whether no operation on the device reads the node's outputs. A kernel may then fill the
// rows after those that it found, which the host trims.
bool leaves_device(const Graph& graph, Node* node) {
  for (size_t port = 0; port < node->outputs.size(); ++port)
    for (const Node* user : graph.users({node, static_cast<int>(port)}))
      if (!user->is("Result") &&
          !(user->def && user->def->families.empty() && !user->def->host_reason.empty()))
        return false;
  return true;
}

}  // namespace

std::vector<NodeRun> node_runs(const Plan& plan) {
  std::map<const Node*, const Step*> steps;
  for (const Step& step : plan.steps) steps[step.node] = &step;
  std::vector<NodeRun> runs;
  for (const auto& owned : plan.graph->nodes()) {
    const Node& node = *owned;
    using Where = NodeRun::Where;
    const auto found = steps.find(&node);
    if (found == steps.end()) {
      if (node.def)
        runs.push_back({&node, Where::nowhere,
                        node.def->view      ? "a view"
                        : node.is("Concat") ? "its inputs are written in place"
                                            : "no elements"});
    } else if (const Step& step = *found->second; step.on_host) {
      runs.push_back(
          {&node, Where::host, node.attributes.get_string(kOnHost, node.def->host_reason)});
    } else if (step.loop) {
      runs.push_back({&node, Where::device,
                      std::to_string(step.loop->count) + " iterations of " +
                          std::to_string(step.kernels.launches.size()) +
                          (step.kernels.launches.size() == 1 ? " launch" : " launches")});
    } else {
      runs.push_back({&node, Where::device, to_string(KernelChoice{step.family, step.point})});
    }
  }
  return runs;
}

std::string to_dot(const Plan& plan) {
  std::map<const Node*, std::string> lines;
  for (const NodeRun& run : node_runs(plan)) {
    const bool loop = run.node->is("DeviceLoop") && run.where == NodeRun::Where::device;
    lines[run.node] = (run.where == NodeRun::Where::host      ? "on the host: "
                       : run.where == NodeRun::Where::nowhere ? "no kernel: "
                       : loop                                 ? "on the device: "
                                                              : "kernel: ") +
                      run.how;
  }
  return to_dot(*plan.graph, [&](const Node& node) -> std::vector<std::string> {
    const auto found = lines.find(&node);
    return found == lines.end() ? std::vector<std::string>{} : std::vector{found->second};
  });
}

Plan make_plan(std::unique_ptr<Graph> graph, const DeviceTraits& traits,
               const KernelChooser& choose) {
  Plan plan;
  plan.graph = std::move(graph);
  std::string unsupported;
  size_t unsupported_layers = 0;
  for (const auto& owned : plan.graph->nodes()) {
    Node* node = owned.get();
    if (!node->def || node->def->view || node->is("Concat")) continue;
    Step step;
    step.node = node;
    step.desc = describe(*node);
    int64_t elements = 0;
    for (const NodeOutput& output : node->outputs) elements += count(output.shape);
    // A Subgraph is not skipped: it may give more elements when fewer rows are found, as a slice of
    // the other rows does.
    if (elements == 0 && !node->is("Subgraph")) continue;
    std::string reasons;
    const auto families = accepting_families(*node->def, step.desc, traits, &reasons);
    if (!families.empty() && node->is("DeviceLoop")) {
      step.family = families.front();
      plan_loop(step, traits, choose);
    } else if (!families.empty() &&
               (!node->def->rows_depend_on_data || leaves_device(*plan.graph, node))) {
      const KernelChoice choice =
          choose ? choose(step.desc, families)
                 : KernelChoice{families.front(), families.front()->heuristic(step.desc, traits)};
      step.family = choice.family;
      step.point = choice.point;
    } else if (!node->def->host_reason.empty() && node->tail.empty() && !is_custom(*node)) {
      step.on_host = true;
    } else {
      ++unsupported_layers;
      if (reasons.empty())
        reasons = is_custom(*node) ? "it runs on the host, which cannot run the custom layer in it"
                                   : "there is no kernel for it";
      unsupported += (unsupported.empty() ? "" : "; ") + label(*node) + ": " + reasons;
      continue;
    }
    plan.steps.push_back(std::move(step));
  }
  if (unsupported_layers)
    throw Error(ErrorCode::unsupported,
                std::to_string(unsupported_layers) +
                    (unsupported_layers == 1 ? " layer has" : " layers have") +
                    " no kernel on this device: " + unsupported);
  plan_launches(plan, traits);
  plan_memory(plan);
  return plan;
}

}  // namespace clinfer
