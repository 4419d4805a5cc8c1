// Transposed convolutions on the host: computes a product of matrices with a result for each tap of
// the window and pixel of the input, and adds these up in the output.
#include <algorithm>

#include "engine/host/matrix.h"
#include "engine/host/operation.h"
#include "engine/host/rows.h"
#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/shape_util.h"

namespace clinfer::host {

namespace {

class Deconvolution final : public Operation {
 public:
  explicit Deconvolution(const OpDesc& desc) : shape_(resolve_deconvolution(desc)), tail_(desc) {
    const ConvShape& s = shape_;
    const std::vector<float> weights = desc.constants[1].to_floats();
    // Computes blocks of output channels, so that no two threads add to the same channel.
    together_ = std::min(s.out_channels, ceil_div(kTileRows, s.taps()));
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t first = 0; first < s.out_channels; first += together_) {
        const int64_t channels = std::min(together_, s.out_channels - first);
        weights_.emplace_back(channels * s.taps(), s.in_channels, [&](int64_t row, int64_t k) {
          const int64_t filter = (g * s.in_channels + k) * s.out_channels + first;
          return weights[static_cast<size_t>(filter * s.taps() + row)];
        });
      }
    seconds = static_cast<double>(s.batch * s.groups * s.out_channels * s.in_channels * s.taps()) *
              static_cast<double>(s.in[0] * s.in[1] * s.in[2]) / (kernels().rate / 2);
  }

  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    const ConvShape& s = shape_;
    const Planes planes(s, inputs, outputs);
    float* kept = tail_.kept(outputs);
    const int64_t blocks = ceil_div(s.out_channels, together_);
    work.for_each(s.batch * s.groups * blocks, [&](int64_t i) {
      const int64_t product = i / blocks, block = i % blocks;
      const PackedRows& weights =
          weights_[static_cast<size_t>(product % s.groups * blocks + block)];
      const float* picture = planes.in + product * s.in_channels * planes.in_size;
      const auto fill = [&](float* to, int64_t k, int64_t depth, int64_t column, int64_t count,
                            int64_t width) {
        for (int64_t r = 0; r < depth; ++r, to += width) {
          std::copy_n(picture + (k + r) * planes.in_size + column, count, to);
          std::fill(to + count, to + width, 0.f);
        }
      };
      thread_local std::vector<float> products;
      products.resize(static_cast<size_t>(weights.rows() * planes.in_size));
      for (int64_t column = 0; column < planes.in_size; column += kPartColumns)
        multiply(weights, fill,
                 {0, weights.panels(), column, std::min(planes.in_size, column + kPartColumns)},
                 products.data(), planes.in_size, [](int64_t, int64_t) {});
      const int64_t first = product * s.out_channels + block * together_;
      const int64_t channels = weights.rows() / s.taps();
      for (int64_t c = 0; c < channels; ++c)
        add_up(products.data() + c * s.taps() * planes.in_size,
               planes.out + (first + c) * planes.out_size);
      tail_.apply(inputs, planes.out, kept, first * planes.out_size,
                  (first + channels) * planes.out_size);
    });
  }

  bool reads(size_t input) const override { return input != 1; }

 private:
  // Adds the products of one channel to `to`, which is zero before the first call.
  void add_up(const float* products, float* to) const {
    const ConvShape& s = shape_;
    for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
      for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
        for (int64_t kx = 0; kx < s.kernel[2]; ++kx)
          for (int64_t z = 0; z < s.in[0]; ++z)
            for (int64_t y = 0; y < s.in[1]; ++y, products += s.in[2]) {
              const int64_t oz = z * s.stride[0] + kz * s.dilation[0] - s.pad[0],
                            oy = y * s.stride[1] + ky * s.dilation[1] - s.pad[1],
                            shift = kx * s.dilation[2] - s.pad[2], step = s.stride[2];
              if (oz < 0 || oz >= s.out[0] || oy < 0 || oy >= s.out[1]) continue;
              const int64_t low = shift < 0 ? std::min(s.in[2], ceil_div(-shift, step)) : 0;
              const int64_t high =
                  s.out[2] > shift ? std::min(s.in[2], ceil_div(s.out[2] - shift, step)) : 0;
              float* row = to + (oz * s.out[1] + oy) * s.out[2] + shift;
              for (int64_t x = low; x < high; ++x) row[x * step] += products[x];
            }
  }

  const ConvShape shape_;
  const Tail tail_;
  int64_t together_ = 1;             // output channels of a block
  std::vector<PackedRows> weights_;  // by group and block
};

}  // namespace

std::unique_ptr<Operation> make_deconvolution(const OpDesc& desc) {
  if (desc.type != "ConvolutionBackpropData" && desc.type != "GroupConvolutionBackpropData")
    return nullptr;
  if (!is_float(desc.inputs[0].type) || desc.constants[1].empty()) return nullptr;
  return std::make_unique<Deconvolution>(desc);
}

}  // namespace clinfer::host
