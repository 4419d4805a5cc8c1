// Translates products of matrices, in floats and in integers.
#include "engine/onnx/op_table.h"

namespace clinfer {

namespace {

// Returns an operand of an integer product as floats, with its zero point subtracted. Zero points
// of rows or columns lie along `axis`.
Edge centered(OnnxNode& n, const Edge& x, size_t zero_point, int64_t axis) {
  const Edge wide = n.convert(x, ElementType::f32);
  if (!n.has(zero_point)) return wide;
  Edge zero = n.convert(n.in(zero_point), ElementType::f32);
  if (n.rank(zero) <= 1) zero = n.along(zero, axis, n.rank(x));
  return n.subtract(wide, zero);
}

void matmul(OnnxNode& n) { n.out(n.matmul(n.in(0), n.in(1))); }

// Computes alpha * A * B + beta * C.
void gemm(OnnxNode& n) {
  const float alpha = n.float_of("alpha", 1.f), beta = n.float_of("beta", 1.f);
  Edge a = n.in(0);
  // The first versions of the operation join all dimensions after the first.
  if (n.rank(a) != 2) a = n.reshape(a, {0, -1});
  Edge y = n.matmul(a, n.in(1), n.int_of("transA", 0) != 0, n.int_of("transB", 0) != 0);
  const ElementType type = n.type(y);
  const auto scaled = [&](const Edge& e, float factor) {
    if (factor == 1) return e;
    if (is_float(type)) return n.multiply(e, n.number(factor));
    return n.convert(n.multiply(n.convert(e, ElementType::f32), n.number(factor)), type);
  };
  y = scaled(y, alpha);
  if (n.has(2) && beta != 0) y = n.add(y, scaled(n.in(2), beta));
  n.out(y);
}

void matmul_integer(OnnxNode& n) {
  const Edge a = centered(n, n.in(0), 2, std::max<int64_t>(n.rank(n.in(0)) - 2, 0)),
             b = centered(n, n.in(1), 3, n.rank(n.in(1)) - 1);
  n.out(n.convert(n.matmul(a, b), ElementType::i32));
}

void einsum(OnnxNode& n) {
  std::vector<Edge> inputs;
  for (size_t i = 0; i < n.input_count(); ++i) inputs.push_back(n.in(i));
  n.out(n.op("Einsum", 7, inputs, {{"equation", n.string_of("equation")}}));
}

// Writes out the determinant of matrices of up to 3 rows.
void det(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t rank = n.rank(x);
  if (rank < 2) bad_node("needs a matrix");
  const int64_t size = n.dim(x, -1);
  if (size != n.dim(x, rank - 2)) bad_node("the matrix is not square");
  if (size < 1 || size > 3)
    unsupported_node("determinants of " + std::to_string(size) + " rows are not supported");
  const auto at = [&](int64_t row, int64_t column) {
    const Edge r = n.gather(x, n.integer(row), rank - 2);
    return n.gather(r, n.integer(column), rank - 2);
  };
  const auto minor = [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    return n.subtract(n.multiply(at(r0, c0), at(r1, c1)), n.multiply(at(r0, c1), at(r1, c0)));
  };
  if (size == 1) return n.out(at(0, 0));
  if (size == 2) return n.out(minor(0, 1, 0, 1));
  const Edge plus =
      n.add(n.multiply(at(0, 0), minor(1, 2, 1, 2)), n.multiply(at(0, 2), minor(1, 2, 0, 1)));
  n.out(n.subtract(plus, n.multiply(at(0, 1), minor(1, 2, 0, 2))));
}

// Translates the product that ONNX Runtime's optimiser writes (com.microsoft).
void fused_matmul(OnnxNode& n) {
  if (n.int_of("transBatchA", 0) || n.int_of("transBatchB", 0))
    unsupported_node("transposed batches are not supported");
  const Edge y = n.matmul(n.in(0), n.in(1), n.int_of("transA", 0) != 0, n.int_of("transB", 0) != 0);
  const float alpha = n.float_of("alpha", 1.f);
  n.out(alpha == 1 ? y : n.multiply(y, n.number(alpha)));
}

void inverse(OnnxNode& n) { n.out(n.op("Inverse", 14, {n.in(0)}, {{"adjoint", "false"}})); }

}  // namespace

std::vector<OnnxOp> onnx_matrix_ops() {
  return {{"Det", det},
          {"Einsum", einsum},
          {"Gemm", gemm},
          {"MatMul", matmul},
          {"MatMulInteger", matmul_integer},
          {"FusedMatMul", fused_matmul, kMicrosoft},
          {"Inverse", inverse, kMicrosoft}};
}

}  // namespace clinfer
