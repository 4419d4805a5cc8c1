// clinfer graph: the network as a Graphviz drawing, as read or after a pass.
#include <array>
#include <iostream>
#include <optional>

#include "engine/ocl/choose.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "engine/runtime/model.h"
#include "engine/tools/commands.h"
#include "kernels/base/files.h"

namespace clinfer {

namespace {

constexpr const char* kAsRead = "read";

std::string pass_names() {
  std::string names = kAsRead;
  for (const Pass& pass : passes()) names += ", " + pass.name;
  return names;
}

void draw(const std::string& dot, const std::optional<std::string>& path) {
  if (!path) {
    std::cout << dot;
    return;
  }
  write_named_file(*path, std::array{std::string_view(dot)});
}

void run(const Arguments& arguments) {
  const std::string until = arguments.value("--after").value_or("");
  bool known = until.empty() || until == kAsRead;
  for (const Pass& pass : passes()) known |= pass.name == until;
  if (!known)
    throw Error(ErrorCode::bad_argument,
                "there is no pass \"" + until + "\"; there are " + pass_names());

  const auto model = read_model(arguments);
  auto graph = model->graph().clone();
  const Config config = read_config(arguments);
  if (config.batch == kAutoBatch)
    throw Error(ErrorCode::bad_argument, "--batch 0 (AUTO) is what tuning finds: give a number");
  if (config.batch) set_batch(*graph, config.batch);
  std::optional<ocl::ChosenDevice> device;
  if (until != kAsRead) {
    device = ocl::choose_device(config.device);
    const bool half = half_activations(config, *graph, device->info.fp16);
    PassContext context{device->traits, half ? ElementType::f16 : ElementType::f32};
    context.unroll_loops = config.unroll_loops;
    context.integers = config.quantized_in_integers;
    graph->note_layers();
    run_passes(*graph, context, until);
  }
  if (!until.empty()) return draw(to_dot(*graph), arguments.value("-o"));
  // Layers without a kernel are an error, as when the model runs.
  const std::string without_kernels = to_dot(*graph);
  try {
    draw(to_dot(make_plan(std::move(graph), device->traits)), arguments.value("-o"));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) draw(without_kernels, arguments.value("-o"));
    throw;
  }
}

}  // namespace

Command graph_command() {
  return {{"graph",
           "the network as a Graphviz drawing",
           {"MODEL"},
           {{"--after", "PASS",
             "as it is after this pass (" + pass_names() +
                 "); unless given, after all, with the kernel of each layer or why it runs on the "
                 "host, and layers without a kernel are an error"},
            {"-o", "FILE.dot", "where it is written; stdout unless given"},
            device_option(),
            reshape_option(),
            {"--batch", "N", "images per inference; what the model states unless given"},
            config_option()}},
          run};
}

}  // namespace clinfer
