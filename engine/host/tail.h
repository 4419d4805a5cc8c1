// The tail of an operation (PostOp) on the host. It is applied to a part of the output while that
// is still in the cache.
#pragma once

#include <span>
#include <vector>

#include "engine/host/kernels.h"
#include "kernels/op.h"
#include "kernels/scalar_functions.h"

namespace clinfer::host {

class Tail {
 public:
  Tail() = default;
  // Refers to `desc` only while it runs. Throws Error{unsupported} if the tail makes other types
  // than floats, or reads them.
  explicit Tail(const OpDesc& desc);

  bool empty() const { return steps_.empty(); }
  bool keeps() const { return keeps_; }
  // Returns the data of the output that a "keep" makes, which is the operation's last one; null
  // without a "keep".
  float* kept(std::span<Tensor> outputs) const {
    return keeps_ ? outputs.back().mutable_data<float>() : nullptr;
  }
  // Applies the tail to the elements `begin` to `end` - 1 of the output, row-major f32. `inputs`
  // are the operation's, then the tail's operands, all f32; `kept` comes from kept(). Thread-safe.
  void apply(std::span<const Tensor> inputs, float* output, float* kept, int64_t begin,
             int64_t end) const;

 private:
  struct Step {
    enum class Kind { unary, binary, keep, fork } kind = Kind::unary;
    float alpha = 0, beta = 0;
    UnaryLoop loop = nullptr;  // null: `function` is called for each element
    const UnaryFunction* function = nullptr;
    BinaryLoops loops;  // empty: `combination` is called for each element
    const BinaryFunction* combination = nullptr;
    bool swapped = false;
    size_t operand = 0;
    bool one = false;              // one value serves a whole row
    std::vector<int64_t> strides;  // of the operand, by dimension before the row; 0: broadcast
    int64_t channels = 0;          // 0: the operand is not padded
  };
  void apply_binary(const Step& step, const Tensor& operand, float* values, int64_t row,
                    int64_t first, int64_t count) const;

  std::vector<Step> steps_;
  bool keeps_ = false;
  Shape outer_;      // dimensions before the row
  int64_t row_ = 1;  // elements in a row; each operand has one value for the row, or adjacent ones
};

}  // namespace clinfer::host
