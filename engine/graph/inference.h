// Infers shapes node by node. Computes and keeps the values that shapes follow from, if they depend
// on no input of the network or on given values alone.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer {

class Inference {
 public:
  // `parameters`: values of the graph's Parameters in their order, where they are known.
  explicit Inference(const Graph& graph, std::span<const ValueInfo> parameters = {});

  // Sets element types and shapes of the node's outputs. To be called for every node in a
  // topological order. Throws what the operation throws, without the node's name.
  void infer(Node& node);
  // Notes a node whose shapes are known already.
  void note(const Node& node);
  // Sets the known value of a Parameter.
  void set_value(const Node& parameter, Tensor value);
  // The value of an edge, where it is determined and small enough for a shape to follow from it;
  // else empty.
  Tensor value(const Edge& edge);

 private:
  bool complete(const Node& node, std::vector<ValueInfo>& infos);
  bool is_determined(const Node& node) const;
  void compute(const Node* wanted);
  std::vector<Tensor> values_of(const Node& node);

  std::unordered_set<const Node*> determined_;
  std::unordered_map<const Node*, std::vector<Tensor>> values_;
};

}  // namespace clinfer
