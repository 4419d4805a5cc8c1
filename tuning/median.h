// The median of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace clinfer {

// Returns the upper one of the two middle values of an even number; 0 without values.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace clinfer
