// Choosing a width for a line of text.
#include "gst/infer/widths.h"

#include <algorithm>

namespace clinfer {
namespace {

constexpr int kStep = 32;  // networks halve the width up to five times
constexpr int kDoublings = 3;

}  // namespace

std::vector<int> bucket_widths(int base) {
  std::vector<int> widths = {std::max((base / 2 + kStep - 1) / kStep * kStep, kStep)};
  for (int i = 0, width = base; i <= kDoublings; ++i, width *= 2)
    if (width > widths.back()) widths.push_back(width);
  return widths;
}

int bucket_for(const std::vector<int>& widths, int network_height, int width, int height) {
  const double needed = static_cast<double>(width) * network_height / std::max(height, 1);
  const auto found =
      std::find_if(widths.begin(), widths.end(), [&](int wide) { return wide >= needed; });
  return found != widths.end() ? *found : widths.back();
}

}  // namespace clinfer
