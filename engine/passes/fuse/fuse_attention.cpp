// Replaces attention, softmax(scale * q k^T + bias) v, by one operation, which stores no scores.
// Exporters may write the following between its two products:
//   Multiply or Divide by a number       the scale (simplify_products has moved it here)
//   Add                                  a bias: relative positions, masks of numbers
//   Select of the scores and a number    a mask of booleans
//   Reshape of the batch alone           windows by images, heads by images
//   Select of the weights and 0          rows that see nothing (ONNX's Attention)
// The second product is weights x values, or values x weights turned (channels before tokens).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/fuse/fuse_sampling.h"
#include "kernels/attention/attention.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kMostConstant = 1 << 24;  // elements of a bias that is computed here
// A score that gets this added has weight 0, in f16 as well.
constexpr float kHides = -10000;

struct ScoreInput {
  Edge edge;
  Shape batch;  // of the scores where this is applied
};

// The steps between the products, and the first product.
struct Scores {
  Node* product = nullptr;
  float scale = 1;
  std::vector<ScoreInput> biases;
  std::optional<ScoreInput> mask;  // a boolean mask
  bool hides_true = false;         // the mask is true where a score is hidden
  float masked = 0;
  std::vector<Shape> batches;  // shapes that the batch of the scores takes on the way
};

Shape batch_of(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

bool only_batch_changes(const Node& node) {
  if (!reshapes(node)) return false;
  const Shape &from = shape_of(node.inputs[0]), &to = node.shape();
  return from.size() >= 2 && to.size() >= 2 && std::equal(from.end() - 2, from.end(), to.end() - 2);
}

std::optional<float> one_number(const Edge& edge) {
  const Tensor* value = constant_value(edge);
  if (!value || value->elements() != 1 || !is_float(value->type())) return {};
  return value->to_floats()[0];
}

// Follows the scores from the SoftMax back to their product. Returns nothing if there are other
// operations on the way.
std::optional<Scores> scores_of(const Graph& graph, const Edge& edge, Scores found) {
  Node& node = *edge.node;
  if (!node.def || !node.tail.empty() || graph.use_count(edge) != 1 || node.shape().size() < 2)
    return {};
  const Shape batch = batch_of(node.shape());
  found.batches.push_back(batch);
  if (node.is("MatMul") && node.inputs.size() == 2) {
    found.product = &node;
    return found;
  }
  const auto keeps_shape = [&](size_t side) { return shape_of(node.inputs[side]) == node.shape(); };
  if (node.is("Add") && found.scale == 1) {
    for (const size_t side : {0, 1}) {
      if (!keeps_shape(side)) continue;
      Scores with = found;
      with.biases.push_back({node.inputs[1 - side], batch});
      if (auto result = scores_of(graph, node.inputs[side], std::move(with))) return result;
    }
    return {};
  }
  if (node.is("Multiply") || node.is("Divide")) {
    for (const size_t side : {0, 1}) {
      if (side == 1 && node.is("Divide")) break;
      const auto number = one_number(node.inputs[1 - side]);
      if (!number || !keeps_shape(side)) continue;
      found.scale *= node.is("Divide") ? 1 / *number : *number;
      if (!std::isfinite(found.scale)) return {};
      return scores_of(graph, node.inputs[side], std::move(found));
    }
    return {};
  }
  // Allows this only first: a bias added afterwards would have to be added to hidden scores as
  // well.
  if (node.is("Select") && !found.mask && found.biases.empty() && found.scale == 1) {
    for (const size_t side : {1, 2}) {
      const auto number = one_number(node.inputs[3 - side]);
      if (!number || !keeps_shape(side)) continue;
      found.mask = ScoreInput{node.inputs[0], batch};
      found.masked = *number;
      found.hides_true = side == 2;
      return scores_of(graph, node.inputs[side], std::move(found));
    }
    return {};
  }
  if (only_batch_changes(node)) return scores_of(graph, node.inputs[0], std::move(found));
  return {};
}

// Returns for each dimension of `batch` the range of dimensions of `fine` that it consists of;
// nothing if these divide it in another way.
std::optional<std::vector<std::pair<size_t, size_t>>> parts_of(const Shape& batch,
                                                               const Shape& fine) {
  std::vector<std::pair<size_t, size_t>> parts;
  size_t at = 0;
  for (const int64_t size : batch) {
    const size_t first = at;
    int64_t product = 1;
    if (size == 1 && at < fine.size() && fine[at] == 1) ++at;
    while (product < size && at < fine.size()) product *= fine[at++];
    if (product != size) return {};
    parts.emplace_back(first, at);
  }
  while (at < fine.size() && fine[at] == 1) ++at;
  if (at != fine.size()) return {};
  if (!parts.empty()) parts.back().second = at;
  return parts;
}

// Reshapes an edge. If it is a reshape already, reads that one's input, because views of views
// might need a copy.
Edge operand_as(Insertion& add, Edge edge, const Shape& shape) {
  if (shape_of(edge) == shape) return edge;
  if (reshapes(*edge.node)) edge = edge.node->inputs[0];
  if (shape_of(edge) == shape) return edge;
  if (const Tensor* value = constant_value(edge)) return add.constant(value->reshaped(shape));
  return add.op("Reshape", 1, {edge, add.ints(shape)}, {{"special_zero", "false"}});
}

// Returns the operand with the batch of the scores, `batch`, divided as in `fine`.
std::optional<Edge> divided(Insertion& add, const Edge& edge, const Shape& batch,
                            const Shape& fine) {
  const auto parts = parts_of(batch, fine);
  const Shape& from = shape_of(edge);
  if (!parts || from.size() > batch.size() + 2) return {};
  if (batch == fine) return edge;
  if (from.size() < 2)
    return count(from) == 1 || batch == fine ? std::optional(edge) : std::nullopt;
  Shape shape;
  const size_t missing = batch.size() + 2 - from.size();
  for (size_t i = 0; i < batch.size(); ++i) {
    const bool one = i < missing || from[i - missing] == 1;
    for (size_t d = (*parts)[i].first; d < (*parts)[i].second; ++d)
      shape.push_back(one ? 1 : fine[d]);
  }
  shape.insert(shape.end(), from.end() - 2, from.end());
  return operand_as(add, edge, shape);
}

// Returns the node with the heads of keys or values before they were repeated for several heads of
// queries (by a reshape of a Broadcast).
const Node* repeated(const Edge& edge) {
  const Node& node = *edge.node;
  if (!only_batch_changes(node)) return nullptr;
  const Node& wide = *node.inputs[0].node;
  return wide.is("Broadcast") && shape_of(wide.inputs[0]).size() == wide.shape().size() ? &wide
                                                                                        : nullptr;
}

Edge turned(Insertion& add, const Edge& edge) {
  std::vector<int64_t> order;
  const size_t rank = shape_of(edge).size();
  for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
  std::swap(order[rank - 1], order[rank - 2]);
  return add.op("Transpose", 1, {edge, add.ints(order)});
}

// Writes a float so that it is read back exactly.
std::string text_of(float value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

bool is_turned(const Node& product, const char* flag) {
  return product.attributes.get_bool(flag, false);
}

// Returns the sum of two constants, with broadcasting.
std::optional<Tensor> sum_of(const Tensor& a, const Tensor& b) {
  const OpDef* def = find_op("Add", 1);
  const std::vector<ValueInfo> inputs{{ElementType::f32, a.shape(), {}},
                                      {ElementType::f32, b.shape(), {}}};
  Attributes attributes;
  const std::string type = "Add";
  const Shape shape = def->infer_shapes({type, 1, attributes, inputs, 1})[0].shape;
  if (count(shape) > kMostConstant) return {};
  OpDesc desc;
  desc.type = type;
  const std::vector<Tensor> values{a.convert(ElementType::f32), b.convert(ElementType::f32)};
  for (const Tensor& value : values)
    desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, value.shape()));
  desc.constants.resize(2);
  std::vector<Tensor> outputs{Tensor::allocate(ElementType::f32, shape)};
  desc.outputs = {TensorDesc::row_major(ElementType::f32, shape)};
  def->evaluate(desc, values, outputs);
  return outputs[0];
}

// Returns whether a constant bias hides from each query the keys after its own number, and does
// nothing else.
bool is_causal(const Tensor& bias, int64_t queries, int64_t keys) {
  const Shape& shape = bias.shape();
  if (bias.elements() != queries * keys || shape.size() < 2 || shape[shape.size() - 2] != queries)
    return false;
  const std::vector<float> values = bias.to_floats();
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) {
      const float value = values[static_cast<size_t>(i * keys + j)];
      if (j > i ? !(value <= kHides) : value != 0) return false;
    }
  return true;
}

// Returns a constant mask as numbers to add. Returns nothing if the mask hides a whole row, whose
// weights would be equal.
std::optional<Tensor> mask_as_bias(const Tensor& mask, bool hides_true, float masked) {
  if (masked > kHides || mask.shape().empty()) return {};
  std::vector<float> values = mask.to_floats();
  const auto keys = static_cast<size_t>(mask.shape().back());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (values[i] != 0) == hides_true ? masked : 0;
  for (size_t i = 0; i < values.size(); i += keys)
    if (std::all_of(values.begin() + static_cast<std::ptrdiff_t>(i),
                    values.begin() + static_cast<std::ptrdiff_t>(i + keys),
                    [](float v) { return v != 0; }))
      return {};
  return Tensor::of<float>(ElementType::f32, mask.shape(), values);
}

// An attention as found in the graph.
struct FoundAttention {
  Node* softmax = nullptr;
  Scores scores;
  Node* product = nullptr;         // the second product
  bool weights_right = false;      // the weights are its right operand, transposed
  std::optional<ScoreInput> sees;  // false in a row: all its weights are 0
  Node* last = nullptr;       // its output is replaced: the second product, or a reshape after it
  bool tokens_first = false;  // readers expect the heads after the tokens
};

std::optional<FoundAttention> attention_at(const Graph& graph, Node& softmax) {
  if (!softmax.is("SoftMax") || !softmax.tail.empty() || softmax.shape().size() < 2) return {};
  const size_t rank = softmax.shape().size();
  if (checked_axis(softmax.attributes.get_int("axis", 1), rank, "axis") != rank - 1) return {};
  FoundAttention found;
  found.softmax = &softmax;
  Scores start;
  start.batches.push_back(batch_of(softmax.shape()));
  auto scores = scores_of(graph, softmax.inputs[0], std::move(start));
  if (!scores) return {};
  found.scores = std::move(*scores);

  Edge weights{&softmax, 0};
  Node* user = graph.only_user(weights);
  for (; user && user->def && user->tail.empty(); user = graph.only_user(weights)) {
    if (only_batch_changes(*user)) {
      found.scores.batches.push_back(batch_of(user->shape()));
    } else if (user->is("Select") && user->inputs[1] == weights && !found.sees &&
               user->shape() == shape_of(weights) && one_number(user->inputs[2]) == 0.0f &&
               !shape_of(user->inputs[0]).empty() && shape_of(user->inputs[0]).back() == 1) {
      found.sees = ScoreInput{user->inputs[0], batch_of(user->shape())};
    } else {
      break;
    }
    weights = {user, 0};
  }
  if (!user || !user->is("MatMul") || user->inputs.size() != 2 || !user->tail.empty() ||
      user->outputs.size() != 1)
    return {};
  found.weights_right = user->inputs[1] == weights;
  if (found.weights_right ? !is_turned(*user, "transpose_b") : is_turned(*user, "transpose_a"))
    return {};
  const Shape& values = shape_of(user->inputs[found.weights_right ? 0 : 1]);
  if (values.size() < 2 || user->shape().size() < 2) return {};
  found.product = found.last = user;
  found.scores.batches.push_back(batch_of(user->shape()));

  Node* reader = graph.only_user({user, 0});
  if (reader && !found.weights_right && only_batch_changes(*reader)) {
    found.scores.batches.push_back(batch_of(reader->shape()));
    found.last = reader;
    reader = graph.only_user({reader, 0});
  }
  found.tokens_first = found.weights_right || (reader && reader->is("Transpose"));
  return found;
}

// Returns the shape from which all other batches can be composed.
std::optional<Shape> finest(const std::vector<Shape>& batches) {
  const Shape& fine =
      *std::max_element(batches.begin(), batches.end(),
                        [](const Shape& a, const Shape& b) { return a.size() < b.size(); });
  for (const Shape& batch : batches)
    if (!parts_of(batch, fine)) return {};
  return fine;
}

// Returns the sum of all biases, with the batch divided. An edge without a node means that there is
// none; no value, that it cannot be written so.
std::optional<Edge> bias_of(Insertion& add, const FoundAttention& found, const Shape& fine) {
  const Scores& scores = found.scores;
  std::vector<ScoreInput> summands = scores.biases;
  if (scores.mask && constant_value(scores.mask->edge)) {
    const auto bias =
        mask_as_bias(*constant_value(scores.mask->edge), scores.hides_true, scores.masked);
    if (!bias) return {};
    summands.push_back({add.constant(*bias), scores.mask->batch});
  }
  Edge bias;
  for (const ScoreInput& summand : summands) {
    const auto next = divided(add, summand.edge, summand.batch, fine);
    if (!next) return {};
    if (!bias.node) {
      bias = *next;
      continue;
    }
    const Tensor *a = constant_value(bias), *b = constant_value(*next);
    const auto sum = a && b ? sum_of(*a, *b) : std::nullopt;
    bias = sum ? add.constant(*sum) : add.op("Add", 1, {bias, *next});
  }
  return bias;
}

void fuse(Graph& graph, const PassContext& context, FoundAttention found) {
  Scores& scores = found.scores;
  Node &first = *scores.product, &second = *found.product;
  Edge query = first.inputs[0], key = first.inputs[1],
       value = second.inputs[found.weights_right ? 0 : 1];
  for (const Edge& edge : {query, key, value})
    if (shape_of(edge).size() < 2 || constant_value(edge)) return;
  const Node *more_keys = repeated(key), *more_values = repeated(value);
  if (more_keys) scores.batches.push_back(batch_of(more_keys->shape()));
  if (more_values) scores.batches.push_back(batch_of(more_values->shape()));
  const auto fine = finest(scores.batches);
  if (!fine) return;

  Insertion add(graph, &second, found.softmax->name);
  const auto operand = [&](const Edge& edge, const Node* wide, const Node& product,
                           bool turn) -> std::optional<Edge> {
    std::optional<Edge> own = wide && batch_of(wide->shape()) == *fine
                                  ? wide->inputs[0]
                                  : divided(add, edge, batch_of(product.shape()), *fine);
    if (own && turn) own = turned(add, *own);
    return own;
  };
  const auto q = operand(query, nullptr, first, is_turned(first, "transpose_a")),
             k = operand(key, more_keys, first, !is_turned(first, "transpose_b")),
             v = operand(value, more_values, second,
                         found.weights_right ? !is_turned(second, "transpose_a")
                                             : is_turned(second, "transpose_b"));
  auto bias = bias_of(add, found, *fine);
  if (!q || !k || !v || !bias) return;
  const Shape& shape = first.shape();
  const int64_t queries = shape[shape.size() - 2], keys = shape.back();

  std::vector<Edge> inputs{*q, *k, *v};
  Insertion::AttributeTexts attributes{{"scale", text_of(scores.scale)}};
  if (bias->node) {
    const Tensor* value_of_bias = constant_value(*bias);
    if (value_of_bias && is_causal(*value_of_bias, queries, keys))
      attributes["causal"] = "true";
    else
      inputs.push_back(*bias);
  }
  if (scores.mask && !constant_value(scores.mask->edge)) {
    auto mask = divided(add, scores.mask->edge, scores.mask->batch, *fine);
    if (!mask) return;
    if (scores.hides_true) mask = add.op("LogicalNot", 1, {*mask});
    inputs.push_back(*mask);
    attributes["masked"] = text_of(scores.masked);
  }
  // The heads are the last dimension of the batch that readers see.
  const auto parts = parts_of(batch_of(found.last->shape()), *fine);
  const size_t heads = found.tokens_first && parts && !parts->empty()
                           ? parts->back().second - parts->back().first
                           : 0;
  attributes["heads"] = std::to_string(heads);
  Edge made = add.op("Attention", 1, inputs, attributes);
  // Describes the operands as row-major: assign_layouts copies those that kernels cannot read.
  OpDesc desc = describe(*made.node);
  for (TensorDesc& input : desc.inputs) input = TensorDesc::row_major(input.type, input.shape);
  if (accepting_families(*made.node->def, desc, context.traits).empty()) return;
  made.node->computes = found.softmax->computes;
  if (heads > 0) {
    // Moves the tokens back to where the products have them.
    const size_t rank = fine->size(), tokens = rank - heads;
    std::vector<int64_t> order;
    for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(d < tokens ? d : d + 1));
    order.push_back(static_cast<int64_t>(tokens));
    order.push_back(static_cast<int64_t>(rank + 1));
    made = add.op("Transpose", 1, {made, add.ints(order)});
  }
  if (found.sees) {
    const auto sees = divided(add, found.sees->edge, found.sees->batch, *fine);
    if (!sees) return;
    made = add.op("Select", 1, {*sees, made, add.floats({}, {0})});
  }
  if (found.weights_right) made = turned(add, made);
  if (made.node->shape() != found.last->shape())
    made = add.op("Reshape", 1, {made, add.ints(found.last->shape())}, {{"special_zero", "false"}});
  made.node->outputs[0].names = found.last->outputs[0].names;
  graph.replace_uses({found.last, 0}, made);
  graph.disconnect(found.last);
}

}  // namespace

void fuse_attention(Graph& graph, const PassContext& context) {
  for (Node* node : nodes_of(graph))
    if (const auto found = attention_at(graph, *node)) fuse(graph, context, *found);
  fuse_sampling(graph, context);
  graph.remove_dead();
}

}  // namespace clinfer
