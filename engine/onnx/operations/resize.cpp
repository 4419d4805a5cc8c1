// Translates Resize and Upsample: to Interpolate where that computes the same, else (for other
// coordinates, antialiasing, weights outside of the picture) to a product with a matrix for each
// axis.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "engine/onnx/op_table.h"
#include "kernels/expand.h"

namespace clinfer {

namespace {

struct Resizing {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool antialias = false, exclude_outside = false;
  bool rounded = false;  // the sizes are rounded, the scales of coordinates are not
  float extrapolation = 0;
};

// One axis: its sizes, the scale that maps coordinates, and the part of the input that is used.
struct ResizedAxis {
  int64_t axis = 0, in = 1, out = 1;
  double scale = 1, from = 0, to = 1;
};

// ---- as Interpolate -----------------------------------------------------------------------------

Edge interpolated(OnnxNode& n, const Edge& x, const Edge& sizes_or_scales, bool by_scales,
                  const std::vector<int64_t>& axes, const Resizing& how) {
  const std::vector<int64_t> none(static_cast<size_t>(n.rank(x)), 0);
  return n.op("Interpolate", 11, {x, sizes_or_scales, n.ints(axes)},
              {{"mode", how.mode == "linear" ? "linear_onnx" : how.mode},
               {"shape_calculation_mode", by_scales ? "scales" : "sizes"},
               {"coordinate_transformation_mode", how.coordinates},
               {"nearest_mode", how.nearest},
               {"antialias", "false"},
               {"pads_begin", text_of(none)},
               {"pads_end", text_of(none)},
               {"cube_coeff", text_of(how.cubic)}});
}

// ---- as matrices --------------------------------------------------------------------------------

// Computes the places of the output's values in the input. Compares the mode's text only once,
// because matrices can have millions of rows.
class Positions {
 public:
  Positions(const Resizing& how, const ResizedAxis& a) {
    const auto in = static_cast<double>(a.in);
    const double out = a.scale * in;
    const std::string& c = how.coordinates;
    if (c == "align_corners") {
      if (out == 1)
        factor_ = 0;
      else
        over(in - 1, out - 1);
    } else if (c == "asymmetric") {
      divisor_ = a.scale;
    } else if (c == "tf_crop_and_resize") {
      inside_alone_ = true;
      after_ = a.from * (in - 1);
      factor_ = a.to - a.from;
      if (out == 1) {
        after_ += factor_ * (in - 1) / 2;
        factor_ = 0;
      } else {
        over(in - 1, out - 1);
      }
    } else if (c == "pytorch_half_pixel" && out == 1) {
      factor_ = 0;
      after_ = -0.5;
    } else {
      before_ = half_ = 0.5;
      divisor_ = a.scale;
      if (c == "half_pixel_symmetric") after_ = in / 2 * (1 - static_cast<double>(a.out) / out);
    }
    last_ = in - 1;
  }

  double of(int64_t at) const {
    return after_ +
           ((static_cast<double>(at) + before_) * factor_ * multiplier_ / divisor_ - half_);
  }
  // Returns whether the output takes a value of the picture there.
  bool is_inside(double x) const { return !inside_alone_ || (x >= 0 && x <= last_); }
  bool inside_alone() const { return inside_alone_; }
  int64_t clamped(double x) const { return static_cast<int64_t>(std::clamp(x, 0.0, last_)); }
  bool is_outside(double x) const { return x < 0 || x > last_; }

 private:
  void over(double multiplier, double divisor) {
    multiplier_ = multiplier;
    divisor_ = divisor;
  }

  double before_ = 0, factor_ = 1, multiplier_ = 1, divisor_ = 1, half_ = 0, after_ = 0, last_ = 0;
  bool inside_alone_ = false;
};

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

using Rounding = double (*)(double);

Rounding rounding_of(const std::string& name) {
  if (name == "floor") return [](double x) { return std::floor(x); };
  if (name == "ceil") return [](double x) { return std::ceil(x); };
  if (name == "round_prefer_ceil") return [](double x) { return std::floor(x + 0.5); };
  return [](double x) { return std::ceil(x - 0.5); };
}

// Returns an axis' matrix [out, in]: each row holds the weights of the input's values.
Tensor matrix_of(const Resizing& how, const ResizedAxis& a, const Positions& positions) {
  Tensor matrix = table({a.out, a.in});
  auto* row = matrix.mutable_data<float>();
  if (how.mode == "nearest") {
    const Rounding rounded = rounding_of(how.nearest);
    for (int64_t at = 0; at < a.out; ++at, row += a.in)
      if (const double x = positions.of(at); positions.is_inside(x))
        row[positions.clamped(rounded(x))] = 1;
    return matrix;
  }
  const bool cubic = how.mode == "cubic", whole = !how.antialias && !how.exclude_outside;
  const double narrow = how.antialias ? std::min(a.scale, 1.0) : 1,
               reach = (cubic ? 2 : 1) / narrow;
  if (2 * reach + 2 > static_cast<double>(a.in) * 8 + 64) unsupported_node("a scale is too small");
  for (int64_t at = 0; at < a.out; ++at, row += a.in) {
    const double x = positions.of(at);
    if (!positions.is_inside(x)) continue;
    const double first = std::floor(x - reach), end = std::ceil(x + reach);
    const auto weight_of = [&](double i) {
      if (how.exclude_outside && positions.is_outside(i)) return 0.0;
      const double d = (i - x) * narrow;
      return cubic ? cubic_weight(d, how.cubic) : std::max(0.0, 1 - std::fabs(d));
    };
    double sum = whole ? 1 : 0;
    for (double i = first; !whole && i <= end; ++i) sum += weight_of(i);
    if (sum == 0) continue;
    for (double i = first; i <= end; ++i)
      row[positions.clamped(i)] += static_cast<float>(weight_of(i) / sum);
  }
  return matrix;
}

Edge by_matrices(OnnxNode& n, const Edge& x, const std::vector<ResizedAxis>& axes,
                 const Resizing& how) {
  Edge y = n.convert(x, ElementType::f32);
  const int64_t rank = n.rank(x);
  Edge inside;  // 1 where the value comes from inside the picture
  for (const ResizedAxis& a : axes) {
    const Positions positions(how, a);
    const Tensor matrix = matrix_of(how, a, positions);
    if (positions.inside_alone()) {
      std::vector<float> in_range(static_cast<size_t>(a.out));
      for (int64_t at = 0; at < a.out; ++at)
        in_range[static_cast<size_t>(at)] = positions.is_inside(positions.of(at)) ? 1.f : 0.f;
      const Edge list =
          n.along(n.constant(Tensor::of(ElementType::f32, {a.out}, in_range)), a.axis, rank);
      inside = inside.node ? n.multiply(inside, list) : list;
    }
    std::vector<int64_t> order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::swap(order[static_cast<size_t>(a.axis)], order.back());
    const Edge turned = a.axis == rank - 1 ? y : n.op("Transpose", 1, {y, n.ints(order)});
    const Edge product = n.matmul(turned, n.constant(matrix), false, true);
    y = a.axis == rank - 1 ? product : n.op("Transpose", 1, {product, n.ints(order)});
  }
  if (inside.node && how.extrapolation != 0) {
    const Edge outside = n.multiply(n.subtract(n.number(1), inside), n.number(how.extrapolation));
    y = n.add(y, outside);
  }
  return n.convert(y, n.type(x));
}

// Returns whether Interpolate computes the same result.
bool is_usual(const std::vector<ResizedAxis>& axes, const Resizing& how) {
  if (how.exclude_outside && how.mode == "cubic") return false;
  for (const ResizedAxis& a : axes) {
    const double size = a.scale * static_cast<double>(a.in);
    const bool whole = std::fabs(size - static_cast<double>(a.out)) < 1e-4;
    if (how.antialias && a.scale < 1 && how.mode != "nearest") return false;
    if (how.coordinates == "tf_crop_and_resize") return false;
    if ((how.rounded || how.coordinates == "align_corners" ||
         how.coordinates == "half_pixel_symmetric") &&
        !whole)
      return false;
  }
  return true;
}

// ---- the node -----------------------------------------------------------------------------------

std::vector<int64_t> axes_of(const OnnxNode& n, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return n.has_attribute("axes") ? n.axes(n.ints_of("axes"), rank) : axes;
}

void set_region(OnnxNode& n, std::vector<ResizedAxis>& axes) {
  const Tensor known = n.known(n.in(1));
  if (known.empty()) unsupported_node("the region is computed at run time");
  const std::vector<float> roi = known.to_floats();
  if (roi.size() != axes.size() * 2)
    bad_node("the region has " + std::to_string(roi.size()) + " numbers");
  if (!std::all_of(roi.begin(), roi.end(), [](float v) { return std::isfinite(v); }))
    bad_node("the region has infinite numbers, or what is no number");
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].from = double{roi[i]};
    axes[i].to = double{roi[axes.size() + i]};
  }
}

// Removes axes that do not change, so that the operation does not state the batch.
void drop_unchanged(std::vector<ResizedAxis>& axes) {
  std::erase_if(axes, [](const ResizedAxis& a) {
    return a.in == a.out && std::fabs(a.scale - 1) < 1e-7 && a.from == 0 && a.to == 1;
  });
}

// Resizes by scales or, if `sizes` is given, to these sizes. Sizes stay a chain of operations, so
// that they follow other input sizes.
Edge resized(OnnxNode& n, const Edge& x, std::vector<ResizedAxis> axes, const Edge& sizes,
             Resizing how) {
  std::vector<int64_t> all;
  for (const ResizedAxis& a : axes) all.push_back(a.axis);
  for (const ResizedAxis& a : axes)
    if (a.in < 1 || a.out < 1 || !(a.scale > 0)) bad_node("a size or scale is not above 0");
  drop_unchanged(axes);
  if (axes.empty()) return x;
  if (!is_usual(axes, how)) return by_matrices(n, x, axes, how);
  if (how.coordinates == "half_pixel_symmetric") how.coordinates = "half_pixel";
  std::vector<int64_t> where, places, numbers;
  std::vector<float> scales;
  for (const ResizedAxis& a : axes) {
    where.push_back(a.axis);
    places.push_back(std::find(all.begin(), all.end(), a.axis) - all.begin());
    numbers.push_back(a.out);
    scales.push_back(static_cast<float>(a.scale));
  }
  if (sizes.node) {
    const Edge list = constant_value(sizes) ? n.ints(numbers) : n.gather(sizes, n.ints(places), 0);
    return interpolated(n, x, list, false, where, how);
  }
  const Shape count{static_cast<int64_t>(scales.size())};
  return interpolated(n, x, n.constant(Tensor::of(ElementType::f32, count, scales)), true, where,
                      how);
}

std::vector<ResizedAxis> by_scales(const OnnxNode& n, const Edge& x,
                                   const std::vector<int64_t>& axes,
                                   const std::vector<float>& scales) {
  if (scales.size() != axes.size())
    bad_node("has " + std::to_string(scales.size()) + " scales for " + std::to_string(axes.size()) +
             " axes");
  std::vector<ResizedAxis> list;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = n.dim(x, axes[i]);
    const double size = std::floor(static_cast<double>(static_cast<float>(in) * scales[i]));
    if (!(size >= 0 && size < 1e9)) bad_node("a scale is " + text_of(double{scales[i]}));
    list.push_back({axes[i], in, static_cast<int64_t>(size), double{scales[i]}});
  }
  return list;
}

std::vector<ResizedAxis> by_sizes(const OnnxNode& n, const Edge& x,
                                  const std::vector<int64_t>& axes, std::vector<int64_t> sizes,
                                  const std::string& policy) {
  if (sizes.size() != axes.size()) bad_node("sizes and axes differ in length");
  std::vector<ResizedAxis> list;
  double common = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = std::max<int64_t>(n.dim(x, axes[i]), 1);
    list.push_back(
        {axes[i], in, sizes[i], static_cast<double>(sizes[i]) / static_cast<double>(in)});
    const double scale = list.back().scale;
    common = i == 0                   ? scale
             : policy == "not_larger" ? std::min(common, scale)
                                      : std::max(common, scale);
  }
  if (policy == "stretch") return list;
  if (policy != "not_larger" && policy != "not_smaller")
    bad_node("keep_aspect_ratio_policy=\"" + printable(policy) + "\"");
  for (ResizedAxis& a : list) {
    a.scale = common;
    a.out = static_cast<int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
  }
  return list;
}

}  // namespace

void onnx_resize(OnnxNode& n) {
  const Edge x = n.in(0);
  const bool old = n.opset() < 11;
  Resizing how{n.string_of("mode", "nearest"),
               n.string_of("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
               n.string_of("nearest_mode", old ? "floor" : "round_prefer_floor")};
  how.cubic = double{n.float_of("cubic_coeff_a", -0.75f)};
  how.antialias = n.int_of("antialias", 0) != 0;
  how.exclude_outside = n.int_of("exclude_outside", 0) != 0;
  how.extrapolation = n.float_of("extrapolation_value", 0.f);
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic")
    bad_node("mode=\"" + printable(how.mode) + "\" is none of nearest, linear, cubic");
  const std::vector<int64_t> axes = axes_of(n, n.rank(x));
  const size_t scales_at = old ? 1 : 2;
  const bool has_scales = n.has(scales_at) && count(n.shape(n.in(scales_at))) > 0;
  std::vector<ResizedAxis> list;
  Edge sizes;
  if (has_scales) {
    const Tensor scales = n.known(n.in(scales_at));
    if (scales.empty()) unsupported_node("the scales are computed at run time");
    list = by_scales(n, x, axes, scales.to_floats());
  } else {
    const std::string policy = n.string_of("keep_aspect_ratio_policy", "stretch");
    list = by_sizes(n, x, axes, n.need_ints(n.in(3), "the size"), policy);
    how.rounded = policy != "stretch";
    sizes = how.rounded ? n.ints({}) : n.in(3);
  }
  if (how.coordinates == "tf_crop_and_resize") set_region(n, list);
  n.out(resized(n, x, std::move(list), sizes, how));
}

void onnx_upsample(OnnxNode& n) {
  const Edge x = n.in(0);
  std::vector<float> scales;
  if (n.opset() >= 9) {
    const Tensor known = n.known(n.in(1));
    if (known.empty()) unsupported_node("the scales are computed at run time");
    scales = known.to_floats();
  } else if (n.has_attribute("scales")) {
    scales = n.floats_of("scales");
  } else {
    scales = {1, 1, n.float_of("height_scale"), n.float_of("width_scale")};
  }
  std::string mode = n.string_of("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  n.out(resized(n, x, by_scales(n, x, axes_of(n, n.rank(x)), scales), {},
                {mode, "asymmetric", "floor"}));
}

}  // namespace clinfer
