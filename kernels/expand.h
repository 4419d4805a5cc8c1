// Operations that are combinations of others are written once, as steps, from which shapes,
// evaluate() and the device's execution follow. An operation with kernels of its own may also write
// the cases that its kernels do not support as steps; it leaves `outputs` empty in all other cases.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

// The steps of one operation, under construction. Values have numbers: first the operation's
// inputs, then the results of constant() and step().
class Expansion {
 public:
  struct Step {
    std::string type;
    int opset = 1;
    Attributes attributes;
    std::vector<size_t> inputs;
    size_t first_output = 0;
    size_t output_count = 1;
  };

  // Runs the operation's `expand`. Throws its exceptions, and Error{bad_model} if a step rejects
  // its inputs.
  Expansion(const OpDef& def, const ShapeContext& context);

  using Pairs = std::vector<std::pair<const char*, std::string>>;
  size_t constant(Tensor value);
  size_t ints(const std::vector<int64_t>& values);  // a constant list of i64
  size_t number(float value);                       // a constant scalar of f32
  // Adds a step and returns the number of its first output.
  size_t step(std::string type, int opset, std::vector<size_t> inputs, const Pairs& attributes = {},
              size_t output_count = 1);
  size_t step(std::string type, int opset, std::vector<size_t> inputs, Attributes attributes,
              size_t output_count);
  // Add frequent steps. Return their input if nothing is to be done.
  size_t reshape(size_t value, const Shape& shape);
  size_t transpose(size_t value, const std::vector<int64_t>& order);
  size_t slice(size_t value, size_t axis, int64_t begin, int64_t end, int64_t step = 1);
  size_t convert(size_t value, ElementType type);

  const ShapeContext& context() const { return context_; }
  const ValueInfo& info(size_t value) const { return values_.at(value); }
  const Shape& shape(size_t value) const { return values_.at(value).shape; }
  const std::vector<Step>& steps() const { return steps_; }
  bool is_constant(size_t value) const { return !values_.at(value).value.empty(); }

  std::vector<size_t> outputs;  // set by the operation's `expand`

 private:
  const ShapeContext& context_;
  std::vector<ValueInfo> values_;
  std::vector<Step> steps_;
};

// Returns a constant of f32 zeros, which the caller fills in. Throws Error{unsupported} if it would
// be out of proportion to the model's own numbers (more than 2^24 elements).
Tensor table(const Shape& shape);
// Returns indices, which the caller fills in, with the same limit.
std::vector<int64_t> index_list(int64_t count);

// Writes the operation for integer data as steps: converts its first `count` inputs to floats,
// computes, and converts the first output back to integers, `rounded` to the nearest or truncated.
void compute_in_floats(Expansion& x, size_t count, bool rounded);

// Returns the bytes of host memory that evaluate() uses for the results of the steps; 0 if the
// operation has its own evaluate(). Throws the exceptions of its `expand`.
size_t bytes_of_steps(const OpDef& def, const ShapeContext& context);

// Returns a registry entry for an operation that consists of steps only.
OpDef expanded_op(std::string type, std::vector<int> opsets, void (*expand)(Expansion&));

}  // namespace clinfer
