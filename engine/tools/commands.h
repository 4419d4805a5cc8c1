// The subcommands of the `clinfer` program.
#pragma once

#include <string>

#include "engine/engine.h"
#include "engine/tools/arguments.h"

namespace clinfer {

struct Command {
  CommandSpec spec;
  void (*run)(const Arguments&);  // throws Error; prints to stdout
};

Command devices_command();
Command run_command();
Command compare_command();
Command doctor_command();
Command quantize_command();
Command bench_command();
Command tune_command();
Command graph_command();
Command heads_command();
Command watch_command();

// Options that several commands have, with their help.
OptionSpec device_option();
OptionSpec reshape_option();
OptionSpec config_option();
// Reads --device, --streams, --batch and every --config.
Config read_config(const Arguments& arguments);
// Reads every --reshape.
InputShapes read_shapes(const Arguments& arguments);
// Returns a size for a model that cannot be read because it leaves its picture's size open, and
// reports that on standard error. Returns "" if there is no such size, or with --reshape.
std::string size_for_open(const Arguments& arguments);
// Prints to standard error what the reader chose where the file leaves something open.
void say_notes(const Model& model);
// Reads the model of the first positional argument, a file or a folder that holds one, with these
// shapes. Prints its notes.
std::shared_ptr<const Model> read_model(const Arguments& arguments);
// Compiles, and prints to standard error which settings have no effect.
std::shared_ptr<CompiledModel> compile_model(const std::shared_ptr<const Model>& model,
                                             const Config& config);
// Prints to standard error which settings have no effect, for models that are compiled in other
// ways.
void say_warnings(CompiledModel& compiled);
// Prints to standard error which of several devices have failed since the last call.
void say_problems(CompiledModel& compiled);

// Runs the model on the device and keeps every layer's value. Prints how far each layer is off the
// plain C++ version: computed from the device's inputs of the layer (own), and from the network's
// inputs. Then compares the outputs with DIR/0.npy, 1.npy ... if these exist.
void compare_layers(std::shared_ptr<const Model> model, const Config& config,
                    const std::vector<Tensor>& inputs, const std::string& directory);

}  // namespace clinfer
