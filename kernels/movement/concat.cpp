// Concat. It has no kernel: the layout pass makes the producers of its inputs write into parts of
// the output, which are views. It inserts a copy for each input for which that is impossible (an
// input of two Concats, a constant, an input given twice).
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer(const ShapeContext& context) {
  if (context.inputs.empty()) fail_model("has no input");
  ValueInfo out{context.inputs[0].type, context.inputs[0].shape};
  const size_t axis = checked_axis(context.attributes.get_int("axis"), out.shape.size(), "axis");
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    const ValueInfo& in = context.inputs[i];
    if (in.type != out.type)
      fail_model("inputs 0 and " + std::to_string(i) + " differ in element type");
    bool fits = in.shape.size() == out.shape.size();
    for (size_t d = 0; fits && d < in.shape.size(); ++d)
      fits = d == axis || in.shape[d] == out.shape[d];
    if (!fits)
      fail_model("inputs of shapes " + to_string(context.inputs[0].shape) + " and " +
                 to_string(in.shape) + " cannot be joined along axis " + std::to_string(axis));
    if (__builtin_add_overflow(out.shape[axis], in.shape[axis], &out.shape[axis]))
      fail_unsupported("the output is too large");
  }
  checked_count(out.shape);
  return {out};
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const size_t axis =
      checked_axis(desc.attributes.get_int("axis"), outputs[0].shape().size(), "axis");
  const Shape strides = row_major_strides(outputs[0].shape());
  const size_t size = size_of(outputs[0].type());
  std::byte* to = static_cast<std::byte*>(outputs[0].raw_mutable());
  for (const Tensor& in : inputs) {
    copy_strided(size, in.shape(), in.raw(), row_major_strides(in.shape()), to, strides);
    to += in.shape()[axis] * strides[axis] * static_cast<int64_t>(size);
  }
}

}  // namespace

std::vector<OpDef> concat_ops() {
  return {{.type = "Concat",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .layout = LayoutRule::follow}};
}

}  // namespace clinfer
