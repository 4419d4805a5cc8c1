// The one table of ONNX operations: how each is written as operations of the engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/onnx/onnx_node.h"

namespace clinfer {

// Sets the node's outputs from its inputs. Throws Error{bad_model, unsupported}.
using OnnxTranslation = void (*)(OnnxNode&);

struct OnnxOp {
  std::string_view type;
  OnnxTranslation translate;
  std::string_view domain = {};  // "": ONNX's own
};

inline constexpr std::string_view kMicrosoft = "com.microsoft", kTensorRt = "TRT",
                                  kLearning = "ai.onnx.ml";
inline constexpr int kLeastOpset = 1, kMostOpset = 28;  // of ONNX's own domain

// nullptr when unknown. Domain "ai.onnx" is "".
const OnnxOp* find_onnx_op(std::string_view domain, std::string_view type);
// All of them, for the documentation.
std::vector<const OnnxOp*> onnx_ops();

// resize.cpp, part of onnx_vision_ops().
void onnx_resize(OnnxNode& n);
void onnx_upsample(OnnxNode& n);
// sampling.cpp
void onnx_grid_sample_volumes(OnnxNode& n);
void onnx_roi_align_largest(OnnxNode& n, bool half_pixel);
void onnx_col2im_any(OnnxNode& n, const std::vector<int64_t>& size,
                     const std::vector<int64_t>& block);
// ops_reduction.cpp: gives work(value, axis) with all dimensions from the axis on joined into one, in
// the value's own shape, as Softmax and its kin were before opset 13.
Edge over_joined(OnnxNode& n, const Edge& x, int64_t axis,
                 const std::function<Edge(const Edge&, int64_t)>& work);
// peepholes.cpp
void onnx_lstm_with_peepholes(OnnxNode& n);

// The parts of the table, a file each.
std::vector<OnnxOp> onnx_elementwise_ops();
std::vector<OnnxOp> onnx_matrix_ops();
std::vector<OnnxOp> onnx_reduction_ops();
std::vector<OnnxOp> onnx_movement_ops();
std::vector<OnnxOp> onnx_indexing_ops();
std::vector<OnnxOp> onnx_vision_ops();
std::vector<OnnxOp> onnx_normalization_ops();
std::vector<OnnxOp> onnx_recurrent_ops();
std::vector<OnnxOp> onnx_quantization_ops();
std::vector<OnnxOp> onnx_signal_ops();
std::vector<OnnxOp> onnx_attention_ops();
std::vector<OnnxOp> onnx_loss_ops();

}  // namespace clinfer
