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
Command compare_command();
Command doctor_command();
Command quantize_command();
Command bench_command();
Command tune_command();
Command graph_command();
Command heads_command();

// Options that several commands take, and what they mean.
OptionSpec device_option();
OptionSpec reshape_option();
OptionSpec config_option();
// --device, --streams, --batch and every --config.
Config read_config(const Arguments& arguments);
// Every --reshape.
InputShapes read_shapes(const Arguments& arguments);
// The size for a model that cannot be read as it leaves its picture's open, which is said on standard
// error; "" where there is none, or a --reshape.
std::string size_for_open(const Arguments& arguments);
// Says on standard error what the reader chose where the file leaves it open.
void say_notes(const Model& model);
// The first positional argument, a file or a folder that holds one, with these shapes. Says its
// notes.
std::shared_ptr<const Model> read_model(const Arguments& arguments);
// Compiles, and says on standard error what of the configuration has no effect.
std::shared_ptr<CompiledModel> compile_model(const std::shared_ptr<const Model>& model,
                                             const Config& config);
// Says on standard error what compile_model() says, for models that are compiled in other ways.
void say_warnings(CompiledModel& compiled);
// Says on standard error which devices of several have failed since the last call.
void say_problems(CompiledModel& compiled);

// Runs the model on the device with every layer's value kept, and prints what each layer is off by
// from the plain C++ version: on the values that the device gave it (own), and altogether. Then the
// outputs against DIR/0.npy, 1.npy ... where these exist.
void compare_layers(std::shared_ptr<const Model> model, const Config& config,
                    const std::vector<Tensor>& inputs, const std::string& directory);

}  // namespace clinfer
