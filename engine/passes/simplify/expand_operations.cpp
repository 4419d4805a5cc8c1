// Replaces operations that are combinations of others (kernels/expand.h) by their steps, and these
// by theirs, so that all are fused and computed like any other operation.
#include <algorithm>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/expand.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infos_of(const Node& node) {
  std::vector<ValueInfo> infos;
  for (const Edge& input : node.inputs) {
    const NodeOutput& tensor = input.node->outputs[input.port];
    const Tensor* value = constant_value(input);
    infos.push_back({tensor.type, tensor.shape, value ? *value : Tensor()});
  }
  return infos;
}

// Replaces the node by its steps and returns those, which may be expanded in turn. Returns nothing
// if the node is not a combination.
std::vector<Node*> expand(Graph& graph, Node* node) {
  const std::vector<ValueInfo> infos = infos_of(*node);
  const ShapeContext context{node->type, node->opset, node->attributes, infos,
                             node->outputs.size()};
  const Expansion expansion(*node->def, context);
  std::vector<Node*> expandable;
  if (expansion.outputs.empty()) return expandable;
  std::vector<Edge> values = node->inputs;
  const auto edge_of = [&](size_t value) {
    if (value >= values.size()) values.resize(value + 1);
    if (!values[value].node)
      values[value] = Insertion(graph, node).constant(expansion.info(value).value);
    return values[value];
  };
  for (const Expansion::Step& step : expansion.steps()) {
    std::vector<Edge> inputs;
    for (size_t value : step.inputs) inputs.push_back(edge_of(value));
    // Gives the operation's name to the step that computes its result.
    const bool last = &step == &expansion.steps().back();
    Insertion add(graph, node, last ? node->name : node->name + "/" + step.type);
    Node* part =
        add.op(step.type, step.opset, std::move(inputs), step.attributes.all(), step.output_count)
            .node;
    if (part->def->expand) expandable.push_back(part);
    values.resize(std::max(values.size(), step.first_output + step.output_count));
    for (size_t k = 0; k < step.output_count; ++k)
      values[step.first_output + k] = {part, static_cast<int>(k)};
  }
  for (size_t port = 0; port < node->outputs.size(); ++port) {
    const Edge to = edge_of(expansion.outputs.at(port));
    NodeOutput& output = to.node->outputs[to.port];
    output.names.insert(output.names.end(), node->outputs[port].names.begin(),
                        node->outputs[port].names.end());
    graph.replace_uses({node, static_cast<int>(port)}, to);
  }
  return expandable;
}

}  // namespace

void expand_operations(Graph& graph, const PassContext& context) {
  std::vector<Node*> expandable;
  for (const auto& node : graph.nodes())
    if (node->def && node->def->expand) expandable.push_back(node.get());
  if (expandable.empty()) return;
  while (!expandable.empty()) {
    Node* node = expandable.back();
    expandable.pop_back();
    const std::vector<Node*> more = expand(graph, node);
    expandable.insert(expandable.end(), more.begin(), more.end());
  }
  graph.remove_dead();
  fold_constants(graph, context);
}

}  // namespace clinfer
