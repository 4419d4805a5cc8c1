// Moves operations whose shapes depend on values (those after NonMaxSuppression or NonZero, which
// give as many rows as they find) into one operation with a body. It runs on the host with the
// actual shapes.
#include <map>
#include <unordered_map>

#include "engine/graph/insertion.h"
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
    Node twin = member;
    twin.inputs = std::move(inputs);
    Node* node = Insertion(*body_, nullptr, member.name).copy(twin);
    inner_[&member] = node;
  }

  // Returns the edge inside the body: a member's, a constant's, or a parameter for an edge from
  // outside.
  Edge inside(const Edge& edge) {
    if (const auto member = inner_.find(edge.node); member != inner_.end())
      return {member->second, edge.port};
    if (const Tensor* value = constant_value(edge))
      return Insertion(*body_, nullptr, edge.node->name).constant(*value);
    const auto [found, is_new] = parameters_.try_emplace({edge.node, edge.port});
    if (is_new) {
      outer_.push_back(edge);
      const NodeOutput& output = edge.node->outputs[edge.port];
      Insertion add(*body_, nullptr, edge.node->name);
      found->second = add.parameter(output.type, output.shape);
      found->second.node->outputs[0] = output;
    }
    return found->second;
  }

  // Makes a result of the body for each value that is read outside of it. Only members and results
  // read members.
  void give_results(Node* host) {
    for (Node* result : graph_.results) {
      const Edge from = result->inputs[0];
      const auto member = inner_.find(from.node);
      if (member == inner_.end()) continue;
      Insertion(*body_, nullptr, result->name).result({member->second, from.port});
      result->inputs.set(0, {host, static_cast<int>(host->outputs.size())});
      host->outputs.push_back(from.node->outputs[from.port]);
    }
  }

  Graph& graph_;
  const std::vector<Node*>& members_;
  std::unique_ptr<Graph> body_ = std::make_unique<Graph>();
  std::unordered_map<const Node*, Node*> inner_;            // the copies of the members
  std::vector<Edge> outer_;                                 // the operation's inputs
  std::map<std::pair<const Node*, int>, Edge> parameters_;  // the body's parameters, by outer edge
};

}  // namespace

void group_by_values(Graph& graph, const PassContext&) {
  graph.remove_dead();
  std::vector<Node*> members;
  std::unordered_set<const Node*> dependent;
  for (const auto& node : graph.nodes()) {
    if (node->is("Result") || !depends_on_values(*node, dependent)) continue;
    dependent.insert(node.get());
    members.push_back(node.get());
  }
  if (!members.empty()) Grouping(graph, members).run();
}

}  // namespace clinfer
