// Multiplies matrices in tiles.
#include "engine/host/matrix.h"

#include <algorithm>

namespace clinfer::host {

namespace {
// The depth that is multiplied at a time: a panel of the left matrix then fits into the L1 cache,
// and the packed columns of a part into the L2 cache.
constexpr int64_t kDepth = 384;
}  // namespace

void multiply(const PackedRows& left, const FillColumns& right, const Part& part, float* out,
              int64_t stride, const RowsDone& done) {
  const Kernels& kernel = kernels();
  const int64_t width = kernel.columns, columns = part.end - part.begin;
  const int64_t tiles = (columns + width - 1) / width;
  thread_local std::vector<float> packed;
  packed.resize(static_cast<size_t>(tiles * width * std::min(kDepth, left.depth())));
  float tile[kTileRows * kMostTileColumns];
  for (int64_t k = 0; k < left.depth() || k == 0; k += kDepth) {
    const int64_t depth = std::min(kDepth, left.depth() - k);
    for (int64_t t = 0; t < tiles; ++t)
      right(packed.data() + t * width * depth, k, depth, part.begin + t * width,
            std::min(width, columns - t * width), width);
    for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
      const int64_t row = panel * kTileRows, rows = std::min<int64_t>(kTileRows, left.rows() - row);
      const float* a = left.panel(panel, k);
      for (int64_t t = 0; t < tiles; ++t) {
        const float* b = packed.data() + t * width * depth;
        float* c = out + row * stride + part.begin + t * width;
        const int64_t wide = std::min(width, columns - t * width);
        if (rows == kTileRows && wide == width) {
          kernel.tile(depth, a, b, c, stride, k != 0);
          continue;
        }
        kernel.tile(depth, a, b, tile, width, false);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = 0; i < wide; ++i)
            c[r * stride + i] = tile[r * width + i] + (k != 0 ? c[r * stride + i] : 0.f);
      }
      if (k + depth >= left.depth()) done(row, row + rows);
    }
  }
}

std::vector<Part> parts_of(int64_t panels, int64_t columns, int64_t products, unsigned threads) {
  const int64_t across = std::max<int64_t>(1, (columns + kPartColumns - 1) / kPartColumns);
  // Splits rows only as far as needed to keep the threads busy, since each part packs the columns
  // anew.
  const int64_t down = std::clamp<int64_t>(
      threads > 1 ? (2 * int64_t{threads} + across * products - 1) / (across * products) : 1, 1,
      std::max<int64_t>(1, panels / 4));
  std::vector<Part> parts;
  for (int64_t d = 0; d < down; ++d)
    for (int64_t a = 0; a < across; ++a)
      parts.push_back({panels * d / down, panels * (d + 1) / down, a * kPartColumns,
                       std::min(columns, (a + 1) * kPartColumns)});
  return parts;
}

}  // namespace clinfer::host
