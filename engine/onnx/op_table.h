// Maps each ONNX operation to the function that translates it to operations of the engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/onnx/onnx_node.h"

namespace clinfer {

// Translates a node: sets its outputs from its inputs. Throws Error{bad_model, unsupported}.
using OnnxTranslation = void (*)(OnnxNode&);

struct OnnxOp {
  std::string_view type;
  OnnxTranslation translate;
  std::string_view domain = {};  // "": ONNX's own
};

inline constexpr std::string_view kMicrosoft = "com.microsoft", kTensorRt = "TRT",
                                  kLearning = "ai.onnx.ml";
inline constexpr int kLeastOpset = 1, kMostOpset = 28;  // range of versions of ONNX's own domain

// Returns nullptr for unknown operations. Domain "ai.onnx" is the same as "".
const OnnxOp* find_onnx_op(std::string_view domain, std::string_view type);
// Returns all entries, for the documentation.
std::vector<const OnnxOp*> onnx_ops();

// In resize.cpp, called from onnx_vision_ops():
void onnx_resize(OnnxNode& n);
void onnx_upsample(OnnxNode& n);
// In sampling.cpp:
void onnx_grid_sample_volumes(OnnxNode& n);
void onnx_roi_align_largest(OnnxNode& n, bool half_pixel);
void onnx_col2im_any(OnnxNode& n, const std::vector<int64_t>& size,
                     const std::vector<int64_t>& block);
// Applies work(value, axis) to `x` with all dimensions from the axis on joined into one, and
// restores the shape, as Softmax and similar operations did before opset 13. In ops_reduction.cpp.
Edge over_joined(OnnxNode& n, const Edge& x, int64_t axis,
                 const std::function<Edge(const Edge&, int64_t)>& work);
// In peepholes.cpp:
void onnx_lstm_with_peepholes(OnnxNode& n);

// The parts of the table, each defined in a file of its own.
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
