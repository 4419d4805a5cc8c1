// Edits the graph: inserts nodes, finds users, sorts, clones.
#include "engine/graph/graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernels/custom/custom_layer.h"

namespace clinfer {

void Inputs::register_use(size_t i) {
  const Edge& edge = edges_[i];
  if (!edge.node) return;
  auto& by_output = edge.node->graph_.uses;
  const auto port = static_cast<size_t>(edge.port);
  if (by_output.size() <= port) by_output.resize(port + 1);
  places_[i] = static_cast<uint32_t>(by_output[port].size());
  by_output[port].push_back({owner_, static_cast<uint32_t>(i)});
}

// Moves the last use in the list to the place of the removed one.
void Inputs::remove_use(size_t i) {
  const Edge& edge = edges_[i];
  if (!edge.node) return;
  auto& uses = edge.node->graph_.uses[static_cast<size_t>(edge.port)];
  const Node::Use last = uses.back();
  uses[places_[i]] = last;
  last.reader->inputs.places_[last.input] = places_[i];
  uses.pop_back();
  edge.node->graph_.last_reader = owner_;
}

Inputs& Inputs::operator=(std::vector<Edge> edges) {
  if (owner_)
    for (size_t i = 0; i < edges_.size(); ++i) remove_use(i);
  edges_ = std::move(edges);
  if (!owner_) return *this;
  places_.resize(edges_.size());
  for (size_t i = 0; i < edges_.size(); ++i) register_use(i);
  return *this;
}

void Inputs::set(size_t i, const Edge& edge) {
  if (owner_) remove_use(i);
  edges_[i] = edge;
  if (owner_) register_use(i);
}

void Inputs::push_back(const Edge& edge) {
  edges_.push_back(edge);
  if (!owner_) return;
  places_.push_back(0);
  register_use(edges_.size() - 1);
}

Node* Graph::add(Nodes::iterator before, std::unique_ptr<Node> node) {
  const auto place = nodes_.insert(before, std::move(node));
  Node* added = place->get();
  added->graph_.place = place;
  set_order(place);
  last_id_ = std::max(last_id_, added->id);
  added->inputs.owner_ = added;
  added->inputs = std::vector<Edge>(std::move(added->inputs.edges_));
  return added;
}

Node* Graph::insert(const Node* before, std::string type, std::string node_name) {
  auto node = std::make_unique<Node>();
  node->id = last_id_ + 1;
  node->type = std::move(type);
  node->name = std::move(node_name);
  return add(before ? before->graph_.place : nodes_.end(), std::move(node));
}

Node* Graph::append(std::unique_ptr<Node> node) { return add(nodes_.end(), std::move(node)); }

Node* Graph::next(const Node* node) const {
  const Nodes::const_iterator next = std::next(node->graph_.place);
  return next == nodes_.end() ? nullptr : next->get();
}

void Graph::move_after(Node* node, const Node* other) {
  nodes_.splice(std::next(other->graph_.place), nodes_, node->graph_.place);
  set_order(node->graph_.place);
}

// Gives the node a number between those of its neighbours.
void Graph::set_order(Nodes::iterator at) {
  // Distance of the numbers of nodes that are added at the end.
  constexpr uint64_t kStep = uint64_t{1} << 20;
  const auto bounds = [&] {
    const uint64_t low = at == nodes_.begin() ? 0 : (*std::prev(at))->graph_.order;
    const auto next = std::next(at);
    return std::pair{low, next == nodes_.end() ? low + 2 * kStep : (*next)->graph_.order};
  };
  auto [low, high] = bounds();
  if (high - low < 2) {
    make_room(std::next(at));
    std::tie(low, high) = bounds();
  }
  (*at)->graph_.order = low + (high - low) / 2;
}

// Makes room for a number in front of the successor of `at`: renumbers, with gaps, the nodes of the
// smallest aligned range of numbers around it that is thinly used. The threshold falls with the
// size of the range, so that an insertion costs O(log n) on average (Bender et al., "Two simplified
// algorithms for maintaining order in a list").
void Graph::make_room(Nodes::iterator at) {
  // Growth of the number of nodes that a range may hold when the range doubles.
  constexpr double kGrowth = 4.0 / 3;
  const uint64_t order = (*at)->graph_.order;
  const auto added = std::prev(at);  // the node without a number
  auto first = at, last = std::next(at);
  uint64_t nodes = 2, size = 1, low = order;
  for (double most = 1; nodes >= most; most *= kGrowth) {
    size *= 2;
    low = order / size * size;
    for (; first != nodes_.begin(); --first) {
      const auto before = std::prev(first);
      if (before != added && (*before)->graph_.order < low) break;
      if (before != added) ++nodes;
    }
    for (; last != nodes_.end() && (*last)->graph_.order - low < size; ++last) ++nodes;
  }
  for (uint64_t i = 1; first != last; ++first, ++i)
    (*first)->graph_.order = low + size / (nodes + 1) * i;
}

std::vector<Node*> Graph::users(const Edge& edge) const {
  const auto& by_output = edge.node->graph_.uses;
  const auto port = static_cast<size_t>(edge.port);
  std::vector<Node*> found;
  if (port >= by_output.size()) return found;
  for (const Node::Use& use : by_output[port]) found.push_back(use.reader);
  std::sort(found.begin(), found.end(),
            [&](const Node* a, const Node* b) { return is_before(a, b); });
  return found;
}

std::vector<Node*> Graph::users(const Node* producer) const {
  std::vector<Node*> found;
  for (const auto& uses : producer->graph_.uses)
    for (const Node::Use& use : uses) found.push_back(use.reader);
  std::sort(found.begin(), found.end(),
            [&](const Node* a, const Node* b) { return is_before(a, b); });
  return found;
}

size_t Graph::use_count(const Edge& edge) const {
  const auto& by_output = edge.node->graph_.uses;
  const auto port = static_cast<size_t>(edge.port);
  return port < by_output.size() ? by_output[port].size() : 0;
}

bool Graph::has_users(const Node* node) const {
  return std::any_of(node->graph_.uses.begin(), node->graph_.uses.end(),
                     [](const auto& uses) { return !uses.empty(); });
}

Node* Graph::only_user(const Edge& edge) const {
  return use_count(edge) == 1 ? edge.node->graph_.uses[static_cast<size_t>(edge.port)][0].reader
                              : nullptr;
}

namespace {

// Appends the shorter list to the longer one, so that long chains of moves take nearly linear time.
void hand_on(std::vector<int>& from, std::vector<int>& to) {
  if (from.size() > to.size()) std::swap(from, to);
  to.insert(to.end(), from.begin(), from.end());
  from.clear();
}

}  // namespace

void Graph::note_layers() {
  layers.clear();
  for (const auto& node : nodes_) {
    node->computes = {static_cast<int>(layers.size())};
    layers.push_back({node->name, node->custom ? node->custom->type : node->type});
  }
}

std::vector<std::string> fused_layers(const Graph& graph, const Node& node) {
  std::vector<int> numbers = node.computes;
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::string> names;
  for (const int number : numbers)
    if (const Graph::Layer& layer = graph.layers[static_cast<size_t>(number)];
        layer.name != node.name && layer.type != "Constant")
      names.push_back(layer.name);
  return names;
}

void Graph::replace_uses(const Edge& from, const Edge& to) {
  if (from == to) return;
  if (from.node != to.node) hand_on(from.node->computes, to.node->computes);
  for (size_t left = use_count(from); left > 0; --left) {
    const Node::Use use = from.node->graph_.uses[static_cast<size_t>(from.port)].back();
    use.reader->inputs.set(use.input, to);
  }
}

void Graph::remove_dead() {
  std::vector<Node*> open = results;
  for (Node* node : results) node->graph_.needed = true;
  for (Node* node : parameters) node->graph_.needed = true;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Edge& input : node->inputs)
      if (!std::exchange(input.node->graph_.needed, true)) open.push_back(input.node);
  }
  last_id_ = -1;
  std::vector<Node*> dead;
  for (const auto& node : nodes_) {
    if (!std::exchange(node->graph_.needed, false))
      dead.push_back(node.get());
    else
      last_id_ = std::max(last_id_, node->id);
  }
  for (Node* node : dead) {
    if (node->computes.empty()) continue;
    const std::vector<Node*> readers = users(node);
    Node* heir = readers.empty() ? node->graph_.last_reader : readers.front();
    if (heir) hand_on(node->computes, heir->computes);
  }
  for (Node* node : dead) disconnect(node);
  for (Node* node : dead) nodes_.erase(node->graph_.place);
}

void Graph::sort() {
  std::vector<Node*> nodes;
  std::unordered_map<const Node*, size_t> position;
  for (const auto& node : nodes_) {
    position[node.get()] = nodes.size();
    nodes.push_back(node.get());
  }
  std::vector<size_t> waits_for(nodes.size(), 0);
  std::vector<std::vector<size_t>> users_of(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const Edge& input : nodes[i]->inputs) {
      users_of[position.at(input.node)].push_back(i);
      ++waits_for[i];
    }
  // Takes, among the nodes whose inputs are ready, the one that came first.
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
    // Walks back along unfinished inputs, which ends on a cycle: a node that is met twice is on it.
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
  for (size_t i : order) {
    nodes_.splice(nodes_.end(), nodes_, nodes[i]->graph_.place);
    set_order(nodes[i]->graph_.place);
  }
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  copy->layers = layers;
  std::unordered_map<const Node*, Node*> twin;
  for (const auto& node : nodes_) {
    auto same = std::make_unique<Node>(*node);
    same->inputs = {};
    twin[node.get()] = copy->append(std::move(same));
  }
  for (const auto& node : nodes_) {
    std::vector<Edge> inputs = node->inputs;
    for (Edge& input : inputs) input.node = twin.at(input.node);
    Node* same = twin.at(node.get());
    same->inputs = std::move(inputs);
    for (NodeOutput& output : same->outputs)
      if (output.storage.node) output.storage.node = twin.at(output.storage.node);
  }
  for (const Node* node : parameters) copy->parameters.push_back(twin.at(node));
  for (const Node* node : results) copy->results.push_back(twin.at(node));
  copy->initial_states = initial_states;
  return copy;
}

const Tensor* constant_value(const Edge& edge) {
  return edge.node && edge.node->is("Constant") ? &edge.node->constant : nullptr;
}

Edge storage_root(Edge edge) {
  while (edge.node->outputs[edge.port].storage.node) edge = edge.node->outputs[edge.port].storage;
  return edge;
}

bool reshapes(const Node& node) {
  return node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze");
}

size_t bytes_of_outputs(const Node& node) {
  size_t bytes = 0;
  for (const NodeOutput& output : node.outputs)
    bytes += static_cast<size_t>(count(output.shape)) * size_of(output.type);
  return bytes;
}

bool is_custom(const Node& node) {
  if (node.custom) return true;
  return std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) {
    const auto* graph = dynamic_cast<const GraphBody*>(body.get());
    return graph && std::any_of(graph->graph().nodes().begin(), graph->graph().nodes().end(),
                                [](const auto& inner) { return is_custom(*inner); });
  });
}

std::string label(const Node& node) {
  std::string text = "layer \"" + printable(node.name) + "\" (" + printable(node.type);
  if (node.opset > 0) text += ", opset" + std::to_string(node.opset);
  return text + ", id " + std::to_string(node.id) + ")";
}

}  // namespace clinfer
