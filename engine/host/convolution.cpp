// Convolutions on the host. Most are products of matrices, whose right matrix is gathered from the
// picture part by part; depthwise ones are computed row by row.
#include <algorithm>
#include <cstring>

#include "engine/host/matrix.h"
#include "engine/host/operation.h"
#include "engine/host/rows.h"
#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer::host {

namespace {

constexpr double kDepthwiseRate = 3e9;  // of one core, in multiply-adds per second

bool all_are_one(const std::array<int64_t, 3>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 1; });
}

class Convolution final : public Operation {
 public:
  explicit Convolution(const OpDesc& desc)
      : shape_(resolve_convolution(desc.type, desc.attributes, desc.inputs[0].shape,
                                   desc.inputs[1].shape)),
        tail_(desc) {
    const ConvShape& s = shape_;
    in_place_ = s.taps() == 1 && all_are_one(s.stride) && s.pad == std::array<int64_t, 3>{} &&
                s.in == s.out;
    const std::vector<float> weights = desc.constants[1].to_floats();
    const int64_t depth = s.in_channels * s.taps();
    for (int64_t g = 0; g < s.groups; ++g)
      weights_.emplace_back(s.out_channels, depth, [&](int64_t row, int64_t k) {
        return weights[static_cast<size_t>((g * s.out_channels + row) * depth + k)];
      });
    seconds = static_cast<double>(s.pixels() * s.groups * s.out_channels * depth) / kernels().rate;
  }

  bool reads(size_t input) const override { return input != 1; }
  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    const ConvShape& s = shape_;
    const Planes planes(s, inputs, outputs);
    float* kept = tail_.kept(outputs);
    const int64_t products = s.batch * s.groups;
    const auto parts = parts_of(weights_[0].panels(), planes.out_size, products, work.threads);
    const auto per_product = static_cast<int64_t>(parts.size());
    work.for_each(products * per_product, [&](int64_t i) {
      const int64_t product = i / per_product, group = product % s.groups;
      const Part& part = parts[static_cast<size_t>(i % per_product)];
      const float* picture = planes.in + product * s.in_channels * planes.in_size;
      const int64_t first_row = product * s.out_channels;
      const auto fill = [&](float* to, int64_t k, int64_t depth, int64_t column, int64_t count,
                            int64_t width) {
        if (in_place_)
          copy_columns(picture + k * planes.in_size + column, to, depth, count, width,
                       planes.in_size);
        else
          gather(picture, to, k, depth, column, count, width);
      };
      multiply(weights_[static_cast<size_t>(group)], fill, part,
               planes.out + first_row * planes.out_size, planes.out_size,
               [&](int64_t first, int64_t end) {
                 for (int64_t row = first_row + first; row < first_row + end; ++row)
                   tail_.apply(inputs, planes.out, kept, row * planes.out_size + part.begin,
                               row * planes.out_size + part.end);
               });
    });
  }

 private:
  static void copy_columns(const float* from, float* to, int64_t depth, int64_t count,
                           int64_t width, int64_t plane) {
    for (int64_t i = 0; i < depth; ++i, from += plane, to += width) {
      if (count == kMostTileColumns) {
        std::memcpy(to, from, kMostTileColumns * sizeof(float));
        continue;
      }
      std::copy_n(from, count, to);
      std::fill(to + count, to + width, 0.f);
    }
  }

  // Gathers a part of the right matrix: row k is a channel and a tap of the window, a column is a
  // pixel of the output.
  void gather(const float* picture, float* to, int64_t k, int64_t depth, int64_t column,
              int64_t count, int64_t width) const {
    const ConvShape& s = shape_;
    // Splits the pixels into parts of the output's rows.
    struct Run {
      int64_t z, y, x, count;
    };
    Run runs[kMostTileColumns];
    int64_t used = 0;
    for (int64_t at = column; at < column + count;) {
      const int64_t x = at % s.out[2], row = at / s.out[2];
      const int64_t here = std::min(column + count - at, s.out[2] - x);
      runs[used++] = {row / s.out[1], row % s.out[1], x, here};
      at += here;
    }
    const int64_t taps = s.taps(), in_plane = s.in[0] * s.in[1] * s.in[2];
    for (int64_t i = k; i < k + depth; ++i, to += width) {
      const int64_t tap = i % taps;
      const int64_t kx = tap % s.kernel[2], ky = tap / s.kernel[2] % s.kernel[1],
                    kz = tap / s.kernel[2] / s.kernel[1];
      const float* channel = picture + i / taps * in_plane;
      float* next = to;
      for (int64_t r = 0; r < used; ++r) {
        const Run& run = runs[r];
        const int64_t z = run.z * s.stride[0] - s.pad[0] + kz * s.dilation[0],
                      y = run.y * s.stride[1] - s.pad[1] + ky * s.dilation[1],
                      x = run.x * s.stride[2] - s.pad[2] + kx * s.dilation[2];
        if (z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1])
          std::fill_n(next, run.count, 0.f);
        else
          copy_row(channel + (z * s.in[1] + y) * s.in[2], s.in[2], x, s.stride[2], run.count, 0.f,
                   next);
        next += run.count;
      }
      std::fill(next, to + width, 0.f);
    }
  }

  const ConvShape shape_;
  const Tail tail_;
  bool in_place_ = false;            // the picture is the right matrix
  std::vector<PackedRows> weights_;  // by group
};

// A convolution with one input and one output channel in each group.
class Depthwise final : public Operation {
 public:
  explicit Depthwise(const OpDesc& desc)
      : shape_(resolve_convolution(desc.type, desc.attributes, desc.inputs[0].shape,
                                   desc.inputs[1].shape)),
        weights_(desc.constants[1].to_floats()),
        tail_(desc) {
    seconds = static_cast<double>(shape_.pixels() * shape_.groups * shape_.taps()) / kDepthwiseRate;
  }

  bool reads(size_t input) const override { return input != 1; }
  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    const ConvShape& s = shape_;
    const Planes planes(s, inputs, outputs);
    float* kept = tail_.kept(outputs);
    work.for_each(s.batch * s.groups, [&](int64_t plane) {
      const float* weights = weights_.data() + plane % s.groups * s.taps();
      float* to = planes.out + plane * planes.out_size;
      for_window_rows(s, planes.in + plane * planes.in_size, 0.f,
                      [&](int64_t row, std::span<const float* const> rows) {
                        kernels().weigh(to + row * s.out[2], rows.data(), weights,
                                        static_cast<int64_t>(rows.size()), s.out[2]);
                      });
      tail_.apply(inputs, planes.out, kept, plane * planes.out_size, (plane + 1) * planes.out_size);
    });
  }

 private:
  const ConvShape shape_;
  const std::vector<float> weights_;
  const Tail tail_;
};

}  // namespace

std::unique_ptr<Operation> make_convolution(const OpDesc& desc) {
  if (desc.type != "Convolution" && desc.type != "GroupConvolution") return nullptr;
  if (!is_float(desc.inputs[0].type) || desc.constants[1].empty()) return nullptr;
  const ConvShape s =
      resolve_convolution(desc.type, desc.attributes, desc.inputs[0].shape, desc.inputs[1].shape);
  if (s.in_channels == 1 && s.out_channels == 1) return std::make_unique<Depthwise>(desc);
  return std::make_unique<Convolution>(desc);
}

}  // namespace clinfer::host
