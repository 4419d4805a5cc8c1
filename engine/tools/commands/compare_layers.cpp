// clinfer run --compare-with: compares the device with the plain C++ version, layer by layer.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

#include "engine/compile/model_compiler.h"
#include "engine/graph/evaluate.h"
#include "engine/tools/commands.h"
#include "engine/tools/output/npy.h"
#include "engine/verify/layer_values.h"

namespace clinfer {

namespace {

struct Difference {
  double error = 0, scale = 0;  // the largest |a - b| and |b|
  std::string text;             // "1.2e-06", or the reason why the two cannot be compared
};

Difference difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return {0, 0, to_string(a.shape()) + " for " + to_string(b.shape())};
  Difference d;
  const std::vector<float> left = a.to_floats(), right = b.to_floats();
  for (size_t i = 0; i < left.size(); ++i) {
    const bool same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]));
    const double error = same ? 0 : std::abs(static_cast<double>(left[i]) - right[i]);
    d.error = std::max(d.error, std::isnan(error) ? INFINITY : error);
    if (std::isfinite(right[i])) d.scale = std::max<double>(d.scale, std::abs(right[i]));
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", d.error);
  d.text = text;
  return d;
}

void print(const std::string& largest, const std::string& own, const std::string& total,
           const std::string& layer) {
  std::printf("%-10s %-10s %-10s %s\n", largest.c_str(), own.c_str(), total.c_str(), layer.c_str());
}

// Reads DIRECTORY/0.npy ...; an output without a file gets an empty tensor.
std::vector<Tensor> read_references(const std::string& directory, size_t outputs) {
  std::vector<Tensor> references(outputs);
  bool any = false;
  for (size_t i = 0; i < outputs; ++i) {
    const auto file = std::filesystem::path(directory) / (std::to_string(i) + ".npy");
    if (!std::filesystem::exists(file)) continue;
    references[i] = read_npy(file.string());
    any = true;
  }
  if (!any)
    throw Error{
        ErrorCode::not_found,
        "--compare-with " + directory + ": there is no 0.npy ... as run --output-dir writes them"};
  return references;
}

}  // namespace

void compare_layers(std::shared_ptr<const Model> model, const Config& config,
                    const std::vector<Tensor>& inputs, const std::string& directory) {
  const std::vector<Tensor> references = read_references(directory, model->outputs().size());
  const auto compiled = compile_model(std::move(model), config, {}, {}, {.expose_layers = true});
  say_warnings(*compiled);
  const auto request = compiled->create_request();
  for (size_t i = 0; i < inputs.size(); ++i) request->set_input(i, inputs[i]);
  request->start();
  request->wait();

  const Graph& graph = *compiled->network().plan().graph;
  const LayerValues device(graph, inputs, *request);
  std::map<std::pair<const Node*, int>, Tensor> plain;
  evaluate_graph(graph, inputs, [&](const Node& node, std::span<const Tensor> values) {
    for (size_t port = 0; port < values.size(); ++port)
      plain[{&node, static_cast<int>(port)}] = values[port];
  });

  print("largest", "own error", "error", "layer");
  std::string worst;
  double most = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->def || node->is("Reorder")) continue;
    const std::optional<std::vector<Tensor>> given = device.inputs_of(*node);
    const std::vector<Tensor> own = given ? evaluate_node(*node, *given) : std::vector<Tensor>();
    for (size_t port = 0; port < node->outputs.size(); ++port) {
      const std::pair<const Node*, int> key{node.get(), static_cast<int>(port)};
      const Tensor* const value = device.find({node.get(), static_cast<int>(port)});
      if (value == nullptr || !plain.count(key)) continue;
      const Difference total = difference(*value, plain[key]);
      const Difference alone = own.empty() ? Difference{} : difference(*value, own[port]);
      std::string fused;
      for (const PostOp& op : node->tail) fused += " + " + op.function;
      char largest[32];
      std::snprintf(largest, sizeof largest, "%.3g", total.scale);
      print(largest, own.empty() ? "-" : alone.text, total.text,
            printable(node->name) + " (" + printable(node->type) + fused + ")");
      if (alone.error / std::max(1.0, alone.scale) > most) {
        most = alone.error / std::max(1.0, alone.scale);
        worst = label(*node);
      }
    }
  }
  if (!worst.empty())
    std::cout << "the largest error of its own, " << most << " of the values, is that of " << worst
              << "\n";
  for (size_t i = 0; i < references.size(); ++i) {
    if (references[i].empty()) continue;
    const Difference d = difference(request->output(i), references[i]);
    std::cout << "output " << i << " against " << directory << "/" << i << ".npy: error " << d.text
              << ", largest value " << d.scale << "\n";
  }
}

}  // namespace clinfer
