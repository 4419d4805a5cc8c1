// Folds constant multiplications and additions around convolutions and fully connected layers into
// their weights:
//   (conv(x, w) + a) * s + b  ->  conv(x, w * s) + (a * s + b)       per output channel
//   conv(x * s, w)            ->  conv(x, w * s)                     per input channel
#include <cmath>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/elementwise/elementwise.h"

namespace clinfer {

namespace {

// The positions of the channels in a producer's output and in its weights.
struct Weighted {
  const Tensor* weights = nullptr;
  size_t output_rank = 0;
  size_t channel_axis = 0;  // in the output
  int64_t outputs = 0;      // number of channels
};

std::optional<Weighted> weighted(const Node& node) {
  if (node.inputs.size() != 2 || !node.tail.empty()) return {};
  const Tensor* weights = constant_value(node.inputs[1]);
  if (!weights || weights->type() != ElementType::f32) return {};
  const size_t rank = node.shape().size();
  if (node.is("Convolution") || node.is("GroupConvolution"))
    return Weighted{weights, rank, 1, node.shape()[1]};
  if (node.is("MatMul") && weights->shape().size() == 2 && rank >= 2)
    return Weighted{weights, rank, rank - 1, node.shape().back()};
  return {};
}

// Returns the values of a constant that is one number, or one number per channel along `axis` of a
// tensor of `rank` dimensions; always one value for each channel.
std::optional<std::vector<float>> per_channel(const Edge& edge, size_t rank, size_t axis,
                                              int64_t channels) {
  const Tensor* constant = constant_value(edge);
  if (!constant || !is_float(constant->type())) return {};
  const std::vector<float> values = constant->to_floats();
  if (values.size() == 1 && constant->shape().size() <= rank)
    return std::vector<float>(static_cast<size_t>(channels), values[0]);
  if (static_cast<int64_t>(values.size()) != channels || constant->shape().size() > rank) return {};
  const size_t at = axis - (rank - constant->shape().size());
  if (at >= constant->shape().size() || constant->shape()[at] != channels) return {};
  return values;
}

// An element operation with a constant as y = scale * x + shift, per channel.
struct Affine {
  std::vector<float> scale, shift;
};

std::optional<Affine> as_affine(const Node& node, const Edge& x, size_t rank, size_t axis,
                                int64_t channels) {
  if (node.inputs.size() != 2 || node.shape() != x.node->shape(x.port) ||
      node.attributes.has(kRequantizes))
    return {};
  const bool first = node.inputs[0] == x;
  const auto values = per_channel(node.inputs[first ? 1 : 0], rank, axis, channels);
  if (!values) return {};
  Affine affine{std::vector<float>(values->size(), 1.f), std::vector<float>(values->size(), 0.f)};
  for (size_t i = 0; i < values->size(); ++i) {
    const float v = (*values)[i];
    if (node.is("Multiply"))
      affine.scale[i] = v;
    else if (node.is("Add"))
      affine.shift[i] = v;
    else if (node.is("Subtract") && first)
      affine.shift[i] = -v;
    else if (node.is("Subtract"))
      affine.scale[i] = -1, affine.shift[i] = v;
    else if (node.is("Divide") && first && v != 0)
      affine.scale[i] = 1 / v;
    else
      return {};
  }
  return affine;
}

// Returns the weights times a factor for each output channel (conv [O,...], group conv [G,O/G,...],
// matmul [K,N] or [N,K]).
Tensor scaled_outputs(const Node& node, const Tensor& weights, const std::vector<float>& scale) {
  Tensor result = weights.convert(ElementType::f32);
  float* w = result.mutable_data<float>();
  const int64_t total = result.elements(), channels = static_cast<int64_t>(scale.size());
  const bool innermost = node.is("MatMul") && !node.attributes.get_bool("transpose_b", false);
  const int64_t block = innermost ? 1 : total / channels;
  for (int64_t i = 0; i < total; ++i) w[i] *= scale[static_cast<size_t>(i / block % channels)];
  return result;
}

void fold_next_operations(Graph& graph, Node* node) {
  const auto shape = weighted(*node);
  if (!shape) return;
  std::vector<float> scale(static_cast<size_t>(shape->outputs), 1.f), shift(scale.size(), 0.f);
  Edge end{node, 0};
  std::vector<Node*> chain;
  bool scaled = false, shifted = false;
  for (;;) {
    Node* user = graph.only_user(end);
    if (!user || user->is("Result")) break;
    const auto affine =
        as_affine(*user, end, shape->output_rank, shape->channel_axis, shape->outputs);
    if (!affine) break;
    for (size_t i = 0; i < scale.size(); ++i) {
      scale[i] *= affine->scale[i];
      shift[i] = shift[i] * affine->scale[i] + affine->shift[i];
      scaled |= scale[i] != 1;
      shifted |= shift[i] != 0;
    }
    end = {user, 0};
    chain.push_back(user);
  }
  if (chain.empty() || (!scaled && chain.size() == 1)) return;
  if (scaled) {
    Insertion add(graph, node, node->inputs[1].node->name);
    node->inputs.set(1, add.constant(scaled_outputs(*node, *shape->weights, scale)));
  }
  const std::vector<std::string> names = end.node->outputs[0].names;
  Edge result{node, 0};
  if (shifted) {
    Shape bias_shape(shape->output_rank, 1);
    bias_shape[shape->channel_axis] = shape->outputs;
    Insertion add(graph, end.node);
    result = add.op("Add", 1, {result, add.floats(bias_shape, shift)});
  }
  result.node->outputs[0].names = names;
  graph.replace_uses(end, result);
  for (Node* folded : chain) graph.disconnect(folded);
}

// Folds conv(x * s): a multiplication in front of a convolution that is its only user.
void fold_before(Graph& graph, Node* node) {
  const auto shape = weighted(*node);
  if (!shape || node->is("MatMul")) return;
  const Edge x = node->inputs[0];
  if (!x.node->is("Multiply") || graph.use_count(x) != 1 || !x.node->tail.empty()) return;
  const int64_t channels = x.node->shape()[1];
  for (int side : {0, 1}) {
    const Edge data = x.node->inputs[1 - side];
    const auto scale = per_channel(x.node->inputs[side], x.node->shape().size(), 1, channels);
    if (!scale || data.node->is("Constant") || data.node->shape(data.port) != x.node->shape())
      continue;
    Tensor weights = shape->weights->convert(ElementType::f32);
    float* w = weights.mutable_data<float>();
    const bool grouped = node->is("GroupConvolution");
    const Shape& dims = weights.shape();
    const int64_t outputs = grouped ? dims[1] : dims[0], inputs = grouped ? dims[2] : dims[1];
    const int64_t groups = grouped ? dims[0] : 1,
                  taps = weights.elements() / (groups * outputs * inputs);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t o = 0; o < outputs; ++o)
        for (int64_t i = 0; i < inputs; ++i)
          for (int64_t t = 0; t < taps; ++t)
            w[((g * outputs + o) * inputs + i) * taps + t] *=
                (*scale)[static_cast<size_t>(g * inputs + i)];
    node->inputs.set(1, Insertion(graph, node, node->inputs[1].node->name).constant(weights));
    graph.disconnect(x.node);
    node->inputs.set(0, data);
    return;
  }
}

}  // namespace

void fold_into_weights(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    fold_before(graph, node);
    fold_next_operations(graph, node);
  }
  graph.remove_dead();
}

}  // namespace clinfer
