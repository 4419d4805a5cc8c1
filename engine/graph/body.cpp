// Graphs inside operations.
#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/graph/graph.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

// Limits all values inside a body, which runs on the host: a few bytes of a model can ask for more
// memory than there is.
constexpr size_t kMostBodyBytes = size_t{1} << 30;

}  // namespace

GraphBody::GraphBody(std::unique_ptr<const Graph> graph) : graph_(std::move(graph)) {
  for (const Node* node : graph_->parameters)
    parameters_.push_back({node->outputs[0].type, node->shape(), {}});
  std::unordered_set<const Node*> varying(graph_->parameters.begin(), graph_->parameters.end());
  for (const auto& node : graph_->nodes())
    if (std::any_of(node->inputs.begin(), node->inputs.end(),
                    [&](const Edge& edge) { return varying.contains(edge.node); }))
      varying.insert(node.get());
  for (size_t i = 0; i < graph_->results.size(); ++i)
    if (varying.contains(graph_->results[i])) varying_.insert(i);
}

std::unique_ptr<Graph> GraphBody::instance(std::span<const ValueInfo> parameters) const {
  auto graph = graph_->clone();
  for (size_t i = 0; i < graph->parameters.size(); ++i) {
    Node* node = graph->parameters[i];
    node->outputs[0].type = parameters[i].type;
    node->outputs[0].shape = parameters[i].shape;
  }
  clinfer::infer_shapes(*graph, parameters);
  return graph;
}

std::vector<ValueInfo> GraphBody::infer_shapes(std::span<const ValueInfo> parameters) const {
  IterationLimit::take(graph_->nodes().size());
  return known_results(*instance(parameters), parameters);
}

std::vector<Tensor> GraphBody::evaluate(std::span<const Tensor> parameters) const {
  std::vector<ValueInfo> infos;
  for (const Tensor& value : parameters) infos.push_back({value.type(), value.shape(), {}});
  std::unique_ptr<Graph> graph;
  try {
    graph = instance(infos);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    // Sets values only where shapes depend on them, because the operations in between are then
    // computed twice.
    for (size_t i = 0; i < infos.size(); ++i) infos[i].value = parameters[i];
    graph = instance(infos);
  }
  size_t bytes = 0;
  for (const auto& node : graph->nodes()) bytes += bytes_of_outputs(*node);
  if (bytes > kMostBodyBytes)
    throw Error(ErrorCode::unsupported, "its body would take " + std::to_string(bytes) +
                                            " bytes of the host's memory; the most is " +
                                            std::to_string(kMostBodyBytes));
  return evaluate_graph(*graph, parameters);
}

}  // namespace clinfer
