// Transpose: a view of any layout, with the strides permuted.
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<size_t> order_of(const std::vector<int64_t>& values, size_t rank) {
  std::vector<size_t> order;
  if (values.empty()) {  // an empty order reverses the dimensions
    for (size_t d = rank; d-- > 0;) order.push_back(d);
    return order;
  }
  if (values.size() != rank)
    fail_model("the order has " + std::to_string(values.size()) + " entries for " +
               std::to_string(rank) + " dimensions");
  std::vector<bool> seen(rank, false);
  for (int64_t value : values) {
    const size_t d = checked_axis(value, rank, "order entry");
    if (seen[d]) fail_model("the order " + to_string(values) + " names a dimension twice");
    seen[d] = true;
    order.push_back(d);
  }
  return order;
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  Shape out;
  for (size_t d : order_of(constant_ints(context, 1, "the order"), in.shape.size()))
    out.push_back(in.shape[d]);
  return {{in.type, out}};
}

TensorDesc permuted(const TensorDesc& in, const Tensor& order) {
  TensorDesc out{in.type, {}, {}, in.offset};
  for (size_t d : order_of(order.to_ints(), in.shape.size())) {
    out.shape.push_back(in.shape[d]);
    out.strides.push_back(in.strides[d]);
  }
  return out;
}

void evaluate(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_view(inputs[0],
            permuted(TensorDesc::row_major(inputs[0].type(), inputs[0].shape()), inputs[1]),
            outputs[0]);
}

std::optional<std::vector<TensorDesc>> view(const OpDesc& desc) {
  return {{permuted(desc.inputs[0], desc.constants[1])}};
}

}  // namespace

std::vector<OpDef> transpose_ops() {
  return {{.type = "Transpose",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .layout = LayoutRule::follow,
           .view = view}};
}

}  // namespace clinfer
