// Sorts nodes by a depth-first search without recursion, since chains may be as long as the file.
#include "engine/onnx/node_order.h"

#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace clinfer {

namespace {

using Names = std::unordered_set<std::string_view>;

using Take = std::function<void(std::string_view)>;

// Calls take(name) for each value that a node reads: its inputs, and the outer values that its
// bodies read.
void each_read(const onnx::NodeProto& node, const Take& take);

void each_read_of_body(const onnx::GraphProto& body, const Take& take) {
  Names own;
  for (const auto& input : body.input()) own.insert(input.name());
  for (const auto& tensor : body.initializer()) own.insert(tensor.name());
  for (const auto& tensor : body.sparse_initializer()) own.insert(tensor.values().name());
  for (const auto& node : body.node())
    for (const auto& name : node.output()) own.insert(name);
  const Take outside = [&](std::string_view name) {
    if (!own.contains(name)) take(name);
  };
  for (const auto& node : body.node()) each_read(node, outside);
  for (const auto& output : body.output()) outside(output.name());
}

void each_read(const onnx::NodeProto& node, const Take& take) {
  for (const auto& name : node.input()) take(name);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) each_read_of_body(attribute.g(), take);
    for (const auto& body : attribute.graphs()) each_read_of_body(body, take);
  }
}

}  // namespace

std::vector<const onnx::NodeProto*> in_order(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  const auto count = static_cast<size_t>(nodes.size());
  std::unordered_map<std::string_view, size_t> giver;
  for (size_t i = 0; i < count; ++i)
    for (const auto& name : nodes.Get(static_cast<int>(i)).output())
      if (!name.empty()) giver.emplace(name, i);
  // needs[i]: the indices of the nodes whose outputs node i reads.
  std::vector<std::vector<size_t>> needs(count);
  for (size_t i = 0; i < count; ++i)
    each_read(nodes.Get(static_cast<int>(i)), [&](std::string_view name) {
      if (const auto found = giver.find(name); found != giver.end() && found->second != i)
        needs[i].push_back(found->second);
    });
  std::vector<const onnx::NodeProto*> order;
  std::vector<bool> begun(count);
  // Nodes, each with the number of its needs that were visited.
  std::vector<std::pair<size_t, size_t>> path;
  for (size_t first = 0; first < count; ++first) {
    if (!begun[first]) path.emplace_back(first, 0);
    begun[first] = true;
    while (!path.empty()) {
      auto& [at, looked] = path.back();
      if (looked == needs[at].size()) {
        order.push_back(&nodes.Get(static_cast<int>(at)));
        path.pop_back();
        continue;
      }
      const size_t next = needs[at][looked++];
      if (!begun[next]) path.emplace_back(next, 0);
      begun[next] = true;
    }
  }
  return order;
}

}  // namespace clinfer
