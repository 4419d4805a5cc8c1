// Operations that are combinations of others are written once, as steps: shapes, evaluate() and
// what runs on a device all follow from these. Operations with kernels write so what these do not
// take, and leave the outputs unset in all other cases.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

// The steps of one operation, under construction. Values are numbered: the operation's inputs
// first, then what constant() and step() add.
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

  // Runs the operation's `expand`. Throws what that throws, Error{bad_model} where a step refuses
  // its inputs.
  Expansion(const OpDef& def, const ShapeContext& context);

  using Pairs = std::vector<std::pair<const char*, std::string>>;
  size_t constant(Tensor value);
  size_t ints(const std::vector<int64_t>& values);  // a constant of i64, one dimension
  size_t number(float value);                       // a constant of f32, no dimensions
  // Adds a step; gives the number of its first output.
  size_t step(std::string type, int opset, std::vector<size_t> inputs, const Pairs& attributes = {},
              size_t output_count = 1);
  size_t step(std::string type, int opset, std::vector<size_t> inputs, Attributes attributes,
              size_t output_count);
  // Steps that most need. They give their input where nothing is to be done.
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

// A constant to be filled in, zeros of f32. Throws Error{unsupported} where it would be out of
// proportion to what a model says (more than 2^24 numbers).
Tensor table(const Shape& shape);
// Indices to be filled in; refused as tables are.
std::vector<int64_t> index_list(int64_t count);

// The operation itself where its data, which are the first `count` inputs, are integers: computed
// in floats, and its first output brought back to integers, `rounded` to the nearest ones or cut
// off.
void compute_in_floats(Expansion& x, size_t count, bool rounded);

// Bytes of host memory that evaluate() takes for what the steps give; 0 where the operation has an
// evaluate() of its own. Throws what its `expand` throws.
size_t bytes_of_steps(const OpDef& def, const ShapeContext& context);

// An entry of the registry for an operation that is nothing but steps.
OpDef expanded_op(std::string type, std::vector<int> opsets, void (*expand)(Expansion&));

}  // namespace clinfer
