// DFT, IDFT, RDFT and IRDFT as products with matrices, one per dimension, with adjacent real and
// imaginary parts. STFT is an RDFT of overlapping frames.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Transform {
  bool inverse = false;
  bool real_in = false, real_out = false;
};

// Returns the factors from `rows` values to `columns` values of a transform over n, as [rows * a,
// columns * b], with a and b 1 for real values and 2 for complex ones. For a real output, each
// value of the half spectrum also counts for its mirror image.
Tensor factors(int64_t rows, int64_t columns, int64_t n, const Transform& t) {
  const int64_t a = t.real_in ? 1 : 2, b = t.real_out ? 1 : 2;
  const Shape shape{checked_product(rows, a), checked_product(columns, b)};
  Tensor matrix = table(shape);
  float* to = matrix.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(r * c % n) /
                           static_cast<double>(n) * (t.inverse ? 1 : -1);
      double scale = t.inverse ? 1 / static_cast<double>(n) : 1;
      if (t.real_out && r != 0 && 2 * r != n) scale *= 2;
      const double cosine = std::cos(angle) * scale, sine = std::sin(angle) * scale;
      float* at = to + r * a * shape[1] + c * b;
      at[0] = static_cast<float>(cosine);
      if (b == 2) at[1] = static_cast<float>(sine);
      if (a == 2) {
        at[shape[1]] = static_cast<float>(-sine);
        if (b == 2) at[shape[1] + 1] = static_cast<float>(cosine);
      }
    }
  return matrix;
}

// Transforms one dimension. Complex values have a last dimension of 2.
size_t transformed(Expansion& x, size_t value, size_t axis, int64_t n, const Transform& t) {
  const int64_t given = t.real_out ? n / 2 + 1 : n, columns = t.real_in ? n / 2 + 1 : n;
  const int64_t rows = std::min(given, x.shape(value)[axis]);
  value = x.slice(value, axis, 0, rows);
  Shape shape = x.shape(value);
  const size_t dims = shape.size() - (t.real_in ? 0 : 1);  // without the last dimension of pairs
  std::vector<int64_t> order;
  for (size_t d = 0; d < dims; ++d)
    if (d != axis) order.push_back(static_cast<int64_t>(d));
  order.push_back(static_cast<int64_t>(axis));
  if (!t.real_in) order.push_back(static_cast<int64_t>(dims));
  value = x.transpose(value, order);
  Shape flat, whole;
  for (size_t d = 0; d < dims; ++d)
    if (d != axis) flat.push_back(shape[d]);
  whole = flat;
  flat.push_back(rows * (t.real_in ? 1 : 2));
  whole.push_back(columns);
  if (!t.real_out) whole.push_back(2);
  value = x.step("MatMul", 1, {x.reshape(value, flat), x.constant(factors(rows, columns, n, t))});
  value = x.reshape(value, whole);
  std::vector<int64_t> back;
  for (size_t d = 0; d + 1 < dims; ++d) back.push_back(static_cast<int64_t>(d));
  back.insert(back.begin() + static_cast<int64_t>(axis), static_cast<int64_t>(dims) - 1);
  if (!t.real_out) back.push_back(static_cast<int64_t>(dims));
  return x.transpose(value, back);
}

void fourier(Expansion& x) {
  const ShapeContext& context = x.context();
  check_inputs(context, 2, 3);
  const bool inverse = context.type == "IDFT" || context.type == "IRDFT",
             real = context.type == "RDFT" || context.type == "IRDFT", real_in = real && !inverse;
  const Shape data = x.shape(0);
  if (data.empty() || (!real_in && (data.size() < 2 || data.back() != 2)))
    fail_model("the data " + to_string(data) + " are not pairs of a real and an imaginary part");
  const size_t dims = data.size() - (real_in ? 0 : 1);
  std::vector<int64_t> sizes(constant_ints(context, 1, "the axes").size(), -1);
  if (has_input(context, 2)) sizes = constant_ints(context, 2, "signal_size");
  std::vector<size_t> axes;
  for (int64_t axis : constant_ints(context, 1, "the axes")) {
    axes.push_back(checked_axis(axis, dims, "axis"));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) fail_model("an axis is given twice");
  }
  if (axes.empty() || sizes.size() != axes.size())
    fail_model("signal_size and axes differ in length, or are empty");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t there = data[axes[i]];
    const bool half = real && inverse && i + 1 == axes.size();
    if (sizes[i] == -1) sizes[i] = half ? 2 * (there - 1) : there;
    if (sizes[i] < 1 || sizes[i] > (1 << 24) || there < 1)
      fail_model("a transform over " + std::to_string(sizes[i]) + " values");
  }
  size_t value = 0;
  const size_t last = axes.size() - 1;
  if (real_in) value = transformed(x, value, axes[last], sizes[last], {false, true, false});
  for (size_t i = real ? last : axes.size(); i-- > 0;)
    value = transformed(x, value, axes[i], sizes[i], {inverse, false, false});
  if (real && inverse) value = transformed(x, value, axes[last], sizes[last], {true, false, true});
  x.outputs = {value};
}

// Takes the signal, the window, the size of a frame and the step between frames. The window is
// centred in a frame.
void short_time(Expansion& x) {
  const ShapeContext& context = x.context();
  check_inputs(context, 4, 4);
  Shape signal = x.shape(0);
  check_rank(signal, 1, 2, "the signal");
  check_rank(x.shape(1), 1, 1, "the window");
  const int64_t size = constant_int(context, 2, "the size of a frame"),
                step = constant_int(context, 3, "the step"), length = signal.back(),
                given = x.shape(1)[0];
  if (step < 1 || size < 1 || size > length || given > size)
    fail_model("frames of " + std::to_string(size) + " values, " + std::to_string(step) +
               " apart, with a window of " + std::to_string(given) + " do not fit a signal of " +
               std::to_string(length));
  const int64_t frames = (length - size) / step + 1, before = (size - given) / 2;
  std::vector<int64_t> at = index_list(checked_product(frames, size));
  for (size_t i = 0; i < at.size(); ++i) {
    const auto [frame, value] = std::div(static_cast<int64_t>(i), size);
    at[i] = frame * step + value;
  }
  const int64_t images = signal.size() == 2 ? signal[0] : 1;
  const size_t cut = x.step("Gather", 8, {x.reshape(0, {images, length}), x.ints(at), x.ints({1})});
  size_t window = 1;
  if (given < size)
    window = x.step("Pad", 1, {1, x.ints({before}), x.ints({size - given - before})},
                    {{"pad_mode", "constant"}});
  const size_t weighted = x.step("Multiply", 1, {x.reshape(cut, {images, frames, size}), window});
  size_t value = transformed(x, weighted, 2, size, {false, true, false});
  if (context.attributes.get_bool("transpose_frames")) value = x.transpose(value, {0, 2, 1, 3});
  Shape out = x.shape(value);
  if (signal.size() == 1) out.erase(out.begin());
  x.outputs = {x.reshape(value, out)};
}

}  // namespace

std::vector<OpDef> fourier_ops() {
  return {expanded_op("DFT", opset_range(7), fourier), expanded_op("IDFT", opset_range(7), fourier),
          expanded_op("RDFT", opset_range(9), fourier),
          expanded_op("IRDFT", opset_range(9), fourier),
          expanded_op("STFT", opset_range(15), short_time)};
}

}  // namespace clinfer
