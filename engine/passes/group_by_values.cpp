// What is computed from as many rows as an operation finds (NonMaxSuppression, NonZero) has shapes
// that no plan knows: it becomes one operation with a body, which runs on the host, in the shapes
// that come out.
#include <algorithm>
#include <unordered_map>

#include "engine/passes/passes.h"

namespace clinfer {

namespace {

class Grouping {
 public:
  Grouping(Graph& graph, const std::vector<Node*>& members) : graph_(graph), members_(members) {
    for (const Node* member : members) inner_.emplace(member, nullptr);
  }

  void run() {
    for (Node* member : members_) take(*member);
    Node* host = graph_.insert(nullptr, "Subgraph", members_.back()->name);
    host->def = find_op("Subgraph", 1);
    give_results(host);
    host->inputs = outer_;
    auto body = std::make_shared<GraphBody>(std::move(body_));
    for (size_t i = 0; i < outer_.size(); ++i) body->inputs.push_back({i, i});
    for (size_t i = 0; i < host->outputs.size(); ++i) body->outputs.push_back({i, i});
    host->bodies = {std::move(body)};
    graph_.sort();
    graph_.remove_dead();
  }

 private:
  void take(const Node& member) {
    std::vector<Edge> inputs;
    for (const Edge& input : member.inputs) inputs.push_back(inside(input));
    Node* node = body_->insert(nullptr, member.type, member.name);
    const int id = node->id;
    *node = member;
    node->id = id;
    node->inputs = std::move(inputs);
    inner_[&member] = node;
  }

  // The edge in the body: a member's, a constant's, or a parameter for what comes from outside.
  Edge inside(const Edge& edge) {
    if (const auto member = inner_.find(edge.node); member != inner_.end())
      return {member->second, edge.port};
    if (const Tensor* value = constant_value(edge))
      return {body_->insert_constant(nullptr, edge.node->name, *value), 0};
    const auto found = std::find(outer_.begin(), outer_.end(), edge);
    if (found != outer_.end()) return {body_->parameters[found - outer_.begin()], 0};
    outer_.push_back(edge);
    Node* parameter = body_->insert(nullptr, "Parameter", edge.node->name);
    parameter->outputs = {edge.node->outputs[edge.port]};
    body_->parameters.push_back(parameter);
    return {parameter, 0};
  }

  // Members are read by members and by results alone.
  void give_results(Node* host) {
    for (Node* result : graph_.results) {
      const Edge from = result->inputs[0];
      const auto member = inner_.find(from.node);
      if (member == inner_.end()) continue;
      Node* inner = body_->insert(nullptr, "Result", result->name);
      inner->inputs = {{member->second, from.port}};
      body_->results.push_back(inner);
      result->inputs[0] = {host, static_cast<int>(host->outputs.size())};
      host->outputs.push_back(from.node->outputs[from.port]);
    }
  }

  Graph& graph_;
  const std::vector<Node*>& members_;
  std::unique_ptr<Graph> body_ = std::make_unique<Graph>();
  std::unordered_map<const Node*, Node*> inner_;  // of the members
  std::vector<Edge> outer_;                       // inputs, in the order of the body's parameters
};

}  // namespace

void group_by_values(Graph& graph, const PassContext&) {
  graph.remove_dead();
  std::vector<Node*> members;
  std::unordered_set<const Node*> dependent;
  for (const auto& node : graph.nodes) {
    if (node->is("Result") || !depends_on_values(*node, dependent)) continue;
    dependent.insert(node.get());
    members.push_back(node.get());
  }
  if (!members.empty()) Grouping(graph, members).run();
}

}  // namespace clinfer
