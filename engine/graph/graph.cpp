// Structure of the graph: inserting, finding users, sorting, cloning.
#include "engine/graph/graph.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace clinfer {

Node* Graph::insert(const Node* before, std::string type, std::string node_name) {
  int id = 0;
  auto place = nodes.end();
  for (auto it = nodes.begin(); it != nodes.end(); ++it) {
    id = std::max(id, (*it)->id);
    if (it->get() == before) place = it;
  }
  auto node = std::make_unique<Node>();
  node->id = nodes.empty() ? 0 : id + 1;
  node->type = std::move(type);
  node->name = std::move(node_name);
  return nodes.insert(place, std::move(node))->get();
}

Node* Graph::insert_constant(const Node* before, std::string node_name, Tensor value) {
  Node* node = insert(before, "Constant", std::move(node_name));
  node->constant = std::move(value);
  infer_node_shapes(*node);
  return node;
}

std::vector<Node*> Graph::users(const Edge& edge) const {
  std::vector<Node*> found;
  for (const auto& node : nodes)
    for (const Edge& input : node->inputs)
      if (input == edge) found.push_back(node.get());
  return found;
}

std::vector<Node*> Graph::users(const Node* producer) const {
  std::vector<Node*> found;
  for (const auto& node : nodes)
    for (const Edge& input : node->inputs)
      if (input.node == producer) found.push_back(node.get());
  return found;
}

void Graph::replace_uses(const Edge& from, const Edge& to) {
  for (const auto& node : nodes)
    for (Edge& input : node->inputs)
      if (input == from) input = to;
}

void Graph::remove_dead() {
  std::unordered_set<const Node*> alive(parameters.begin(), parameters.end());
  std::vector<const Node*> open(results.begin(), results.end());
  alive.insert(results.begin(), results.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Edge& input : node->inputs)
      if (alive.insert(input.node).second) open.push_back(input.node);
  }
  std::erase_if(nodes, [&](const auto& node) { return !alive.count(node.get()); });
}

void Graph::sort() {
  std::unordered_map<const Node*, size_t> position;
  for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i].get()] = i;
  std::vector<size_t> waits_for(nodes.size(), 0);
  std::vector<std::vector<size_t>> users_of(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const Edge& input : nodes[i]->inputs) {
      users_of[position.at(input.node)].push_back(i);
      ++waits_for[i];
    }
  // Of all nodes whose inputs are there, the one that stood first comes first.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waits_for[i] == 0) ready.push(i);
  std::vector<size_t> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t user : users_of[i])
      if (--waits_for[user] == 0) ready.push(user);
  }
  if (order.size() != nodes.size()) {
    // Walking back along unfinished inputs ends on a cycle; a node that is met twice is on it.
    size_t i = static_cast<size_t>(
        std::find_if(waits_for.begin(), waits_for.end(), [](size_t n) { return n != 0; }) -
        waits_for.begin());
    for (std::unordered_set<size_t> seen; seen.insert(i).second;)
      for (const Edge& input : nodes[i]->inputs)
        if (const size_t from = position.at(input.node); waits_for[from] != 0) {
          i = from;
          break;
        }
    throw Error(ErrorCode::bad_model, label(*nodes[i]) + ": its input depends on its own output");
  }
  std::vector<std::unique_ptr<Node>> sorted;
  sorted.reserve(nodes.size());
  for (size_t i : order) sorted.push_back(std::move(nodes[i]));
  nodes = std::move(sorted);
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  std::unordered_map<const Node*, Node*> twin;
  copy->nodes.reserve(nodes.size());
  for (const auto& node : nodes) {
    copy->nodes.push_back(std::make_unique<Node>(*node));
    twin[node.get()] = copy->nodes.back().get();
  }
  for (const auto& node : copy->nodes) {
    for (Edge& input : node->inputs) input.node = twin.at(input.node);
    for (NodeOutput& output : node->outputs)
      if (output.storage.node) output.storage.node = twin.at(output.storage.node);
  }
  for (const Node* node : parameters) copy->parameters.push_back(twin.at(node));
  for (const Node* node : results) copy->results.push_back(twin.at(node));
  return copy;
}

const Tensor* constant_value(const Edge& edge) {
  return edge.node && edge.node->is("Constant") ? &edge.node->constant : nullptr;
}

size_t bytes_of_outputs(const Node& node) {
  size_t bytes = 0;
  for (const NodeOutput& output : node.outputs)
    bytes += static_cast<size_t>(count(output.shape)) * size_of(output.type);
  return bytes;
}

std::string label(const Node& node) {
  std::string text = "layer \"" + printable(node.name) + "\" (" + printable(node.type);
  if (node.opset > 0) text += ", opset" + std::to_string(node.opset);
  return text + ", id " + std::to_string(node.id) + ")";
}

}  // namespace clinfer
