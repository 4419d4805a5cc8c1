// ONNX's tensors as the engine's: any type, dense or sparse, inside the model or in files beside
// it. All sizes are checked against the shape.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/ir/weights.h"
#include "engine/onnx/model_proto.h"

namespace clinfer {

// The graph's element type for TensorProto's data_type: f16, bf16 and f64 become f32, 4-bit
// integers bytes. Throws Error{unsupported} for strings, complex numbers and floats of 8 bits.
ElementType onnx_type(int data_type);

class OnnxTensors {
 public:
  // `path`: of the model, beside which external data may lie; "" where it is no file.
  OnnxTensors(std::shared_ptr<const onnx::ModelProto> model, std::string path)
      : model_(std::move(model)), path_(std::move(path)) {}

  // `tensor` is part of the model, whose memory the result shares where it can. Throws
  // Error{bad_model, unsupported, not_found}.
  Tensor read(const onnx::TensorProto& tensor);
  Tensor read(const onnx::SparseTensorProto& tensor);

  // Counts constants that no tensor of the file holds. Throws Error{unsupported} where all of a model
  // are out of proportion (over 256 MiB): a few numbers in a node can ask for any size.
  void count_made(size_t bytes);

  // The files that external data came from.
  std::map<std::string, Weights>& files() { return files_; }

 private:
  Tensor convert(const onnx::TensorProto& tensor);
  Tensor external(const onnx::TensorProto& tensor, const Shape& shape);

  std::shared_ptr<const onnx::ModelProto> model_;
  std::string path_;
  std::map<const void*, Tensor> read_;
  std::map<std::string, Weights> files_;
  size_t made_ = 0;      // bytes
  int64_t sparse_ = 0;  // elements of the sparse tensors that were written out
};

}  // namespace clinfer
