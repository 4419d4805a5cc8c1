// Split and VariadicSplit: each output is a view of a part of the input, in any layout.
#include <algorithm>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kMostParts = 1 << 16;

std::vector<ValueInfo> parts_of(const ValueInfo& in, size_t axis,
                                const std::vector<int64_t>& lengths) {
  std::vector<ValueInfo> outputs;
  for (int64_t length : lengths) {
    outputs.push_back({in.type, in.shape});
    outputs.back().shape[axis] = length;
  }
  return outputs;
}

std::vector<ValueInfo> infer_split(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  const size_t axis = checked_axis(constant_int(context, 1, "the axis"), in.shape.size(), "axis");
  const int64_t parts = context.attributes.get_int("num_splits");
  if (parts < 1 || parts > kMostParts || in.shape[axis] % parts != 0)
    fail_model("cannot split dimension " + std::to_string(axis) + " of " + to_string(in.shape) +
               " into " + std::to_string(parts) + " equal parts");
  return parts_of(in, axis,
                  std::vector<int64_t>(static_cast<size_t>(parts), in.shape[axis] / parts));
}

std::vector<ValueInfo> infer_variadic(const ShapeContext& context) {
  check_inputs(context, 3, 3);
  const ValueInfo& in = context.inputs[0];
  const size_t axis = checked_axis(constant_int(context, 1, "the axis"), in.shape.size(), "axis");
  std::vector<int64_t> lengths = constant_ints(context, 2, "the lengths");
  const std::string what = "cannot split dimension " + std::to_string(axis) + " of " +
                           to_string(in.shape) + " into lengths " + to_string(lengths);
  auto rest = lengths.end();
  int64_t sum = 0;
  for (auto it = lengths.begin(); it != lengths.end(); ++it) {
    if (*it == -1 && rest == lengths.end()) {
      rest = it;
      continue;
    }
    if (*it < 0 || __builtin_add_overflow(sum, *it, &sum)) fail_model(what);
  }
  if (rest != lengths.end() ? sum > in.shape[axis] : sum != in.shape[axis]) fail_model(what);
  if (rest != lengths.end()) *rest = in.shape[axis] - sum;
  return parts_of(in, axis, lengths);
}

// The outputs' shapes state the length of each part.
template <typename Take>
void for_each_part(const TensorDesc& in, const Tensor& axis_value, std::span<const Shape> shapes,
                   Take take) {
  const size_t axis = checked_axis(one_int(axis_value, "the axis"), in.shape.size(), "axis");
  int64_t at = 0;
  for (const Shape& shape : shapes) {
    TensorDesc part = in;
    part.shape = shape;
    part.offset += at * in.strides[axis];
    at += shape[axis];
    take(part);
  }
}

void evaluate(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  std::vector<Shape> shapes;
  for (const Tensor& output : outputs) shapes.push_back(output.shape());
  size_t i = 0;
  for_each_part(TensorDesc::row_major(inputs[0].type(), inputs[0].shape()), inputs[1], shapes,
                [&](const TensorDesc& part) { copy_view(inputs[0], part, outputs[i++]); });
}

std::optional<std::vector<TensorDesc>> view(const OpDesc& desc) {
  std::vector<Shape> shapes;
  for (const TensorDesc& output : desc.outputs) shapes.push_back(output.shape);
  std::vector<TensorDesc> views;
  for_each_part(desc.inputs[0], desc.constants[1], shapes,
                [&](const TensorDesc& part) { views.push_back(part); });
  return views;
}

}  // namespace

std::vector<OpDef> split_ops() {
  return {{.type = "Split",
           .opsets = opset_range(1),
           .infer_shapes = infer_split,
           .evaluate = evaluate,
           .layout = LayoutRule::follow,
           .view = view},
          {.type = "VariadicSplit",
           .opsets = opset_range(1),
           .infer_shapes = infer_variadic,
           .evaluate = evaluate,
           .layout = LayoutRule::follow,
           .view = view}};
}

}  // namespace clinfer
