// Range: start, start + step, ... below stop; Eye: ones on a diagonal. The length depends on the
// values of inputs, so these must be known when a model is compiled, and the result is a constant.
#include <cmath>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

ElementType type_of(const ShapeContext& context) {
  if (context.opset >= 4) return parse_type(context.attributes.get_string("output_type", "f32"));
  return context.inputs[0].type;
}

// Reads one number of any type. Integers that a double cannot hold exactly far exceed any valid
// range.
double number(const ShapeContext& context, size_t i, const char* what) {
  const Tensor& value = context.inputs[i].value;
  if (value.empty())
    fail_unsupported(std::string(what) + " (input " + std::to_string(i) + ") must be constant");
  if (value.elements() != 1) fail_model(std::string(what) + " must be one number");
  return value.convert(ElementType::f64).data<double>()[0];
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 3, 3);
  const ElementType type = type_of(context);
  double start = number(context, 0, "start"), stop = number(context, 1, "stop"),
         step = number(context, 2, "the step");
  if (!is_float(type)) {  // fractions are kept only if the output's type has them
    start = std::trunc(start);
    stop = std::trunc(stop);
    step = std::trunc(step);
  }
  if (!std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step) || step == 0)
    fail_model("start, stop and step must be finite and the step not 0");
  const double steps = std::ceil((stop - start) / step);
  if (steps > 1 << 26) fail_unsupported("a range of more than 2^26 numbers");
  return {{type, {steps > 0 ? static_cast<int64_t>(steps) : 0}}};
}

void evaluate(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    T* to = outputs[0].mutable_data<T>();
    if constexpr (std::is_floating_point_v<T>) {
      const double start = inputs[0].convert(ElementType::f64).data<double>()[0];
      const double step = inputs[2].convert(ElementType::f64).data<double>()[0];
      for (int64_t i = 0; i < outputs[0].elements(); ++i)
        to[i] = static_cast<T>(start + static_cast<double>(i) * step);
    } else {
      // Unsigned arithmetic wraps, while signed overflow would be undefined; results in range are
      // equal.
      const uint64_t start = static_cast<uint64_t>(one_int(inputs[0], "start"));
      const uint64_t step = static_cast<uint64_t>(one_int(inputs[2], "the step"));
      for (int64_t i = 0; i < outputs[0].elements(); ++i)
        to[i] = static_cast<T>(start + static_cast<uint64_t>(i) * step);
    }
  };
  with_number(outputs[0].type(), fill);
}

// ---- Eye: rows, columns, diagonal, sizes of the batch ------------------------------------------

std::vector<ValueInfo> infer_eye(const ShapeContext& context) {
  check_inputs(context, 3, 4);
  Shape shape;
  if (has_input(context, 3)) shape = constant_ints(context, 3, "batch_shape");
  shape.push_back(constant_int(context, 0, "num_rows"));
  shape.push_back(constant_int(context, 1, "num_columns"));
  checked_count(shape);
  return {{parse_type(context.attributes.get_string("output_type")), shape}};
}

void evaluate_eye(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape();
  const int64_t columns = shape.back(), plane = shape[shape.size() - 2] * columns,
                diagonal = one_int(inputs[2], "diagonal_index");
  with_number(outputs[0].type(), [&](auto zero) {
    auto* to = outputs[0].mutable_data<decltype(zero)>();
    for (int64_t i = 0; i < outputs[0].elements(); ++i)
      to[i] = static_cast<decltype(zero)>(i % columns - i % plane / columns == diagonal);
  });
}

constexpr const char* kReason = "its length is a value, so it is constant when a model is compiled";

}  // namespace

std::vector<OpDef> range_ops() {
  return {{.type = "Range",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .host_reason = kReason},
          {.type = "Eye",
           .opsets = opset_range(9),
           .infer_shapes = infer_eye,
           .evaluate = evaluate_eye,
           .host_reason = kReason}};
}

}  // namespace clinfer
