// Percentiles of measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace clinfer {

// Returns which of `count` values, sorted from the smallest on, is the percentile of this share
// (0.95) by the nearest-rank method: the first one of which at least this share of the values is no
// larger. There must be a value.
inline size_t nearest_rank(double share, size_t count) {
  const double rank = std::ceil(share * static_cast<double>(count));
  return static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(count))) - 1;
}

}  // namespace clinfer
