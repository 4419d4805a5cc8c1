// Pooling on the host.
#include "kernels/sampling/pooling.h"

#include <algorithm>
#include <limits>

#include "engine/host/operation.h"
#include "engine/host/rows.h"
#include "kernels/tail.h"

namespace clinfer::host {

namespace {

constexpr double kRate = 1e9;  // of one core, in elements of windows per second

class Pooling final : public Operation {
 public:
  explicit Pooling(const OpDesc& desc)
      : shape_(resolve_pooling(desc.type, desc.attributes, desc.inputs[0].shape)), tail_(desc) {
    const PoolShape& s = shape_;
    seconds = static_cast<double>(s.pixels() * s.in_channels * s.taps()) / kRate;
    if (s.mode == kMaximum) return;
    // Computes, for each pixel of the output, one over the number of elements that count.
    for (int64_t z = 0; z < s.out[0]; ++z)
      for (int64_t y = 0; y < s.out[1]; ++y)
        for (int64_t x = 0; x < s.out[2]; ++x) {
          const int64_t elements = along(0, z) * along(1, y) * along(2, x);
          share_.push_back(elements > 0 ? 1.f / static_cast<float>(elements) : 0.f);
        }
  }

  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    const PoolShape& s = shape_;
    const Planes planes(s, inputs, outputs);
    float* kept = tail_.kept(outputs);
    const bool maximum = s.mode == kMaximum;
    const std::vector<float> ones(static_cast<size_t>(s.taps()), 1.f);
    work.for_each(s.batch * s.in_channels, [&](int64_t plane) {
      float* to = planes.out + plane * planes.out_size;
      const float outside = maximum ? -std::numeric_limits<float>::infinity() : 0.f;
      for_window_rows(s, planes.in + plane * planes.in_size, outside,
                      [&](int64_t row, std::span<const float* const> rows) {
                        const auto taps = static_cast<int64_t>(rows.size());
                        if (maximum)
                          kernels().largest(to + row * s.out[2], rows.data(), taps, s.out[2]);
                        else
                          kernels().weigh(to + row * s.out[2], rows.data(), ones.data(), taps,
                                          s.out[2]);
                      });
      if (!maximum) kernels().binary("multiply").each(to, share_.data(), planes.out_size);
      tail_.apply(inputs, planes.out, kept, plane * planes.out_size, (plane + 1) * planes.out_size);
    });
  }

 private:
  // Returns how many elements of the window at this place count, along one dimension.
  int64_t along(size_t d, int64_t at) const {
    const PoolShape& s = shape_;
    int64_t elements = 0;
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      const int64_t i = at * s.stride[d] - s.pad[d] + k * s.dilation[d];
      elements += s.mode == kAverageInside ? i >= 0 && i < s.in[d] : i < s.end[d];
    }
    return elements;
  }

  const PoolShape shape_;
  const Tail tail_;
  std::vector<float> share_;
};

}  // namespace

std::unique_ptr<Operation> make_pooling(const OpDesc& desc) {
  const bool has_indices = desc.outputs.size() - (clinfer::keeps(desc.tail) ? 1 : 0) > 1;
  if ((desc.type != "MaxPool" && desc.type != "AvgPool") || has_indices ||
      !is_float(desc.inputs[0].type))
    return nullptr;
  return std::make_unique<Pooling>(desc);
}

}  // namespace clinfer::host
