// Moves windows over a picture: gives the rows of the input as each tap of the window sees them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer::host {

// The first input and output of an operation with windows, f32 and row-major, and the sizes of
// their planes: the pixels of one channel.
struct Planes {
  Planes(const ConvShape& s, std::span<const Tensor> inputs, std::span<Tensor> outputs)
      : in(inputs[0].data<float>()),
        out(outputs[0].mutable_data<float>()),
        in_size(s.in[0] * s.in[1] * s.in[2]),
        out_size(s.out[0] * s.out[1] * s.out[2]) {}

  const float* in;
  float* out;
  int64_t in_size, out_size;
};

// Sets to[i] = row[x + i * step], or `outside` where that index is not in 0 .. size-1, for 0 <= i <
// count.
inline void copy_row(const float* row, int64_t size, int64_t x, int64_t step, int64_t count,
                     float outside, float* to) {
  // Elements i with low <= i < high are inside the row.
  const int64_t low = std::min(count, x < 0 ? (-x + step - 1) / step : 0);
  const int64_t high = std::max(low, std::min(count, size > x ? (size - x + step - 1) / step : 0));
  std::fill_n(to, low, outside);
  const float* from = row + x + low * step;
  if (step == 1) {
    std::copy_n(from, high - low, to + low);
  } else {
    for (int64_t i = low; i < high; ++i, from += step) to[i] = *from;
  }
  std::fill(to + high, to + count, outside);
}

// Calls `use(row, taps)` for each row of the output plane: taps[t][x] is what tap t of the window
// sees at column x, `outside` beyond the picture.
template <typename Use>
void for_window_rows(const ConvShape& s, const float* plane, float outside, const Use& use) {
  const int64_t width = s.out[2];
  // Rows of the input as each column of the window sees them, made when first needed; `held` tells
  // which row lies where. The rows of one depth in one window are less than `share` apart, so that
  // none overwrites another.
  const int64_t share = std::min(s.in[1], (s.kernel[1] - 1) * s.dilation[1] + 1);
  const int64_t places = share * s.kernel[0];
  thread_local std::vector<float> seen, nothing;
  thread_local std::vector<int64_t> held;
  seen.resize(static_cast<size_t>(places * s.kernel[2] * width));
  nothing.assign(static_cast<size_t>(width), outside);
  held.assign(static_cast<size_t>(places), -1);
  std::vector<const float*> taps(static_cast<size_t>(s.taps()));
  for (int64_t z = 0; z < s.out[0]; ++z)
    for (int64_t y = 0; y < s.out[1]; ++y) {
      size_t tap = 0;
      for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
        for (int64_t ky = 0; ky < s.kernel[1]; ++ky) {
          const int64_t iz = z * s.stride[0] - s.pad[0] + kz * s.dilation[0],
                        iy = y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
          if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) {
            for (int64_t kx = 0; kx < s.kernel[2]; ++kx) taps[tap++] = nothing.data();
            continue;
          }
          const int64_t row = iz * s.in[1] + iy, place = kz * share + iy % share;
          float* at = seen.data() + place * s.kernel[2] * width;
          if (held[static_cast<size_t>(place)] != row) {
            held[static_cast<size_t>(place)] = row;
            for (int64_t kx = 0; kx < s.kernel[2]; ++kx)
              copy_row(plane + row * s.in[2], s.in[2], kx * s.dilation[2] - s.pad[2], s.stride[2],
                       width, outside, at + kx * width);
          }
          for (int64_t kx = 0; kx < s.kernel[2]; ++kx) taps[tap++] = at + kx * width;
        }
      use(z * s.out[1] + y, std::span<const float* const>(taps));
    }
}

}  // namespace clinfer::host
