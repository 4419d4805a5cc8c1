// Replaces the mean of numbers, weighted with the probabilities of a SoftMax, by one operation,
// SoftMaxMean, which stores no probabilities. Detectors that learn distances as distributions
// (YOLOv8, YOLO11, NanoDet, PP-YOLOE) write it as
//   a 1x1 convolution of the SoftMax over the channels, with one output channel
//   a product with a vector, of the SoftMax over the last axis
//   ReduceSum of the SoftMax times constants that vary along its axis only
#include <algorithm>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Mean {
  Node* softmax = nullptr;
  size_t axis = 0;
  const Tensor* numbers = nullptr;
};

// Returns the SoftMax of this edge and its axis, if the edge has a single reader.
std::optional<Mean> distribution(const Graph& graph, const Edge& edge) {
  Node& node = *edge.node;
  if (!node.is("SoftMax") || !node.tail.empty() || graph.use_count(edge) != 1) return {};
  const size_t rank = node.shape().size();
  return Mean{&node, checked_axis(node.attributes.get_int("axis", 1), rank, "axis"), nullptr};
}

// Returns the mean if it is over `axis` and the constants have one number for each element along
// it.
std::optional<Mean> with_numbers(std::optional<Mean> mean, size_t axis, const Edge& numbers) {
  if (!mean || mean->axis != axis) return {};
  mean->numbers = constant_value(numbers);
  if (!mean->numbers || !is_float(mean->numbers->type()) ||
      mean->numbers->elements() != mean->softmax->shape()[axis])
    return {};
  return mean;
}

bool is_all(const Node& node, const char* attribute, int64_t value) {
  const std::vector<int64_t> values = node.attributes.get_ints(attribute, std::vector<int64_t>{});
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

std::optional<Mean> by_convolution(const Graph& graph, const Node& node) {
  const auto mean = distribution(graph, node.inputs[0]);
  if (!mean) return {};
  const Shape& from = mean->softmax->shape();
  Shape one = from;
  if (from.size() < 3) return {};
  one[1] = 1;
  if (node.shape() != one || !is_all(node, "strides", 1) || !is_all(node, "pads_begin", 0) ||
      !is_all(node, "pads_end", 0))
    return {};
  // Larger windows have more numbers than channels.
  return with_numbers(mean, 1, node.inputs[1]);
}

std::optional<Mean> by_product(const Graph& graph, const Node& node) {
  const auto mean = distribution(graph, node.inputs[0]);
  if (!mean || mean->softmax->shape().size() < 2 || node.attributes.get_bool("transpose_a", false))
    return {};
  const Shape &from = mean->softmax->shape(), &to = node.shape();
  // The axis must be gone, or of size 1.
  const size_t kept = from.size() - 1;
  if (to.size() < kept || to.size() > kept + 1 || (to.size() > kept && to[kept] != 1) ||
      !std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(kept), to.begin()))
    return {};
  return with_numbers(mean, kept, node.inputs[1]);
}

std::optional<Mean> by_sum(const Graph& graph, const Node& node) {
  const Node& product = *node.inputs[0].node;
  const Tensor* axes = constant_value(node.inputs[1]);
  if (!product.is("Multiply") || !product.tail.empty() || graph.use_count(node.inputs[0]) != 1 ||
      !axes || axes->elements() != 1)
    return {};
  const size_t rank = product.shape().size(), axis = checked_axis(axes->to_ints()[0], rank, "axis");
  for (const size_t side : {0, 1}) {
    const auto mean = distribution(graph, product.inputs[side]);
    const Edge& numbers = product.inputs[1 - side];
    if (!mean || mean->softmax->shape() != product.shape()) continue;
    const Shape& shape = numbers.node->shape(numbers.port);
    // The only long dimension of the constants must lie on the axis.
    const size_t before = rank - axis;
    if (shape.size() >= before && shape[shape.size() - before] == count(shape))
      return with_numbers(mean, axis, numbers);
  }
  return {};
}

std::optional<Mean> mean_of(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2 || !node.tail.empty() || node.outputs.size() != 1) return {};
  if (node.is("Convolution")) return by_convolution(graph, node);
  if (node.is("MatMul")) return by_product(graph, node);
  return node.is("ReduceSum") ? by_sum(graph, node) : std::nullopt;
}

}  // namespace

void fuse_distributions(Graph& graph, const PassContext& context) {
  for (Node* node : nodes_of(graph)) {
    const auto mean = mean_of(graph, *node);
    if (!mean) continue;
    Insertion add(graph, node);
    const Edge numbers = add.constant(mean->numbers->reshaped({mean->numbers->elements()}));
    Edge made = add.op("SoftMaxMean", 1, {mean->softmax->inputs[0], numbers},
                       {{"axis", std::to_string(mean->axis)}});
    if (accepting_families(*made.node->def, describe(*made.node), context.traits).empty()) continue;
    made.node->computes = mean->softmax->computes;
    if (made.node->shape() != node->shape())
      made = add.op("Reshape", 1, {made, add.ints(node->shape())}, {{"special_zero", "false"}});
    made.node->outputs[0].names = node->outputs[0].names;
    graph.replace_uses({node, 0}, made);
    graph.disconnect(node);
  }
  graph.remove_dead();
}

}  // namespace clinfer
