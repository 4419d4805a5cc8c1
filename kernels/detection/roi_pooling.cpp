// ROIPooling, PSROIPooling, DeformablePSROIPooling and ROIAlign: a small grid of values from each
// region of a feature map. Regions are untrusted numbers computed at run time: a region of a
// missing image gives zeros.
#include <algorithm>
#include <cmath>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/item_kernel.h"
#include "kernels/movement/index_range.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason = "where the regions are stored in f16, too coarse for pixels";
constexpr int64_t kMostBins = 1 << 12;
constexpr int64_t kMostSamples = 1 << 8;  // along a bin

float number(const Attributes& a, const char* name, double otherwise) {
  return static_cast<float>(a.get_float(name, otherwise));
}

int64_t positive(const Attributes& a, const char* name, std::optional<int64_t> otherwise = {}) {
  const int64_t value = a.get_int(name, otherwise);
  if (value < 1 || value > kMostBins)
    fail_model("attribute " + std::string(name) + " is " + std::to_string(value));
  return value;
}

// Converts to an integer small enough for further arithmetic without overflow; NaN becomes the
// lowest.
int64_t to_index(float v) {
  return std::isnan(v) ? static_cast<int64_t>(-1e8f)
                       : static_cast<int64_t>(std::clamp(v, -1e8f, 1e8f));
}

// One channel of one image.
struct Plane {
  const float* data;
  int64_t height, width;
  float at(int64_t y, int64_t x) const { return data[y * width + x]; }

  // Interpolates between four pixels; y and x are within the plane.
  float between(float y, float x) const {
    const auto top = static_cast<int64_t>(std::floor(y)),
               left = static_cast<int64_t>(std::floor(x));
    const auto bottom = std::min(static_cast<int64_t>(std::ceil(y)), height - 1),
               right = std::min(static_cast<int64_t>(std::ceil(x)), width - 1);
    const float dy = y - static_cast<float>(top), dx = x - static_cast<float>(left);
    const float above = at(top, left) + (at(top, right) - at(top, left)) * dx;
    const float below = at(bottom, left) + (at(bottom, right) - at(bottom, left)) * dx;
    return above + (below - above) * dy;
  }
  bool contains(float y, float x) const {
    return y >= 0 && x >= 0 && y <= static_cast<float>(height - 1) &&
           x <= static_cast<float>(width - 1);
  }
};

class Features {
 public:
  explicit Features(const Tensor& t) : data_(t.data<float>()), shape_(t.shape()) {}
  int64_t channels() const { return shape_[1]; }
  int64_t height() const { return shape_[2]; }
  int64_t width() const { return shape_[3]; }
  bool has(int64_t image) const {
    return image >= 0 && image < shape_[0] && height() > 0 && width() > 0;
  }
  Plane plane(int64_t image, int64_t channel) const {
    return {data_ + (image * channels() + channel) * height() * width(), height(), width()};
  }

 private:
  const float* data_;
  const Shape& shape_;
};

void check_regions(const ShapeContext& context) {
  check_rank(context.inputs[0].shape, 4, 4, "the features");
  check_rank(context.inputs[1].shape, 2, 2, "the regions");
  if (context.inputs[1].shape[1] != 5)
    fail_model("regions must be image, x0, y0, x1, y1, not " + to_string(context.inputs[1].shape));
}

ValueInfo grid(const ShapeContext& context, int64_t channels, int64_t height, int64_t width) {
  const Shape out{context.inputs[1].shape[0], channels, height, width};
  checked_count(out);
  return {context.inputs[0].type, out};
}

// The range of pixels of bin i of `bins` equal parts of `size` pixels from `start` on; each bin is
// rounded outwards.
struct Span {
  int64_t begin, end;
};

Span bin_of(int64_t i, int64_t bins, int64_t start, int64_t size, int64_t limit) {
  const int64_t begin = i * size / bins, end = ((i + 1) * size + bins - 1) / bins;
  return {std::clamp<int64_t>(begin + start, 0, limit), std::clamp<int64_t>(end + start, 0, limit)};
}

// ---- ROIPooling --------------------------------------------------------------------------------

struct Pooled {
  int64_t height, width;
  bool bilinear;
};

Pooled read_pooled(const Attributes& a) {
  const std::string method = a.get_string("method", "max");
  if (method != "max" && method != "bilinear") fail_model("method \"" + method + "\"");
  const bool is_bilinear = method == "bilinear";
  for (const char* name : {"output_roi", "output_size"})
    if (a.has(name)) {
      const std::vector<int64_t> size = a.get_ints(name);
      if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMostBins ||
          size[1] > kMostBins)
        fail_model("attribute " + std::string(name) + " is " + to_string(size));
      return {size[0], size[1], is_bilinear};
    }
  return {positive(a, "pooled_h"), positive(a, "pooled_w"), is_bilinear};
}

std::vector<ValueInfo> infer_pooling(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  check_regions(context);
  const Pooled p = read_pooled(context.attributes);
  return {grid(context, context.inputs[0].shape[1], p.height, p.width)};
}

float largest_of(const Plane& plane, Span rows, Span columns) {
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0;
  float largest = plane.at(rows.begin, columns.begin);
  for (int64_t y = rows.begin; y < rows.end; ++y)
    for (int64_t x = columns.begin; x < columns.end; ++x)
      largest = std::max(largest, plane.at(y, x));
  return largest;
}

// Calls f(region) for all regions, each of which gives `each` bins of its part of the map.
template <typename F>
void for_regions(int64_t regions, const Features& features, int64_t each, const F& f) {
  const double pixels = static_cast<double>(features.channels()) *
                        static_cast<double>(features.height() * features.width());
  WorkLimit::for_ranges(regions, std::max(static_cast<double>(each), pixels / 4),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t r = begin; r < end; ++r) {
                            WorkLimit::may_go_on();
                            f(r);
                          }
                        });
}

// Returns the position of sample i of n between the two ends of a region (relative coordinates) on
// `size` pixels.
float sample_at(int64_t i, int64_t n, float begin, float end, int64_t size) {
  const float last = static_cast<float>(size - 1);
  if (n == 1) return 0.5f * (begin + end) * last;
  return static_cast<float>(i) * ((end - begin) * last / static_cast<float>(n - 1)) + begin * last;
}

void evaluate_pooling(const OpDesc& desc, std::span<const Tensor> inputs,
                      std::span<Tensor> outputs) {
  const Features features(inputs[0]);
  const Pooled p = read_pooled(desc.attributes);
  const float scale = number(desc.attributes, "spatial_scale", 1);
  float* out = outputs[0].mutable_data<float>();
  std::fill_n(out, outputs[0].elements(), 0.0f);
  const int64_t each = features.channels() * p.height * p.width;
  // -1 ends the list.
  int64_t regions = 0;
  while (regions < inputs[1].shape()[0] && inputs[1].data<float>()[regions * 5] != -1) ++regions;
  for_regions(regions, features, each, [&](int64_t r) {
    const float* roi = inputs[1].data<float>() + r * 5;
    const int64_t image = to_index(roi[0]);
    if (!features.has(image)) return;
    const auto pixel = [&](int i) { return to_index(std::round(roi[i] * scale)); };
    const int64_t left = pixel(1), top = pixel(2);
    const int64_t width = std::max<int64_t>(pixel(3) - left + 1, 1),
                  height = std::max<int64_t>(pixel(4) - top + 1, 1);
    float* to = out + r * each;
    for (int64_t c = 0; c < features.channels(); ++c) {
      const Plane plane = features.plane(image, c);
      for (int64_t y = 0; y < p.height; ++y)
        for (int64_t x = 0; x < p.width; ++x, ++to) {
          if (p.bilinear) {
            const float fy = sample_at(y, p.height, roi[2], roi[4], plane.height),
                        fx = sample_at(x, p.width, roi[1], roi[3], plane.width);
            *to = plane.contains(fy, fx) ? plane.between(fy, fx) : 0.0f;
          } else {
            *to = largest_of(plane, bin_of(y, p.height, top, height, plane.height),
                             bin_of(x, p.width, left, width, plane.width));
          }
        }
    }
  });
}

// ---- PSROIPooling ------------------------------------------------------------------------------

struct Sensitive {
  int64_t channels, group, bins_x, bins_y;
  bool bilinear;
  float scale;
};

Sensitive read_sensitive(const Attributes& a, const Shape& features) {
  const std::string mode = a.get_string("mode", "average");
  if (mode != "average" && mode != "bilinear") fail_model("mode \"" + mode + "\"");
  Sensitive s{positive(a, "output_dim"),
              positive(a, "group_size", 1),
              positive(a, "spatial_bins_x", 1),
              positive(a, "spatial_bins_y", 1),
              mode == "bilinear",
              number(a, "spatial_scale", 1)};
  const int64_t parts =
      s.bilinear ? checked_product(s.bins_x, s.bins_y) : checked_product(s.group, s.group);
  if (checked_product(parts, s.channels) != features[1])
    fail_model("the features have " + std::to_string(features[1]) + " channels for " +
               std::to_string(parts) + " parts of " + std::to_string(s.channels));
  return s;
}

std::vector<ValueInfo> infer_sensitive(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  check_regions(context);
  const Sensitive s = read_sensitive(context.attributes, context.inputs[0].shape);
  return {grid(context, s.channels, s.group, s.group)};
}

// Returns the average of the part of the map that bin (y, x) covers.
float average_of(const Plane& plane, float top, float left, float height, float width, int64_t y,
                 int64_t x) {
  const auto range = [](float start, float size, int64_t i, int64_t limit) -> Span {
    return {
        std::clamp<int64_t>(to_index(std::floor(static_cast<float>(i) * size + start)), 0, limit),
        std::clamp<int64_t>(to_index(std::ceil(static_cast<float>(i + 1) * size + start)), 0,
                            limit)};
  };
  const Span rows = range(top, height, y, plane.height),
             columns = range(left, width, x, plane.width);
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0;
  float sum = 0;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t c = columns.begin; c < columns.end; ++c) sum += plane.at(r, c);
  return sum / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

float sensitive_average(const Features& features, const Sensitive& s, const float* roi,
                        int64_t image, int64_t c, int64_t y, int64_t x) {
  const float left = std::round(roi[1]) * s.scale, top = std::round(roi[2]) * s.scale;
  const float width = std::max((std::round(roi[3]) + 1.0f) * s.scale - left, 0.1f);
  const float height = std::max((std::round(roi[4]) + 1.0f) * s.scale - top, 0.1f);
  const float group = static_cast<float>(s.group);
  return average_of(features.plane(image, (c * s.group + y) * s.group + x), top, left,
                    height / group, width / group, y, x);
}

float sensitive_bilinear(const Features& features, const Sensitive& s, const float* roi,
                         int64_t image, int64_t c, int64_t y, int64_t x) {
  const float left = roi[1] * s.scale, top = roi[2] * s.scale;
  const float width = (roi[3] * s.scale - left) / static_cast<float>(s.bins_x),
              height = (roi[4] * s.scale - top) / static_cast<float>(s.bins_y);
  float sum = 0;
  for (int64_t by = 0; by < s.bins_y; ++by)
    for (int64_t bx = 0; bx < s.bins_x; ++bx) {
      const float t = top + static_cast<float>(by) * height,
                  l = left + static_cast<float>(bx) * width;
      const Plane plane = features.plane(image, (by * s.bins_x + bx) * s.channels + c);
      const float fy = sample_at(y, s.group, t, t + height, plane.height),
                  fx = sample_at(x, s.group, l, l + width, plane.width);
      if (plane.contains(fy, fx)) sum += plane.between(fy, fx);
    }
  return sum / static_cast<float>(s.bins_x * s.bins_y);
}

void evaluate_sensitive(const OpDesc& desc, std::span<const Tensor> inputs,
                        std::span<Tensor> outputs) {
  const Features features(inputs[0]);
  const Sensitive s = read_sensitive(desc.attributes, inputs[0].shape());
  float* out = outputs[0].mutable_data<float>();
  const int64_t each = s.channels * s.group * s.group;
  for_regions(inputs[1].shape()[0], features, each, [&](int64_t r) {
    const float* roi = inputs[1].data<float>() + r * 5;
    const int64_t image = to_index(roi[0]);
    float* to = out + r * each;
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t y = 0; y < s.group; ++y)
        for (int64_t x = 0; x < s.group; ++x)
          *to++ = !features.has(image) ? 0.0f
                                       : (s.bilinear ? sensitive_bilinear : sensitive_average)(
                                             features, s, roi, image, c, y, x);
  });
}

// ---- DeformablePSROIPooling --------------------------------------------------------------------

struct Deformable {
  int64_t channels, group, bins_x, bins_y, part;
  float scale, trans_std;
};

Deformable read_deformable(const Attributes& a, const std::vector<Shape>& shapes) {
  const std::string mode = a.get_string("mode", "bilinear_deformable");
  if (mode != "bilinear_deformable") fail_model("mode \"" + mode + "\"");
  const Deformable d{positive(a, "output_dim"),        positive(a, "group_size", 1),
                     positive(a, "spatial_bins_x", 1), positive(a, "spatial_bins_y", 1),
                     positive(a, "part_size", 1),      number(a, "spatial_scale", 1),
                     number(a, "trans_std", 1)};
  if (checked_product(checked_product(d.group, d.group), d.channels) != shapes[0][1])
    fail_model("the features' channels do not fit output_dim and group_size");
  if (shapes.size() > 2) {
    const Shape& offsets = shapes[2];
    check_rank(offsets, 4, 4, "the offsets");
    if (offsets[0] != shapes[1][0] || offsets[1] < 2 || offsets[1] % 2 != 0 ||
        d.channels % (offsets[1] / 2) != 0 || offsets[2] != d.part || offsets[3] != d.part)
      fail_model("the offsets have the shape " + to_string(offsets));
  }
  return d;
}

std::vector<ValueInfo> infer_deformable(const ShapeContext& context) {
  check_inputs(context, 2, 3);
  check_regions(context);
  std::vector<Shape> shapes;
  for (const ValueInfo& in : context.inputs) shapes.push_back(in.shape);
  const Deformable d = read_deformable(context.attributes, shapes);
  return {grid(context, d.channels, d.group, d.group)};
}

void evaluate_deformable(const OpDesc& desc, std::span<const Tensor> inputs,
                         std::span<Tensor> outputs) {
  const Features features(inputs[0]);
  std::vector<Shape> shapes;
  for (const Tensor& in : inputs) shapes.push_back(in.shape());
  const Deformable d = read_deformable(desc.attributes, shapes);
  const int64_t classes = inputs.size() > 2 ? shapes[2][1] / 2 : 1;
  const float group = static_cast<float>(d.group);
  float* out = outputs[0].mutable_data<float>();
  const int64_t each = d.channels * d.group * d.group;
  for_regions(shapes[1][0], features, each, [&](int64_t r) {
    float* to = out + r * each;
    const float* roi = inputs[1].data<float>() + r * 5;
    const int64_t image = to_index(roi[0]);
    const float left = std::round(roi[1]) * d.scale - 0.5f,
                top = std::round(roi[2]) * d.scale - 0.5f;
    const float width = std::max((std::round(roi[3]) + 1.0f) * d.scale - 0.5f - left, 0.1f);
    const float height = std::max((std::round(roi[4]) + 1.0f) * d.scale - 0.5f - top, 0.1f);
    const float bin_width = width / group, bin_height = height / group;
    for (int64_t c = 0; c < d.channels; ++c)
      for (int64_t y = 0; y < d.group; ++y)
        for (int64_t x = 0; x < d.group; ++x, ++to) {
          *to = 0;
          if (!features.has(image)) continue;
          float shift_x = 0, shift_y = 0;
          if (inputs.size() > 2) {
            const int64_t label = c / (d.channels / classes), plane = d.part * d.part;
            const int64_t cell = (y * d.part / d.group) * d.part + x * d.part / d.group;
            const float* offsets =
                inputs[2].data<float>() + (r * classes + label) * 2 * plane + cell;
            shift_x = offsets[0] * d.trans_std;
            shift_y = offsets[plane] * d.trans_std;
          }
          const float start_x = static_cast<float>(x) * bin_width + left + shift_x * width;
          const float start_y = static_cast<float>(y) * bin_height + top + shift_y * height;
          const Plane plane = features.plane(image, (c * d.group + y) * d.group + x);
          const float last_x = static_cast<float>(plane.width) - 0.5f,
                      last_y = static_cast<float>(plane.height) - 0.5f;
          float sum = 0;
          int64_t met = 0;
          for (int64_t by = 0; by < d.bins_y; ++by)
            for (int64_t bx = 0; bx < d.bins_x; ++bx) {
              const float fx =
                  start_x + static_cast<float>(bx) * bin_width / static_cast<float>(d.bins_x);
              const float fy =
                  start_y + static_cast<float>(by) * bin_height / static_cast<float>(d.bins_y);
              if (!(fx >= -0.5f && fx <= last_x && fy >= -0.5f && fy <= last_y)) continue;
              sum += plane.between(std::clamp(fy, 0.0f, last_y - 0.5f),
                                   std::clamp(fx, 0.0f, last_x - 0.5f));
              ++met;
            }
          if (met > 0) *to = sum / static_cast<float>(met);
        }
  });
}

// ---- ROIAlign ----------------------------------------------------------------------------------

struct Align {
  int64_t height, width, samples;
  bool average;
  // The region becomes (given + before) * scale + after, with sides of at least `least`.
  float scale, before, after, least;
};

Align read_align(const Attributes& a, int opset) {
  const std::string mode = a.get_string("mode");
  if (mode != "avg" && mode != "max") fail_model("mode \"" + mode + "\"");
  // For "as many as a bin has pixels", PyTorch uses -1, ONNX and the specification 0.
  const int64_t samples = std::max<int64_t>(a.get_int("sampling_ratio"), 0);
  if (samples > kMostSamples) fail_model("sampling_ratio is " + std::to_string(samples));
  Align align{positive(a, "pooled_h"),
              positive(a, "pooled_w"),
              samples,
              mode == "avg",
              number(a, "spatial_scale", 1),
              0,
              0,
              1};
  const std::string aligned =
      opset >= 9 ? a.get_string("aligned_mode", "asymmetric") : "asymmetric";
  if (aligned == "half_pixel_for_nn" || aligned == "half_pixel") {
    align.before = aligned == "half_pixel" ? 0.5f : 0.0f;
    align.after = -0.5f;
    align.least = 0;
  } else if (aligned != "asymmetric") {
    fail_model("aligned_mode \"" + aligned + "\"");
  }
  return align;
}

std::vector<ValueInfo> infer_align(const ShapeContext& context) {
  check_inputs(context, 3, 3);
  check_rank(context.inputs[0].shape, 4, 4, "the features");
  check_rank(context.inputs[1].shape, 2, 2, "the regions");
  if (context.inputs[1].shape[1] != 4 ||
      context.inputs[2].shape != Shape{context.inputs[1].shape[0]})
    fail_model("regions " + to_string(context.inputs[1].shape) + " and image numbers " +
               to_string(context.inputs[2].shape) + " do not fit");
  check_range(context.inputs[2], 0, context.inputs[0].shape[0] - 1, "the number of an image");
  const Align a = read_align(context.attributes, context.opset);
  return {grid(context, context.inputs[0].shape[1], a.height, a.width)};
}

// The four weighted pixels around one sample.
struct Sample {
  int64_t pixels[4];
  float weights[4];
};

Sample sample_of(float y, float x, int64_t height, int64_t width) {
  Sample s{};
  if (!(y >= -1 && x >= -1 && y <= static_cast<float>(height) && x <= static_cast<float>(width)))
    return s;  // a sample with the value 0
  const auto split = [](float v, int64_t size, int64_t& low, int64_t& high) {
    v = std::max(v, 0.0f);
    low = std::min(static_cast<int64_t>(v), size - 1);
    high = std::min(low + 1, size - 1);
    return low == size - 1 ? 0.0f : v - static_cast<float>(low);
  };
  int64_t top, bottom, left, right;
  const float dy = split(y, height, top, bottom), dx = split(x, width, left, right);
  return {{top * width + left, top * width + right, bottom * width + left, bottom * width + right},
          {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx}};
}

void evaluate_align(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Features features(inputs[0]);
  const Align a = read_align(desc.attributes, desc.opset);
  const std::vector<int64_t> images = inputs[2].to_ints();
  const int64_t each = features.channels() * a.height * a.width;
  float* out = outputs[0].mutable_data<float>();
  std::fill_n(out, outputs[0].elements(), 0.0f);
  for_regions(static_cast<int64_t>(images.size()), features, each, [&](int64_t r) {
    const int64_t image = images[static_cast<size_t>(r)];
    if (!features.has(image)) return;
    const float* roi = inputs[1].data<float>() + r * 4;
    const auto on_map = [&](int i) { return (roi[i] + a.before) * a.scale + a.after; };
    const float left = on_map(0), top = on_map(1);
    const float bin_width = std::max(on_map(2) - left, a.least) / static_cast<float>(a.width);
    const float bin_height = std::max(on_map(3) - top, a.least) / static_cast<float>(a.height);
    // Takes one sample per pixel unless the number is stated; in a bin far larger than the map, as
    // many as distinguish the map's pixels.
    const auto samples = [&](float size, int64_t pixels) {
      return a.samples ? a.samples : std::clamp<int64_t>(to_index(std::ceil(size)), 0, 4 * pixels);
    };
    const int64_t rows = samples(bin_height, features.height()),
                  columns = samples(bin_width, features.width());
    float* to = out + r * each;
    for (int64_t y = 0; y < a.height; ++y)
      for (int64_t x = 0; x < a.width; ++x)
        for (int64_t sy = 0; sy < rows; ++sy)
          for (int64_t sx = 0; sx < columns; ++sx) {
            const float fy =
                top + static_cast<float>(y) * bin_height +
                (static_cast<float>(sy) + 0.5f) * (bin_height / static_cast<float>(rows));
            const float fx =
                left + static_cast<float>(x) * bin_width +
                (static_cast<float>(sx) + 0.5f) * (bin_width / static_cast<float>(columns));
            const Sample s = sample_of(fy, fx, features.height(), features.width());
            for (int64_t c = 0; c < features.channels(); ++c) {
              const float* pixels = features.plane(image, c).data;
              float value = 0;
              for (int i = 0; i < 4; ++i) value += pixels[s.pixels[i]] * s.weights[i];
              float& bin = to[(c * a.height + y) * a.width + x];
              // The initial maximum is 0, as in OpenVINO.
              bin = a.average ? bin + value / static_cast<float>(rows * columns)
                              : std::max(bin, value);
            }
          }
  });
}

// ---- kernel ------------------------------------------------------------------------------------

// The settings of all kinds, as arguments of the kernel.
struct Regions {
  int64_t kind = 0, group = 1, bins_y = 1, bins_x = 1, part = 1, samples = 0, average = 0;
  float scale = 1, trans = 0, before = 0, after = 0, least = 0;
};

Regions regions_of(const OpDesc& desc) {
  Regions r;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < desc.own_inputs; ++i) shapes.push_back(desc.inputs[i].shape);
  if (desc.type == "ROIPooling") {
    r.kind = read_pooled(desc.attributes).bilinear ? 1 : 0;
    r.scale = number(desc.attributes, "spatial_scale", 1);
  } else if (desc.type == "PSROIPooling") {
    const Sensitive s = read_sensitive(desc.attributes, shapes[0]);
    r.kind = s.bilinear ? 3 : 2;
    r.group = s.group, r.bins_y = s.bins_y, r.bins_x = s.bins_x, r.scale = s.scale;
  } else if (desc.type == "DeformablePSROIPooling") {
    const Deformable d = read_deformable(desc.attributes, shapes);
    r.kind = 4;
    r.group = d.group, r.bins_y = d.bins_y, r.bins_x = d.bins_x, r.part = d.part;
    r.scale = d.scale, r.trans = d.trans_std;
  } else {
    const Align a = read_align(desc.attributes, desc.opset);
    r.kind = 5;
    r.samples = a.samples, r.average = a.average;
    r.scale = a.scale, r.before = a.before, r.after = a.after, r.least = a.least;
  }
  return r;
}

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_storage(desc, desc.own_inputs); !why.empty()) return why;
  if (desc.inputs[1].type != ElementType::f32) return "the regions are not stored in f32";
  if (desc.inputs[0].elements() == 0) return "the features are empty";
  if (desc.own_inputs > 2 && desc.type != "ROIAlign" && !is_float(desc.inputs[2].type))
    return "the offsets are not floats";
  if (desc.type == "ROIAlign" && desc.inputs[2].type != ElementType::i32 &&
      desc.inputs[2].type != ElementType::i64)
    return "the image numbers are neither i32 nor i64";
  return desc.tail.empty() ? "" : "takes no tail";
}

struct Args {
#include "kernels/detection/roi_pooling_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const Regions r = regions_of(desc);
  const bool extra = desc.own_inputs > 2;
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0], &regions = desc.inputs[1];
  Shape extra_strides(4, 0);
  if (extra)
    std::copy(desc.inputs[2].strides.begin(), desc.inputs[2].strides.end(), extra_strides.begin());
  const int64_t classes = extra && r.kind == 4 ? desc.inputs[2].shape[1] / 2 : 1;
  const Args args{.in_n = to_int(in.strides[0]),
                  .in_c = to_int(in.strides[1]),
                  .in_h = to_int(in.strides[2]),
                  .in_w = to_int(in.strides[3]),
                  .roi_n = to_int(regions.strides[0]),
                  .roi_i = to_int(regions.strides[1]),
                  .extra_n = to_int(extra_strides[0]),
                  .extra_c = to_int(extra_strides[1]),
                  .extra_h = to_int(extra_strides[2]),
                  .extra_w = to_int(extra_strides[3]),
                  .out_n = to_int(out.strides[0]),
                  .out_c = to_int(out.strides[1]),
                  .out_h = to_int(out.strides[2]),
                  .out_w = to_int(out.strides[3]),
                  .images = to_int(in.shape[0]),
                  .height = to_int(in.shape[2]),
                  .width = to_int(in.shape[3]),
                  .channels = to_int(out.shape[1]),
                  .rows = to_int(out.shape[2]),
                  .columns = to_int(out.shape[3]),
                  .group = to_int(r.group),
                  .bins_y = to_int(r.bins_y),
                  .bins_x = to_int(r.bins_x),
                  .part = to_int(r.part),
                  .label_channels = to_int(out.shape[1] / classes),
                  .samples = to_int(r.samples),
                  .average = to_int(r.average),
                  .items = to_int(out.elements()),
                  .scale = r.scale,
                  .trans = r.trans,
                  .before = r.before,
                  .after = r.after,
                  .least = r.least};
  const ElementType extra_type = extra ? desc.inputs[2].type : ElementType::f32;
  KernelSpec spec;
  spec.source = "roi_pooling.cl";
  spec.defines = {{"T", storage_name(in.type)},
                  {"ET", is_float(extra_type)             ? storage_name(extra_type)
                         : extra_type == ElementType::i64 ? "long"
                                                          : "int"},
                  {"KIND", std::to_string(r.kind)},
                  {"EXTRA", extra ? "1" : "0"}};
  spec.arguments = {Argument::input(0, size_of(in.type)), Argument::input(1, sizeof(float))};
  if (extra) spec.arguments.push_back(Argument::input(2, size_of(extra_type)));
  spec.arguments.push_back(Argument::output(0, size_of(out.type)));
  spec.arguments.push_back(Argument::value(args));
  set_items(spec, out.elements(), point);
  KernelPlan plan;
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kRegions{"roi_pooling", 1, reject, item_space, item_heuristic, plan};

OpDef region_op(const char* type, int opset, std::vector<ValueInfo> (*infer)(const ShapeContext&),
                void (*evaluate)(const OpDesc&, std::span<const Tensor>, std::span<Tensor>)) {
  return {.type = type,
          .opsets = opset_range(opset),
          .infer_shapes = infer,
          .evaluate = evaluate,
          .families = {&kRegions},
          .host_reason = kHostReason};
}

}  // namespace

std::vector<OpDef> roi_pooling_ops() {
  return {region_op("ROIPooling", 1, infer_pooling, evaluate_pooling),
          region_op("PSROIPooling", 1, infer_sensitive, evaluate_sensitive),
          region_op("DeformablePSROIPooling", 1, infer_deformable, evaluate_deformable),
          region_op("ROIAlign", 3, infer_align, evaluate_align)};
}

}  // namespace clinfer
