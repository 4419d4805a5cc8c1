// Small operations that are combinations of a few others: Roll, SliceScatter, Col2Im, Identity, the
// tests for special numbers (IsNaN, IsInf, IsFinite), FakeConvert and ConvertPromoteTypes.
#include <limits>
#include <numeric>

#include "kernels/expand.h"
#include "kernels/movement/slice.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

void identity(Expansion& x) {
  check_inputs(x.context(), 1, 1);
  x.outputs = {0};
}

// ---- Roll: data, shift, axes -------------------------------------------------------------------

void roll(Expansion& x) {
  check_inputs(x.context(), 3, 3);
  std::vector<int64_t> shifts = constant_ints(x.context(), 1, "shift");
  const std::vector<int64_t> axes = constant_ints(x.context(), 2, "axes");
  if (shifts.size() == 1) shifts.resize(axes.size(), shifts[0]);
  if (shifts.size() != axes.size()) fail_model("shift and axes differ in length");
  const Shape shape = x.shape(0);
  Shape total(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = checked_axis(axes[i], shape.size(), "axis");
    if (shape[axis] > 0) total[axis] = (total[axis] + shifts[i] % shape[axis]) % shape[axis];
  }
  size_t value = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (total[axis] == 0) continue;
    const int64_t size = shape[axis], split = total[axis] > 0 ? size - total[axis] : -total[axis];
    const size_t after = x.slice(value, axis, split, size), before = x.slice(value, axis, 0, split);
    value = x.step("Concat", 1, {after, before}, {{"axis", std::to_string(axis)}});
  }
  x.outputs = {value};
}

// ---- SliceScatter: data, updates, start, stop, step, axes --------------------------------------

struct Cut {
  size_t axis;
  int64_t begin, count, step;
};

// Replaces the part of `data` that the cuts from number `k` on select by `updates`.
size_t replaced(Expansion& x, size_t data, size_t updates, const std::vector<Cut>& cuts, size_t k) {
  if (k == cuts.size()) return updates;
  const Cut& cut = cuts[k];
  if (cut.count == 0) return data;
  const int64_t size = x.shape(data)[cut.axis], end = cut.begin + cut.count;
  if (cut.step == 1) {
    const size_t part = replaced(x, x.slice(data, cut.axis, cut.begin, end), updates, cuts, k + 1);
    std::vector<size_t> parts;
    if (cut.begin > 0) parts.push_back(x.slice(data, cut.axis, 0, cut.begin));
    parts.push_back(part);
    if (end < size) parts.push_back(x.slice(data, cut.axis, end, size));
    return parts.size() == 1 ? part
                             : x.step("Concat", 1, parts, {{"axis", std::to_string(cut.axis)}});
  }
  std::vector<int64_t> indices = index_list(cut.count);
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = cut.begin + static_cast<int64_t>(i) * cut.step;
  const size_t at = x.ints(indices), axis = x.ints({static_cast<int64_t>(cut.axis)});
  const size_t picked = x.step("Gather", 8, {data, at, axis});
  return x.step("ScatterUpdate", 3, {data, at, replaced(x, picked, updates, cuts, k + 1), axis});
}

void slice_scatter(Expansion& x) {
  const ShapeContext& context = x.context();
  check_inputs(context, 5, 6);
  const std::vector<int64_t> start = constant_ints(context, 2, "start"),
                             stop = constant_ints(context, 3, "stop"),
                             step = constant_ints(context, 4, "step");
  std::vector<int64_t> axes(start.size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (has_input(context, 5)) axes = constant_ints(context, 5, "the axes");
  if (stop.size() != start.size() || step.size() != start.size() || axes.size() != start.size())
    fail_model("start, stop, step and axes differ in length");
  const Shape shape = x.shape(0);
  Shape part = shape;
  std::vector<Cut> cuts;
  for (size_t i = 0; i < start.size(); ++i) {
    const size_t axis = checked_axis(axes[i], shape.size(), "axis");
    for (const Cut& cut : cuts)
      if (cut.axis == axis) fail_model("axis " + std::to_string(axis) + " is given twice");
    const SliceRange range = slice_range(shape[axis], start[i], stop[i], step[i]);
    cuts.push_back({axis, range.first, range.count, range.step});
    part[axis] = range.count;
  }
  if (x.shape(1) != part)
    fail_model("the updates " + to_string(x.shape(1)) + " are not of the shape " + to_string(part));
  if (x.info(0).type != x.info(1).type) fail_model("data and updates differ in type");
  x.outputs = {replaced(x, 0, 1, cuts, 0)};
}

// ---- Col2Im: columns, size of the output, size of the kernel -----------------------------------

// Col2Im is a transposed convolution with constant filters that put each value of a column in its
// place.
void col2im(Expansion& x) {
  const ShapeContext& context = x.context();
  check_inputs(context, 3, 3);
  const std::vector<int64_t> size = constant_ints(context, 1, "output_size"),
                             kernel = constant_ints(context, 2, "kernel_size");
  Shape data = x.shape(0);
  check_rank(data, 2, 3, "the data");
  const bool batched = data.size() == 3;
  if (!batched) data.insert(data.begin(), 1);
  const auto pair = [&](const char* name, int64_t otherwise) {
    std::vector<int64_t> values =
        context.attributes.get_ints(name, std::vector<int64_t>{otherwise, otherwise});
    if (values.size() != 2) fail_model(std::string("attribute ") + name + " must be two numbers");
    return values;
  };
  const std::vector<int64_t> strides = pair("strides", 1), dilations = pair("dilations", 1),
                             begin = pair("pads_begin", 0), end = pair("pads_end", 0);
  if (size.size() != 2 || kernel.size() != 2)
    fail_model("output_size and kernel_size must be two numbers each");
  Shape columns(2);
  std::string padding;
  for (size_t d = 0; d < 2; ++d) {
    for (int64_t value : {size[d], kernel[d], strides[d], dilations[d]})
      if (value < 1 || value > (1 << 24))
        fail_model("a size, stride or dilation is " + std::to_string(value));
    if (begin[d] < 0 || begin[d] > (1 << 24) || end[d] < 0 || end[d] > (1 << 24))
      fail_model("a pad is out of range");
    const int64_t extent = (kernel[d] - 1) * dilations[d] + 1,
                  room = size[d] + begin[d] + end[d] - extent;
    if (room < 0) fail_model("the kernel is larger than the padded output");
    columns[d] = room / strides[d] + 1;
    padding += (d ? "," : "") + std::to_string(room % strides[d]);
  }
  const int64_t taps = checked_product(kernel[0], kernel[1]);
  if (data[1] < 1 || data[1] % taps != 0 || data[2] != columns[0] * columns[1])
    fail_model("the data " + to_string(x.shape(0)) + " are not columns of " + std::to_string(taps) +
               " values at " + to_string(columns) + " places");
  const int64_t channels = data[1] / taps;
  const Shape filter_shape{channels, taps, 1, kernel[0], kernel[1]};
  Tensor filter = table(filter_shape);
  for (int64_t i = 0; i < channels * taps; ++i)
    filter.mutable_data<float>()[i * taps + i % taps] = 1;
  const auto text = [](const std::vector<int64_t>& v) {
    return std::to_string(v[0]) + "," + std::to_string(v[1]);
  };
  const size_t image = x.reshape(0, {data[0], data[1], columns[0], columns[1]});
  const size_t sum = x.step("GroupConvolutionBackpropData", 1, {image, x.constant(filter)},
                            {{"strides", text(strides)},
                             {"dilations", text(dilations)},
                             {"pads_begin", text(begin)},
                             {"pads_end", text(end)},
                             {"output_padding", padding}});
  Shape out = x.shape(sum);
  if (!batched) out.erase(out.begin());
  x.outputs = {x.reshape(sum, out)};
}

// ---- NaN and infinities ------------------------------------------------------------------------

size_t compared(Expansion& x, const char* type, size_t a, size_t b) {
  return x.step(type, 1, {a, b});
}

void is_nan(Expansion& x) {
  check_inputs(x.context(), 1, 1);
  x.outputs = {compared(x, "NotEqual", 0, 0)};
}

void is_finite(Expansion& x) {
  check_inputs(x.context(), 1, 1);
  x.outputs = {
      compared(x, "Less", x.step("Abs", 1, {0}), x.number(std::numeric_limits<float>::infinity()))};
}

void is_inf(Expansion& x) {
  check_inputs(x.context(), 1, 1);
  const bool negative = x.context().attributes.get_bool("detect_negative", true),
             positive = x.context().attributes.get_bool("detect_positive", true);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (!negative && !positive) {
    x.outputs = {compared(x, "Less", x.step("Abs", 1, {0}), x.number(0))};
    return;
  }
  const size_t value = negative && positive ? x.step("Abs", 1, {0}) : 0;
  x.outputs = {compared(x, "Equal", value, x.number(positive ? infinity : -infinity))};
}

// ---- ConvertPromoteTypes: two values of one type -----------------------------------------------

int category(ElementType type) { return is_float(type) ? 2 : type == ElementType::boolean ? 0 : 1; }

bool is_signed(ElementType type) {
  return type == ElementType::i8 || type == ElementType::i16 || type == ElementType::i32 ||
         type == ElementType::i64;
}

ElementType promoted(const ShapeContext& context) {
  const ValueInfo &a = context.inputs[0], &b = context.inputs[1];
  if (a.type == b.type) return a.type;
  if (context.attributes.get_bool("pytorch_scalar_promotion", false) &&
      a.shape.empty() != b.shape.empty()) {
    const ValueInfo &scalar = a.shape.empty() ? a : b, &tensor = a.shape.empty() ? b : a;
    if (category(tensor.type) >= category(scalar.type)) return tensor.type;
    if (is_float(scalar.type)) return ElementType::f32;
  }
  if (category(a.type) != category(b.type))
    return category(a.type) > category(b.type) ? a.type : b.type;
  const ElementType larger = size_of(a.type) >= size_of(b.type) ? a.type : b.type,
                    smaller = size_of(a.type) >= size_of(b.type) ? b.type : a.type;
  if (is_float(larger) || is_signed(larger) == is_signed(smaller)) return larger;
  if (is_signed(larger) && size_of(larger) > size_of(smaller)) return larger;
  switch (size_of(larger)) {
    case 1:
      return ElementType::i16;
    case 2:
      return ElementType::i32;
    case 4:
      return ElementType::i64;
    default:
      return parse_type(context.attributes.get_string("u64_integer_promotion_target", "f32"));
  }
}

void promote_types(Expansion& x) {
  check_inputs(x.context(), 2, 2);
  const ElementType type = promoted(x.context());
  x.outputs = {x.convert(0, type), x.convert(1, type)};
}

// ---- FakeConvert: data, scale, shift -----------------------------------------------------------

void fake_convert(Expansion& x) {
  check_inputs(x.context(), 2, 3);
  const bool shifts = x.context().inputs.size() > 2;
  size_t value = x.step("Multiply", 1, {0, 1});
  if (shifts) value = x.step("Subtract", 1, {value, 2});
  value = x.step("ToFloat8", 1, {value},
                 {{"type", x.context().attributes.get_string("destination_type", "f8e4m3")},
                  {"saturate", "true"}});
  if (shifts) value = x.step("Add", 1, {value, 2});
  if (x.shape(value) != x.shape(0)) fail_model("scale and shift do not fit the data");
  x.outputs = {x.step("Divide", 1, {value, 1})};
}

}  // namespace

std::vector<OpDef> composed_ops() {
  return {expanded_op("Identity", opset_range(16), identity),
          expanded_op("Roll", opset_range(7), roll),
          expanded_op("SliceScatter", opset_range(15), slice_scatter),
          expanded_op("Col2Im", opset_range(15), col2im),
          expanded_op("FakeConvert", opset_range(13), fake_convert),
          expanded_op("IsNaN", opset_range(10), is_nan),
          expanded_op("IsInf", opset_range(10), is_inf),
          expanded_op("IsFinite", opset_range(10), is_finite),
          expanded_op("ConvertPromoteTypes", opset_range(14), promote_types)};
}

}  // namespace clinfer
