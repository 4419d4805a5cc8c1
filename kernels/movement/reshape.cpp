// Reshape, Squeeze and Unsqueeze: the same elements with another shape. They are views of row-major
// memory, and of other layouts if each new dimension has one stride in memory.
#include <algorithm>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

Shape reshaped(const Shape& in, const std::vector<int64_t>& pattern, bool special_zero) {
  Shape out;
  size_t unknown = pattern.size();
  int64_t known = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    int64_t dim = pattern[i];
    if (dim == -1) {
      if (unknown != pattern.size())
        fail_model("the new shape " + to_string(pattern) + " holds -1 twice");
      unknown = i;
      out.push_back(1);
      continue;
    }
    if (dim == 0 && special_zero) {
      if (i >= in.size())
        fail_model("the new shape " + to_string(pattern) + " keeps dimension " + std::to_string(i) +
                   " of " + to_string(in));
      dim = in[i];
    }
    if (dim < 0) fail_model("the new shape " + to_string(pattern) + " holds a negative dimension");
    known = checked_product(known, dim);
    out.push_back(dim);
  }
  const int64_t elements = checked_count(in);
  if (unknown != pattern.size()) {
    // A missing dimension could have any size if there are no elements; by convention it is 0.
    if (known == 0 ? elements != 0 : elements % known != 0)
      fail_model("cannot reshape " + to_string(in) + " to " + to_string(pattern));
    out[unknown] = known == 0 ? 0 : elements / known;
  }
  if (checked_count(out) != elements)
    fail_model("cannot reshape " + to_string(in) + " to " + to_string(pattern));
  return out;
}

std::vector<ValueInfo> infer_reshape(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  return {{in.type, reshaped(in.shape, constant_ints(context, 1, "the new shape"),
                             context.attributes.get_bool("special_zero", false))}};
}

std::vector<ValueInfo> infer_squeeze(const ShapeContext& context) {
  check_inputs(context, 1, 2);
  const ValueInfo& in = context.inputs[0];
  std::vector<bool> gone(in.shape.size(), false);
  if (has_input(context, 1) && checked_count(context.inputs[1].shape) > 0) {
    for (int64_t axis : constant_ints(context, 1, "the axes")) {
      const size_t d = checked_axis(axis, in.shape.size(), "axis");
      // From opset 15 on, a requested dimension other than 1 stays; before, it is an error.
      if (in.shape[d] != 1 && context.opset < 15)
        fail_model("dimension " + std::to_string(d) + " of " + to_string(in.shape) +
                   " is not 1 and cannot be removed");
      gone[d] = in.shape[d] == 1;
    }
  } else {
    for (size_t d = 0; d < gone.size(); ++d) gone[d] = in.shape[d] == 1;
  }
  Shape out;
  for (size_t d = 0; d < gone.size(); ++d)
    if (!gone[d]) out.push_back(in.shape[d]);
  return {{in.type, out}};
}

std::vector<ValueInfo> infer_unsqueeze(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  const std::vector<int64_t> axes = constant_ints(context, 1, "the axes");
  const size_t rank = in.shape.size() + axes.size();
  std::vector<bool> added(rank, false);
  for (int64_t axis : axes) {
    const size_t d = checked_axis(axis, rank, "axis");
    if (added[d]) fail_model("axis " + std::to_string(axis) + " is given twice");
    added[d] = true;
  }
  Shape out;
  for (size_t d = 0, from = 0; d < rank; ++d) out.push_back(added[d] ? 1 : in.shape[from++]);
  return {{in.type, out}};
}

void evaluate(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_all(inputs[0], outputs[0]);
}

// Divides both shapes into groups of old and of new dimensions with equal numbers of elements.
// Within a group the old dimensions must be contiguous in memory; the new ones divide them. Returns
// nothing if the numbers of elements differ.
std::optional<Shape> divided_strides(const TensorDesc& in, const Shape& out) {
  Shape old_shape, old_strides;
  for (size_t d = 0; d < in.shape.size(); ++d)
    if (in.shape[d] != 1) {
      old_shape.push_back(in.shape[d]);
      old_strides.push_back(in.strides[d]);
    }
  Shape strides(out.size(), 1);
  size_t o = 0, n = 0;
  while (n < out.size()) {
    if (out[n] == 1) {
      ++n;
      continue;
    }
    size_t o_end = o, n_end = n + 1;
    int64_t old_count = 1, new_count = out[n];
    while (old_count != new_count || o_end == o) {
      if (old_count < new_count ? o_end == old_shape.size() : n_end == out.size())
        return std::nullopt;
      if (old_count < new_count)
        old_count *= old_shape[o_end++];
      else
        new_count *= out[n_end++];
    }
    for (size_t d = o; d + 1 < o_end; ++d)
      if (old_strides[d] != old_strides[d + 1] * old_shape[d + 1]) return std::nullopt;
    int64_t stride = old_strides[o_end - 1];
    for (size_t d = n_end; d-- > n;) {
      strides[d] = stride;
      stride *= out[d];
    }
    o = o_end;
    n = n_end;
  }
  if (o != old_shape.size()) return std::nullopt;
  // A dimension of 1 has the stride of a dense tensor, so that layouts are recognised.
  for (size_t d = out.size(); d-- > 0;)
    if (out[d] == 1) strides[d] = d + 1 < out.size() ? strides[d + 1] * out[d + 1] : 1;
  return strides;
}

std::optional<std::vector<TensorDesc>> view(const OpDesc& desc) {
  const TensorDesc& in = desc.inputs[0];
  TensorDesc out{in.type, desc.outputs[0].shape, {}, in.offset};
  if (in.elements() == 0) {
    out.strides = row_major_strides(out.shape);
    return {{out}};
  }
  const std::optional<Shape> strides = divided_strides(in, out.shape);
  if (!strides) return std::nullopt;
  out.strides = *strides;
  return {{out}};
}

}  // namespace

std::vector<OpDef> reshape_ops() {
  return {{.type = "Reshape",
           .opsets = opset_range(1),
           .infer_shapes = infer_reshape,
           .evaluate = evaluate,
           .layout = LayoutRule::follow,
           .view = view},
          {.type = "Squeeze",
           .opsets = opset_range(1),
           .infer_shapes = infer_squeeze,
           .evaluate = evaluate,
           .layout = LayoutRule::follow,
           .view = view},
          {.type = "Unsqueeze",
           .opsets = opset_range(1),
           .infer_shapes = infer_unsqueeze,
           .evaluate = evaluate,
           .layout = LayoutRule::follow,
           .view = view}};
}

}  // namespace clinfer
