// Reads tensors of the .bin: checks bounds and sizes, converts types that the graph does not know.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "engine/ir/ir_text.h"
#include "engine/ir/model_file.h"

namespace clinfer {

class Weights {
 public:
  explicit Weights(ByteSource file) : file_(std::move(file)) {}

  // Copies the elements at bytes [offset, offset + size); equal regions share one copy. Throws
  // Error{bad_model} if the region exceeds the file or does not fit the shape.
  Tensor read(const StoredType& type, const Shape& shape, int64_t offset, int64_t size);

 private:
  Tensor convert(const StoredType& type, const Shape& shape, size_t offset, size_t size) const;

  ByteSource file_;
  std::map<std::tuple<int64_t, int64_t, unsigned, ElementType, const Float8Format*>, Tensor>
      read_;  // by offset, elements, bits, type, format of floats of 8 bits
  size_t read_bytes_ = 0;
};

// Returns the values of floats that are stored as bytes.
Tensor from_float8(const Tensor& bytes, const Float8Format& format);

}  // namespace clinfer
