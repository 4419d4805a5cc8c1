// Keeps weights of products compressed that a model stores as integers of 8, 4 or 2 bits and
// converts to floats before use:
//   a x ((integers - zeros) * scales)  ->  CompressedMatMul
// with a scale and a zero for each column of the product, or for each group of weights of a column.
// Exporters write this with the column's weights along either dimension, with groups as a dimension
// that a Reshape joins (OpenVINO, ONNX Runtime), and conversions of floats in between. Runs before
// constants are folded, which would write the weights out as floats. Where no kernel takes the
// product, where data are quantised too, so that sums may be of integers, and where a CPU multiplies
// as many rows faster by floats, nothing changes.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "engine/graph/evaluate.h"
#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/matmul/compressed_matmul.h"

namespace clinfer {

namespace {

bool converts_floats(const Node& node) {
  return node.is("Convert") && is_float(node.outputs[0].type) &&
         is_float(node.inputs[0].node->outputs[node.inputs[0].port].type);
}

Edge behind_conversions(Edge edge) {
  while (converts_floats(*edge.node)) edge = edge.node->inputs[0];
  return edge;
}

// Computes a value of up to `most` elements that constants determine, or returns an empty tensor.
Tensor constant_of(const Edge& edge, int64_t most, int deepest = 8) {
  if (const Tensor* constant = constant_value(edge)) return *constant;
  const Node& node = *edge.node;
  if (deepest == 0 || !node.def || !node.def->evaluate || node.inputs.empty() ||
      node.is("ShapeOf") || count(shape_of(edge)) > most)
    return {};
  std::vector<Tensor> inputs;
  for (const Edge& input : node.inputs) {
    inputs.push_back(constant_of(input, most, deepest - 1));
    if (inputs.back().empty()) return {};
  }
  return evaluate_node(node, inputs)[static_cast<size_t>(edge.port)];
}

// Holds the operands of (integers - zeros) * scales.
struct Integers {
  Tensor integers, scales, zeros;  // u8 or i8; zeros may be empty
};

std::optional<Integers> integers_of(const Edge& product) {
  const Node& multiply = *product.node;
  if (!multiply.is("Multiply")) return {};
  for (const size_t side : {0, 1}) {
    Edge x = behind_conversions(multiply.inputs[side]);
    std::optional<Edge> zeros;
    if (x.node->is("Subtract")) {
      zeros = x.node->inputs[1];
      x = behind_conversions(x.node->inputs[0]);
    }
    const Tensor* integers = x.node->is("Convert") ? constant_value(x.node->inputs[0]) : nullptr;
    if (!integers || (integers->type() != ElementType::u8 && integers->type() != ElementType::i8) ||
        !is_float(x.node->outputs[0].type) || integers->shape() != multiply.shape())
      continue;
    Integers found{*integers, constant_of(multiply.inputs[1 - side], integers->elements()), {}};
    if (zeros) found.zeros = constant_of(*zeros, integers->elements());
    if (found.scales.empty() || (zeros && found.zeros.empty())) return {};
    return found;
  }
  return {};
}

// Names the dimensions of the integers along which columns, groups and the weights of a group lie.
// Scales and zeros must not differ along `inner`.
struct Axes {
  size_t column, group, inner;
};

// Returns values for each column and group as [columns, groups], or nothing if they differ within a
// group.
std::optional<std::vector<float>> by_group(const Tensor& values, const Shape& shape,
                                           const Axes& axes) {
  Shape aligned = values.shape();
  if (aligned.size() > shape.size()) return {};
  aligned.insert(aligned.begin(), shape.size() - aligned.size(), 1);
  const Shape strides = row_major_strides(aligned);
  if (aligned[axes.inner] != 1) return {};
  const bool grouped = axes.group != axes.inner;
  const std::vector<float> from = values.to_floats();
  const auto stride = [&](size_t axis) { return aligned[axis] == 1 ? 0 : strides[axis]; };
  std::vector<float> to;
  for (int64_t n = 0; n < shape[axes.column]; ++n)
    for (int64_t g = 0; g < (grouped ? shape[axes.group] : 1); ++g)
      to.push_back(from[static_cast<size_t>(n * stride(axes.column) +
                                            (grouped ? g * stride(axes.group) : 0))]);
  return to;
}

// Holds the operands of a CompressedMatMul.
struct Compressed {
  int bits = 8;
  Tensor codes;
  std::vector<float> scales, zeros;
  Shape scale_shape;
};

// Chooses the fewest bits that hold the integers and let each group end with a word of 32 bits. The
// smallest code is 0; zeros are shifted by as much.
std::optional<Compressed> compressed(const Integers& from, const Axes& axes) {
  const Shape& shape = from.integers.shape();
  const int64_t columns = shape[axes.column], depth = from.integers.elements() / columns,
                groups = axes.group != axes.inner ? shape[axes.group] : 1;
  const auto scales = by_group(from.scales, shape, axes);
  const auto zeros = from.zeros.empty()
                         ? std::vector<float>(static_cast<size_t>(columns * groups), 0.f)
                         : by_group(from.zeros, shape, axes);
  if (!scales || !zeros) return {};
  Compressed made;
  made.scales = *scales;
  made.zeros = *zeros;
  made.scale_shape = {columns, groups};
  const bool is_signed = from.integers.type() == ElementType::i8;
  const auto* bytes = from.integers.data<uint8_t>();
  const auto value = [&](int64_t i) {
    return is_signed ? static_cast<int>(static_cast<int8_t>(bytes[i])) : static_cast<int>(bytes[i]);
  };
  int low = 0, high = 0;
  for (int64_t i = 0; i < from.integers.elements(); ++i)
    low = std::min(low, value(i)), high = std::max(high, value(i));
  for (const int bits : {2, 4, 8}) {
    made.bits = bits;
    const int middle = is_signed ? 1 << (bits - 1) : 0;
    const bool fits = low >= -middle && high < (1 << bits) - middle;
    if (!fits || depth / groups % (32 / bits) != 0) continue;
    for (float& zero : made.zeros) zero += static_cast<float>(middle);
    Tensor codes = Tensor::allocate(ElementType::u8, {columns, depth});
    auto* to = codes.mutable_data<uint8_t>();
    const bool by_column = axes.column == 0;  // else the last dimension
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t k = 0; k < depth; ++k)
        *to++ = static_cast<uint8_t>(value(by_column ? n * depth + k : k * columns + n) + middle);
    made.codes = packed_codes(codes, bits);
    return made;
  }
  return {};
}

// Returns the operands of a product whose second input is `weights`, if they are compressed.
std::optional<Compressed> compressed_weights(const Edge& weights, bool by_column) {
  Edge at = behind_conversions(weights);
  if (shape_of(at).size() != 2) return {};
  if (at.node->is("Transpose")) {  // two dimensions in the other order, or nothing
    const Tensor* order = constant_value(at.node->inputs[1]);
    if (!order || order->elements() != 2) return {};
    if (order->to_ints()[0] != 0) by_column = !by_column;
    at = behind_conversions(at.node->inputs[0]);
  }
  const Shape matrix = shape_of(at);
  if (reshapes(*at.node)) at = behind_conversions(at.node->inputs[0]);
  const auto integers = integers_of(at);
  if (!integers || integers->integers.elements() == 0) return {};
  const Shape& shape = integers->integers.shape();
  if (shape == matrix) return compressed(*integers, by_column ? Axes{0, 1, 1} : Axes{1, 0, 0});
  if (shape.size() != 3) return {};
  if (by_column && shape[0] == matrix[0]) return compressed(*integers, {0, 1, 2});
  if (!by_column && shape[2] == matrix[1]) return compressed(*integers, {2, 0, 1});
  return {};
}

// Returns whether data come from a quantisation, so that products may add up its integers.
bool is_quantized(Edge data) {
  while (reshapes(*data.node) || data.node->is("Transpose") || converts_floats(*data.node))
    data = data.node->inputs[0];
  return data.node->is("FakeQuantize");
}

// Returns the most rows that the device multiplies faster by weights of few bits than by floats,
// whichever kernel does it. The sixteen registers of AVX2 hold too few sums beside the vectors that
// decompressing needs: 16 rows take 1.3 times as long as by floats, 128 rows 1.3 to 1.8 times.
int64_t most_rows(const PassContext& context) {
  if (context.bf16_products) return 16;
  if (context.traits.is_cpu && context.traits.vector_width < 16) return 8;
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

void keep_compressed(Graph& graph, const PassContext& context) {
  for (Node* node : nodes_of(graph)) {
    if (!node->is("MatMul") || !node->tail.empty() ||
        !is_float(node->inputs[0].node->outputs[node->inputs[0].port].type) ||
        is_quantized(node->inputs[0]) ||
        (shape_of(node->inputs[0]).size() > 1 && node->attributes.get_bool("transpose_a", false)))
      continue;
    const Shape& data = shape_of(node->inputs[0]);
    if (!data.empty() && count(data) / std::max<int64_t>(1, data.back()) > most_rows(context))
      continue;
    const auto found =
        compressed_weights(node->inputs[1], node->attributes.get_bool("transpose_b", false));
    if (!found) continue;
    Insertion add(graph, node);
    const Edge made = add.op(
        "CompressedMatMul", 1,
        {node->inputs[0], add.constant(found->codes), add.floats(found->scale_shape, found->scales),
         add.floats(found->scale_shape, found->zeros)},
        {{"bits", std::to_string(found->bits)}});
    if (accepting_families(*made.node->def, describe(*made.node), context.traits).empty()) continue;
    made.node->outputs[0].names = node->outputs[0].names;
    graph.replace_uses({node, 0}, made);
  }
  graph.remove_dead();
}

}  // namespace clinfer
