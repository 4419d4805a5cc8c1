// Infers shapes node by node. Computes and keeps values from which shapes follow, if these do not
// depend on inputs of the network, or only on given values. Where an operation finds an unknown
// number of rows (NonZero, NonMaxSuppression), shapes and values are those for the largest possible
// number, and everything that depends on that number is marked as inexact.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer {

inline constexpr size_t kMostShapeBytes = size_t{64} << 20;  // of intermediate values for one value

class Inference {
 public:
  // `parameters`: known values of the graph's Parameters, in their order.
  explicit Inference(const Graph& graph, std::span<const ValueInfo> parameters = {});

  // Sets element types and shapes of the node's outputs. To be called for every node in a
  // topological order. Throws the operation's errors, without the node's name.
  void infer(Node& node);
  // Notes a node whose shapes were inferred before.
  void note(const Node& node);
  // Returns the value of an edge, if it is determined and small enough for a shape to follow from
  // it; else an empty tensor. It holds for the largest number of rows: decisions need
  // exact_value().
  Tensor value(const Edge& edge);
  // Returns the value if it does not depend on how many rows an operation finds; else an empty
  // tensor.
  Tensor exact_value(const Edge& edge);
  // Return whether this dimension, or any, depends on how many rows an operation finds.
  bool varies(const Edge& edge, size_t dimension) const;
  bool varies(const Edge& edge) const;

  // The value and shape of an edge, for the Parameter that stands for it in a body.
  struct Knowledge {
    Tensor value;                    // for the largest number of rows; empty: not determined
    std::optional<ValueInfo> fewer;  // for fewer rows; nullopt: the number makes no difference
    bool moved_only = false;         // see Fewer::moved_only
  };
  Knowledge knowledge(const Edge& edge);
  void set_knowledge(const Node& parameter, Knowledge all);

 private:
  // Shapes and values of outputs for fewer rows; a size of -1 is not known. `moved_only`: the
  // values are sizes that were read from a shape and only moved since. Each one that depends on the
  // number of rows then differs from its value for the largest number.
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
  // Only nodes that depend on the number of rows found.
  std::unordered_map<const Node*, Fewer> fewer_;
};

// Returns whether the input decides which graph of the operation runs, or whether one runs at all.
// Its value for the largest number of rows is then no use.
bool decides(const Node& node, size_t input);
// Returns the types and shapes that the operation gives for such inputs.
std::vector<ValueInfo> inferred_outputs(const Node& node, std::span<const ValueInfo> inputs);
// Returns whether a size for fewer rows is not known.
bool is_unknown(const ValueInfo& info);

}  // namespace clinfer
