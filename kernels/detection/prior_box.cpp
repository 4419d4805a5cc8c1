// PriorBox and PriorBoxClustered: the default boxes of single-shot detectors, from the sizes of a
// feature map and of the picture. These are known when a model is compiled, so the result is a
// constant.
#include <algorithm>
#include <cmath>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason =
    "priors depend on sizes only, so they are constant when a model is compiled";
constexpr int64_t kMostDensity = 1024;
constexpr int64_t kMostPixels = int64_t{1} << 24;

std::vector<float> float_list(const Attributes& attributes, const char* name) {
  std::vector<float> values;
  for (double v : attributes.get_floats(name, std::vector<double>()))
    values.push_back(static_cast<float>(v));
  return values;
}

float number(const Attributes& attributes, const char* name, double otherwise) {
  return static_cast<float>(attributes.get_float(name, otherwise));
}

// The height and width that a constant input states.
struct Size {
  int64_t height, width;
};

Size size_of_input(const std::vector<int64_t>& values, const char* what) {
  if (values.size() != 2 || values[0] < 1 || values[1] < 1)
    fail_model(std::string(what) + " must be height and width, is " + to_string(values));
  return {values[0], values[1]};
}

std::vector<float> variance_of(const Attributes& attributes) {
  std::vector<float> variance = float_list(attributes, "variance");
  if (variance.empty()) variance.push_back(0.1f);
  if (variance.size() != 1 && variance.size() != 4)
    fail_model("variance must have 1 or 4 entries, has " + std::to_string(variance.size()));
  return variance;
}

// Writes consecutive boxes, never past the first row of the output.
class BoxWriter {
 public:
  BoxWriter(Tensor& out, Size image, bool clip)
      : next_(out.mutable_data<float>()), left_(out.shape()[1] / 4), image_(image), clip_(clip) {}

  // Writes a box, given by its centre and half sizes in pixels of the picture. `cut`: clips boxes
  // at the top and left sides.
  void put(float x, float y, float half_width, float half_height, bool cut) {
    if (left_-- <= 0) return;
    const float width = 1.0f / static_cast<float>(image_.width),
                height = 1.0f / static_cast<float>(image_.height);
    float box[4] = {(x - half_width) * width, (y - half_height) * height, (x + half_width) * width,
                    (y + half_height) * height};
    if (cut)
      for (int i = 0; i < 4; ++i) box[i] = i < 2 ? std::max(box[i], 0.0f) : std::min(box[i], 1.0f);
    for (float v : box) *next_++ = clip_ ? std::clamp(v, 0.0f, 1.0f) : v;
  }

 private:
  float* next_;
  int64_t left_;
  Size image_;
  bool clip_;
};

void fill_variances(const std::vector<float>& variance, Tensor& out) {
  float* row = out.mutable_data<float>() + out.shape()[1];
  for (int64_t i = 0; i < out.shape()[1]; ++i)
    row[i] = variance[variance.size() == 1 ? 0 : static_cast<size_t>(i % 4)];
}

// ---- PriorBox ----------------------------------------------------------------------------------

struct Priors {
  // ratios: 1 first, without repetitions.
  std::vector<float> min_size, max_size, ratios, fixed_size, fixed_ratio;
  std::vector<int64_t> density;
  bool scale_all, ratios_last;
  int64_t count;  // boxes at each position
};

Priors read_priors(const Attributes& attributes, int opset) {
  Priors p;
  p.min_size = float_list(attributes, "min_size");
  p.max_size = float_list(attributes, "max_size");
  p.fixed_size = float_list(attributes, "fixed_size");
  for (float size : p.fixed_size)  // rounded to whole pixels
    if (!(size >= 0 && size <= static_cast<float>(kMostPixels)))
      fail_model("a fixed_size is not from 0 to " + std::to_string(kMostPixels));
  p.fixed_ratio = float_list(attributes, "fixed_ratio");
  p.scale_all = attributes.get_bool("scale_all_sizes", true);
  p.ratios_last = opset < 8 || attributes.get_bool("min_max_aspect_ratios_order", true);
  for (float d : float_list(attributes, "density")) {
    if (!(d >= 1 && d <= static_cast<float>(kMostDensity))) fail_model("density must be 1 to 1024");
    p.density.push_back(static_cast<int64_t>(d));
  }
  const bool flip = attributes.get_bool("flip", false);
  p.ratios = {1.0f};
  for (float ratio : float_list(attributes, "aspect_ratio")) {
    if (!(ratio > 0)) fail_model("an aspect_ratio is not positive");
    const auto is_known = [&](float r) {
      return std::any_of(p.ratios.begin(), p.ratios.end(),
                         [&](float k) { return std::fabs(k - r) < 1e-6f; });
    };
    if (is_known(ratio)) continue;
    p.ratios.push_back(ratio);
    if (flip) p.ratios.push_back(1.0f / ratio);
  }
  for (float ratio : p.fixed_ratio)
    if (!(ratio > 0)) fail_model("a fixed_ratio is not positive");
  if (!p.fixed_size.empty() && p.density.size() < p.fixed_size.size() &&
      !(p.density.empty() && p.fixed_ratio.empty() && p.ratios.size() == 1))
    fail_model("density has fewer entries than fixed_size");

  const int64_t ratios = static_cast<int64_t>(p.ratios.size());
  const int64_t mins = static_cast<int64_t>(p.min_size.size()),
                maxes = static_cast<int64_t>(p.max_size.size());
  p.count = p.scale_all ? ratios * mins + maxes : ratios + mins - 1;
  if (!p.fixed_size.empty()) p.count = ratios * static_cast<int64_t>(p.fixed_size.size());
  const int64_t shapes =
      p.fixed_ratio.empty() ? ratios : static_cast<int64_t>(p.fixed_ratio.size());
  for (int64_t d : p.density) p.count += shapes * (d * d - 1);
  return p;
}

std::vector<ValueInfo> priors_shape(const ShapeContext& context, int64_t priors) {
  const Size feature =
      size_of_input(constant_ints(context, 0, "the feature map's size"), "the feature map's size");
  size_of_input(constant_ints(context, 1, "the picture's size"), "the picture's size");
  const int64_t places = checked_product(feature.height, feature.width);
  const int64_t row = checked_product(checked_product(places, priors), 4);
  checked_product(row, 2);
  return {{ElementType::f32, {2, row}}};
}

std::vector<ValueInfo> infer_prior_box(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  variance_of(context.attributes);
  return priors_shape(context, read_priors(context.attributes, context.opset).count);
}

// Writes a fixed box, repeated density x density times within its area.
void put_dense(BoxWriter& boxes, float x, float y, float size, int64_t density, float half_width,
               float half_height) {
  const int64_t shift = static_cast<int64_t>(size / static_cast<float>(density));
  const int64_t whole = static_cast<int64_t>(size);
  const float first = static_cast<float>(whole / 2), half_shift = static_cast<float>(shift) / 2.0f;
  for (int64_t r = 0; r < density; ++r)
    for (int64_t c = 0; c < density; ++c)
      boxes.put(x - first + half_shift + static_cast<float>(c * shift),
                y - first + half_shift + static_cast<float>(r * shift), half_width, half_height,
                true);
}

void put_fixed(BoxWriter& boxes, const Priors& p, float x, float y) {
  for (size_t s = 0; s < p.fixed_size.size(); ++s) {
    const float size = p.fixed_size[s];
    const auto with_ratio = [&](float ratio) {
      const float root = std::sqrt(ratio);
      put_dense(boxes, x, y, size, p.density[s], size * 0.5f * root, size * 0.5f / root);
    };
    if (!p.fixed_ratio.empty()) {
      for (float ratio : p.fixed_ratio) with_ratio(ratio);
      continue;
    }
    const float half = std::trunc(size) * 0.5f;
    if (!p.density.empty()) put_dense(boxes, x, y, size, p.density[s], half, half);
    for (float ratio : p.ratios)
      if (std::fabs(ratio - 1.0f) >= 1e-6f) with_ratio(ratio);
  }
}

void put_sized(BoxWriter& boxes, const Priors& p, const std::vector<float>& min_size, float x,
               float y) {
  for (size_t i = 0; i < min_size.size(); ++i) {
    const auto put_largest = [&] {
      if (i >= p.max_size.size()) return;
      const float half = std::sqrt(min_size[i] * p.max_size[i]) * 0.5f;
      boxes.put(x, y, half, half, false);
    };
    const auto put_ratios = [&] {
      if (!p.scale_all && i + 1 < min_size.size()) return;
      const float half = min_size[p.scale_all ? i : 0] * 0.5f;
      for (float ratio : p.ratios) {
        if (std::fabs(ratio - 1.0f) < 1e-6f) continue;
        const float root = std::sqrt(ratio);
        boxes.put(x, y, half * root, half / root, false);
      }
    };
    boxes.put(x, y, min_size[i] * 0.5f, min_size[i] * 0.5f, false);
    if (p.ratios_last) {
      put_largest();
      put_ratios();
    } else {
      put_ratios();
      put_largest();
    }
  }
}

void evaluate_prior_box(const OpDesc& desc, std::span<const Tensor> inputs,
                        std::span<Tensor> outputs) {
  const Size feature = size_of_input(inputs[0].to_ints(), "the feature map's size");
  const Size image = size_of_input(inputs[1].to_ints(), "the picture's size");
  const Priors p = read_priors(desc.attributes, desc.opset);
  const float offset = number(desc.attributes, "offset", 0);
  float step = number(desc.attributes, "step", 0);
  std::vector<float> min_size = p.min_size;
  if (!p.scale_all) {  // sizes and steps are relative to the picture's height
    const float height = static_cast<float>(image.height);
    step = step == -1 ? height / static_cast<float>(feature.height) : step * height;
    for (float& size : min_size) size *= height;
  }
  const float step_x = static_cast<float>(image.width) / static_cast<float>(feature.width);
  const float step_y = static_cast<float>(image.height) / static_cast<float>(feature.height);
  BoxWriter boxes(outputs[0], image, desc.attributes.get_bool("clip", false));
  for (int64_t h = 0; h < feature.height; ++h)
    for (int64_t w = 0; w < feature.width; ++w) {
      const float column = static_cast<float>(w), row = static_cast<float>(h);
      const float x = step == 0 ? (column + 0.5f) * step_x : (offset + column) * step;
      const float y = step == 0 ? (row + 0.5f) * step_y : (offset + row) * step;
      put_fixed(boxes, p, x, y);
      put_sized(boxes, p, min_size, x, y);
    }
  fill_variances(variance_of(desc.attributes), outputs[0]);
}

// ---- PriorBoxClustered -------------------------------------------------------------------------

struct Clusters {
  std::vector<float> width, height;
};

Clusters read_clusters(const Attributes& attributes) {
  Clusters c{float_list(attributes, "width"), float_list(attributes, "height")};
  if (c.width.size() != c.height.size()) fail_model("width and height differ in length");
  return c;
}

std::vector<ValueInfo> infer_clustered(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  variance_of(context.attributes);
  return priors_shape(context,
                      static_cast<int64_t>(read_clusters(context.attributes).width.size()));
}

void evaluate_clustered(const OpDesc& desc, std::span<const Tensor> inputs,
                        std::span<Tensor> outputs) {
  const Size feature = size_of_input(inputs[0].to_ints(), "the feature map's size");
  const Size image = size_of_input(inputs[1].to_ints(), "the picture's size");
  const Clusters c = read_clusters(desc.attributes);
  const float step = number(desc.attributes, "step", 0),
              offset = number(desc.attributes, "offset", 0);
  float step_w = number(desc.attributes, "step_w", 0),
        step_h = number(desc.attributes, "step_h", 0);
  if (step_w == 0) step_w = step;
  if (step_h == 0) step_h = step;
  if (step_w == 0 && step_h == 0) {
    step_w = static_cast<float>(image.width) / static_cast<float>(feature.width);
    step_h = static_cast<float>(image.height) / static_cast<float>(feature.height);
  }
  BoxWriter boxes(outputs[0], image, desc.attributes.get_bool("clip", false));
  for (int64_t h = 0; h < feature.height; ++h)
    for (int64_t w = 0; w < feature.width; ++w)
      for (size_t i = 0; i < c.width.size(); ++i)
        boxes.put((static_cast<float>(w) + offset) * step_w,
                  (static_cast<float>(h) + offset) * step_h, c.width[i] / 2.0f, c.height[i] / 2.0f,
                  false);
  fill_variances(variance_of(desc.attributes), outputs[0]);
}

}  // namespace

std::vector<OpDef> prior_box_ops() {
  return {{.type = "PriorBox",
           .opsets = opset_range(1),
           .infer_shapes = infer_prior_box,
           .evaluate = evaluate_prior_box,
           .host_reason = kHostReason},
          {.type = "PriorBoxClustered",
           .opsets = opset_range(1),
           .infer_shapes = infer_clustered,
           .evaluate = evaluate_clustered,
           .host_reason = kHostReason}};
}

}  // namespace clinfer
