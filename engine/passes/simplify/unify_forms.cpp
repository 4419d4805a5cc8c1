// Gives computations that readers and converters state in several ways one form, so that the same
// passes and the same tuning records apply to it:
//   BatchNormInference of constants           ->  x * scale + shift, which later passes fold further
//   BatchNormInference of computed parameters ->  (x - mean) / sqrt(variance + epsilon) * gamma + beta
//   Interpolate along axes that stay the same ->  along the others only
//   a rounding of MaxPool that changes nothing->  the older rounding
//   x / constants that are powers of two      ->  x * constants
//   a Gather of neighbours, or of one element ->  a slice, which needs no copy
//   GatherElements of whole rows              ->  a Gather
//   slices that together are a whole axis     ->  a split
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

struct NormInputs {
  size_t data, gamma, beta;
};

// Normalises by parameters that the network computes, as TensorFlow's layer normalisation does.
void with_computed_parameters(Graph& graph, Node* node, const NormInputs& at) {
  const Shape& shape = node->shape();
  std::vector<int64_t> wide(shape.size(), 1);
  wide[1] = shape[1];
  Insertion add(graph, node);
  const Insertion::AttributeTexts numpy{{"auto_broadcast", "numpy"}};
  // Constants get the shape themselves: what the graph computes of constants was folded before.
  const auto parameter = [&](size_t i) {
    if (const Tensor* constant = constant_value(node->inputs[i]))
      return add.floats(wide, constant->to_floats());
    return add.op("Reshape", 1, {node->inputs[i], add.ints(wide)}, {{"special_zero", "false"}});
  };
  const auto epsilon = static_cast<float>(node->attributes.get_float("epsilon"));
  const Edge spread =
      add.op("Sqrt", 1, {add.op("Add", 1, {parameter(4), add.floats({}, {epsilon})}, numpy)});
  const Edge centred = add.op("Subtract", 1, {node->inputs[at.data], parameter(3)}, numpy);
  const Edge factor = add.op("Divide", 1, {parameter(at.gamma), spread}, numpy);
  const Edge scaled = add.op("Multiply", 1, {centred, factor}, numpy);
  const Edge sum = add.op("Add", 1, {scaled, parameter(at.beta)}, numpy);
  sum.node->outputs[0].names = node->outputs[0].names;
  graph.replace_uses({node, 0}, sum);
}

void as_product_and_sum(Graph& graph, Node* node) {
  // The data is the first input since opset 5; before that it came after gamma and beta.
  const size_t data = node->opset < 5 ? 2 : 0, gamma = node->opset < 5 ? 0 : 1, beta = gamma + 1;
  const Shape& shape = node->shape();
  if (node->inputs.size() != 5 || !node->tail.empty() || shape.size() < 2) return;
  const auto list = [&](size_t i) {
    const Tensor* constant = constant_value(node->inputs[i]);
    return constant && is_float(constant->type()) ? constant->to_floats() : std::vector<float>();
  };
  const std::vector<float> g = list(gamma), b = list(beta), mean = list(3), variance = list(4);
  const auto channels = static_cast<size_t>(shape[1]);
  const double epsilon = node->attributes.get_float("epsilon");
  const Insertion::AttributeTexts numpy{{"auto_broadcast", "numpy"}};
  for (const auto* values : {&g, &b, &mean, &variance})
    if (values->size() != channels || channels == 0)
      return with_computed_parameters(graph, node, {data, gamma, beta});
  std::vector<float> scale(channels), shift(channels);
  for (size_t c = 0; c < channels; ++c) {
    const double factor = g[c] / std::sqrt(double{variance[c]} + epsilon);
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(b[c] - mean[c] * factor);
  }
  Shape wide(shape.size(), 1);
  wide[1] = shape[1];
  Insertion add(graph, node);
  const Edge product = add.op("Multiply", 1, {node->inputs[data], add.floats(wide, scale)}, numpy);
  const Edge sum = add.op("Add", 1, {product, add.floats(wide, shift)}, numpy);
  sum.node->outputs[0].names = node->outputs[0].names;
  graph.replace_uses({node, 0}, sum);
}

// Returns the values at `kept` of a constant list.
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
  std::vector<int64_t> along(in.size());  // all axes, without a list
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

// Restores the older rounding where it gives the same size: PyTorch leaves out windows that begin
// beyond the picture, of which there are often none.
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

// Replaces a division by constants that are powers of two by a multiplication, which gives the same
// number, in f16 as well.
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

// Turns a Gather of constant indices that follow one another into a slice.
void slice_instead(Graph& graph, Node* node) {
  const Tensor *indices = constant_value(node->inputs[1]),
               *axis_value = constant_value(node->inputs[2]);
  if (!node->tail.empty() || !indices || !axis_value || indices->shape().size() > 1 ||
      indices->elements() == 0 || node->attributes.get_int("batch_dims", 0) != 0)
    return;
  const Shape& in = node->inputs[0].node->shape(node->inputs[0].port);
  const std::vector<int64_t> at = indices->to_ints();
  int64_t axis = axis_value->to_ints()[0];
  if (axis < 0) axis += static_cast<int64_t>(in.size());
  const int64_t size = in[static_cast<size_t>(axis)];
  const int64_t first = at[0] < 0 ? at[0] + size : at[0];
  if (first < 0 || first + indices->elements() > size) return;
  for (size_t i = 1; i < at.size(); ++i)
    if (at[i] != at[0] + static_cast<int64_t>(i)) return;
  Insertion add(graph, node);
  Edge part = add.op("Slice", 8,
                     {node->inputs[0], add.ints({first}), add.ints({first + indices->elements()}),
                      add.ints({1}), add.ints({axis})});
  if (part.node->shape() != node->shape())
    part = add.op("Reshape", 1, {part, add.ints(node->shape())}, {{"special_zero", "false"}});
  part.node->outputs[0].names = node->outputs[0].names;
  graph.replace_uses({node, 0}, part);
}

// Turns GatherElements whose indices are repeated along all dimensions after its axis, which is how
// PyTorch's gather() takes rows, into a Gather.
void gather_instead(Graph& graph, Node* node) {
  const Node& wide = *node->inputs[1].node;
  if (!node->tail.empty() || !(wide.is("Tile") || wide.is("Broadcast"))) return;
  const Edge narrow = wide.inputs[0];
  const Shape &from = narrow.node->shape(narrow.port), &to = wide.shape(),
              &data = node->inputs[0].node->shape(node->inputs[0].port);
  int64_t axis = node->attributes.get_int("axis");
  if (axis < 0) axis += static_cast<int64_t>(data.size());
  if (from.size() != to.size()) return;
  for (size_t d = 0; d < to.size(); ++d)
    if (static_cast<int64_t>(d) <= axis ? from[d] != to[d] : from[d] != 1) return;
  Insertion add(graph, node);
  const Shape list(from.begin(), from.begin() + axis + 1);
  Edge indices = reshapes(*narrow.node) ? narrow.node->inputs[0] : narrow;
  if (indices.node->shape(indices.port) != list)
    indices = add.op("Reshape", 1, {narrow, add.ints(list)}, {{"special_zero", "false"}});
  const Edge rows = add.op("Gather", 8, {node->inputs[0], indices, add.ints({axis})},
                           {{"batch_dims", std::to_string(axis)}});
  rows.node->outputs[0].names = node->outputs[0].names;
  graph.replace_uses({node, 0}, rows);
}

// `count` elements from `first` on along one axis, and all elements of the others.
struct AxisPart {
  size_t axis;
  int64_t first, count;
};

std::optional<AxisPart> part_of(const Node& node) {
  if (!(node.is("Slice") || node.is("StridedSlice")) || !node.tail.empty()) return {};
  const Shape &whole = node.inputs[0].node->shape(node.inputs[0].port), &part = node.shape();
  if (whole.size() != part.size() || part.empty() || count(part) == 0) return {};
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (!constant_value(node.inputs[i])) return {};
  const OpDesc desc = describe(node);
  const auto views = node.def->view(desc);
  if (!views || views->front().strides != desc.inputs[0].strides) return {};
  std::optional<size_t> axis;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (whole[d] == part[d]) continue;
    if (axis) return {};
    axis = d;
  }
  if (!axis) return {};
  return AxisPart{*axis, views->front().offset / views->front().strides[*axis], part[*axis]};
}

// Turns slices that together are an axis, as PyTorch's chunk() is exported, into a split. Slices
// that overlap stay.
void slices_as_splits(Graph& graph) {
  // The slice and its number of elements, keyed by the first element.
  using Parts = std::map<int64_t, std::pair<Node*, int64_t>>;
  std::vector<std::pair<Edge, size_t>> wholes;  // tensors with the axis, in the graph's order
  std::map<std::tuple<const Node*, int, size_t>, Parts> parts;
  for (const auto& node : graph.nodes()) {
    const auto part = part_of(*node);
    if (!part) continue;
    const Edge whole = node->inputs[0];
    Parts& beside = parts[{whole.node, whole.port, part->axis}];
    if (beside.empty()) wholes.emplace_back(whole, part->axis);
    beside.emplace(part->first, std::pair(node.get(), part->count));
  }
  for (const auto& [whole, axis] : wholes) {
    const Parts& beside = parts[{whole.node, whole.port, axis}];
    std::vector<Node*> slices;
    std::vector<int64_t> counts;
    int64_t end = 0;
    for (auto next = beside.find(0); next != beside.end(); next = beside.find(end)) {
      slices.push_back(next->second.first);
      counts.push_back(next->second.second);
      end += counts.back();
    }
    if (end != whole.node->shape(whole.port)[axis]) continue;
    Node* first = slices.front();
    for (Node* slice : slices)
      if (graph.is_before(slice, first)) first = slice;
    Insertion add(graph, first);
    Node* split =
        add.op("VariadicSplit", 1,
               {whole, add.ints({static_cast<int64_t>(axis)}), add.ints(counts)}, {}, slices.size())
            .node;
    for (size_t k = 0; k < slices.size(); ++k) {
      split->outputs[k].names = slices[k]->outputs[0].names;
      graph.replace_uses({slices[k], 0}, {split, static_cast<int>(k)});
    }
  }
}

}  // namespace

void unify_forms(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    if (node->is("BatchNormInference")) as_product_and_sum(graph, node);
    if (node->is("Interpolate")) leave_out_axes(graph, node);
    if (node->is("MaxPool")) round_as_before(node);
    if (node->is("Divide")) multiply_instead(graph, node);
    if (node->is("Gather")) slice_instead(graph, node);
    if (node->is("GatherElements")) gather_instead(graph, node);
  }
  slices_as_splits(graph);
  graph.remove_dead();
}

}  // namespace clinfer
