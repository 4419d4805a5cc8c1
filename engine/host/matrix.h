// Products of matrices on the host, in tiles. The left matrix is packed beforehand: weights once,
// other values for each inference.
#pragma once

#include <functional>
#include <vector>

#include "engine/host/kernels.h"

namespace clinfer::host {

// A matrix [rows, depth] packed into panels of 8 rows: number [panel][k][row in panel]. Missing
// rows are 0.
class PackedRows {
 public:
  PackedRows() = default;
  // Packs the matrix; `at(row, k)` returns a number of it.
  template <typename At>
  PackedRows(int64_t rows, int64_t depth, const At& at) : rows_(rows), depth_(depth) {
    numbers_.resize(static_cast<size_t>(panels() * depth * kTileRows));
    float* to = numbers_.data();
    for (int64_t panel = 0; panel < panels(); ++panel)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t r = panel * kTileRows; r < (panel + 1) * kTileRows; ++r)
          *to++ = r < rows ? at(r, k) : 0.f;
  }
  int64_t rows() const { return rows_; }
  int64_t depth() const { return depth_; }
  int64_t panels() const { return (rows_ + kTileRows - 1) / kTileRows; }
  const float* panel(int64_t panel, int64_t k) const {
    return numbers_.data() + (panel * depth_ + k) * kTileRows;
  }

 private:
  int64_t rows_ = 0, depth_ = 0;
  std::vector<float> numbers_;
};

// A part of a product: panels `first_panel` to `end_panel` - 1 of the left matrix, columns `begin`
// to `end` - 1 of the right matrix.
struct Part {
  int64_t first_panel = 0, end_panel = 0, begin = 0, end = 0;
};

// The largest number of columns in a part, so that its packed columns stay in the cache.
inline constexpr int64_t kPartColumns = 256;

// Writes `count` columns from `column` on, of rows `k` to `k` + depth - 1 of the right matrix: to[i
// * width + j] is row k + i, column `column` + j. Fills up to `width` with 0.
using FillColumns = std::function<void(float* to, int64_t k, int64_t depth, int64_t column,
                                       int64_t count, int64_t width)>;
// Is called when rows `first` to `end` - 1 of the part's columns are complete.
using RowsDone = std::function<void(int64_t first, int64_t end)>;

// Computes out[row * stride + column] = sum over k of left[row][k] * right[k][column], for the
// part.
void multiply(const PackedRows& left, const FillColumns& right, const Part& part, float* out,
              int64_t stride, const RowsDone& done);

// Divides a product into parts for `threads` threads.
std::vector<Part> parts_of(int64_t panels, int64_t columns, int64_t products, unsigned threads);

}  // namespace clinfer::host
