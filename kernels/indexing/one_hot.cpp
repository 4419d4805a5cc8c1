// OneHot: each index becomes a row of `depth` values, of which the one at the index is on and the
// others are off. An index out of range sets none.
#include <algorithm>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 4, 4);
  const ValueInfo &indices = context.inputs[0], &on = context.inputs[2];
  if (is_float(indices.type)) fail_model("the indices must be integers");
  if (on.type != context.inputs[3].type) fail_model("on_value and off_value differ in type");
  for (size_t i = 2; i < 4; ++i)
    if (checked_count(context.inputs[i].shape) != 1)
      fail_model("on_value and off_value must be one number each");
  const int64_t depth = constant_int(context, 1, "depth");
  if (depth < 0) fail_model("depth is " + std::to_string(depth));
  const size_t axis =
      checked_axis(context.attributes.get_int("axis", -1), indices.shape.size() + 1, "axis");
  Shape out = indices.shape;
  out.insert(out.begin() + static_cast<int64_t>(axis), depth);
  checked_count(out);
  return {{on.type, out}};
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape();
  const size_t axis = checked_axis(desc.attributes.get_int("axis", -1), shape.size(), "axis");
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  // From opset 16 on, an attribute may make negative indices count from the end.
  const bool wrap =
      desc.attributes.get_string("negative_indices_mode", "ignore_negative") == "normalize";
  const std::vector<int64_t> indices = inputs[0].to_ints();
  with_size(outputs[0].type(), [&](auto zero) {
    using T = decltype(zero);
    const T on = *inputs[2].data<T>(), off = *inputs[3].data<T>();
    T* to = outputs[0].mutable_data<T>();
    std::fill_n(to, outputs[0].elements(), off);
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t index = indices[i] < 0 && wrap ? indices[i] + shape[axis] : indices[i];
      if (index < 0 || index >= shape[axis]) continue;
      const int64_t at = static_cast<int64_t>(i);
      to[(at / inner * shape[axis] + index) * inner + at % inner] = on;
    }
  });
}

}  // namespace

std::vector<OpDef> one_hot_ops() {
  return {{.type = "OneHot",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .host_reason = "its input is a few indices"}};
}

}  // namespace clinfer
