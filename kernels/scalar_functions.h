// Unary and binary functions of one element: evaluate(), the elementwise kernels and the tails use
// the same table.
#pragma once

#include <string_view>

namespace clinfer {

// The OpenCL expression computes in float. x and y are the operands; ALPHA and BETA are the
// parameters, inserted as exact float literals. Expressions must be valid for float and floatN (use
// select(), not ?:).
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

}  // namespace clinfer
