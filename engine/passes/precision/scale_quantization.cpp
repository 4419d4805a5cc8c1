// Reduces a FakeQuantize that stays in floats to rounding and limiting, where the weights of
// convolutions around it can do the rest:
//   FakeQuantize(x) = step * FakeQuantize'(x * scale)    both limits of FakeQuantize' last apart
// The multiplications before and after go into the weights there (fold_into_weights). A ReLU or
// clamp before it that the limits make superfluous goes. For devices that compute quantised models
// in floats; f16 would lose what small steps make of weights.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/elementwise/elementwise.h"

namespace clinfer {

namespace {

enum Limit { in_low, in_high, out_low, out_high };

// The limits of a FakeQuantize, all of the same size.
struct Limits {
  std::vector<float> values[4];
  Shape shape;
};

std::optional<Limits> limits_of(const Node& node) {
  Limits limits;
  size_t count = 1;
  for (size_t i = 0; i < 4; ++i) {
    const Tensor* constant = constant_value(node.inputs[i + 1]);
    if (!constant || constant->elements() == 0) return {};
    limits.values[i] = constant->to_floats();
    if (limits.values[i].size() == 1) continue;
    if (count != 1 && constant->shape() != limits.shape) return {};
    count = limits.values[i].size();
    limits.shape = constant->shape();
  }
  for (auto& values : limits.values) values.resize(count, values[0]);
  return limits;
}

bool is_element_op_with_constant(const Node& node, size_t data) {
  return node.inputs.size() == 2 && !node.attributes.has(kRequantizes) &&
         constant_value(node.inputs[1 - data]) &&
         (node.is("Add") || node.is("Multiply") || (data == 0 && node.is("Subtract")) ||
          (data == 0 && node.is("Divide")));
}

bool has_constant_weights(const Node& node) {
  return (node.is("Convolution") || node.is("GroupConvolution") || node.is("MatMul")) &&
         node.inputs.size() == 2 && constant_value(node.inputs[1]);
}

// Returns whether a factor per channel of `edge` can be folded into earlier weights.
bool weights_in_front(const Graph& graph, Edge edge) {
  while (graph.only_user(edge)) {
    const Node& node = *edge.node;
    if (has_constant_weights(node)) return true;
    const size_t data = !node.inputs.empty() && constant_value(node.inputs[0]) ? 1 : 0;
    if (!is_element_op_with_constant(node, data)) return false;
    edge = node.inputs[data];
  }
  return false;
}

// Returns whether all readers of `edge` are convolutions of it.
bool only_convolutions_read(const Graph& graph, const Edge& edge) {
  const std::vector<Node*> users = graph.users(edge);
  return !users.empty() && std::all_of(users.begin(), users.end(), [&](const Node* user) {
    return has_constant_weights(*user) && !user->is("MatMul") && user->inputs[0] == edge;
  });
}

// Returns whether the node is a ReLU or clamp that the following limits make superfluous.
bool limits_less(const Node& node, const Limits& limits) {
  if (!node.tail.empty()) return false;
  double from = 0, to = std::numeric_limits<double>::infinity();
  if (node.is("Clamp")) {
    from = node.attributes.get_float("min");
    to = node.attributes.get_float("max");
  } else if (!node.is("ReLU")) {
    return false;
  }
  const auto all = [&](Limit limit, auto holds) {
    return std::all_of(limits.values[limit].begin(), limits.values[limit].end(), holds);
  };
  return all(in_low, [&](float low) { return low >= from; }) &&
         all(in_high, [&](float high) { return high <= to; });
}

Edge multiplied(Graph& graph, const Node* before, const Edge& x, const std::vector<float>& factor,
                const Shape& shape) {
  Insertion add(graph, before, x.node->name);
  return add.op("Multiply", 1, {x, add.floats(factor.size() == 1 ? Shape{} : shape, factor)});
}

void scale(Graph& graph, Node* node) {
  auto limits = limits_of(*node);
  if (!limits) return;
  const float last = static_cast<float>(node->attributes.get_int("levels") - 1);
  const float stated = static_cast<float>(node->attributes.get_float(kQuantizationStep, 0));
  std::vector<float> factor, step;
  for (size_t k = 0; k < limits->values[0].size(); ++k) {
    factor.push_back(stated > 0 ? 1 / stated
                                : last / (limits->values[in_high][k] - limits->values[in_low][k]));
    step.push_back((limits->values[out_high][k] - limits->values[out_low][k]) / last);
    for (const float f : {factor.back(), step.back()})
      if (!std::isfinite(f) || f <= 0 || !std::isfinite(1 / f)) return;
  }
  while (graph.only_user(node->inputs[0]) && limits_less(*node->inputs[0].node, *limits)) {
    Node* less = node->inputs[0].node;
    node->inputs.set(0, less->inputs[0]);
    graph.disconnect(less);
  }

  const auto set = [&](Limit low, const std::vector<float>& by) {
    for (size_t k = 0; k < by.size(); ++k) {
      limits->values[low][k] *= by[k];
      limits->values[low + 1][k] = limits->values[low][k] + last;
    }
    for (const size_t i : {size_t{low}, size_t{low} + 1}) {
      const Shape shape = by.size() == 1 ? Shape{} : limits->shape;
      node->inputs.set(i + 1, Insertion(graph, node).floats(shape, limits->values[i]));
    }
  };
  const Edge result{node, 0};
  if (only_convolutions_read(graph, result)) {
    const std::vector<Node*> users = graph.users(result);
    for (Node* user : users)
      user->inputs.set(0, multiplied(graph, user, result, step, limits->shape));
    std::vector<float> inverse = step;
    for (float& f : inverse) f = 1 / f;
    set(out_low, inverse);
  }
  if (weights_in_front(graph, node->inputs[0])) {
    node->inputs.set(0, multiplied(graph, node, node->inputs[0], factor, limits->shape));
    set(in_low, factor);
    if (stated > 0) node->attributes.set(kQuantizationStep, "1");
  }
}

}  // namespace

void scale_quantization(Graph& graph, const PassContext& context) {
  const bool in_integers = context.integers && context.traits.dot != DotProduct::none;
  if (in_integers || context.activations != ElementType::f32) return;
  for (Node* node : nodes_of(graph))
    if (node->is("FakeQuantize") && node->outputs[0].type == ElementType::f32) scale(graph, node);
  graph.remove_dead();
}

}  // namespace clinfer
