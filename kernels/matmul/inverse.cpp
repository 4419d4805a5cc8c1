// Inverts square matrices, by elimination with pivots.
#include <cmath>
#include <utility>

#include "kernels/base/system/work_limit.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const Shape& shape = context.inputs[0].shape;
  check_rank(shape, 2, 16, "the matrices");
  if (shape.back() != shape[shape.size() - 2])
    fail_model("matrices of the shape " + to_string(shape) + " are not square");
  if (!is_float(context.inputs[0].type)) fail_model("the matrices are not of floats");
  context.attributes.get_bool("adjoint", false);
  return {{context.inputs[0].type, shape, {}}};
}

// `rows` is a matrix next to the unit matrix, n by 2 n; the inverse replaces the unit matrix. A
// matrix without an inverse gives infinities.
void eliminate(std::vector<double>& rows, int64_t n) {
  const int64_t width = 2 * n;
  const auto at = [&](int64_t row, int64_t column) -> double& {
    return rows[row * width + column];
  };
  for (int64_t k = 0; k < n; ++k) {
    WorkLimit::may_go_on();
    int64_t pivot = k;
    for (int64_t row = k + 1; row < n; ++row)
      if (std::fabs(at(row, k)) > std::fabs(at(pivot, k))) pivot = row;
    const double scale = 1 / at(pivot, k);
    for (int64_t column = 0; column < width; ++column) {
      std::swap(at(k, column), at(pivot, column));
      at(k, column) *= scale;
    }
    for (int64_t row = 0; row < n; ++row) {
      const double factor = at(row, k);
      if (row == k || factor == 0) continue;
      for (int64_t column = 0; column < width; ++column) at(row, column) -= factor * at(k, column);
    }
  }
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const bool transposed = desc.attributes.get_bool("adjoint", false);
  const int64_t n = inputs[0].shape().back();
  const int64_t matrices = n > 0 ? inputs[0].elements() / (n * n) : 0;
  const float* in = inputs[0].data<float>();
  float* out = outputs[0].mutable_data<float>();
  const auto invert = [&](int64_t m) {
    const float* from = in + m * n * n;
    float* to = out + m * n * n;
    std::vector<double> rows(static_cast<size_t>(2 * n * n), 0);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t column = 0; column < n; ++column)
        rows[row * 2 * n + column] = from[row * n + column];
      rows[row * 2 * n + n + row] = 1;
    }
    eliminate(rows, n);
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = 0; column < n; ++column)
        to[transposed ? column * n + row : row * n + column] =
            static_cast<float>(rows[row * 2 * n + n + column]);
  };
  WorkLimit::for_ranges(matrices, static_cast<double>(2 * n * n) * static_cast<double>(n),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t m = begin; m < end; ++m) invert(m);
                        });
}

}  // namespace

std::vector<OpDef> inverse_ops() {
  return {{.type = "Inverse",
           .opsets = opset_range(14),
           .infer_shapes = infer_shapes,
           .evaluate = evaluate,
           .host_reason = "each elimination needs the one before, and matrices are small"}};
}

}  // namespace clinfer
