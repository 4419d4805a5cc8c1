// Slice and StridedSlice: a part of the input, possibly with steps, as a view of any layout. A
// negative step is a negative stride with an offset at the other end.
#include "kernels/movement/slice.h"

#include <algorithm>

#include "kernels/shape_util.h"

namespace clinfer {

SliceRange slice_range(int64_t size, std::optional<int64_t> begin, std::optional<int64_t> end,
                       int64_t step) {
  if (step == 0) fail_model("a step is 0");
  if (size == 0) return {0, 0, 1};
  const auto bound = [&](int64_t value, int64_t low, int64_t high) {
    if (value < 0) value = value < -size ? low : value + size;
    return std::clamp(value, low, high);
  };
  const int64_t high = step > 0 ? size : size - 1;
  const int64_t first = begin ? bound(*begin, 0, high) : (step > 0 ? 0 : high);
  const int64_t last = end ? bound(*end, step > 0 ? 0 : -1, high) : (step > 0 ? size : -1);
  const int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return {0, 0, 1};
  // Uses |step| as unsigned, because the smallest integer has no positive counterpart.
  const uint64_t width =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const int64_t n = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / width) + 1;
  return {first, n, n == 1 ? 1 : step};
}

namespace {

// The selected range of each input dimension, and the origin of each output dimension.
struct Selection {
  // for each input dimension
  std::vector<SliceRange> ranges;
  // For each output dimension: the input dimension, or -1 for a new dimension of size 1.
  std::vector<int> dimensions;
};

TensorDesc selected(const TensorDesc& in, const Selection& selection) {
  TensorDesc out{in.type, {}, {}, in.offset};
  bool none = false;
  for (size_t d = 0; d < in.shape.size(); ++d) {
    none |= selection.ranges[d].count == 0;
    out.offset += selection.ranges[d].first * in.strides[d];
  }
  for (int d : selection.dimensions) {
    out.shape.push_back(d < 0 ? 1 : selection.ranges[d].count);
    out.strides.push_back(d < 0 ? 0 : in.strides[d] * selection.ranges[d].step);
  }
  // A new dimension has the stride of a dense tensor, so that layouts are recognised.
  for (size_t i = out.shape.size(); i-- > 0;)
    if (selection.dimensions[i] < 0)
      out.strides[i] = i + 1 < out.shape.size() ? out.strides[i + 1] * out.shape[i + 1] : 1;
  if (none) out.offset = in.offset;
  return out;
}

// ---- Slice: start, stop, step, axes ------------------------------------------------------------

Selection select_slice(const Shape& shape, const std::vector<int64_t>& start,
                       const std::vector<int64_t>& stop, const std::vector<int64_t>& step,
                       std::vector<int64_t> axes, bool has_axes) {
  if (!has_axes)
    for (size_t i = 0; i < start.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (stop.size() != start.size() || step.size() != start.size() || axes.size() != start.size())
    fail_model("start, stop, step and axes differ in length");
  Selection selection;
  for (size_t d = 0; d < shape.size(); ++d) {
    selection.ranges.push_back({0, shape[d], 1});
    selection.dimensions.push_back(static_cast<int>(d));
  }
  std::vector<bool> seen(shape.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t d = checked_axis(axes[i], shape.size(), "axis");
    if (seen[d]) fail_model("axis " + std::to_string(axes[i]) + " is given twice");
    seen[d] = true;
    selection.ranges[d] = slice_range(shape[d], start[i], stop[i], step[i]);
  }
  return selection;
}

std::vector<ValueInfo> infer_slice(const ShapeContext& context) {
  check_inputs(context, 4, 5);
  const ValueInfo& in = context.inputs[0];
  const Selection selection = select_slice(
      in.shape, constant_ints(context, 1, "start"), constant_ints(context, 2, "stop"),
      constant_ints(context, 3, "step"),
      has_input(context, 4) ? constant_ints(context, 4, "the axes") : std::vector<int64_t>(),
      has_input(context, 4));
  return {{in.type, selected(TensorDesc::row_major(in.type, in.shape), selection).shape}};
}

// The inputs after the first, as integers; missing ones are empty.
struct Bounds {
  std::vector<int64_t> begin, end, step, axes;
};

Bounds bounds_of(std::span<const Tensor> inputs) {
  const auto ints = [&](size_t i) {
    return i < inputs.size() ? inputs[i].to_ints() : std::vector<int64_t>();
  };
  return {ints(1), ints(2), ints(3), ints(4)};
}

Selection slice_selection(const Shape& shape, std::span<const Tensor> inputs) {
  const Bounds b = bounds_of(inputs);
  return select_slice(shape, b.begin, b.end, b.step, b.axes, inputs.size() > 4);
}

void evaluate_slice(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const TensorDesc in = TensorDesc::row_major(inputs[0].type(), inputs[0].shape());
  copy_view(inputs[0], selected(in, slice_selection(in.shape, inputs)), outputs[0]);
}

std::optional<std::vector<TensorDesc>> view_slice(const OpDesc& desc) {
  const std::span<const Tensor> inputs = std::span(desc.constants).first(desc.own_inputs);
  return {{selected(desc.inputs[0], slice_selection(desc.inputs[0].shape, inputs))}};
}

// ---- StridedSlice: begin, end, strides and five masks ------------------------------------------

Selection select_strided(const Shape& shape, const Attributes& attributes, const Bounds& b) {
  const auto mask = [&](const char* name) {
    return attributes.get_ints(name, std::vector<int64_t>());
  };
  const std::vector<int64_t> begin_mask = mask("begin_mask"), end_mask = mask("end_mask"),
                             added = mask("new_axis_mask"), shrunk = mask("shrink_axis_mask"),
                             ellipsis = mask("ellipsis_mask");
  const auto is_set = [](const std::vector<int64_t>& bits, size_t i) {
    return i < bits.size() && bits[i] != 0;
  };
  const size_t entries = std::max(b.begin.size(), b.end.size());

  // The dimensions that the entries refer to; the ellipsis, or else the end, leaves the others
  // whole.
  size_t named = 0, ellipses = 0;
  for (size_t i = 0; i < entries; ++i) {
    if (is_set(ellipsis, i))
      ++ellipses;
    else if (!is_set(added, i))
      ++named;
  }
  if (ellipses > 1) fail_model("ellipsis_mask is set twice");
  if (named > shape.size())
    fail_model("slices " + std::to_string(named) + " dimensions of " + to_string(shape));

  Selection selection;
  const auto take_whole = [&] {
    const size_t d = selection.ranges.size();
    selection.ranges.push_back({0, shape[d], 1});
    selection.dimensions.push_back(static_cast<int>(d));
  };
  for (size_t i = 0; i < entries; ++i) {
    if (is_set(ellipsis, i)) {
      for (size_t k = named; k < shape.size(); ++k) take_whole();
    } else if (is_set(added, i)) {
      selection.dimensions.push_back(-1);
    } else {
      const size_t d = selection.ranges.size();
      const bool has_begin = i < b.begin.size() && !is_set(begin_mask, i);
      const bool has_end = i < b.end.size() && !is_set(end_mask, i);
      const int64_t step = i < b.step.size() ? b.step[i] : 1;
      if (is_set(shrunk, i)) {
        const int64_t at = has_begin ? b.begin[i] : (step < 0 ? -1 : 0);
        const int64_t first = at < 0 ? at + shape[d] : at;
        if (first < 0 || first >= shape[d])
          fail_model("index " + std::to_string(at) + " is out of range for dimension " +
                     std::to_string(d) + " of " + to_string(shape));
        selection.ranges.push_back({first, 1, 1});
      } else {
        selection.ranges.push_back(
            slice_range(shape[d], has_begin ? std::optional(b.begin[i]) : std::nullopt,
                        has_end ? std::optional(b.end[i]) : std::nullopt, step));
        selection.dimensions.push_back(static_cast<int>(d));
      }
    }
  }
  while (selection.ranges.size() < shape.size()) take_whole();
  return selection;
}

std::vector<ValueInfo> infer_strided(const ShapeContext& context) {
  check_inputs(context, 3, 4);
  const ValueInfo& in = context.inputs[0];
  const Bounds bounds{
      constant_ints(context, 1, "begin"),
      constant_ints(context, 2, "end"),
      has_input(context, 3) ? constant_ints(context, 3, "the strides") : std::vector<int64_t>(),
      {}};
  return {{in.type, selected(TensorDesc::row_major(in.type, in.shape),
                             select_strided(in.shape, context.attributes, bounds))
                        .shape}};
}

void evaluate_strided(const OpDesc& desc, std::span<const Tensor> inputs,
                      std::span<Tensor> outputs) {
  const TensorDesc in = TensorDesc::row_major(inputs[0].type(), inputs[0].shape());
  copy_view(inputs[0], selected(in, select_strided(in.shape, desc.attributes, bounds_of(inputs))),
            outputs[0]);
}

std::optional<std::vector<TensorDesc>> view_strided(const OpDesc& desc) {
  const std::span<const Tensor> inputs = std::span(desc.constants).first(desc.own_inputs);
  return {{selected(desc.inputs[0],
                    select_strided(desc.inputs[0].shape, desc.attributes, bounds_of(inputs)))}};
}

}  // namespace

std::vector<OpDef> slice_ops() {
  return {{.type = "Slice",
           .opsets = opset_range(8),
           .infer_shapes = infer_slice,
           .evaluate = evaluate_slice,
           .layout = LayoutRule::follow,
           .view = view_slice},
          {.type = "StridedSlice",
           .opsets = opset_range(1),
           .infer_shapes = infer_strided,
           .evaluate = evaluate_strided,
           .layout = LayoutRule::follow,
           .view = view_strided}};
}

}  // namespace clinfer
