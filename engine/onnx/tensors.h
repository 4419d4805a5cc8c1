// Reads ONNX's tensors as the engine's: any type, dense or sparse, inside the model or in files
// beside it. Checks all sizes against the shape.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/ir/weights.h"
#include "engine/onnx/model_proto.h"

namespace clinfer {

// Returns the graph's element type for TensorProto's data_type: f32 for floats of any size, bytes for
// 4-bit integers. Throws Error{unsupported} for strings, complex numbers and other small floats than
// those of float8_of().
ElementType onnx_type(int data_type);
// Returns the format of a data_type of floats of 8 bits (FLOAT8E4M3FN, FLOAT8E5M2), else nullptr.
const Float8Format* float8_of(int data_type);
// Returns the name of a data_type that the graph has as a wider one: "f8e4m3", "f8e5m2", "u4", "i4",
// else "".
std::string narrow_name_of(int data_type);

class OnnxTensors {
 public:
  // `path` is the model's file, beside which external data may lie; "" if the model comes from
  // memory.
  OnnxTensors(std::shared_ptr<const onnx::ModelProto> model, std::string path)
      : model_(std::move(model)), path_(std::move(path)) {}

  // Reads `tensor`, which is part of the model; shares the model's memory where possible. Throws
  // Error{bad_model, unsupported, not_found}.
  Tensor read(const onnx::TensorProto& tensor);
  Tensor read(const onnx::SparseTensorProto& tensor);

  // Counts the bytes of constants that are not stored in the file. Throws Error{unsupported} beyond
  // 256 MiB for a model, because a few numbers in a node can ask for any size.
  void count_made(size_t bytes);

  // Returns the files that external data came from.
  std::map<std::string, Weights>& files() { return files_; }

 private:
  Tensor convert(const onnx::TensorProto& tensor);
  Tensor external(const onnx::TensorProto& tensor, const Shape& shape);

  std::shared_ptr<const onnx::ModelProto> model_;
  std::string path_;
  std::map<const void*, Tensor> read_;
  std::map<std::string, Weights> files_;
  size_t made_ = 0;     // bytes
  int64_t sparse_ = 0;  // elements of sparse tensors after expansion
};

}  // namespace clinfer
