// Computes products of matrices (MatMul, CompressedMatMul) on the host.
#include <algorithm>

#include "engine/host/matrix.h"
#include "engine/host/operation.h"
#include "kernels/matmul/compressed_matmul.h"
#include "kernels/shape_util.h"

namespace clinfer::host {

namespace {

// The multiply-adds per second of one core for few rows, which use each weight only a few times.
constexpr double kVectorRate = 2e9;
// The number of rows on the left below which each result is computed as a product of two vectors.
constexpr int64_t kFewRows = 4;

// Describes an operand: matrices of rows x columns, their strides, and the strides of the batch.
struct Operand {
  int64_t rows = 1, columns = 1, row_stride = 0, column_stride = 1;
  Shape batch, batch_strides;

  Operand(const Shape& shape, bool transposed, bool left) {
    Shape full = shape;
    if (full.size() == 1) {  // a vector is a row on the left and a column on the right
      full.insert(left ? full.begin() : full.end(), 1);
      transposed = false;
    }
    const Shape strides = row_major_strides(full);
    const size_t rank = full.size();
    rows = full[rank - 2];
    columns = full[rank - 1];
    row_stride = strides[rank - 2];
    column_stride = strides[rank - 1];
    if (transposed) {
      std::swap(rows, columns);
      std::swap(row_stride, column_stride);
    }
    batch.assign(full.begin(), full.end() - 2);
    batch_strides.assign(strides.begin(), strides.end() - 2);
  }
  // Returns the offset of the matrix at this index of the (broadcast) batch.
  int64_t offset(const Shape& index) const {
    int64_t at = 0;
    const size_t missing = index.size() - batch.size();
    for (size_t d = 0; d < batch.size(); ++d)
      if (batch[d] != 1) at += index[missing + d] * batch_strides[d];
    return at;
  }
};

class MatrixProduct final : public Operation {
 public:
  explicit MatrixProduct(const OpDesc& desc)
      : a_(desc.inputs[0].shape, desc.attributes.get_bool("transpose_a", false), true),
        b_(desc.inputs[1].shape, desc.attributes.get_bool("transpose_b", false), false),
        tail_(desc) {
    batch_.resize(std::max(a_.batch.size(), b_.batch.size()), 1);
    for (const Operand* operand : {&a_, &b_})
      for (size_t d = 0; d < operand->batch.size(); ++d) {
        int64_t& size = batch_[batch_.size() - operand->batch.size() + d];
        size = std::max(size, operand->batch[d]);
      }
    few_rows_ = a_.rows < kFewRows;
    if (few_rows_ && b_.row_stride != 1 && !desc.constants[1].empty() && count(b_.batch) == 1) {
      const std::vector<float> weights = desc.constants[1].to_floats();
      columns_.reserve(weights.size());
      for (int64_t n = 0; n < b_.columns; ++n)
        for (int64_t k = 0; k < b_.rows; ++k)
          columns_.push_back(
              weights[static_cast<size_t>(k * b_.row_stride + n * b_.column_stride)]);
    }
    few_rows_ = few_rows_ && (b_.row_stride == 1 || !columns_.empty());
    seconds = static_cast<double>(count(batch_)) * static_cast<double>(a_.rows * a_.columns) *
              static_cast<double>(b_.columns) / (few_rows_ ? kVectorRate : kernels().rate);
  }

  bool reads(size_t input) const override { return input != 1 || columns_.empty(); }
  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    Shape index(batch_.size(), 0);
    if (count(batch_) == 0) return;
    int64_t number = 0;
    do {
      run_one(work, inputs, outputs, index, number++);
    } while (next_index(index, batch_));
  }

 private:
  void run_one(const Work& work, std::span<const Tensor> inputs, std::span<Tensor> outputs,
               const Shape& index, int64_t number) const {
    const float* a = inputs[0].data<float>() + a_.offset(index);
    const float* b = inputs[1].data<float>() + b_.offset(index);
    float* out = outputs[0].mutable_data<float>();
    float* kept = tail_.kept(outputs);
    const int64_t first = number * a_.rows * b_.columns;  // offset in the output
    const PackedRows left(few_rows_ ? 0 : a_.rows, a_.columns, [&](int64_t row, int64_t k) {
      return a[row * a_.row_stride + k * a_.column_stride];
    });
    if (few_rows_) return run_few_rows(work, inputs, a, b, out, kept, first);
    const auto fill = [&](float* to, int64_t k, int64_t depth, int64_t column, int64_t count,
                          int64_t width) {
      for (int64_t i = 0; i < depth; ++i, to += width) {
        const float* from = b + (k + i) * b_.row_stride + column * b_.column_stride;
        for (int64_t j = 0; j < count; ++j) to[j] = from[j * b_.column_stride];
        std::fill(to + count, to + width, 0.f);
      }
    };
    const auto parts = parts_of(left.panels(), b_.columns, 1, work.threads);
    work.for_each(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      const Part& part = parts[static_cast<size_t>(i)];
      multiply(left, fill, part, out + first, b_.columns, [&](int64_t from, int64_t end) {
        for (int64_t row = from; row < end; ++row)
          tail_.apply(inputs, out, kept, first + row * b_.columns + part.begin,
                      first + row * b_.columns + part.end);
      });
    });
  }

  void run_few_rows(const Work& work, std::span<const Tensor> inputs, const float* a,
                    const float* b, float* out, float* kept, int64_t first) const {
    constexpr int64_t kPart = 64;  // columns
    const int64_t depth = b_.rows;
    const float* columns = columns_.empty() ? b : columns_.data();
    const int64_t stride = columns_.empty() ? b_.column_stride : depth;
    std::vector<float> rows(static_cast<size_t>(a_.rows * depth));
    for (int64_t m = 0; m < a_.rows; ++m)
      for (int64_t k = 0; k < depth; ++k)
        rows[static_cast<size_t>(m * depth + k)] = a[m * a_.row_stride + k * a_.column_stride];
    work.for_each((b_.columns + kPart - 1) / kPart, [&](int64_t part) {
      const int64_t begin = part * kPart, end = std::min(b_.columns, begin + kPart);
      for (int64_t m = 0; m < a_.rows; ++m) {
        for (int64_t n = begin; n < end; ++n)
          out[first + m * b_.columns + n] =
              kernels().dot(rows.data() + m * depth, columns + n * stride, depth);
        tail_.apply(inputs, out, kept, first + m * b_.columns + begin,
                    first + m * b_.columns + end);
      }
    });
  }

  const Operand a_, b_;
  const Tail tail_;
  Shape batch_;
  bool few_rows_ = false;
  std::vector<float> columns_;  // columns of a constant right operand, one after the other
};

// Decompresses the weights of few bits that a block of sums needs (CompressedMatMul).
class CompressedProduct final : public Operation {
 public:
  explicit CompressedProduct(const OpDesc& desc)
      : weights_(desc.constants[1], desc.constants[2], desc.constants[3],
                 static_cast<int>(desc.attributes.get_int("bits"))),
        rows_(desc.inputs[0].elements() / weights_.depth()),
        tail_(desc) {
    seconds = static_cast<double>(weights_.columns()) * static_cast<double>(weights_.depth()) *
              (static_cast<double>(rows_) / kernels().rate + 1 / kVectorRate);
  }

  bool reads(size_t input) const override { return input == 0 || input > 3; }
  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    const float* a = inputs[0].data<float>();
    float *out = outputs[0].mutable_data<float>(), *kept = tail_.kept(outputs);
    const int64_t columns = weights_.columns(), depth = weights_.depth();
    const PackedRows left(rows_, depth, [&](int64_t row, int64_t k) { return a[row * depth + k]; });
    const auto fill = [&](float* to, int64_t k, int64_t rows, int64_t column, int64_t count,
                          int64_t width) {
      std::fill(to, to + rows * width, 0.f);
      for (int64_t j = 0; j < count; ++j) weights_.write(column + j, k, rows, to + j, width);
    };
    const auto parts = parts_of(left.panels(), columns, 1, work.threads);
    work.for_each(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      const Part& part = parts[static_cast<size_t>(i)];
      multiply(left, fill, part, out, columns, [&](int64_t from, int64_t end) {
        for (int64_t row = from; row < end; ++row)
          tail_.apply(inputs, out, kept, row * columns + part.begin, row * columns + part.end);
      });
    });
  }

 private:
  const CompressedWeights weights_;
  const int64_t rows_;
  const Tail tail_;
};

}  // namespace

std::unique_ptr<Operation> make_matrix_product(const OpDesc& desc) {
  if (desc.type == "CompressedMatMul") {
    const bool constant = std::none_of(desc.constants.begin() + 1, desc.constants.begin() + 4,
                                       [](const Tensor& value) { return value.empty(); });
    return constant ? std::make_unique<CompressedProduct>(desc) : nullptr;
  }
  if (desc.type != "MatMul" || !is_float(desc.inputs[0].type) || !is_float(desc.inputs[1].type) ||
      desc.inputs[0].shape.empty() || desc.inputs[1].shape.empty())
    return nullptr;
  return std::make_unique<MatrixProduct>(desc);
}

}  // namespace clinfer::host
