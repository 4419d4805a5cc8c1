// What the operations of elementwise.cpp compute on one element: shared by shapes, reference and
// kernels.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/op.h"

namespace clinfer {

// An operation with its parameters read: a function of the elements of its first `operands` inputs.
// name: one of scalar_functions.h, of the integer table below, or
//   identity, to_boolean; select (condition, then, else);
//   fake_quantize (x, input low, input high, output low, output high; alpha: levels)
struct ElementFunction {
  std::string name;
  float alpha = 0, beta = 0;
  size_t operands = 1;
};

// `values`: the inputs where they are constant, else empty tensors. Parameters given as inputs (of
// Selu, HardSigmoid) must be constant: Error{unsupported}.
ElementFunction element_function(const OpDesc& desc, std::span<const Tensor> values);

// Input `i` as the output's elements see it: the output's rank, stride 0 along dimensions where it
// is broadcast. Follows numpy, and the rules of their own that PReLU and auto_broadcast="pdpd"
// have. Throws Error{bad_model} where shapes disagree.
TensorDesc aligned_operand(const OpDesc& desc, size_t i);

// Functions on integers, exact. The OpenCL expressions are for int x, y and use the macros of
// kIntegerHelpers.
struct IntegerFunction {
  std::string_view name;
  int64_t (*apply)(int64_t x, int64_t y);  // y is not looked at by functions of one operand
  std::string_view opencl;
};
extern const std::string_view kIntegerHelpers;
const IntegerFunction* find_integer(std::string_view name);  // nullptr: only on floats

bool is_comparison(std::string_view name);  // of floats: equal, less ...
bool compare(std::string_view name, float x, float y);
std::string_view comparison_sign(std::string_view name);  // "==", "<" ...

float fake_quantize(float x, float in_low, float in_high, float out_low, float out_high,
                    float levels);

extern const KernelFamily kElementwiseFamily;

}  // namespace clinfer
