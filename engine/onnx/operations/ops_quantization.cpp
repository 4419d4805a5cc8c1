// Translates quantised operations. A QuantizeLinear and a DequantizeLinear with the same scale and
// zero point become one FakeQuantize, which the passes turn into integers where the device is
// faster with them. A single one becomes the specification's steps.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/onnx/op_table.h"
#include "engine/onnx/operations/windows.h"
#include "kernels/base/packed_bits.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Range {
  double low, high;
};

Range range_of(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return {0, 255};
    case ElementType::i8:
      return {-128, 127};
    case ElementType::u16:
      return {0, 65535};
    case ElementType::i16:
      return {-32768, 32767};
    default:
      unsupported_node("quantised values of the type " + std::string(name_of(type)) +
                       " are not supported");
  }
}

// Scale and zero point of a value; the zero point is optional.
struct Grid {
  Edge scale, zero;
  int64_t axis = 1;
  int64_t block = 0;
};

Grid grid_at(OnnxNode& n, size_t scale, size_t zero, int64_t axis = 1) {
  return {n.in(scale), n.has(zero) ? n.in(zero) : Edge{}, axis, 0};
}

// Returns a parameter in a shape that broadcasts to the value's: one number, one for each index of
// the axis, or one for each block of indices.
Edge spread(OnnxNode& n, const Edge& e, const Shape& shape, const Grid& grid) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (n.rank(e) == 0) return e;
  if (grid.block == 0) {
    // A single element applies to the whole value, and then no axis is stated.
    if (n.rank(e) == 1) return n.along(e, n.dim(e, 0) == 1 ? 0 : n.axis(grid.axis, rank), rank);
    return e;
  }
  const auto at = static_cast<size_t>(n.axis(grid.axis, rank));
  if (n.rank(e) != rank) bad_node("scales of blocks have as many dimensions as the value");
  if (grid.block < 0) bad_node("block_size is below 0");
  Shape repeated = n.sizes(e);
  repeated.insert(repeated.begin() + static_cast<ptrdiff_t>(at) + 1, grid.block);
  const Edge wide =
      n.op("Broadcast", 3, {n.unsqueeze(e, {static_cast<int64_t>(at) + 1}), n.ints(repeated)},
           {{"mode", "numpy"}});
  Shape joined = n.shape(e);
  joined[at] = checked_product(joined[at], grid.block);
  const Edge whole = n.reshape_to(wide, n.ints(joined));
  return joined[at] == shape[at] ? whole : n.slice(whole, static_cast<int64_t>(at), 0, shape[at]);
}

// Returns whether two parameters are equal; a scalar equals a list of one element.
bool same_values(const Tensor& a, const Tensor& b) {
  return !a.empty() && !b.empty() && a.to_floats() == b.to_floats() &&
         (a.shape() == b.shape() || a.elements() == 1);
}

bool same_grid(OnnxNode& n, const QuantizedFrom& from, const Grid& grid) {
  if (!same_values(n.known(from.scale), n.known(grid.scale))) return false;
  if (!from.zero_point.node || !grid.zero.node) return from.zero_point.node == grid.zero.node;
  return same_values(n.known(from.zero_point), n.known(grid.zero));
}

// Replaces both operations by one FakeQuantize if scale and zero point are constant; with a single
// scale it returns the value in steps of it, from the zero point. Returns no node if a FakeQuantize
// would round differently: QuantizeLinear rounds halves to the even number before it adds the zero
// point.
Edge fake_quantized(OnnxNode& n, const QuantizedFrom& from, ElementType type) {
  const Tensor scale = n.known(from.scale);
  std::vector<float> low = scale.to_floats(), high = low;
  const bool one = low.size() == 1;
  if (from.in_steps) low = {1};
  const std::vector<float> steps = low;
  std::vector<float> zero(low.size(), 0.f);
  if (from.zero_point.node) zero = n.known(from.zero_point).to_floats();
  const Range range = range_of(type);
  for (size_t i = 0; i < low.size(); ++i) {
    const float step = low[i];
    if (!(step > 0) || !std::isfinite(step) || zero.size() != low.size())
      bad_node("a scale is not above 0, or scales and zero points differ in number");
    if (!one && std::fmod(zero[i], 2.f) != 0) return {};
    low[i] = static_cast<float>((range.low - double{zero[i]}) * double{step});
    high[i] = static_cast<float>((range.high - double{zero[i]}) * double{step});
  }
  const Shape& shape = n.shape(from.source);
  const auto limit = [&](const std::vector<float>& values) {
    return spread(n, n.constant(Tensor::of(ElementType::f32, scale.shape(), values)), shape,
                  {{}, {}, from.axis, 0});
  };
  const Edge lowest = limit(low), highest = limit(high);
  AttributePairs attributes{{"levels", "256"}};
  if (!one)
    return n.op("FakeQuantize", 1, {from.source, lowest, highest, lowest, highest}, attributes);
  attributes.emplace_back(kQuantizationStep, text_of(steps));
  const auto whole = [&](double level) {
    return limit({static_cast<float>(level - double{zero[0]})});
  };
  return n.op("FakeQuantize", 1,
              {from.source, lowest, highest, whole(range.low), whole(range.high)}, attributes);
}

AttributePairs attributes_of(const Node& node) {
  AttributePairs attributes;
  for (const auto& [key, value] : node.attributes.all())
    attributes.emplace_back(key.c_str(), value);
  return attributes;
}

// Repeats the operation of `node` on another value.
Edge again(OnnxNode& n, const Node& node, const Edge& x) {
  std::vector<Edge> inputs = node.inputs;
  inputs[0] = x;
  return n.op(node.type, node.opset, std::move(inputs), attributes_of(node), node.outputs.size());
}

// Returns a value of bytes by one FakeQuantize, as fake_quantized() does, if a QuantizeLinear of the
// same scale and zero point made it; else no node. Operations that only move bytes or take the
// largest may stand between, and are then applied to the floats.
Edge as_one(OnnxNode& n, const Edge& x, const Grid& grid, int deepest = 8) {
  const ElementType type = n.type(x);
  if (grid.block != 0 || (type != ElementType::u8 && type != ElementType::i8)) return {};
  const bool one = count(n.shape(grid.scale)) == 1;
  if (const auto from = n.quantized.find({x.node, x.port}); from != n.quantized.end()) {
    if ((!one && from->second.axis != grid.axis) || !same_grid(n, from->second, grid)) return {};
    return fake_quantized(n, from->second, type);
  }
  if (!one || deepest == 0 || x.node->inputs.empty()) return {};
  const Node* node = x.node;
  Edge bytes = node->inputs[0];
  if (node->is("Convert") && bytes.node->is("MaxPool")) {  // for integers, computed in floats
    node = bytes.node;
    if (!node->inputs[0].node->is("Convert")) return {};
    bytes = node->inputs[0].node->inputs[0];
  } else if (!node->is("Transpose") && !node->is("Reshape") && !node->is("Squeeze") &&
             !node->is("Unsqueeze")) {
    return {};
  }
  if (n.type(bytes) != type) return {};
  const Edge floats = as_one(n, bytes, grid, deepest - 1);
  return floats.node ? again(n, *node, floats) : Edge{};
}

// Returns a value of bytes as integers in floats, counted from the zero point.
Edge steps_of(OnnxNode& n, const Edge& x, const Grid& grid) {
  if (count(n.shape(grid.scale)) == 1)
    if (const Edge both = as_one(n, x, grid); both.node) return both;
  const Shape& shape = n.shape(x);
  Edge y = n.convert(x, ElementType::f32);
  if (grid.zero.node) {
    const Tensor zero = n.known(grid.zero);
    const std::vector<float> values = zero.empty() ? std::vector<float>{1} : zero.to_floats();
    if (std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }))
      y = n.subtract(y, spread(n, n.convert(grid.zero, ElementType::f32), shape, grid));
  }
  return y;
}

// Returns a constant of bytes with scales and zero points of blocks that fill it, in the form that
// keeps it compressed (passes/precision/keep_compressed.cpp): blocks are a dimension of their own.
Edge dequantized_blocks(OnnxNode& n, const Edge& x, const Grid& grid) {
  const Shape& shape = n.shape(x);
  const auto at = static_cast<size_t>(n.axis(grid.axis, n.rank(x)));
  const auto within = std::vector<int64_t>{static_cast<int64_t>(at) + 1};
  Shape split = shape;
  split[at] /= grid.block;
  split.insert(split.begin() + static_cast<ptrdiff_t>(at) + 1, grid.block);
  Edge y = n.convert(n.stored(constant_value(x)->reshaped(split)), ElementType::f32);
  if (grid.zero.node)
    y = n.subtract(y, n.unsqueeze(n.convert(grid.zero, ElementType::f32), within));
  return n.reshape_to(n.multiply(y, n.unsqueeze(grid.scale, within)), n.ints(shape));
}

bool has_whole_blocks(OnnxNode& n, const Edge& x, const Grid& grid) {
  if (grid.block <= 0 || !constant_value(x) || n.rank(grid.scale) != n.rank(x)) return false;
  const auto at = static_cast<size_t>(n.axis(grid.axis, n.rank(x)));
  Shape blocks = n.shape(x);
  if (blocks[at] % grid.block != 0) return false;
  blocks[at] /= grid.block;
  return n.shape(grid.scale) == blocks && (!grid.zero.node || n.shape(grid.zero) == blocks);
}

Edge dequantized(OnnxNode& n, const Edge& x, const Grid& grid) {
  if (has_whole_blocks(n, x, grid)) return dequantized_blocks(n, x, grid);
  if (count(n.shape(grid.scale)) != 1)
    if (const Edge both = as_one(n, x, grid); both.node) return both;
  const Edge steps = steps_of(n, x, grid);
  const Edge y = n.multiply(steps, spread(n, grid.scale, n.shape(x), grid));
  if (grid.block == 0 && !is_float(n.type(x)))
    n.dequantized[{y.node, y.port}] = {steps, grid.scale, grid.axis};
  return y;
}

Edge quantized(OnnxNode& n, const Edge& x, const Grid& grid, ElementType type,
               bool in_steps = false) {
  const Shape& shape = n.shape(x);
  Edge y = n.round(
      in_steps ? x : n.divide(n.convert(x, ElementType::f32), spread(n, grid.scale, shape, grid)));
  if (grid.zero.node) y = n.add(y, spread(n, n.convert(grid.zero, ElementType::f32), shape, grid));
  const Range range = range_of(type);
  y = n.convert(n.clamp(y, range.low, range.high), type);
  if (grid.block == 0)
    n.quantized[{y.node, y.port}] = {x, grid.scale, grid.zero, grid.axis, in_steps};
  return y;
}

// Returns the format if values are quantised to floats of 8 bits, else nullptr.
const Float8Format* quantized_float8(OnnxNode& n, const Grid& grid) {
  const auto stated = static_cast<int>(n.int_of("output_dtype", 0));
  const std::string narrow = grid.zero.node ? narrow_type(grid.zero)
                             : stated != 0  ? narrow_name_of(stated)
                                            : "";
  const Float8Format* format = find_float8(narrow);
  if (!format && !narrow.empty())
    unsupported_node("values of 4 bits are only supported as constants");
  return format;
}

ElementType quantized_type(OnnxNode& n, const Grid& grid) {
  if (grid.zero.node) return n.type(grid.zero);
  const int64_t stated = n.int_of("output_dtype", 0);
  return stated ? onnx_type(static_cast<int>(stated)) : ElementType::u8;
}

// ---- sums of integers -----------------------------------------------------------------------------
//
// A convolution or product of quantised values that is quantised again adds up integers, which
// floats hold exactly, and multiplies the sums once: steps = round((sum + bias) * factor), with the
// factor x_scale * w_scale / y_scale in f32, from the left. That is ONNX Runtime's arithmetic, so
// that its result comes out to the bit, on any device and in any order of the additions.

// Returns the factor for each output channel (or for all); nothing if a scale is not known.
std::vector<float> factor_of(OnnxNode& n, const Edge& x_scale, const Edge& w_scale,
                             const Edge& y_scale) {
  const Tensor x = n.known(x_scale), w = n.known(w_scale), y = n.known(y_scale);
  if (x.elements() != 1 || y.elements() != 1 || w.elements() < 1) return {};
  std::vector<float> factor = w.to_floats();
  for (float& scale : factor) {
    scale = x.to_floats()[0] * scale / y.to_floats()[0];
    if (!(scale > 0) || !std::isfinite(scale)) return {};
  }
  return factor;
}

// Returns sums as steps of the output. The passes keep this multiplication in its place.
Edge requantized(OnnxNode& n, const Edge& sums, const std::vector<float>& factor, int64_t axis) {
  const auto channels = static_cast<int64_t>(factor.size());
  const Edge by = n.constant(Tensor::of(ElementType::f32, {channels}, factor));
  return n.op("Multiply", 1, {sums, n.along(by, axis, n.rank(sums))}, {{kRequantizes, "true"}});
}

// Returns the DequantizeLinear behind an edge, or behind the Reshape that makes it.
const DequantizedFrom* dequantized_behind(OnnxNode& n, const Edge& e, bool& reshaped) {
  reshaped = e.node->is("Reshape");
  const Edge& from = reshaped ? e.node->inputs[0] : e;
  const auto found = n.dequantized.find({from.node, from.port});
  return found == n.dequantized.end() ? nullptr : &found->second;
}

// Returns whether limits of `node` change nothing about values that are quantised to this range.
bool quantization_limits_more(const Node& node, double low, double high) {
  if (node.is("ReLU")) return low >= 0;
  return node.is("Clamp") && node.attributes.get_float("min") <= low &&
         node.attributes.get_float("max") >= high;
}

// Returns x in steps of its next scale if x is a convolution or a product of dequantised values,
// with a bias of integers or none; else no node.
Edge steps_from_sums(OnnxNode& n, Edge x, const Grid& grid, ElementType type) {
  const Tensor y_scale = n.known(grid.scale),
               zero_point = grid.zero.node ? n.known(grid.zero) : Tensor();
  if (y_scale.elements() != 1 || (grid.zero.node && zero_point.elements() != 1)) return {};
  const double step = y_scale.to_floats()[0], zero = grid.zero.node ? zero_point.to_floats()[0] : 0;
  const Range range = range_of(type);
  if (quantization_limits_more(*x.node, (range.low - zero) * step, (range.high - zero) * step))
    x = x.node->inputs[0];
  Edge bias, bias_at;
  bool reshaped = false;
  if (x.node->is("Add")) {
    const DequantizedFrom* added = dequantized_behind(n, x.node->inputs[1], reshaped);
    if (added == nullptr) return {};
    bias = added->steps;
    bias_at = added->scale;
    x = x.node->inputs[0];
  }
  const Node& node = *x.node;
  const bool product = node.is("MatMul");
  if (!product && !node.is("Convolution") && !node.is("GroupConvolution")) return {};
  const DequantizedFrom* data = dequantized_behind(n, node.inputs[0], reshaped);
  if (data == nullptr || reshaped) return {};
  const DequantizedFrom* weights = dequantized_behind(n, node.inputs[1], reshaped);
  if (weights == nullptr || n.known(weights->steps).empty() ||
      (product && (reshaped || n.rank(weights->steps) != 2)))
    return {};
  const std::vector<float> factor = factor_of(n, data->scale, weights->scale, grid.scale);
  const int64_t channels_at = product && !node.attributes.get_bool("transpose_b", false) ? 1 : 0;
  if (factor.empty() || (factor.size() > 1 && weights->axis != channels_at)) return {};
  if (bias.node) {  // its scale must be that of the sums
    const std::vector<float> of_sums = factor_of(n, data->scale, weights->scale, n.number(1)),
                             of_bias = n.known(bias_at).to_floats();
    if (of_bias.empty() || n.rank(bias) != 1) return {};
    for (size_t c = 0; c < std::max(of_sums.size(), of_bias.size()); ++c) {
      const float sum = of_sums[std::min(c, of_sums.size() - 1)],
                  own = of_bias[std::min(c, of_bias.size() - 1)];
      if (!(std::fabs(sum - own) <= 1e-6f * sum)) return {};
    }
  }
  const int64_t rank = n.rank(x), axis = product ? rank - 1 : 1;
  std::vector<Edge> inputs = node.inputs;
  inputs[0] = data->steps;
  inputs[1] = reshaped ? again(n, *node.inputs[1].node, weights->steps) : weights->steps;
  Edge sums = n.op(node.type, node.opset, std::move(inputs), attributes_of(node));
  if (bias.node) sums = n.add(sums, n.along(bias, axis, rank));
  return requantized(n, sums, factor, axis);
}

void quantize_linear(OnnxNode& n) {
  Grid grid = grid_at(n, 1, 2, n.int_of("axis", 1));
  grid.block = n.int_of("block_size", 0);
  if (n.rank(grid.scale) == 1 && n.dim(grid.scale, 0) != 1)
    grid.axis = n.axis(grid.axis, n.rank(n.in(0)));
  if (const Float8Format* format = quantized_float8(n, grid)) {
    const Edge x = n.divide(n.convert(n.in(0), ElementType::f32),
                            spread(n, grid.scale, n.shape(n.in(0)), grid));
    return n.out(n.to_float8(x, *format, n.int_of("saturate", 1) != 0));
  }
  const ElementType type = quantized_type(n, grid);
  const Edge steps = grid.block == 0 ? steps_from_sums(n, n.in(0), grid, type) : Edge{};
  n.out(steps.node ? quantized(n, steps, grid, type, true) : quantized(n, n.in(0), grid, type));
}

void dequantize_linear(OnnxNode& n) {
  Grid grid = grid_at(n, 1, 2, n.int_of("axis", 1));
  grid.block = n.int_of("block_size", 0);
  if (n.rank(grid.scale) == 1 && n.dim(grid.scale, 0) != 1)
    grid.axis = n.axis(grid.axis, n.rank(n.in(0)));
  n.out(dequantized(n, n.in(0), grid));
}

// Parameters of u8 that were computed from the values at run time, and x as numbers 0..255.
struct Dynamic {
  Edge integers, scale, zero;  // integers and zero are of f32
};

Dynamic dynamically_quantized(OnnxNode& n, const Edge& x) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < n.rank(x); ++d) axes.push_back(d);
  const Edge none = n.number(0);
  const Edge high = n.op("Maximum", 1, {n.reduce("ReduceMax", x, axes, false), none}),
             low = n.op("Minimum", 1, {n.reduce("ReduceMin", x, axes, false), none});
  const Edge scale = n.divide(n.subtract(high, low), n.number(255));
  const Edge zero = n.round(n.clamp(n.divide(n.subtract(none, low), scale), 0, 255));
  const Edge integers = n.clamp(n.add(n.round(n.divide(x, scale)), zero), 0, 255);
  return {integers, scale, zero};
}

void dynamic_quantize_linear(OnnxNode& n) {
  const Dynamic q = dynamically_quantized(n, n.in(0));
  n.out(0, n.convert(q.integers, ElementType::u8));
  n.out(1, q.scale);
  n.out(2, n.convert(q.zero, ElementType::u8));
}

// ---- operations in integers ---------------------------------------------------------------------

// Operations of com.microsoft may have the channels last. channels_first() and as_it_was()
// transpose such pictures and leave others alone.
bool has_channels_last(const OnnxNode& n) { return n.int_of("channels_last", 0) != 0; }

Edge channels_first(OnnxNode& n, const Edge& x) {
  if (!has_channels_last(n)) return x;
  return turned_to_channels_first(n, x);
}

Edge as_it_was(OnnxNode& n, const Edge& y) {
  return has_channels_last(n) ? turned_to_channels_last(n, y) : y;
}

// Inputs: x, scale, zero, w, scale, zero, y scale, y zero, bias.
void qlinear_conv(OnnxNode& n) {
  const std::vector<float> factor = factor_of(n, n.in(1), n.in(4), n.in(6));
  if (!factor.empty()) {
    const Edge x = channels_first(n, steps_of(n, n.in(0), grid_at(n, 1, 2))),
               w = steps_of(n, n.in(3), grid_at(n, 4, 5, 0)),
               bias = n.has(8) ? n.convert(n.in(8), ElementType::f32) : Edge{};
    const Edge steps = requantized(n, convolved(n, x, w, bias), factor, 1);
    n.out(quantized(n, as_it_was(n, steps), grid_at(n, 6, 7), n.type(n.in(7)), true));
    return;
  }
  const Edge x = channels_first(n, dequantized(n, n.in(0), grid_at(n, 1, 2))),
             w = dequantized(n, n.in(3), grid_at(n, 4, 5, 0));
  Edge bias;
  if (n.has(8)) {
    Edge scale = n.multiply(n.in(1), n.in(4));
    if (n.rank(scale) == 1 && n.dim(scale, 0) == 1) scale = n.reshape_to(scale, n.ints({}));
    bias = n.multiply(n.convert(n.in(8), ElementType::f32), scale);
  }
  n.out(quantized(n, as_it_was(n, convolved(n, x, w, bias)), grid_at(n, 6, 7), n.type(n.in(7))));
}

// Inputs: a, scale, zero, b, scale, zero, y scale, y zero.
void qlinear_matmul(OnnxNode& n) {
  const auto rows = std::max<int64_t>(n.rank(n.in(0)) - 2, 0), columns = n.rank(n.in(3)) - 1;
  const std::vector<float> factor = factor_of(n, n.in(1), n.in(4), n.in(6));
  if (!factor.empty()) {
    const Edge sums = n.matmul(steps_of(n, n.in(0), grid_at(n, 1, 2)),
                               steps_of(n, n.in(3), grid_at(n, 4, 5, columns)));
    n.out(quantized(n, requantized(n, sums, factor, n.rank(sums) - 1), grid_at(n, 6, 7),
                    n.type(n.in(7)), true));
    return;
  }
  const Edge a = dequantized(n, n.in(0), grid_at(n, 1, 2, rows)),
             b = dequantized(n, n.in(3), grid_at(n, 4, 5, columns));
  const Edge y = n.matmul(a, b);
  n.out(quantized(n, y, grid_at(n, 6, 7, std::max<int64_t>(n.rank(y) - 2, 0)), n.type(n.in(7))));
}

// Inputs (com.microsoft): a, scale, zero, b, scale, zero, c, y scale, y zero.
void qgemm(OnnxNode& n) {
  const bool turn_a = n.int_of("transA", 0) != 0, turn_b = n.int_of("transB", 0) != 0;
  const Edge a = dequantized(n, n.in(0), grid_at(n, 1, 2)),
             b = dequantized(n, n.in(3), grid_at(n, 4, 5, turn_b ? 0 : 1));
  Edge y = n.matmul(a, b, turn_a, turn_b);
  const float alpha = n.float_of("alpha", 1.f);
  if (alpha != 1) y = n.multiply(y, n.number(alpha));
  if (n.has(6)) {
    const Edge scale = n.multiply(n.multiply(n.in(1), n.in(4)), n.number(alpha));
    y = n.add(y, n.multiply(n.convert(n.in(6), ElementType::f32), scale));
  }
  n.out(n.has(7) ? quantized(n, y, grid_at(n, 7, 8), n.has(8) ? n.type(n.in(8)) : ElementType::u8)
                 : y);
}

// Inputs (com.microsoft): a, scale, zero, b, scale, zero, c scale, c zero.
void qlinear_binary(OnnxNode& n) {
  const Grid of_a = grid_at(n, 1, 2), of_b = grid_at(n, 4, 5), of_c = grid_at(n, 6, 7);
  if (n.type() == "QLinearAdd") {
    // ONNX Runtime divides the scales first.
    const auto share = [&](size_t at, const Grid& grid) {
      return n.multiply(steps_of(n, n.in(at), grid), n.divide(grid.scale, of_c.scale));
    };
    n.out(quantized(n, n.add(share(0, of_a), share(3, of_b)), of_c, n.type(n.in(0)), true));
    return;
  }
  const Edge c = n.multiply(dequantized(n, n.in(0), of_a), dequantized(n, n.in(3), of_b));
  n.out(quantized(n, c, of_c, n.type(n.in(0))));
}

// Returns the number of elements behind the axes of pictures and channels.
int64_t count_of_pixels(OnnxNode& n, const Edge& x) {
  int64_t pixels = 1;
  for (int64_t d = 2; d < n.rank(x); ++d) pixels = checked_product(pixels, n.dim(x, d));
  return pixels;
}

// Inputs (com.microsoft): x, scale, zero, y scale, y zero.
void qlinear_unary(OnnxNode& n) {
  Edge x = dequantized(n, n.in(0), grid_at(n, 1, 2));
  const std::string type = n.type();
  Edge y;
  if (type == "QLinearSigmoid") {
    y = n.op("Sigmoid", 1, {x});
  } else if (type == "QLinearLeakyRelu") {
    y = n.op("PReLU", 1, {x, n.number(n.float_of("alpha", 0.01f))});
  } else if (type == "QLinearSoftmax") {
    const bool joined = n.int_of("opset") < 13;
    const int64_t axis = n.axis(n.int_of("axis", joined ? 1 : -1), n.rank(x));
    y = joined
            ? over_joined(n, x, axis, [&](const Edge& e, int64_t at) { return n.softmax(e, at); })
            : n.softmax(x, axis);
  } else {
    x = channels_first(n, x);
    if (type == "QLinearGlobalAveragePool") {
      std::vector<int64_t> axes;
      for (int64_t d = 2; d < n.rank(x); ++d) axes.push_back(d);
      const Edge pixels = n.number(static_cast<float>(count_of_pixels(n, x)));
      const std::vector<float> factor =
          factor_of(n, n.in(1), n.number(1), n.multiply(n.in(3), pixels));
      if (!factor.empty()) {
        x = channels_first(n, steps_of(n, n.in(0), grid_at(n, 1, 2)));
        const Edge steps = requantized(n, n.reduce("ReduceSum", x, axes), factor, 1);
        n.out(quantized(n, as_it_was(n, steps), grid_at(n, 3, 4), n.type(n.in(0)), true));
        return;
      }
      y = n.reduce("ReduceMean", x, axes);
    } else {
      const Window window = window_of(n, x, n.ints_of("kernel_shape"));
      AttributePairs attributes = window.attributes();
      attributes.emplace_back("kernel", text_of(window.kernel));
      attributes.emplace_back("rounding_type", n.int_of("ceil_mode", 0) ? "ceil_torch" : "floor");
      attributes.emplace_back("exclude-pad", text_of(n.int_of("count_include_pad", 0) == 0));
      y = n.op("AvgPool", 14, {x}, attributes);
    }
    y = as_it_was(n, y);
  }
  n.out(quantized(n, y, grid_at(n, 3, 4), n.type(n.in(0))));
}

// Inputs (com.microsoft): condition, a, scale, zero, b, scale, zero, y scale, y zero.
void qlinear_where(OnnxNode& n) {
  const Edge a = dequantized(n, n.in(1), grid_at(n, 2, 3)),
             b = dequantized(n, n.in(4), grid_at(n, 5, 6));
  n.out(quantized(n, n.op("Select", 1, {n.in(0), a, b}), grid_at(n, 7, 8), n.type(n.in(1))));
}

// Inputs (com.microsoft): y scale, y zero, then each part with scale and zero.
void qlinear_concat(OnnxNode& n) {
  std::vector<Edge> parts;
  for (size_t i = 2; i + 2 < n.input_count(); i += 3)
    parts.push_back(dequantized(n, n.in(i), grid_at(n, i + 1, i + 2)));
  if (parts.empty()) bad_node("has no parts");
  const Edge y = n.concat(parts, n.axis(n.int_of("axis"), n.rank(parts[0])));
  n.out(quantized(n, y, grid_at(n, 0, 1), n.type(n.in(1))));
}

// Inputs (com.microsoft): a, b, scale, scale, zero, zero, bias. Multiplies integers and returns
// floats.
void matmul_integer_to_float(OnnxNode& n) {
  const Edge a = dequantized(n, n.in(0), grid_at(n, 2, 4)),
             b = dequantized(n, n.in(1), grid_at(n, 3, 5, n.rank(n.in(1)) - 1));
  const Edge y = n.matmul(a, b);
  n.out(n.has(6) ? n.add(y, n.in(6)) : y);
}

// Multiplies floats by integers (com.microsoft). The floats are quantised with parameters that are
// computed at run time.
void dynamic_quantize_matmul(OnnxNode& n) {
  const Dynamic q = dynamically_quantized(n, n.in(0));
  const Edge a = n.multiply(n.subtract(q.integers, q.zero), q.scale),
             b = dequantized(n, n.in(1), grid_at(n, 2, 3, n.rank(n.in(1)) - 1));
  const Edge y = n.matmul(a, b);
  n.out(n.has(4) ? n.add(y, n.in(4)) : y);
}

// Unpacks rows of numbers of `bits` bits each. A row takes whole bytes, and begins with the lowest
// bits.
Tensor unpacked_rows(const Tensor& packed, int64_t bits, int64_t rows, int64_t columns) {
  const int64_t of_row = ceil_div(columns * bits, int64_t{8});
  Tensor numbers = Tensor::allocate(ElementType::u8, {rows, columns});
  const auto* from = packed.data<uint8_t>();
  auto* to = numbers.mutable_data<uint8_t>();
  for (int64_t r = 0; r < rows; ++r, from += of_row)
    for (int64_t i = 0; i < columns; ++i) *to++ = static_cast<uint8_t>(bits_at(from, i, bits));
  return numbers;
}

// Returns weights [N, K] that are stored in blocks along K, each with a scale and a zero point, as
// the steps that make floats of them.
Edge weights_of_bits(OnnxNode& n, int64_t rows, int64_t columns) {
  const int64_t bits = n.int_of("bits", 4), block = n.int_of("block_size");
  if (bits != 2 && bits != 4 && bits != 8)
    unsupported_node("weights of " + std::to_string(bits) + " bits are not supported");
  if (rows < 1 || columns < 1 || block < 8 || block > (1 << 16) || block % 8 != 0)
    bad_node("K, N or block_size is out of range");
  const Tensor packed = n.known(n.in(1)), scale = n.known(n.in(2)),
               zero = n.has(3) ? n.known(n.in(3)) : Tensor();
  if (packed.empty() || scale.empty() || (n.has(3) && zero.empty()))
    unsupported_node("weights that are computed at run time are not supported");
  const int64_t blocks = ceil_div(columns, block), of_block = block * bits / 8,
                zeros = ceil_div(checked_product(blocks, bits), int64_t{8});
  const bool zero_packed = !zero.empty() && !is_float(zero.type());
  const auto expect = [&](const Tensor& tensor, int64_t of_row, const char* what) {
    if (tensor.elements() != checked_product(rows, of_row))
      bad_node(std::string(what) + " do not fit K, N and block_size");
  };
  expect(packed, checked_product(blocks, of_block), "the weights");
  expect(scale, blocks, "the scales");
  if (!zero.empty()) expect(zero, zero_packed ? zeros : blocks, "the zero points");
  if (packed.type() != ElementType::u8 || (zero_packed && zero.type() != ElementType::u8))
    bad_node("weights and zero points must be bytes");
  const Shape by_block{rows, blocks, 1};
  checked_count({rows, checked_product(blocks, block)});
  const Tensor codes = unpacked_rows(packed, bits, rows, blocks * block);
  const Edge middle =
      zero.empty() ? n.number(static_cast<float>(1 << (bits - 1)))
      : zero_packed
          ? n.convert(n.stored(unpacked_rows(zero, bits, rows, blocks).reshaped(by_block)),
                      ElementType::f32)
          : n.stored(zero.convert(ElementType::f32).reshaped(by_block));
  const Edge steps = n.subtract(
      n.convert(n.stored(codes.reshaped({rows, blocks, block})), ElementType::f32), middle);
  const Edge weights =
      n.reshape_to(n.multiply(steps, n.stored(scale.convert(ElementType::f32).reshaped(by_block))),
                   n.ints({rows, blocks * block}));
  return blocks * block == columns ? weights : n.slice(weights, 1, 0, columns);
}

// Inputs (com.microsoft): x, weights, scales, zero points, places of columns, bias.
void matmul_n_bits(OnnxNode& n) {
  if (n.has(4)) unsupported_node("an order of columns (g_idx) is not supported");
  const Edge y = n.matmul(n.in(0), weights_of_bits(n, n.int_of("N"), n.int_of("K")), false, true);
  n.out(n.has(5) ? n.add(y, n.in(5)) : y);
}

}  // namespace

std::vector<OnnxOp> onnx_quantization_ops() {
  return {{"DequantizeLinear", dequantize_linear},
          {"DynamicQuantizeLinear", dynamic_quantize_linear},
          {"QLinearConv", qlinear_conv},
          {"QLinearMatMul", qlinear_matmul},
          {"QuantizeLinear", quantize_linear},
          {"DequantizeLinear", dequantize_linear, kMicrosoft},
          {"DynamicQuantizeMatMul", dynamic_quantize_matmul, kMicrosoft},
          {"MatMulNBits", matmul_n_bits, kMicrosoft},
          {"MatMulIntegerToFloat", matmul_integer_to_float, kMicrosoft},
          {"QGemm", qgemm, kMicrosoft},
          {"QLinearAdd", qlinear_binary, kMicrosoft},
          {"QLinearAveragePool", qlinear_unary, kMicrosoft},
          {"QLinearConcat", qlinear_concat, kMicrosoft},
          {"QLinearConv", qlinear_conv, kMicrosoft},
          {"QLinearGlobalAveragePool", qlinear_unary, kMicrosoft},
          {"QLinearLeakyRelu", qlinear_unary, kMicrosoft},
          {"QLinearMul", qlinear_binary, kMicrosoft},
          {"QLinearSigmoid", qlinear_unary, kMicrosoft},
          {"QLinearSoftmax", qlinear_unary, kMicrosoft},
          {"QLinearWhere", qlinear_where, kMicrosoft},
          {"QuantizeLinear", quantize_linear, kMicrosoft}};
}

}  // namespace clinfer
