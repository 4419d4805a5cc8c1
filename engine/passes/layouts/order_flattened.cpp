// Reorders the weights of products with flattened results of convolutions or poolings to the order
// of these results in memory, channels-last, so that flattening needs no copy.
#include <algorithm>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

// Returns whether the tensor is computed channels-last: by an operation on images, or by element
// functions of one.
bool is_channels_last(Edge edge) {
  constexpr int kMostSteps = 16;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node& node = *edge.node;
    if (!node.def || node.def->view || node.def->families.empty()) return false;
    if (node.def->layout == LayoutRule::image) return true;
    if (node.def->layout != LayoutRule::follow || node.inputs.empty()) return false;
    edge = node.inputs[0].node->is("Constant") && node.inputs.size() > 1 ? node.inputs[1]
                                                                         : node.inputs[0];
  }
  return false;
}

// Returns whether the node reshapes [N, C, ...] to [N, C x ...] and so changes the order: there are
// several channels and several places.
bool flattens(const Graph& graph, const Node& node) {
  if (!reshapes(node) || graph.use_count({const_cast<Node*>(&node), 0}) != 1) return false;
  const Edge from = node.inputs[0];
  const Shape &in = from.node->shape(from.port), &out = node.shape();
  return in.size() >= 3 && in.size() <= 5 && out.size() == 2 && out[0] == in[0] && in[1] > 1 &&
         in[1] < out[1] && is_channels_last(from);
}

// Reorders rows (or, of a transposed matrix, columns) from (channel, place) to (place, channel).
Tensor reordered(const Tensor& weights, bool transposed, int64_t channels, int64_t places) {
  const int64_t rows = channels * places;
  const int64_t other = weights.elements() / rows;
  const auto* from = weights.data<float>();
  Tensor result = Tensor::allocate(ElementType::f32, weights.shape());
  auto* to = result.mutable_data<float>();
  for (int64_t p = 0; p < places; ++p)
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t row = p * channels + c, old = c * places + p;
      if (transposed)
        for (int64_t o = 0; o < other; ++o) to[o * rows + row] = from[o * rows + old];
      else
        std::copy_n(from + old * other, other, to + row * other);
    }
  return result;
}

}  // namespace

void order_flattened(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    if (!node->is("MatMul") || node->inputs.size() < 2 || !node->tail.empty() ||
        node->attributes.get_bool("transpose_a", false))
      continue;
    const Tensor* weights = constant_value(node->inputs[1]);
    Node& flat = *node->inputs[0].node;
    if (!weights || weights->type() != ElementType::f32 || weights->shape().size() != 2 ||
        !flattens(graph, flat))
      continue;
    const Edge from = flat.inputs[0];
    const Shape& shape = from.node->shape(from.port);
    const int64_t channels = shape[1], places = flat.shape()[1] / channels;
    Insertion add(graph, node, flat.name);
    std::vector<int64_t> order(shape.size());
    for (size_t d = 1; d + 1 < order.size(); ++d) order[d] = static_cast<int64_t>(d) + 1;
    order.back() = 1;
    const Edge last = add.op("Transpose", 1, {from, add.ints(order)});
    const Edge rows =
        add.op("Reshape", 1, {last, add.ints(flat.shape())}, {{"special_zero", "false"}});
    const bool transposed = node->attributes.get_bool("transpose_b", false);
    node->inputs.set(1, Insertion(graph, node, node->inputs[1].node->name)
                            .constant(reordered(*weights, transposed, channels, places)));
    graph.replace_uses({&flat, 0}, rows);
  }
  graph.remove_dead();
}

}  // namespace clinfer
