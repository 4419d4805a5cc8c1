// The geometry of a pooling operation.
#pragma once

#include <array>
#include <string>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// Values of the kernels' define MODE.
enum PoolMode { kMaximum = 0, kAverageInside = 1, kAverageWithPads = 2 };

// The geometry in the terms of a convolution (one group, in_channels = channels), and the members
// that only pooling has.
struct PoolShape : ConvShape {
  // The sizes including the end pads. Averages that include pads count elements up to here.
  std::array<int64_t, 3> end{1, 1, 1};
  PoolMode mode = kMaximum;
};

// Resolves a MaxPool or AvgPool with data of this shape. Throws Error{bad_model, unsupported}.
PoolShape resolve_pooling(const std::string& type, const Attributes& attributes, const Shape& data);

}  // namespace clinfer
