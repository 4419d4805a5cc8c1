// NonZero: the coordinates of all elements that are not 0, one column for each. Their number
// depends on values: infer_shapes states the maximum, and evaluate() replaces its output by a
// tensor of the actual width.
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// Lists the positions of all non-zero elements in row-major order.
std::vector<int64_t> positions(const Tensor& in) {
  std::vector<int64_t> found;
  with_number(in.type(), [&](auto zero) {
    const auto* data = in.data<decltype(zero)>();
    for (int64_t i = 0; i < in.elements(); ++i)
      if (data[i] != zero) found.push_back(i);
  });
  return found;
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const Shape& in = context.inputs[0].shape;
  const int64_t rank = static_cast<int64_t>(in.size());
  const int64_t most = checked_count(in);
  checked_product(rank, most);
  const Tensor& value = context.inputs[0].value;
  const int64_t columns = value.empty() ? most : static_cast<int64_t>(positions(value).size());
  return {{index_type(context.attributes, "output_type"), {rank, columns}}};
}

void evaluate(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const std::vector<int64_t> found = positions(inputs[0]);
  const Shape strides = row_major_strides(shape);
  std::vector<int64_t> coordinates;
  for (size_t d = 0; d < shape.size(); ++d)
    for (int64_t i : found) coordinates.push_back(i / strides[d] % shape[d]);
  outputs[0] = Tensor::allocate(
      outputs[0].type(), {static_cast<int64_t>(shape.size()), static_cast<int64_t>(found.size())});
  store_ints(coordinates, outputs[0]);
}

}  // namespace

std::vector<OpDef> non_zero_ops() {
  return {{.type = "NonZero",
           .opsets = opset_range(3),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .host_reason = "how much it gives depends on values",
           .rows_depend_on_data = true}};
}

}  // namespace clinfer
