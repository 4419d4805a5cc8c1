// The functions of one element behind the operations of elementwise.cpp. Shapes, reference and
// kernels share them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/op.h"

namespace clinfer {

// An operation with its parameters: a function of the elements of its first `operands` inputs.
// `name` is one of scalar_functions.h, of the integer table below, or
//   identity, to_boolean
//   scale_and_shift (x, scale, shift)
//   select         (condition, then, else)
//   fake_quantize  (x, input low, input high, output low, output high; alpha: levels, beta: the
//                  stated step of the input, or 0)
struct ElementFunction {
  std::string name;
  float alpha = 0, beta = 0;
  size_t operands = 1;
};

// Returns the function. `values`: the inputs that are constant, else empty tensors. Throws
// Error{unsupported} if parameters that are inputs (of Selu, HardSigmoid) are not constant.
ElementFunction element_function(const OpDesc& desc, std::span<const Tensor> values);

// Returns input `i` broadcast to the output's shape: it has the output's rank, with stride 0 along
// broadcast dimensions. Follows NumPy, and the separate rules of PReLU and of
// auto_broadcast="pdpd". Throws Error{bad_model} if shapes disagree.
TensorDesc aligned_operand(const OpDesc& desc, size_t i);

// Exact functions on integers. The OpenCL expressions are for int x, y and use the macros of
// kIntegerHelpers.
struct IntegerFunction {
  std::string_view name;
  int64_t (*apply)(int64_t x, int64_t y);  // functions of one operand ignore y
  std::string_view opencl;
};
extern const std::string_view kIntegerHelpers;
const IntegerFunction* find_integer(std::string_view name);  // nullptr for functions on floats only

bool is_comparison(std::string_view name);  // comparisons of floats: equal, less ...
bool compare(std::string_view name, float x, float y);
std::string_view comparison_sign(std::string_view name);  // "==", "<" ...

// Attribute of a FakeQuantize whose input's limits are a whole number of steps away from 0: the
// exact step. Halves are then rounded to the even number of steps, as in ONNX's QuantizeLinear,
// which adds the zero point later.
inline constexpr const char* kQuantizationStep = "step";

// Attribute of a Multiply that turns exact sums of integers into steps of the next scale. It is the
// only step that rounds, so that passes leave it where it is.
inline constexpr const char* kRequantizes = "requantizes";

// `step`: the value of kQuantizationStep, or 0 if none is stated.
float fake_quantize(float x, float in_low, float in_high, float out_low, float out_high,
                    float levels, float step);

extern const KernelFamily kElementwiseFamily;

}  // namespace clinfer
