// The `clinfer` program: finds the subcommand, runs it, and turns what it throws into one line and
// an exit status.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "engine/heads/files/beside.h"
#include "engine/heads/network.h"
#include "engine/runtime/options.h"
#include "engine/runtime/requests/left_work.h"
#include "engine/tools/commands.h"
#include "kernels/base/precision_text.h"
#include "kernels/base/system/files.h"
#include "kernels/base/text.h"

namespace clinfer {

OptionSpec device_option() {
  return {"--device", "D",
          "GPU (the default), GPU.N, CPU or CPU.N as clinfer devices lists them; MULTI:A,B, "
          "AUTO:A,B or HETERO:A,B for several; BATCH:A(N) for requests that share inferences"};
}

OptionSpec reshape_option() {
  return {"--reshape", "WxH",
          "another size of the picture, or INDEX_OR_NAME=D,D,... another shape of an input; may be "
          "repeated"};
}

OptionSpec config_option() {
  std::string help = "keys of the GPU plug-in, e.g. INFERENCE_PRECISION=f32; may be repeated. ";
  help += kPrecisionText;
  for (const Option& option : options())
    help.append("\n    ")
        .append(option.name)
        .append("=VALUE  ")
        .append(option.help)
        .append(" (")
        .append(option.allowed)
        .append(")");
  return {"--config", "KEY=VALUE,...", help};
}

Config read_config(const Arguments& arguments) {
  Config config;
  for (const std::string& settings : arguments.all("--config")) config.set_all(settings);
  config.device = arguments.value("--device").value_or(config.device);
  config.streams = arguments.number("--streams", config.streams);
  config.batch = arguments.number("--batch", config.batch);
  if (arguments.has("--batch") && config.batch == 0) config.batch = kAutoBatch;
  return config;
}

InputShapes read_shapes(const Arguments& arguments) {
  InputShapes shapes;
  for (const std::string& text : arguments.all("--reshape")) shapes.add(text);
  return shapes;
}

void say_notes(const Model& model) {
  for (const std::string& note : model.notes())
    std::fprintf(stderr, "clinfer: %s: %s\n", message_line(model.path()).c_str(),
                 message_line(note).c_str());
}

std::string size_for_open(const Arguments& arguments) {
  ModelOptions options;
  options.model = arguments.positional(0);
  options.config_file = read_config(arguments).config_files();
  std::string size = arguments.all("--reshape").empty() ? size_for_open(options) : "";
  if (!size.empty())
    std::fprintf(stderr,
                 "clinfer: %s: the model leaves the size of its picture open; it is taken as %s "
                 "(elements take the frame's unless a file states it); --reshape WxH is another\n",
                 message_line(options.model).c_str(), size.c_str());
  return size;
}

std::shared_ptr<const Model> read_model(const Arguments& arguments) {
  const std::string file = model_file(arguments.positional(0)),
                    config = read_config(arguments).config_files();
  InputShapes shapes = read_shapes(arguments);
  std::shared_ptr<const Model> model;
  try {
    model = Model::read(file, shapes, config);
  } catch (const Error&) {
    const std::string size = size_for_open(arguments);
    if (size.empty()) throw;
    shapes.add(size);
    model = Model::read(file, shapes, config);
  }
  say_notes(*model);
  return model;
}

std::shared_ptr<CompiledModel> compile_model(const std::shared_ptr<const Model>& model,
                                             const Config& config) {
  auto compiled = CompiledModel::compile(model, config);
  say_warnings(*compiled);
  return compiled;
}

void say_warnings(CompiledModel& compiled) {
  for (const std::string& warning : compiled.warnings())
    std::fprintf(stderr, "clinfer: %s\n", message_line(warning).c_str());
  say_problems(compiled);
}

void say_problems(CompiledModel& compiled) {
  for (const std::string& problem : compiled.take_problems())
    std::fprintf(stderr, "clinfer: %s\n", message_line(problem).c_str());
}

namespace {

std::vector<Command> commands() {
  return {devices_command(),  run_command(),   bench_command(),   tune_command(),
          graph_command(),    heads_command(), compare_command(), doctor_command(),
          quantize_command(), watch_command()};
}

std::string overview() {
  std::string text = "clinfer COMMAND ...: neural networks on OpenCL devices\n";
  for (const Command& command : commands()) {
    text += "  " + command.spec.name + std::string(10 - command.spec.name.size(), ' ') +
            command.spec.help + "\n";
  }
  return text + "clinfer COMMAND --help says more, clinfer --version which one this is.\n";
}

void dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::cout << overview();
    if (words.empty()) throw Error(ErrorCode::bad_argument, "a command is needed");
    return;
  }
  if (words[0] == "--version") {
    std::cout << "clinfer " << CLINFER_VERSION << "\n";
    return;
  }
  std::string names;
  for (const Command& command : commands()) {
    names += (names.empty() ? "" : ", ") + command.spec.name;
    if (command.spec.name != words[0]) continue;
    const Arguments arguments(command.spec, {words.begin() + 1, words.end()});
    if (arguments.wants_help())
      std::cout << help_text(command.spec);
    else
      command.run(arguments);
    return;
  }
  throw Error(ErrorCode::bad_argument,
              "there is no command \"" + words[0] + "\"; there are " + names);
}

int report(const std::string& what, int status) {
  std::cout.flush();
  std::cerr << "clinfer: " << what << std::endl;
  return status;
}

}  // namespace

int main(const std::vector<std::string>& words) {
  try {
    dispatch(words);
    // Clears errno first: a write that failed earlier may have emptied the buffer, and its reason
    // is lost.
    errno = 0;
    if (!std::cout.flush() || std::ferror(stdout) != 0)
      return report("cannot write to stdout" + (errno != 0 ? ": " + system_reason(errno) : ""), 1);
    return 0;
  } catch (const Error& error) {
    const int status = report(error.what(), error.code() == ErrorCode::bad_argument ? 2 : 1);
    // Ends at once after an interrupt, because an orderly exit would wait for running compilers.
    if (error.code() == ErrorCode::cancelled) std::_Exit(status);
    return status;
  } catch (const std::exception& error) {
    return report(explain(error), 1);
  }
}

}  // namespace clinfer

int main(int argc, char** argv) {
  const int status = clinfer::main({argv + 1, argv + argc});
  if (!clinfer::left_work_is_over(std::chrono::seconds(1))) {
    std::fflush(nullptr);
    std::_Exit(status);
  }
  return status;
}
