// Explains in words why a model's outputs are read as they are.
#include <algorithm>

#include "engine/heads/network.h"
#include "kernels/base/tensor.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

std::string port_line(const Port& port, const std::string& more) {
  return "  " + port.name + " " + std::string(name_of(port.type)) + " " + to_string(port.shape) +
         more;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

}  // namespace

std::string explain(const Network& network) {
  const Model& model = *network.model;
  std::string text;
  const auto add = [&text](const std::string& line) { text += safe_line(line) + "\n"; };
  add("model " + model.path());
  add("inputs");
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    std::string fed;
    if (i == network.image_input)
      fed = network.clip_length > 1
                ? ": the last " + std::to_string(network.clip_length) + " frames"
                : ": the picture";
    for (const auto& [input, value] : network.constants) {
      if (input != i) continue;
      fed = ": fed with";
      const std::vector<float> numbers = value.to_floats();
      for (size_t k = 0; k < numbers.size() && k < 6; ++k)
        fed += " " + std::to_string(static_cast<int64_t>(numbers[k]));
      if (numbers.size() > 6) fed += " ...";
    }
    add(port_line(model.inputs()[i], fed));
  }
  add("outputs");
  for (size_t i = 0; i < model.outputs().size(); ++i)
    add(port_line(model.outputs()[i], " by " + model.output_op(i)));
  const HeadChoice& head = network.head;
  add("head " + head.name + ": " + head.reason +
      (head.attach_tensors ? " (a guess: raw tensors are attached)" : ""));
  for (const HeadFit& fit : head.considered)
    add("  " + padded(fit.name, 20) + padded(name_of(fit.fit), 9) + fit.reason);
  add("facts");
  for (const Fact& fact : network.origins)
    add("  " + padded(fact.what, 20) + fact.value + " (" + fact.source + ")");
  for (const std::string& warning : network.warnings) add("warning: " + warning);
  return text;
}

}  // namespace clinfer
