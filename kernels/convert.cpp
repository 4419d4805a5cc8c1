// Convert and ConvertLike: the same values in another element type. In the same storage type they are removed by the graph passes.
#include "kernels/shape_util.h"
#include "kernels/strided_copy.h"

namespace clinfer {

namespace {

ElementType parse_type(const std::string& text) {
  for (int i = 0; i <= static_cast<int>(ElementType::boolean); ++i)
    if (name_of(static_cast<ElementType>(i)) == text) return static_cast<ElementType>(i);
  fail_unsupported("the element type \"" + text + "\" is not known here");
}

std::vector<ValueInfo> infer_convert(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  return {{parse_type(context.attributes.get_string("destination_type")), context.inputs[0].shape, {}}};
}

std::vector<ValueInfo> infer_convert_like(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  return {{context.inputs[1].type, context.inputs[0].shape, {}}};
}

void evaluate_convert(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  outputs[0] = inputs[0].convert(outputs[0].type());
}

StridedCopy convert_copy(const OpDesc& desc) {
  StridedCopy copy;
  for (size_t d = 0; d < desc.outputs[0].shape.size(); ++d)
    copy.dims.push_back({desc.outputs[0].shape[d], desc.inputs[0].strides[d], desc.outputs[0].strides[d], {}});
  return copy;
}

// A boolean is stored as a byte of 0 or 1, which a plain conversion to a byte does not give.
std::string reject_convert(const OpDesc& desc, const DeviceTraits&) {
  if (desc.attributes.get_string("destination_type", "") == "boolean" && desc.inputs[0].type != ElementType::u8)
    return "conversion to boolean is a comparison with 0";
  return reject_copy(desc, convert_copy(desc));
}

const KernelFamily kConvert{"convert", 1, reject_convert, copy_space, copy_heuristic,
                            [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
                              return plan_copy(desc, convert_copy(desc), traits, point);
                            }};

}  // namespace

std::vector<OpDef> convert_ops() {
  OpDef convert;
  convert.type = "Convert";
  convert.opsets = {1};
  convert.infer_shapes = infer_convert;
  convert.evaluate = evaluate_convert;
  convert.families = {&kConvert};
  convert.layout = LayoutRule::follow;
  OpDef like = convert;
  like.type = "ConvertLike";
  like.infer_shapes = infer_convert_like;
  return {convert, like};
}

}  // namespace clinfer
