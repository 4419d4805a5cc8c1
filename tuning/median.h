// The median of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace clinfer {

// The upper one of the two in the middle of an even number; 0 of none.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace clinfer
