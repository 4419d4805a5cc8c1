// Gives the tensors of custom layers the order of dimensions that their kernels expect, by reshapes
// and transposes around the layer. Most of these are views: activations lie in memory as BYXF
// anyway, so that a transpose to it needs no copy.
#include <algorithm>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/custom/custom_layer.h"

namespace clinfer {

namespace {

constexpr size_t kRank = 4;

Shape padded(const Shape& shape) {
  Shape four = shape;
  four.resize(kRank, 1);
  return four;
}

std::vector<int64_t> order_of(CustomFormat format) {
  const auto& order = memory_order(format);
  return {order.begin(), order.end()};
}

class Placing {
 public:
  Placing(Graph& graph, Node* node)
      : graph_(graph), node_(node), use_(*node->custom), layer_(*use_.layer) {}

  void run() {
    use_.input_formats.clear();
    find_data();
    Node* twin = Insertion(graph_, node_).copy(*node_);
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      const Edge from = node_->inputs[i];
      const CustomFormat format = format_of(false, i, from.node->shape(from.port));
      use_.input_formats.push_back(format);
      twin->inputs.set(i, ordered(from, twin, format));
    }
    for (size_t port = 0; port < node_->outputs.size(); ++port)
      use_.output_formats.push_back(format_of(true, port, node_->shape(static_cast<int>(port))));
    twin->custom = std::make_shared<const CustomUse>(use_);
    for (size_t port = 0; port < node_->outputs.size(); ++port) give(twin, static_cast<int>(port));
  }

 private:
  [[noreturn]] void refuse(const std::string& where, const std::string& what) const {
    throw Error(ErrorCode::unsupported, label(*node_) + ": " + where + ": " + what);
  }

  CustomFormat format_of(bool is_output, size_t port, const Shape& shape) const {
    if (shape.size() > kRank)
      refuse(layer_.where, std::string("its ") + (is_output ? "output " : "input ") +
                               std::to_string(port) + " has " + std::to_string(shape.size()) +
                               " dimensions; a custom layer takes up to 4");
    for (const CustomLayer::Tensor& tensor : layer_.tensors) {
      if (tensor.is_output != is_output || tensor.port != port) continue;
      if (tensor.format != CustomFormat::any) return tensor.format;
      return shape.size() == kRank ? CustomFormat::byxf : CustomFormat::bfyx;
    }
    return CustomFormat::bfyx;
  }

  // Returns the tensor with its dimensions in the order in which they must lie in memory.
  Edge ordered(Edge edge, const Node* before, CustomFormat format) {
    Insertion add(graph_, before, node_->name);
    const Shape shape = edge.node->shape(edge.port);
    if (shape.size() != kRank)
      edge = add.op("Reshape", 1, {edge, add.ints(padded(shape))}, {{"special_zero", "false"}});
    if (format != CustomFormat::bfyx)
      edge = add.op("Transpose", 1, {edge, add.ints(order_of(format))});
    return edge;
  }

  // Restores the order of dimensions for the readers of the layer's output.
  void give(Node* twin, int port) {
    const CustomFormat format = use_.output_formats[static_cast<size_t>(port)];
    const Shape shape = node_->shape(port), four = padded(shape);
    const std::vector<int64_t> order = order_of(format);
    std::vector<int64_t> back(kRank);
    for (size_t d = 0; d < kRank; ++d) {
      twin->outputs[static_cast<size_t>(port)].shape.resize(kRank);
      twin->outputs[static_cast<size_t>(port)].shape[d] = four[static_cast<size_t>(order[d])];
      back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    }
    Insertion add(graph_, node_, node_->name);
    Edge edge{twin, port};
    if (format != CustomFormat::bfyx) edge = add.op("Transpose", 1, {edge, add.ints(back)});
    if (shape.size() != kRank)
      edge = add.op("Reshape", 1, {edge, add.ints(shape)}, {{"special_zero", "false"}});
    graph_.replace_uses({node_, port}, edge);
  }

  // Finds the constant inputs that <Data name=...> means: by the name of its layer, or weights and
  // biases in their usual order.
  void find_data() {
    for (const CustomLayer::Data& data : layer_.data) {
      std::vector<size_t> constants;
      std::optional<size_t> found;
      std::string names;
      for (size_t i = 0; i < node_->inputs.size(); ++i) {
        if (!constant_value(node_->inputs[i])) continue;
        const std::string& name = node_->inputs[i].node->name;
        constants.push_back(i);
        names += (names.empty() ? "" : ", ") + printable(name);
        if (name == data.name || name.ends_with("/" + data.name)) found = i;
      }
      const size_t usual = data.name == "weights" ? 0 : data.name == "biases" ? 1 : kRank;
      if (!found && usual < constants.size()) found = constants[usual];
      if (!found)
        refuse(data.where, "<Data name=\"" + printable(data.name) +
                               "\">: the layer has no such constant input; it has " +
                               (names.empty() ? "none" : names));
      use_.data_ports.push_back(*found);
    }
  }

  Graph& graph_;
  Node* const node_;
  CustomUse use_;
  const CustomLayer& layer_;
};

}  // namespace

void place_custom_layers(Graph& graph, const PassContext& context) {
  bool any = false;
  for (Node* node : nodes_of(graph)) {
    if (!node->custom || node->custom->placed()) continue;
    Placing(graph, node).run();
    any = true;
  }
  if (!any) return;
  graph.remove_dead();
  fold_constants(graph, context);  // computes transposes of weights
}

}  // namespace clinfer
