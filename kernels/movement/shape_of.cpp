// ShapeOf. Shapes are known when a model is compiled, so its result is a constant.
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const ElementType type =
      context.opset >= 3 ? index_type(context.attributes, "output_type") : ElementType::i64;
  return {{type, {static_cast<int64_t>(context.inputs[0].shape.size())}}};
}

void evaluate(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  store_ints(inputs[0].shape(), outputs[0]);
}

}  // namespace

std::vector<OpDef> shape_of_ops() {
  return {{.type = "ShapeOf",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .layout = LayoutRule::follow,
           .host_reason = "a shape is known without running anything"}};
}

}  // namespace clinfer
