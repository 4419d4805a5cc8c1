// Chooses a width for a line of text.
#include "gst/infer/model/widths.h"

#include <algorithm>

namespace clinfer {
namespace {

constexpr int kStep = 32;  // networks halve the width up to five times
// The widths, in halves of the usual one. Wider steps would leave so much padding that recognisers
// lose spaces.
constexpr int kHalves[] = {1, 2, 3, 4, 6, 8, 12, 16};
// Factor by which a line may be squeezed, which costs less than padding.
constexpr double kSqueeze = 1.1;

}  // namespace

std::vector<int> bucket_widths(int base) {
  std::vector<int> widths;
  for (const int halves : kHalves)
    widths.push_back((base * halves / 2 + kStep - 1) / kStep * kStep);
  return widths;
}

int bucket_for(const std::vector<int>& widths, int network_height, int width, int height) {
  const double needed = static_cast<double>(width) * network_height / std::max(height, 1);
  const auto found = std::find_if(widths.begin(), widths.end(),
                                  [&](int wide) { return wide * kSqueeze >= needed; });
  return found != widths.end() ? *found : widths.back();
}

}  // namespace clinfer
