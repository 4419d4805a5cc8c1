// clinfer graph: the network as a Graphviz drawing, as read or after a pass.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "engine/ir/ir_reader.h"
#include "engine/ocl/choose.h"
#include "engine/passes/passes.h"
#include "engine/tools/commands.h"

namespace clinfer {

namespace {

constexpr const char* kAsRead = "read";

std::string pass_names() {
  std::string names = kAsRead;
  for (const Pass& pass : passes()) names += ", " + pass.name;
  return names;
}

void run(const Arguments& arguments) {
  const std::string until = arguments.value("--after").value_or("");
  bool known = until.empty() || until == kAsRead;
  for (const Pass& pass : passes()) known |= pass.name == until;
  if (!known)
    throw Error(ErrorCode::bad_argument,
                "there is no pass \"" + until + "\"; there are " + pass_names());

  const IrModel model = read_ir(arguments.positional(0));
  if (until != kAsRead) {
    const Config config = read_config(arguments);
    const ocl::ChosenDevice device = ocl::choose_device(config.device);
    const bool half = half_activations(config, *model.graph, device.info.fp16);
    run_passes(*model.graph, {device.traits, half ? ElementType::f16 : ElementType::f32}, until);
  }
  const std::string dot = to_dot(*model.graph);
  const auto path = arguments.value("-o");
  if (!path) {
    std::cout << dot;
    return;
  }
  std::ofstream file(*path);
  file << dot;
  if (!file.flush())
    throw Error(ErrorCode::io, *path + ": cannot be written: " + std::strerror(errno));
}

}  // namespace

Command graph_command() {
  return {{"graph",
           "the network as a Graphviz drawing",
           {"MODEL.xml"},
           {{"--after", "PASS",
             "as it is after this pass (" + pass_names() + "); after all unless given"},
            {"-o", "FILE.dot", "where it is written; stdout unless given"},
            device_option(),
            config_option()}},
          run};
}

}  // namespace clinfer
