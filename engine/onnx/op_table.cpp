// Looks operations up by domain and type.
#include "engine/onnx/op_table.h"

#include <map>

namespace clinfer {

namespace {

using Table = std::map<std::pair<std::string_view, std::string_view>, OnnxOp>;

const Table& all_ops() {
  static const auto& all = *new const Table([] {
    Table ops;
    for (const auto part :
         {onnx_elementwise_ops, onnx_matrix_ops, onnx_reduction_ops, onnx_movement_ops,
          onnx_indexing_ops, onnx_vision_ops, onnx_normalization_ops, onnx_recurrent_ops,
          onnx_quantization_ops, onnx_signal_ops, onnx_attention_ops, onnx_loss_ops})
      for (const OnnxOp& op : part()) ops[{op.domain, op.type}] = op;
    return ops;
  }());
  return all;
}

}  // namespace

const OnnxOp* find_onnx_op(std::string_view domain, std::string_view type) {
  if (domain == "ai.onnx") domain = "";
  const auto found = all_ops().find({domain, type});
  return found == all_ops().end() ? nullptr : &found->second;
}

std::vector<const OnnxOp*> onnx_ops() {
  std::vector<const OnnxOp*> all;
  for (const auto& [key, op] : all_ops()) all.push_back(&op);
  return all;
}

}  // namespace clinfer
