// Unary and binary functions of one element. evaluate(), the elementwise kernels and the tails all
// use this table.
#pragma once

#include <string>
#include <string_view>

namespace clinfer {

// The OpenCL expression computes in float. x and y are the operands; ALPHA and BETA are the
// parameters, inserted as exact float literals. Expressions must be valid for float and floatN:
// conditions are comparisons of x or y.
struct UnaryFunction {
  std::string_view name;
  float (*apply)(float x, float alpha, float beta);
  std::string_view opencl;
};

struct BinaryFunction {
  std::string_view name;
  float (*apply)(float x, float y);
  std::string_view opencl;
};

const UnaryFunction* find_unary(std::string_view name);  // nullptr when unknown
const BinaryFunction* find_binary(std::string_view name);

// Returns the value as an exact OpenCL expression.
std::string exact_text(float value);
// Returns the expression with the values of ALPHA and BETA inserted.
std::string with_parameters(std::string_view expression, float alpha, float beta);

}  // namespace clinfer
