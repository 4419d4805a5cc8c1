// Translates Fourier transforms and their windows.
#include <cmath>
#include <numbers>

#include "engine/onnx/op_table.h"
#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// Computes a0 - a1 cos x + a2 cos 2x. The second half mirrors the first, and cos 2x is 2 cos² x -
// 1, because cosines take most of the time for large windows.
void window(OnnxNode& n) {
  const int64_t size = n.need_int(n.in(0), "the size");
  if (size < 0) bad_node("the size is " + std::to_string(size));
  const bool periodic = n.int_of("periodic", 1) != 0;
  double a[3] = {0.5, 0.5, 0};
  if (n.type() == "HammingWindow") a[0] = 25.0 / 46, a[1] = 1 - 25.0 / 46;
  if (n.type() == "BlackmanWindow") a[0] = 0.42, a[2] = 0.08;
  Tensor values = table({size});
  auto* to = values.mutable_data<float>();
  const int64_t round = periodic ? size : size - 1;  // period of the cosine
  const auto length = static_cast<double>(round);
  if (size == 1 && round == 0) to[0] = 1;
  for (int64_t i = 0; round > 0 && i <= round / 2; ++i) {
    const double cosine = std::cos(2 * std::numbers::pi * static_cast<double>(i) / length);
    to[i] = static_cast<float>(a[0] - a[1] * cosine + a[2] * (2 * cosine * cosine - 1));
    if (round - i < size) to[round - i] = to[i];
  }
  const auto type = onnx_type(static_cast<int>(n.int_of("output_datatype", 1)));
  n.out(n.constant(values.convert(type)));
}

// Adds an imaginary part of 0 to real values.
Edge complex(OnnxNode& n, const Edge& x) {
  const int64_t last = n.rank(x) - 1;
  if (n.dim(x, -1) == 2) return x;
  if (n.dim(x, -1) != 1) bad_node("the last dimension is neither 1 (real) nor 2 (complex)");
  return n.concat({x, n.multiply(x, n.number(0))}, last);
}

void dft(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t rank = n.rank(x);
  if (rank < 2) bad_node("needs a batch of signals");
  const int64_t stated = n.opset() < 20 ? n.int_of("axis", 1)
                         : n.has(2)     ? n.need_int(n.in(2), "the axis")
                                        : -2;
  const int64_t axis = n.axis(stated, rank);
  const bool inverse = n.int_of("inverse", 0) != 0, one_sided = n.int_of("onesided", 0) != 0;
  std::vector<Edge> inputs{complex(n, x), n.ints({axis})};
  if (n.has(1)) inputs.push_back(n.ints({n.need_int(n.in(1), "the length")}));
  if (one_sided && inverse) return n.out(n.unsqueeze(n.op("IRDFT", 9, inputs), {rank - 1}));
  const Edge y = n.op(inverse ? "IDFT" : "DFT", 7, inputs);
  const int64_t size = n.dim(y, axis);
  n.out(one_sided ? n.slice(y, axis, 0, size / 2 + 1) : y);
}

// Cuts the signal into frames, multiplies each by the window and transforms it.
void stft(OnnxNode& n) {
  Edge x = n.in(0);
  const int64_t step = n.need_int(n.in(1), "the step");
  const bool real = n.rank(x) == 2 || n.dim(x, -1) == 1;
  int64_t length = 0;
  if (n.has(3))
    length = n.need_int(n.in(3), "the frame's length");
  else if (n.has(2))
    length = n.dim(n.in(2), 0);
  if (step < 1 || length < 1) bad_node("a step or frame is empty");
  if (n.rank(x) == 2) x = n.unsqueeze(x, {2});
  const int64_t samples = n.dim(x, 1), frames = (samples - length) / step + 1;
  if (samples < length) bad_node("the frame is longer than the signal");
  std::vector<int64_t> places = index_list(checked_product(frames, length));
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i) places[static_cast<size_t>(f * length + i)] = f * step + i;
  const Edge at = n.reshape_to(n.ints(places), n.ints({frames, length}));
  Edge cut = n.gather(x, at, 1);  // [N, frames, length, 1 or 2]
  if (n.has(2)) cut = n.multiply(cut, n.along(n.in(2), 2, 4));
  const Edge y = n.op("DFT", 7, {complex(n, cut), n.ints({2})});
  const bool one_sided = n.int_of("onesided", 1) != 0 && real;
  n.out(one_sided ? n.slice(y, 2, 0, length / 2 + 1) : y);
}

// Returns triangular filters that overlap by half and are evenly spaced on the mel scale.
void mel_weight_matrix(OnnxNode& n) {
  const int64_t bins = n.need_int(n.in(0), "the number of bins"),
                length = n.need_int(n.in(1), "the length"),
                rate = n.need_int(n.in(2), "the sample rate");
  const double low = double{n.need_float(n.in(3), "the lower edge")},
               high = double{n.need_float(n.in(4), "the upper edge")};
  constexpr int64_t kMost = 1 << 24;
  for (const int64_t size : {bins, length, rate})
    if (size < 1 || size > kMost) bad_node("the size " + std::to_string(size) + " is out of range");
  if (!(low >= 0 && low <= kMost && high >= 0 && high <= kMost))
    bad_node("an edge is out of range");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges = index_list(bins + 2);
  for (size_t i = 0; i < edges.size(); ++i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    edges[i] = static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  }
  const int64_t rows = length / 2 + 1;
  Tensor weights = table({rows, bins});
  auto* to = weights.mutable_data<float>();
  const auto set = [&](int64_t row, int64_t column, double value) {
    if (row >= 0 && row < rows) to[row * bins + column] = static_cast<float>(value);
  };
  for (int64_t i = 0; i < bins; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t begin = edges[at], middle = edges[at + 1], end = edges[at + 2];
    if (middle == begin)
      set(middle, i, 1);
    else
      for (int64_t j = std::max<int64_t>(begin, 0); j <= std::min(middle, rows - 1); ++j)
        set(j, i, static_cast<double>(j - begin) / static_cast<double>(middle - begin));
    for (int64_t j = std::max<int64_t>(middle, 0); j < std::min(end, rows) && end > middle; ++j)
      set(j, i, static_cast<double>(end - j) / static_cast<double>(end - middle));
  }
  n.out(n.constant(weights.convert(onnx_type(static_cast<int>(n.int_of("output_datatype", 1))))));
}

}  // namespace

std::vector<OnnxOp> onnx_signal_ops() {
  return {{"BlackmanWindow", window},
          {"DFT", dft},
          {"HammingWindow", window},
          {"HannWindow", window},
          {"MelWeightMatrix", mel_weight_matrix},
          {"STFT", stft}};
}

}  // namespace clinfer
