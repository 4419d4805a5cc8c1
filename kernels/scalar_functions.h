// Unary and binary functions of one element: one table serves evaluate(), the elementwise kernels
// and the post-op tails.
#pragma once

#include <string_view>

namespace clinfer {

// The OpenCL expression computes in float; x and y stand for the operands, ALPHA and BETA for the
// parameters, which are spliced in as exact float literals. Expressions hold for float and floatN
// alike (use select(), not ?:).
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
