// Infers shapes node by node. Computes and keeps the values that shapes follow from, if they depend
// on no input of the network or on given values alone. Where an operation finds as many rows as
// there are (NonZero, NonMaxSuppression), shapes and values are those with the most rows possible,
// and what depends on the number of rows is known not to be exact.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer {

inline constexpr size_t kMostShapeBytes = size_t{64} << 20;  // on the way to one value

class Inference {
 public:
  // `parameters`: values of the graph's Parameters in their order, where they are known.
  explicit Inference(const Graph& graph, std::span<const ValueInfo> parameters = {});

  // Sets element types and shapes of the node's outputs. To be called for every node in a
  // topological order. Throws what the operation throws, without the node's name.
  void infer(Node& node);
  // Notes a node whose shapes are known already.
  void note(const Node& node);
  // The value of an edge, where it is determined and small enough for a shape to follow from it;
  // else empty. Good for the largest shape only: decisions take exact_value().
  Tensor value(const Edge& edge);
  // The value where it does not depend on how many rows an operation finds; else empty.
  Tensor exact_value(const Edge& edge);
  // Returns whether a dimension, or any, depends on how many rows an operation finds.
  bool varies(const Edge& edge, size_t dimension) const;
  bool varies(const Edge& edge) const;

  // Value and shape of an edge, for the Parameter of a body that stands for it.
  struct Knowledge {
    Tensor value;                    // with the most rows; empty: not determined
    std::optional<ValueInfo> fewer;  // with fewer rows; nullopt: the number makes no difference
    bool moved_only = false;         // as Fewer::moved_only
  };
  Knowledge knowledge(const Edge& edge);
  void set_knowledge(const Node& parameter, Knowledge all);

 private:
  // Shapes and values of outputs if fewer rows were found; a size of -1 is not known. `moved_only`:
  // the values are sizes that were only moved about since they were read from a shape. Each one
  // that depends on the number of rows then differs from its value with the most rows.
  struct Fewer {
    std::vector<ValueInfo> outputs;
    bool moved_only = false;
  };

  void infer_completed(Node& node, std::span<const ValueInfo> infos);
  bool complete(const Node& node, std::vector<ValueInfo>& infos);
  void note_fewer(const Node& node);
  bool finds_rows(const Node& node);
  std::vector<ValueInfo> inputs_with_fewer(const Node& node);
  std::vector<ValueInfo> infer_branches(const Node& node, std::span<const ValueInfo> inputs);
  std::vector<ValueInfo> infer_fewer_branches(const Node& node, std::span<const ValueInfo> inputs);
  std::vector<ValueInfo> outputs_with_fewer(const Node& node);
  bool is_same(const Node& node, const Fewer& fewer);
  bool is_determined(const Node& node) const;
  void compute(const Node* wanted);
  std::vector<Tensor> values_of(const Node& node);

  std::unordered_set<const Node*> determined_;
  std::unordered_map<const Node*, std::vector<Tensor>> values_;
  std::unordered_map<const Node*, Fewer> fewer_;  // of nodes that depend on the rows found
};

// Returns whether the input decides which graph of the operation runs, or whether one does: its
// value with the most rows says nothing then.
bool decides(const Node& node, size_t input);
// Types and shapes that the operation gives from inputs like these.
std::vector<ValueInfo> inferred_outputs(const Node& node, std::span<const ValueInfo> inputs);
// Returns whether a size with fewer rows is not known.
bool is_unknown(const ValueInfo& info);

}  // namespace clinfer
