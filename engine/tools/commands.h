// The subcommands of the `clinfer` program.
#pragma once

#include <string>

#include "engine/engine.h"
#include "engine/tools/arguments.h"

namespace clinfer {

struct Command {
  CommandSpec spec;
  void (*run)(const Arguments&);  // throws Error; what it prints goes to stdout
};

Command devices_command();
Command run_command();
Command bench_command();
Command graph_command();

// Options that several commands take, and what they mean.
OptionSpec device_option();
OptionSpec config_option();
// --device, --streams, --batch and every --config.
Config read_config(const Arguments& arguments);

std::string json_string(const std::string& text);  // quoted

}  // namespace clinfer
