// Sampling of the pixels around a point, which GridSample and deformable attention have in common. The
// coordinates of a point are -1 to 1 within the data.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

struct Sampling {
  enum class Mode { nearest, bilinear, bicubic };
  enum class Padding { zeros, border, reflection };
  Mode mode = Mode::bilinear;
  Padding padding = Padding::zeros;
  bool align_corners = false;
  int taps() const { return mode == Mode::nearest ? 1 : mode == Mode::bilinear ? 2 : 4; }
  // Returns the defines that grid_taps.cl needs.
  std::vector<std::pair<std::string, std::string>> defines() const;
};
// Reads the attributes mode, padding_mode and align_corners. Throws Error{bad_model} for values that
// are not known.
Sampling sampling_of(const Attributes& attributes);

// The pixels around one coordinate, -1 for none, and their weights.
struct Taps {
  std::array<int64_t, 4> at;
  std::array<float, 4> share;
};
Taps taps_of(float coordinate, int64_t size, const Sampling& sampling);

}  // namespace clinfer
