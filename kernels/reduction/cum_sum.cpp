// CumSum: running sums along an axis, optionally without the element itself, optionally from the
// end.
#include "kernels/base/system/work_limit.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 1, 2);
  const ValueInfo& in = context.inputs[0];
  if (has_input(context, 1))
    checked_axis(constant_int(context, 1, "the axis"), in.shape.size(), "axis");
  else
    check_rank(in.shape, 1, 16, "the input");
  return {{in.type, in.shape}};
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  if (inputs[0].elements() == 0) return;
  const size_t axis =
      checked_axis(inputs.size() > 1 ? one_int(inputs[1], "the axis") : 0, shape.size(), "axis");
  const bool exclusive = desc.attributes.get_bool("exclusive", false),
             reverse = desc.attributes.get_bool("reverse", false);
  const int64_t step = row_major_strides(shape)[axis], size = shape[axis];
  with_number(inputs[0].type(), [&](auto zero) {
    using T = decltype(zero);
    using Sum = Wrapping<T>;
    const T* from = inputs[0].data<T>();
    T* to = outputs[0].mutable_data<T>();
    const auto sum_row = [&](int64_t row) {
      const int64_t first = row / step * step * size + row % step;
      Sum sum{};
      for (int64_t k = 0; k < size; ++k) {
        const int64_t at = first + (reverse ? size - 1 - k : k) * step;
        const Sum next = static_cast<Sum>(sum + static_cast<Sum>(from[at]));
        to[at] = static_cast<T>(exclusive ? sum : next);
        sum = next;
      }
    };
    WorkLimit::for_ranges(inputs[0].elements() / size, static_cast<double>(size),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row) sum_row(row);
                          });
  });
}

}  // namespace

std::vector<OpDef> cum_sum_ops() {
  return {{.type = "CumSum",
           .opsets = opset_range(3),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .host_reason = "each element waits for the one before"}};
}

}  // namespace clinfer
