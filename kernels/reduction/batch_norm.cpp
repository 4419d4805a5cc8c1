// BatchNormInference, which is an element function with one scale and shift per channel. Formula:
// OpenVINO's specification of the operation.
#include <array>
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "kernels/kernel.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// The indices of inputs. In the first version gamma and beta come before the data.
struct BatchNormInputs {
  size_t data, gamma, beta;
  static constexpr size_t mean = 3, variance = 4;
  explicit BatchNormInputs(int opset)
      : data(opset < 5 ? 2 : 0), gamma(opset < 5 ? 0 : 1), beta(opset < 5 ? 1 : 2) {}
};

std::vector<ValueInfo> infer_batch_norm(const ShapeContext& context) {
  check_inputs(context, 5, 5);
  const BatchNormInputs at(context.opset);
  const ValueInfo& data = context.inputs[at.data];
  check_rank(data.shape, 2, 8, "the data");
  positive_epsilon(context.attributes, "epsilon");
  for (size_t i = 0; i < 5; ++i)
    if (i != at.data && context.inputs[i].shape != Shape{data.shape[1]})
      fail_model("input " + std::to_string(i) + " has the shape " +
                 to_string(context.inputs[i].shape) + " for " + std::to_string(data.shape[1]) +
                 " channels");
  return {{data.type, data.shape, {}}};
}

struct ScaleShift {
  std::vector<float> scale, shift;
};

ScaleShift scale_shift(const OpDesc& desc, std::span<const Tensor> values) {
  const BatchNormInputs at(desc.opset);
  const std::vector<float> gamma = values[at.gamma].to_floats(), beta = values[at.beta].to_floats();
  const std::vector<float> mean = values[at.mean].to_floats(),
                           variance = values[at.variance].to_floats();
  const double epsilon = positive_epsilon(desc.attributes, "epsilon");
  ScaleShift result;
  for (size_t c = 0; c < gamma.size(); ++c) {
    const double scale = gamma[c] / std::sqrt(variance[c] + epsilon);
    result.scale.push_back(static_cast<float>(scale));
    result.shift.push_back(static_cast<float>(beta[c] - mean[c] * scale));
  }
  return result;
}

void evaluate_batch_norm(const OpDesc& desc, std::span<const Tensor> inputs,
                         std::span<Tensor> outputs) {
  const Tensor& data = inputs[BatchNormInputs(desc.opset).data];
  const ScaleShift by = scale_shift(desc, inputs);
  const std::vector<float> values = data.to_floats();
  const int64_t inner = row_major_strides(data.shape())[1], channels = data.shape()[1];
  float* out = outputs[0].mutable_data<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
    out[i] = values[i] * by.scale[c] + by.shift[c];
  }
}

bool parameters_known(const OpDesc& desc) {
  for (size_t i = 0; i < 5; ++i)
    if (i != BatchNormInputs(desc.opset).data && desc.constants[i].empty()) return false;
  return true;
}

// Returns scale and shift, shaped to broadcast over the data.
std::array<Tensor, 2> coefficients(const OpDesc& desc) {
  Shape shape(desc.outputs[0].shape.size(), 1);
  shape[1] = desc.outputs[0].shape[1];
  const ScaleShift by = scale_shift(desc, desc.constants);
  return {Tensor::of<float>(ElementType::f32, shape, by.scale),
          Tensor::of<float>(ElementType::f32, shape, by.shift)};
}

TailSteps batch_norm_as_tail(const OpDesc& desc, int main) {
  if (main != static_cast<int>(BatchNormInputs(desc.opset).data) || !parameters_known(desc))
    return {};
  auto [scale, shift] = coefficients(desc);
  const int next = static_cast<int>(desc.inputs.size());
  return {{{"multiply", 0, 0, next}, {"add", 0, 0, next + 1}},
          {std::move(scale), std::move(shift)}};
}

// Returns the operation as a product whose tail begins with the sum, for the element kernels.
// Inputs keep their numbers, except that the data comes first.
OpDesc as_product(const OpDesc& desc) {
  OpDesc product = desc;
  product.type = "Multiply";
  product.opset = 1;
  product.attributes = {};
  product.inputs[0] = desc.inputs[BatchNormInputs(desc.opset).data];
  product.constants[0] = {};
  const auto values = coefficients(desc);
  for (size_t i : {0, 1}) {
    product.constants[i + 1] = values[i];
    product.inputs[i + 1] = TensorDesc::row_major(ElementType::f32, values[i].shape());
  }
  product.own_inputs = 2;
  product.tail.insert(product.tail.begin(), PostOp{"add", 0, 0, 2});
  return product;
}

const KernelFamily kBatchNorm{
    "batch_norm",
    1,
    [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
      if (!parameters_known(desc)) return "the parameters are not constant";
      return kElementwiseFamily.reject(as_product(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return kElementwiseFamily.space(as_product(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return kElementwiseFamily.heuristic(as_product(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
      KernelPlan plan = kElementwiseFamily.plan(as_product(desc), traits, point);
      for (KernelSpec& spec : plan.launches)
        for (Argument& argument : spec.arguments)
          if (argument.kind == Argument::Kind::input && argument.index == 0)
            argument.index = BatchNormInputs(desc.opset).data;
      return plan;
    }};

}  // namespace

std::vector<OpDef> batch_norm_ops() {
  return {{.type = "BatchNormInference",
           .opsets = opset_range(1),
           .infer_shapes = infer_batch_norm,
           .evaluate = evaluate_batch_norm,
           .families = {&kBatchNorm},
           .layout = LayoutRule::follow,
           .as_tail = batch_norm_as_tail}};
}

}  // namespace clinfer
