// clinfer graph: prints the network as a Graphviz drawing, as read or after a pass, or its layers
// as JSON.
#include <algorithm>
#include <array>
#include <iostream>
#include <optional>

#include "engine/ocl/choose.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "engine/runtime/model.h"
#include "engine/tools/commands.h"
#include "engine/tools/output/text.h"
#include "kernels/base/system/files.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

constexpr const char* kAsRead = "read";

std::string pass_names() {
  std::string names = kAsRead;
  for (const Pass& pass : passes()) names += ", " + pass.name;
  return names;
}

// Returns one line with each layer that is left after all passes, its kernel or the reason for the
// host, and the layers of the model that it computes as well.
std::string json_of(const Plan& plan, const Model& model, const std::string& device) {
  const auto& known = plan.graph->layers;
  std::vector<std::string> layers;
  for (const NodeRun& run : node_runs(plan)) {
    const Node& node = *run.node;
    std::vector<int> numbers = node.computes;
    std::sort(numbers.begin(), numbers.end());
    std::vector<std::string> fused, shapes;
    for (const int number : numbers) {
      const Graph::Layer& layer = known[static_cast<size_t>(number)];
      if (layer.type != "Constant" && layer.name != node.name) fused.push_back(layer.name);
    }
    for (const NodeOutput& output : node.outputs) shapes.push_back(to_string(output.shape));
    const bool on_device = run.where == NodeRun::Where::device;
    layers.push_back(
        json_object({{"layer", json_quoted(node.name)},
                     {"type", json_quoted(node.type)},
                     {"shapes", json_array(shapes)},
                     {"runs", json_quoted(on_device                           ? "device"
                                          : run.where == NodeRun::Where::host ? "host"
                                                                              : "nowhere")},
                     {"kernel", json_quoted(on_device ? run.how : "")},
                     {"reason", json_quoted(on_device ? "" : run.how)},
                     {"fused", json_strings(fused)}}));
  }
  return json_object({{"model", json_quoted(model.path())},
                      {"device", json_quoted(device)},
                      {"layers", json_array(layers)}}) +
         "\n";
}

void write(const std::string& text, const std::optional<std::string>& path) {
  if (!path) {
    std::cout << text;
    return;
  }
  write_named_file(*path, std::array{std::string_view(text)});
}

void run(const Arguments& arguments) {
  const std::string until = arguments.value("--after").value_or("");
  bool known = until.empty() || until == kAsRead;
  for (const Pass& pass : passes()) known |= pass.name == until;
  if (!known)
    throw Error(ErrorCode::bad_argument,
                "there is no pass \"" + until + "\"; there are " + pass_names());

  const bool json = arguments.has("--json");
  if (json && !until.empty())
    throw Error(ErrorCode::bad_argument,
                "--json lists the layers after all passes: leave out --after");

  const auto model = read_model(arguments);
  auto graph = model->graph().clone();
  const Config config = read_config(arguments);
  if (config.batch == kAutoBatch)
    throw Error(ErrorCode::bad_argument, "--batch 0 (AUTO) is what tuning finds: give a number");
  if (config.batch) set_batch(*graph, config.batch);
  std::optional<ocl::ChosenDevice> device;
  if (until != kAsRead) {
    device = ocl::choose_device(config.device);
    device->traits.ordered_sums = config.ordered_sums;
    const bool half = half_activations(config, *graph, device->info.fp16);
    PassContext context{device->traits, half ? ElementType::f16 : ElementType::f32};
    context.unroll_loops = config.unroll_loops;
    context.integers = config.quantized_in_integers;
    graph->note_layers();
    run_passes(*graph, context, until);
  }
  if (!until.empty()) return write(to_dot(*graph), arguments.value("-o"));
  // Fails for layers without a kernel, as running the model does.
  const std::string without_kernels = json ? "" : to_dot(*graph);
  try {
    const Plan plan = make_plan(std::move(graph), device->traits);
    write(json ? json_of(plan, *model, device->info.id) : to_dot(plan), arguments.value("-o"));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported && !json)
      write(without_kernels, arguments.value("-o"));
    throw;
  }
}

}  // namespace

Command graph_command() {
  return {{"graph",
           "the network as a Graphviz drawing, or its layers as JSON",
           {"MODEL"},
           {{"--after", "PASS",
             "as it is after this pass (" + pass_names() +
                 "); unless given, after all, with the kernel of each layer or why it runs on the "
                 "host, and layers without a kernel are an error"},
            {"--json", "",
             "one line of JSON: the layers with their kernels, or why they run on the host"},
            {"-o", "FILE", "where it is written; stdout unless given"},
            device_option(),
            reshape_option(),
            {"--batch", "N", "images per inference; what the model states unless given"},
            config_option()}},
          run};
}

}  // namespace clinfer
