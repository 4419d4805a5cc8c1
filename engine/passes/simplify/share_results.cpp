// Merges nodes that compute the same from the same values. Exporters write an index, a mask or a
// chain of shapes once for each use.
#include <cstring>
#include <string>
#include <unordered_map>

#include "engine/passes/passes.h"

namespace clinfer {

namespace {

constexpr size_t kMostConstantBytes = 4096;  // larger constants are compared by identity

void put(std::string& key, const void* data, size_t size) {
  const auto length = static_cast<uint64_t>(size);
  key.append(reinterpret_cast<const char*>(&length), sizeof(length));
  key.append(static_cast<const char*>(data), size);
}

void put(std::string& key, const std::string& text) { put(key, text.data(), text.size()); }

// Returns a key; two nodes with the same key compute the same.
std::string key_of(const Node& node) {
  std::string key;
  put(key, node.type);
  put(key, &node.opset, sizeof(node.opset));
  if (node.is("Constant")) {
    const Tensor& value = node.constant;
    const ElementType type = value.type();
    put(key, &type, sizeof(type));
    put(key, value.shape().data(), value.shape().size() * sizeof(value.shape()[0]));
    put(key, value.raw(), value.bytes());
    return key;
  }
  for (const auto& [name, text] : node.attributes.all()) {
    put(key, name);
    put(key, text);
  }
  put(key, nullptr, 0);
  for (const Edge& input : node.inputs) {
    put(key, &input.node, sizeof(input.node));
    put(key, &input.port, sizeof(input.port));
  }
  const size_t outputs = node.outputs.size();
  put(key, &outputs, sizeof(outputs));
  return key;
}

bool may_be_shared(const Node& node) {
  if (node.is("Constant"))
    return !node.constant.empty() && node.constant.bytes() <= kMostConstantBytes;
  return node.def && !node.is("Parameter") && !node.is("Result") && node.bodies.empty() &&
         node.tail.empty();
}

// Returns whether a Result reads the node. An output of the model keeps its own node, and with it
// its name.
bool is_output(const Graph& graph, const Node& node) {
  const std::vector<Node*> users = graph.users(&node);
  return std::any_of(users.begin(), users.end(), [](const Node* u) { return u->is("Result"); });
}

}  // namespace

void share_results(Graph& graph, const PassContext&) {
  std::unordered_map<std::string, Node*> first;
  for (const auto& node : graph.nodes()) {
    if (!may_be_shared(*node)) continue;
    const auto [known, is_new] = first.emplace(key_of(*node), node.get());
    if (is_new || is_output(graph, *node)) continue;
    for (size_t i = 0; i < node->outputs.size(); ++i)
      graph.replace_uses({node.get(), static_cast<int>(i)}, {known->second, static_cast<int>(i)});
  }
  graph.remove_dead();
}

}  // namespace clinfer
