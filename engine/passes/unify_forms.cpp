// Readers and converters state one computation in several ways; here each gets one form, so that the
// same passes fit it and the same tuning records serve it:
//   BatchNormInference of constants           ->  x * scale + shift, which later passes fold further
//   Interpolate along axes that stay the same ->  along the others only
//   a rounding of MaxPool that changes nothing->  the older one
//   x / constants that are powers of two      ->  x * constants
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

void as_product_and_sum(Graph& graph, Node* node) {
  // Since opset 5 the data comes first, before that after gamma and beta.
  const size_t data = node->opset < 5 ? 2 : 0, gamma = node->opset < 5 ? 0 : 1, beta = gamma + 1;
  const Shape& shape = node->shape();
  if (node->inputs.size() != 5 || !node->tail.empty() || shape.size() < 2) return;
  const auto list = [&](size_t i) {
    const Tensor* constant = constant_value(node->inputs[i]);
    return constant && is_float(constant->type()) ? constant->to_floats() : std::vector<float>();
  };
  const std::vector<float> g = list(gamma), b = list(beta), mean = list(3), variance = list(4);
  const auto channels = static_cast<size_t>(shape[1]);
  for (const auto* values : {&g, &b, &mean, &variance})
    if (values->size() != channels || channels == 0) return;
  const double epsilon = node->attributes.get_float("epsilon");
  std::vector<float> scale(channels), shift(channels);
  for (size_t c = 0; c < channels; ++c) {
    const double factor = g[c] / std::sqrt(double{variance[c]} + epsilon);
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(b[c] - mean[c] * factor);
  }
  Shape wide(shape.size(), 1);
  wide[1] = shape[1];
  Insertion add(graph, node);
  const Insertion::AttributeTexts numpy{{"auto_broadcast", "numpy"}};
  const Edge product =
      add.op("Multiply", 1, {node->inputs[data], add.floats(wide, scale)}, numpy);
  const Edge sum = add.op("Add", 1, {product, add.floats(wide, shift)}, numpy);
  sum.node->outputs[0].names = node->outputs[0].names;
  graph.replace_uses({node, 0}, sum);
}

// The values at `kept` of a constant list.
Tensor at_places(const Tensor& list, const std::vector<size_t>& kept) {
  const Shape shape{static_cast<int64_t>(kept.size())};
  if (is_float(list.type())) {
    const std::vector<float> all = list.to_floats();
    std::vector<float> values;
    for (const size_t i : kept) values.push_back(all[i]);
    return Tensor::of(list.type(), shape, values);
  }
  const std::vector<int64_t> all = list.to_ints();
  std::vector<int64_t> values;
  for (const size_t i : kept) values.push_back(all[i]);
  return Tensor::of(list.type(), shape, values);
}

void leave_out_axes(Graph& graph, Node* node) {
  if (node->opset != 11 || node->inputs.size() < 2 || !node->tail.empty()) return;
  const Shape &in = node->inputs[0].node->shape(node->inputs[0].port), &out = node->shape();
  const Tensor* numbers = constant_value(node->inputs[1]);
  std::vector<int64_t> along(in.size());  // all without a list
  std::iota(along.begin(), along.end(), int64_t{0});
  if (node->inputs.size() > 2) {
    const Tensor* axes = constant_value(node->inputs[2]);
    if (!axes) return;
    along = axes->to_ints();
  }
  if (!numbers || numbers->elements() != static_cast<int64_t>(along.size())) return;
  for (const char* pads : {"pads_begin", "pads_end"})
    for (const int64_t pad : node->attributes.get_ints(pads, std::vector<int64_t>{}))
      if (pad != 0) return;
  const bool by_scales = node->attributes.get_string("shape_calculation_mode") == "scales";
  const std::vector<float> scales = by_scales ? numbers->to_floats() : std::vector<float>();
  std::vector<size_t> kept;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < along.size(); ++i) {
    const int64_t axis = along[i] < 0 ? along[i] + static_cast<int64_t>(in.size()) : along[i];
    if (axis < 0 || axis >= static_cast<int64_t>(in.size())) return;
    const auto d = static_cast<size_t>(axis);
    if (in[d] == out[d] && (!by_scales || scales[i] == 1)) continue;
    kept.push_back(i);
    axes.push_back(axis);
  }
  if (kept.empty() || kept.size() == along.size()) return;
  Insertion add(graph, node);
  node->inputs = {node->inputs[0], add.constant(at_places(*numbers, kept)), add.ints(axes)};
}

// Windows that PyTorch leaves out because they begin past the picture are often none.
void round_as_before(Node* node) {
  if (node->opset < 14 || node->attributes.get_string("rounding_type", "floor") != "ceil_torch")
    return;
  Node trial = *node;
  trial.opset = 8;
  trial.def = find_op("MaxPool", 8);
  trial.attributes.set("rounding_type", "ceil");
  infer_node_shapes(trial);
  for (size_t i = 0; i < node->outputs.size(); ++i)
    if (trial.outputs[i].shape != node->outputs[i].shape) return;
  node->opset = trial.opset;
  node->def = trial.def;
  node->attributes = trial.attributes;
}

// The product is the same number then, in f16 as well.
void multiply_instead(Graph& graph, Node* node) {
  const Tensor* divisor = constant_value(node->inputs[1]);
  if (!node->tail.empty() || !divisor || divisor->type() != ElementType::f32) return;
  std::vector<float> factors = divisor->to_floats();
  for (float& value : factors) {
    int exponent = 0;
    if (!std::isfinite(value) || std::fabs(std::frexp(value, &exponent)) != 0.5f ||
        std::abs(exponent) > 14)
      return;
    value = 1 / value;
  }
  node->type = "Multiply";
  node->opset = 1;
  node->def = find_op("Multiply", 1);
  node->attributes = {};
  node->attributes.set("auto_broadcast", "numpy");
  node->inputs.set(1, Insertion(graph, node).floats(divisor->shape(), factors));
}

}  // namespace

void unify_forms(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    if (node->is("BatchNormInference")) as_product_and_sum(graph, node);
    if (node->is("Interpolate")) leave_out_axes(graph, node);
    if (node->is("MaxPool")) round_as_before(node);
    if (node->is("Divide")) multiply_instead(graph, node);
  }
  graph.remove_dead();
}

}  // namespace clinfer
