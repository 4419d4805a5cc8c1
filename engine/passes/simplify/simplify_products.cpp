// Brings products of matrices, as attention has them, into one form:
//   (a * c) x b        ->  (a x b) * c                     c: one number, or for constant b one for each row
//   a x transposed(b)  ->  a x b with the flag transpose_b
// so that the factor of either side ends in the tail of the product's kernel.
#include <cmath>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// Returns the number by which this input is multiplied or divided, if nothing else reads the
// result, and makes the unscaled tensor the input.
std::optional<float> take_factor(const Graph& graph, Node& reader, size_t side) {
  const Edge scaled = reader.inputs[side];
  Node& scale = *scaled.node;
  if (!scale.tail.empty() || graph.use_count(scaled) != 1) return {};
  if (scale.is("Transpose")) return take_factor(graph, scale, 0);
  const bool divides = scale.is("Divide");
  if (!divides && !scale.is("Multiply")) return {};
  for (const size_t at : {size_t{1}, size_t{0}}) {
    if (divides && at == 0) break;
    const Tensor* number = constant_value(scale.inputs[at]);
    if (!number || number->elements() != 1 || !is_float(number->type())) continue;
    const Edge x = scale.inputs[1 - at];
    const NodeOutput& before = x.node->outputs[x.port];
    if (before.shape != scale.shape() || before.type != scale.outputs[0].type) continue;
    const float value = number->to_floats()[0], factor = divides ? 1 / value : value;
    if (!std::isfinite(factor)) return {};
    reader.inputs.set(side, x);
    return factor;
  }
  return {};
}

// Returns the numbers, one for each row, by which the first input is multiplied, as the mask of places that DETRs
// leave out, if nothing else reads the result, and makes the unscaled tensor the input.
std::optional<Tensor> take_row_factors(const Graph& graph, Node& product) {
  const Edge scaled = product.inputs[0];
  const Node& scale = *scaled.node;
  if (!scale.is("Multiply") || !scale.tail.empty() || graph.use_count(scaled) != 1 ||
      !constant_value(product.inputs[1]) || product.attributes.get_bool("transpose_a", false) ||
      product.shape().size() != scale.shape().size())
    return {};
  for (const size_t at : {size_t{1}, size_t{0}}) {
    const Tensor* numbers = constant_value(scale.inputs[at]);
    if (!numbers || numbers->shape().empty() || numbers->shape().back() != 1 ||
        !is_float(numbers->type()))
      continue;
    const Edge x = scale.inputs[1 - at];
    const NodeOutput& before = x.node->outputs[x.port];
    if (before.shape != scale.shape() || before.type != scale.outputs[0].type) continue;
    product.inputs.set(0, x);
    return *numbers;
  }
  return {};
}

void turn_second(Graph& graph, Node* product) {
  if (product->attributes.get_bool("transpose_b", false)) return;
  const Node& turn = *product->inputs[1].node;
  const size_t rank = turn.outputs.empty() ? 0 : turn.shape().size();
  if (!turn.is("Transpose") || rank < 2 || !constant_value(turn.inputs[1])) return;
  std::vector<int64_t> order = constant_value(turn.inputs[1])->to_ints();
  if (order.size() != rank) return;
  for (int64_t& d : order) d = static_cast<int64_t>(checked_axis(d, rank, "order entry"));
  std::swap(order[rank - 1], order[rank - 2]);
  if (order.back() != static_cast<int64_t>(rank) - 1) return;
  Edge b = turn.inputs[0];
  if (!std::is_sorted(order.begin(), order.end())) {
    Insertion add(graph, product, turn.name);
    b = add.op("Transpose", 1, {b, add.ints(order)});
  }
  product->inputs.set(1, b);
  product->attributes.set("transpose_b", "true");
}

// Turns the node into a multiplication of the product. The node keeps its name, place and readers.
void scale_result(Graph& graph, Node* product, Tensor factor) {
  Insertion add(graph, product);
  const Edge unscaled{add.copy(*product), 0};
  product->type = "Multiply";
  product->opset = 1;
  product->def = find_op("Multiply", 1);
  product->attributes = {};
  product->attributes.set("auto_broadcast", "numpy");
  product->inputs = {unscaled, add.constant(std::move(factor))};
}

}  // namespace

void simplify_products(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    if (!node->is("MatMul") || node->inputs.size() != 2 || !node->tail.empty()) continue;
    const auto first = take_factor(graph, *node, 0), second = take_factor(graph, *node, 1);
    turn_second(graph, node);
    if (first || second)
      scale_result(
          graph, node,
          Tensor::of<float>(ElementType::f32, {}, {first.value_or(1) * second.value_or(1)}));
    else if (std::optional<Tensor> rows = take_row_factors(graph, *node))
      scale_result(graph, node, std::move(*rows));
  }
  graph.remove_dead();
}

}  // namespace clinfer
