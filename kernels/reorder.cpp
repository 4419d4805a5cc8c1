// Reorder, the engine's own operation: the same elements in another memory layout or another storage type. The layout pass
// inserts it where an operation cannot read what is there, where a part of a concat has to be copied, and before results.
#include "kernels/strided_copy.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer_reorder(const ShapeContext& context) {
  return {{context.inputs[0].type, context.inputs[0].shape, {}}};
}

void evaluate_reorder(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  outputs[0] = inputs[0].convert(outputs[0].type());
}

StridedCopy reorder_copy(const OpDesc& desc) {
  StridedCopy copy;
  for (size_t d = 0; d < desc.outputs[0].shape.size(); ++d)
    copy.dims.push_back({desc.outputs[0].shape[d], desc.inputs[0].strides[d], desc.outputs[0].strides[d], {}});
  return copy;
}

const KernelFamily kReorder = copy_family<reorder_copy>("reorder");

}  // namespace

std::vector<OpDef> reorder_ops() {
  OpDef def;
  def.type = "Reorder";
  def.opsets = {1};
  def.infer_shapes = infer_reorder;
  def.evaluate = evaluate_reorder;
  def.families = {&kReorder};
  def.layout = LayoutRule::follow;
  return {def};
}

}  // namespace clinfer
