// clinfer run: computes one inference, from .npy files to .npy files.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "engine/ir/input_shapes.h"
#include "engine/tools/commands.h"
#include "engine/tools/output/npy.h"
#include "kernels/base/system/files.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::bad_argument, what); }

std::string describe_inputs(const std::vector<Port>& inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    text += (i ? ", " : "") + std::to_string(i) + " = \"" + inputs[i].name + "\" " +
            std::string(name_of(inputs[i].type)) + to_string(inputs[i].shape);
  return text.empty() ? "none" : text;
}

// Splits INDEX_OR_NAME=FILE.npy. Names and files may contain '=', so the first split that names an
// input is taken.
std::pair<size_t, std::string> split_input(const std::vector<Port>& inputs,
                                           const std::string& text) {
  if (text.find('=') == std::string::npos)
    fail(text + ": --input INDEX_OR_NAME=FILE.npy is needed");
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1))
    if (const auto index = find_input(inputs, text.substr(0, at)))
      return {*index, text.substr(at + 1)};
  fail("the model has no input \"" + text.substr(0, text.find('=')) + "\"; it has " +
       describe_inputs(inputs));
}

// Returns whether the shape fits. A port of any size is a plane of a picture, of which only batch
// and channels have to match.
bool fits(const Port& port, const Shape& shape) {
  if (!port.any_size || shape.size() != port.shape.size()) return shape == port.shape;
  return std::equal(shape.begin(), shape.end() - 2, port.shape.begin());
}

std::vector<Tensor> read_inputs(const std::vector<Port>& inputs, const Arguments& arguments) {
  std::vector<Tensor> values(inputs.size());
  for (const std::string& text : arguments.all("--input")) {
    const auto [index, file] = split_input(inputs, text);
    if (!values[index].empty()) fail("input " + std::to_string(index) + " is given twice");
    Tensor value = read_npy(file);
    if (!fits(inputs[index], value.shape()))
      fail(file + " has the shape " + to_string(value.shape()) + ", input " +
           std::to_string(index) + " (\"" + inputs[index].name + "\") needs " +
           to_string(inputs[index].shape));
    values[index] = std::move(value);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (values[i].empty())
      fail("input " + std::to_string(i) + " is not given; the inputs are " +
           describe_inputs(inputs));
  return values;
}

void run(const Arguments& arguments) {
  const auto folder = arguments.value("--output-dir"),
             reference = arguments.value("--compare-with");
  const auto model = read_model(arguments);
  Config config = read_config(arguments);
  if (reference) {
    if (config.batch || config.nv12_two_inputs)
      fail("--compare-with takes no --batch (--reshape gives one) and no NV12_TWO_INPUTS");
    return compare_layers(model, config, read_inputs(model->inputs(), arguments), *reference);
  }
  // Reads inputs early, so that wrong ones are reported before minutes of compiling, unless the
  // options change the ports.
  const bool as_stated = config.batch == 0 && !config.nv12_two_inputs;
  std::vector<Tensor> values;
  if (as_stated) values = read_inputs(model->inputs(), arguments);
  const std::string tier = arguments.value("--tier").value_or("full");
  if (tier != "full" && tier != "first") fail("--tier is first or full, not " + tier);
  const auto compiled = tier == "first" ? CompiledModel::compile_first_tier(model, config)
                                        : compile_model(model, config);
  if (tier == "first") say_warnings(*compiled);
  if (!as_stated) values = read_inputs(compiled->inputs(), arguments);

  const auto request = compiled->create_request();
  for (size_t i = 0; i < values.size(); ++i) request->set_input(i, values[i]);
  request->start();
  request->wait();
  say_problems(*compiled);

  if (folder) make_folders(*folder);
  for (size_t i = 0; i < compiled->outputs().size(); ++i) {
    // Converts back, because devices may compute in other floats than the model states.
    const bool half = model->outputs()[i].type == ElementType::f16;
    const Tensor output = half ? request->output(i).convert(ElementType::f16) : request->output(i);
    if (folder)
      write_npy((std::filesystem::path(*folder) / (std::to_string(i) + ".npy")).string(), output);
    std::cout << i << " " << safe_line(compiled->outputs()[i].name) << " " << name_of(output.type())
              << " " << to_string(output.shape()) << "\n";
  }
}

}  // namespace

Command run_command() {
  return {{"run",
           "one inference from .npy files",
           {"MODEL"},
           {{"--input", "INDEX_OR_NAME=FILE.npy", "the value of an input; once for each of them"},
            {"--output-dir", "DIR",
             "where 0.npy, 1.npy ... are written, in the order of the model's results; without it, "
             "only "
             "their types and shapes are printed"},
            device_option(),
            reshape_option(),
            {"--compare-with", "DIR",
             "instead: each layer's error against the plain C++ version, and the outputs' against "
             "DIR/0.npy ..."},
            {"--batch", "N", "images per inference; what the model states unless given"},
            {"--tier", "TIER",
             "first: computed on the host, as frames are until the device's kernels are compiled "
             "(full)"},
            config_option()}},
          run};
}

}  // namespace clinfer
