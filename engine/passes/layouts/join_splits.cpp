// Lets a concat that joins all parts of a split, in order, read the split's input instead. The
// producer of that input can then write into the concat's memory, and no part is copied. YOLOv8 has
// such blocks.
#include <algorithm>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

// Returns the number of the concat's inputs, from `first` on, that are all parts of one split along
// the same axis; 0 if they are not.
size_t joined_parts(const Node& concat, size_t first) {
  const Node* split = concat.inputs[first].node;
  if (!split->is("Split") && !split->is("VariadicSplit")) return 0;
  const Tensor* along = constant_value(split->inputs[1]);
  if (!along) return 0;
  const auto rank = static_cast<int64_t>(concat.shape().size());
  const auto from_front = [&](int64_t axis) { return axis < 0 ? axis + rank : axis; };
  if (from_front(along->to_ints()[0]) != from_front(concat.attributes.get_int("axis"))) return 0;
  const size_t parts = split->outputs.size();
  if (first + parts > concat.inputs.size()) return 0;
  for (size_t k = 0; k < parts; ++k) {
    const Edge& input = concat.inputs[first + k];
    if (input.node != split || input.port != static_cast<int>(k)) return 0;
  }
  return parts;
}

}  // namespace

void join_splits(Graph& graph, const PassContext&) {
  for (Node* concat : nodes_of(graph)) {
    if (!concat->is("Concat")) continue;
    std::vector<Edge> inputs;
    for (size_t k = 0; k < concat->inputs.size();) {
      const size_t parts = joined_parts(*concat, k);
      inputs.push_back(parts > 0 ? concat->inputs[k].node->inputs[0] : concat->inputs[k]);
      k += std::max<size_t>(parts, 1);
    }
    if (inputs.size() < concat->inputs.size()) concat->inputs = std::move(inputs);
  }
  graph.remove_dead();
}

}  // namespace clinfer
