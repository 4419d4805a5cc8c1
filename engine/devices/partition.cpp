// Cuts a graph into parts where its device changes.
#include "engine/devices/partition.h"

#include <algorithm>
#include <map>
#include <string>

#include "engine/graph/affinity.h"
#include "engine/graph/insertion.h"
#include "engine/runtime/model.h"

namespace clinfer {

namespace {

using Stage = std::pair<size_t, size_t>;  // number of device changes before it, and its device

class Splitter {
 public:
  Splitter(const Graph& graph, const Affinities& affinities,
           const std::unordered_set<const Node*>& inseparable)
      : graph_(graph), affinities_(affinities), inseparable_(inseparable) {
    for (size_t i = 0; i < graph.parameters.size(); ++i) parameters_[graph.parameters[i]] = i;
    for (const auto& node : graph.nodes()) next_id_ = std::max(next_id_, node->id + 1);
  }

  Partition split() {
    find_parts();
    for (const auto& node : graph_.nodes())
      if (const auto part = partition_.part_of.find(node.get()); part != partition_.part_of.end())
        copy(*node, part->second);
    for (const Node* result : graph_.results) {
      const Edge& edge = result->inputs[0];
      const auto part = partition_.part_of.find(edge.node);
      partition_.outputs.push_back(
          output(part == partition_.part_of.end() ? 0 : part->second, edge));
    }
    for (size_t p = 0; p < partition_.parts.size(); ++p)
      for (const Edge& edge : results_[p])
        Insertion(*partition_.parts[p].graph, nullptr, edge.node->name).result(edge);
    return std::move(partition_);
  }

 private:
  // Makes a part for each pair of a device and a number of device changes on the path to a node.
  // Edges between parts lead from smaller to larger numbers, so no two parts depend on each other.
  void find_parts() {
    std::unordered_map<const Node*, size_t> changes;
    size_t last = 0;  // largest number among the inseparable layers
    for (const auto& node : graph_.nodes()) {
      const auto device = affinities_.find(node.get());
      if (device == affinities_.end()) continue;
      size_t most = 0;
      for (const Edge& input : node->inputs) {
        const auto before = affinities_.find(input.node);
        if (before == affinities_.end()) continue;
        most = std::max(most, changes.at(input.node) + (before->second != device->second));
      }
      changes[node.get()] = most;
      if (inseparable_.contains(node.get())) last = std::max(last, most);
    }
    std::map<Stage, size_t> parts;
    for (auto& [node, number] : changes) {
      if (inseparable_.contains(node)) number = last;
      parts[{number, affinities_.at(node)}] = 0;
    }
    if (parts.empty()) parts[{0, 0}] = 0;
    for (auto& [stage, number] : parts) {
      number = partition_.parts.size();
      Subgraph part;
      part.device = stage.second;
      part.graph = std::make_unique<Graph>();
      part.graph->name = graph_.name + kPartName + std::to_string(number);
      partition_.parts.push_back(std::move(part));
    }
    for (const auto& [node, number] : changes)
      partition_.part_of[node] = parts.at({number, affinities_.at(node)});
    copies_.resize(partition_.parts.size());
    results_.resize(partition_.parts.size());
  }

  void copy(const Node& node, size_t part) {
    std::vector<Edge> inputs;
    for (const Edge& input : node.inputs) inputs.push_back(local(part, input));
    auto twin = std::make_unique<Node>(node);
    twin->inputs = {};
    Node* const added = partition_.parts[part].graph->append(std::move(twin));
    added->inputs = std::move(inputs);
    for (size_t port = 0; port < added->outputs.size(); ++port)
      copies_[part][{&node, static_cast<int>(port)}] = {added, static_cast<int>(port)};
  }

  // Returns the edge inside the part.
  Edge local(size_t part, const Edge& edge) {
    const auto key = std::pair{static_cast<const Node*>(edge.node), edge.port};
    if (const auto known = copies_[part].find(key); known != copies_[part].end())
      return known->second;
    Subgraph& subgraph = partition_.parts[part];
    std::unique_ptr<Node> twin;
    const auto parameter = parameters_.find(edge.node);
    if (edge.node->is("Constant") || parameter != parameters_.end()) {
      twin = std::make_unique<Node>(*edge.node);
      twin->inputs = {};
      if (parameter != parameters_.end()) subgraph.inputs.push_back({true, 0, parameter->second});
    } else {
      const size_t producer = partition_.part_of.at(edge.node);
      subgraph.inputs.push_back({false, producer, output(producer, edge).index});
      twin = std::make_unique<Node>();
      twin->id = next_id_++;
      twin->name = edge.node->name;
      twin->type = "Parameter";
      twin->outputs.push_back(edge.node->outputs[static_cast<size_t>(edge.port)]);
    }
    Node* const added = subgraph.graph->append(std::move(twin));
    if (added->is("Parameter")) subgraph.graph->parameters.push_back(added);
    return copies_[part][key] = {added, 0};
  }

  // Returns the edge as an output of the part, which is added if the part does not have it.
  Partition::Output output(size_t part, const Edge& edge) {
    const Edge mine = local(part, edge);
    std::vector<Edge>& results = results_[part];
    const auto known = std::find(results.begin(), results.end(), mine);
    const auto index = static_cast<size_t>(known - results.begin());
    if (known == results.end()) results.push_back(mine);
    return {part, index};
  }

  const Graph& graph_;
  const Affinities& affinities_;
  const std::unordered_set<const Node*>& inseparable_;
  std::unordered_map<const Node*, size_t> parameters_;  // indices into the graph's list
  Partition partition_;
  std::vector<std::map<std::pair<const Node*, int>, Edge>> copies_;  // by part
  std::vector<std::vector<Edge>> results_;                           // by part
  int next_id_ = 0;
};

}  // namespace

Partition split(const Graph& graph, const Affinities& affinities,
                const std::unordered_set<const Node*>& inseparable) {
  return Splitter(graph, affinities, inseparable).split();
}

}  // namespace clinfer
