// Translates convolutions, pooling, resizing, regions and boxes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/onnx/op_table.h"
#include "engine/onnx/operations/windows.h"
#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// ---- convolutions -------------------------------------------------------------------------------

void conv(OnnxNode& n) {
  Edge bias = n.has(2) ? n.in(2) : Edge{};
  n.out(convolved(n, n.in(0), n.in(1), bias));
}

// Translates com.microsoft's convolution with an activation, and with an addition before it in
// newer versions.
void fused_conv(OnnxNode& n) {
  Edge y = convolved(n, n.in(0), n.in(1), n.has(2) ? n.in(2) : Edge{});
  if (n.has(3)) y = n.add(y, n.in(3));
  const std::string name = n.string_of("activation", "");
  const std::vector<float> p = n.floats_of("activation_params", std::vector<float>{});
  const auto parameter = [&](size_t i, float otherwise) { return i < p.size() ? p[i] : otherwise; };
  if (name == "Relu")
    y = n.op("ReLU", 1, {y});
  else if (name == "Sigmoid" || name == "Tanh")
    y = n.op(name, 1, {y});
  else if (name == "LeakyRelu")
    y = n.op("PReLU", 1, {y, n.number(parameter(0, 0.01f))});
  else if (name == "Clip")
    y = n.clamp(y, double{parameter(0, std::numeric_limits<float>::lowest())},
                double{parameter(1, std::numeric_limits<float>::max())});
  else if (name == "HardSigmoid")
    y = n.op("HardSigmoid", 1, {y, n.number(parameter(0, 0.2f)), n.number(parameter(1, 0.5f))});
  else if (!name.empty())
    unsupported_node("the activation \"" + printable(name) + "\" is not supported");
  n.out(y);
}

Edge without_zero(OnnxNode& n, const Edge& x, size_t zero_point, int64_t axis) {
  const Edge wide = n.convert(x, ElementType::f32);
  if (!n.has(zero_point)) return wide;
  return n.subtract(wide, n.along(n.convert(n.in(zero_point), ElementType::f32), axis, n.rank(x)));
}

void conv_integer(OnnxNode& n) {
  const Edge x = without_zero(n, n.in(0), 2, 1), w = without_zero(n, n.in(1), 3, 0);
  n.out(n.convert(convolved(n, x, w, {}), ElementType::i32));
}

// Refuses sizes whose sums and products of two would not fit in 64 bits.
void check_sizes(const std::vector<int64_t>& sizes) {
  for (const int64_t size : sizes)
    if (size < 0 || size > std::numeric_limits<int32_t>::max())
      bad_node("the size " + std::to_string(size) + " is out of range");
}

void conv_transpose(OnnxNode& n) {
  const Edge x = n.in(0);
  if (n.rank(x) < 3) bad_node("needs pictures or signals, not " + to_string(n.shape(x)));
  Edge w = n.in(1);
  const auto spatial = static_cast<size_t>(n.rank(x) - 2);
  const int64_t group = n.int_of("group", 1);
  Window window = window_of(n, x, kernel_of(n, w, spatial));
  std::vector<int64_t> more = n.ints_of("output_padding", std::vector<int64_t>(spatial, 0));
  if (more.size() != spatial) bad_node("output_padding must list " + std::to_string(spatial));
  check_sizes(more);
  const std::vector<int64_t> wanted = n.ints_of("output_shape", std::vector<int64_t>{});
  if (!wanted.empty() && wanted.size() < spatial)
    bad_node("output_shape must list " + std::to_string(spatial));
  check_sizes(wanted);
  for (int64_t d = 2; d < n.rank(x); ++d) check_sizes({n.dim(x, d)});
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t size = n.dim(x, static_cast<int64_t>(2 + i)), stride = window.strides[i],
                  extent = (window.kernel[i] - 1) * window.dilations[i] + 1,
                  full = stride * (size - 1) + more[i] + extent;
    const bool same = window.auto_pad == "SAME_UPPER" || window.auto_pad == "SAME_LOWER";
    if (wanted.empty() && !same) continue;
    const int64_t out = wanted.empty() ? size * stride : wanted[wanted.size() - spatial + i];
    const int64_t total = full - out;
    if (total < 0) more[i] -= total;
    const int64_t pads = std::max<int64_t>(total, 0);
    window.begin[i] = window.auto_pad == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
    window.end[i] = pads - window.begin[i];
  }
  const AttributePairs attributes{
      {"strides", text_of(window.strides)},  {"dilations", text_of(window.dilations)},
      {"pads_begin", text_of(window.begin)}, {"pads_end", text_of(window.end)},
      {"output_padding", text_of(more)},     {"auto_pad", "explicit"}};
  Edge y;
  if (group == 1) {
    y = n.op("ConvolutionBackpropData", 1, {x, w}, attributes);
  } else {
    y = n.op("GroupConvolutionBackpropData", 1, {x, grouped(n, w, group)}, attributes);
  }
  if (n.has(2)) y = n.add(y, n.along(n.in(2), 1, n.rank(x)));
  n.out(y);
}

void deform_conv(OnnxNode& n) {
  const Edge x = n.in(0), w = n.in(1);
  const Window window = window_of(n, x, kernel_of(n, w, 2));
  std::vector<Edge> inputs{x, n.in(2), w};
  if (n.has(4)) inputs.push_back(n.in(4));
  AttributePairs attributes = window.attributes();
  attributes.emplace_back("group", std::to_string(n.int_of("group", 1)));
  attributes.emplace_back("deformable_group", std::to_string(n.int_of("offset_group", 1)));
  attributes.emplace_back("bilinear_interpolation_pad", "true");
  Edge y = n.op("DeformableConvolution", 8, inputs, attributes);
  if (n.has(3)) y = n.add(y, n.along(n.in(3), 1, n.rank(x)));
  n.out(y);
}

// ---- pooling ------------------------------------------------------------------------------------

bool rounds_up(const OnnxNode& n) { return n.int_of("ceil_mode", 0) != 0; }

AttributePairs pooling(OnnxNode& n, const Window& window) {
  AttributePairs attributes = window.attributes();
  attributes.emplace_back("kernel", text_of(window.kernel));
  attributes.emplace_back("rounding_type", rounds_up(n) ? "ceil_torch" : "floor");
  return attributes;
}

Window pool_window(OnnxNode& n, const Edge& x) {
  return window_of(n, x, n.ints_of("kernel_shape"));
}

// Returns for each window how many of its positions lie on pixels or pads, in the shape [1, 1,
// ...]: with ceil_mode the last window may reach past the pads. `y` is the pooled value.
Tensor covered(OnnxNode& n, const Edge& x, const Edge& y, const Window& window) {
  Shape shape{1, 1};
  std::vector<float> counts{1};
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t end = n.dim(x, d) + window.begin[i] + window.end[i], size = n.dim(y, d);
    std::vector<float> all;
    for (const float before : counts)
      for (int64_t o = 0; o < size; ++o) {
        const int64_t left = end - o * window.strides[i];  // positions from the window's start on
        const int64_t inside = std::min(window.kernel[i], ceil_div(left, window.dilations[i]));
        all.push_back(before * static_cast<float>(inside));
      }
    counts = std::move(all);
    shape.push_back(size);
  }
  return Tensor::of(ElementType::f32, shape, counts);
}

bool has_pads(const Window& window) {
  const auto any = [](int64_t v) { return v != 0; };
  return std::ranges::any_of(window.begin, any) || std::ranges::any_of(window.end, any);
}

float area(const Window& window) {
  float size = 1;
  for (int64_t k : window.kernel) size *= static_cast<float>(k);
  return size;
}

void average_pool(OnnxNode& n) {
  const Edge x = n.in(0);
  const Window window = pool_window(n, x);
  AttributePairs attributes = pooling(n, window);
  const bool with_pads = n.int_of("count_include_pad", 0) != 0;
  attributes.emplace_back("exclude-pad", text_of(!with_pads));
  if (std::ranges::all_of(window.dilations, [](int64_t d) { return d == 1; }))
    std::erase_if(attributes,
                  [](const auto& a) { return std::string_view(a.first) == "dilations"; });
  Edge y = n.op("AvgPool", rounds_up(n) ? 14 : 1, {x}, attributes);
  // ONNX does not count positions past the pads; the engine counts them, as OpenVINO does.
  if (with_pads && rounds_up(n) && has_pads(window)) {
    std::vector<float> factors = covered(n, x, y, window).to_floats();
    for (float& factor : factors) factor = area(window) / factor;
    if (std::ranges::any_of(factors, [](float v) { return v != 1; })) {
      Shape shape = n.shape(y);
      shape[0] = shape[1] = 1;
      y = n.multiply(y, n.constant(Tensor::of(ElementType::f32, shape, factors)));
    }
  }
  n.out(y);
}

Edge largest_integers(OnnxNode& n, const Edge& x) {
  const Window window = pool_window(n, x);
  const Edge y = n.op("MaxPool", 1, {n.convert(x, ElementType::f32)}, pooling(n, window));
  return n.convert(y, n.type(x));
}

// Translates com.microsoft's MaxPool of quantised pictures with the channels last.
void max_pool_channels_last(OnnxNode& n) {
  n.out(turned_to_channels_last(n, largest_integers(n, turned_to_channels_first(n, n.in(0)))));
}

void max_pool(OnnxNode& n) {
  const Edge x = n.in(0);
  if (!is_float(n.type(x))) {
    if (n.wants(1)) unsupported_node("indices of integers are not supported");
    return n.out(largest_integers(n, x));
  }
  const Window window = pool_window(n, x);
  AttributePairs attributes = pooling(n, window);
  attributes.emplace_back("axis", "0");
  attributes.emplace_back("index_element_type", "i64");
  const Edge y = n.op("MaxPool", rounds_up(n) ? 14 : 8, {x}, attributes, 2);
  if (!n.wants(1)) return n.out(y);
  Edge indices = port(y, 1);
  if (n.int_of("storage_order", 0)) {  // indices count the last two dimensions by columns
    const Shape& shape = n.sizes(x);
    if (shape.size() != 4) unsupported_node("storage_order=1 is supported for pictures only");
    const int64_t height = shape[2], width = shape[3], plane = height * width;
    const auto mod = [&](const Edge& e, int64_t by) {
      return n.op("FloorMod", 1, {e, n.integer(by)});
    };
    const auto div = [&](const Edge& e, int64_t by) { return n.divide(e, n.integer(by)); };
    const Edge inside = mod(indices, plane), first = n.subtract(indices, inside);
    const Edge by_columns =
        n.add(n.multiply(mod(inside, width), n.integer(height)), div(inside, width));
    indices = n.add(first, by_columns);
  }
  n.out(0, y);
  n.out(1, indices);
}

// Writes values to the places that MaxPool's indices state.
void max_unpool(OnnxNode& n) {
  const Edge x = n.in(0);
  const Window window = pool_window(n, x);
  Shape plain = n.sizes(x);
  for (size_t i = 0; i < window.kernel.size(); ++i)
    plain[2 + i] =
        (plain[2 + i] - 1) * window.strides[i] - window.begin[i] - window.end[i] + window.kernel[i];
  Shape shape = plain;
  if (n.has(2)) {
    const std::vector<int64_t> given = n.need_ints(n.in(2), "the output shape");
    shape.assign(given.begin(), given.end());
    if (shape.size() != plain.size()) bad_node("the output shape has another rank");
  }
  const auto zeros = [&](const Shape& of) {
    return n.op("Broadcast", 3, {n.number(0), n.ints({count(of)})}, {{"mode", "numpy"}});
  };
  const Edge flat = n.ints({-1});
  Edge y = n.op("ScatterElementsUpdate", 12,
                {zeros(plain), n.reshape_to(n.in(1), flat), n.reshape_to(x, flat), n.integer(0)},
                {{"reduction", "none"}, {"use_init_val", "true"}});
  y = n.reshape_to(y, n.ints(plain));
  if (shape != plain) {
    std::vector<int64_t> begin(shape.size(), 0), end(shape.size(), 0);
    for (size_t d = 0; d < shape.size(); ++d) end[d] = shape[d] - plain[d];
    y = n.op("Pad", 12, {y, n.ints(begin), n.ints(end), n.number(0)}, {{"pad_mode", "constant"}});
  }
  n.out(y);
}

std::vector<int64_t> spatial_axes(OnnxNode& n, const Edge& x) {
  if (n.rank(x) < 3) bad_node("needs pictures or signals, not " + to_string(n.shape(x)));
  std::vector<int64_t> axes(static_cast<size_t>(n.rank(x) - 2));
  std::iota(axes.begin(), axes.end(), int64_t{2});
  return axes;
}

void global_average_pool(OnnxNode& n) {
  n.out(n.reduce("ReduceMean", n.in(0), spatial_axes(n, n.in(0))));
}

void global_max_pool(OnnxNode& n) {
  n.out(n.reduce("ReduceMax", n.in(0), spatial_axes(n, n.in(0))));
}

// Returns |x|^p; the other function takes the root of the sum.
Edge raised(OnnxNode& n, const Edge& x, float p) {
  const Edge size = n.op("Abs", 1, {x});
  return p == 1 ? size : n.op("Power", 1, {size, n.number(p)});
}

void global_lp_pool(OnnxNode& n) {
  const auto p = static_cast<float>(n.int_of("p", 2));
  const Edge sum = n.reduce("ReduceSum", raised(n, n.in(0), p), spatial_axes(n, n.in(0)));
  n.out(n.op("Power", 1, {sum, n.number(1 / p)}));
}

// Computes the average over the whole window, pads included, and multiplies by the divisor to get
// the sum.
void lp_pool(OnnxNode& n) {
  const Edge x = n.in(0);
  const auto p = static_cast<float>(n.int_of("p", 2));
  const Window window = pool_window(n, x);
  AttributePairs attributes = pooling(n, window);
  attributes.emplace_back("exclude-pad", "false");
  const Edge mean = n.op("AvgPool", 14, {raised(n, x, p)}, attributes);
  const bool whole = !rounds_up(n) || has_pads(window);
  const Edge divisor = whole ? n.number(area(window)) : n.constant(covered(n, x, mean, window));
  n.out(n.op("Power", 1, {n.multiply(mean, divisor), n.number(1 / p)}));
}

// ---- regions and boxes --------------------------------------------------------------------------

void roi_align(OnnxNode& n) {
  const std::string mode = n.string_of("mode", "avg"),
                    transform = n.string_of("coordinate_transformation_mode",
                                            n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    bad_node("coordinate_transformation_mode=\"" + printable(transform) + "\"");
  // The mode takes the largest of the weighted pixels; the engine's operation takes the largest of
  // their sums.
  if (mode == "max") return onnx_roi_align_largest(n, transform == "half_pixel");
  n.out(n.op("ROIAlign", 9, {n.in(0), n.in(1), n.in(2)},
             {{"pooled_h", std::to_string(n.int_of("output_height", 1))},
              {"pooled_w", std::to_string(n.int_of("output_width", 1))},
              {"sampling_ratio", std::to_string(n.int_of("sampling_ratio", 0))},
              {"spatial_scale", text_of(double{n.float_of("spatial_scale", 1.f)})},
              {"mode", mode},
              {"aligned_mode", transform == "half_pixel" ? "half_pixel_for_nn" : "asymmetric"}}));
}

void max_roi_pool(OnnxNode& n) {
  const std::vector<int64_t> size = n.ints_of("pooled_shape");
  if (size.size() != 2) bad_node("pooled_shape must list 2 numbers");
  n.out(n.op("ROIPooling", 2, {n.in(0), n.in(1)},
             {{"pooled_h", std::to_string(size[0])},
              {"pooled_w", std::to_string(size[1])},
              {"spatial_scale", text_of(double{n.float_of("spatial_scale", 1.f)})},
              {"method", "max"}}));
}

void non_max_suppression(OnnxNode& n) {
  const auto scalar = [&](size_t i, const Edge& otherwise) {
    if (!n.has(i)) return otherwise;
    return n.rank(n.in(i)) == 0 ? n.in(i) : n.reshape_to(n.in(i), n.ints({}));
  };
  const float lowest = std::numeric_limits<float>::lowest();
  // ONNX keeps boxes whose overlap equals the threshold; the engine removes them.
  Edge overlap = scalar(3, n.number(0));
  if (const Tensor known = n.known(overlap); !known.empty())
    overlap = n.number(std::nextafter(known.to_floats()[0], 2.f));
  else
    overlap = n.multiply(overlap, n.number(std::nextafter(1.f, 2.f)));
  n.out(n.op("NonMaxSuppression", 9,
             {n.in(0), n.in(1), scalar(2, n.integer(0)), overlap, scalar(4, n.number(lowest))},
             {{"box_encoding", n.int_of("center_point_box", 0) ? "center" : "corner"},
              {"sort_result_descending", "false"},
              {"output_type", "i64"}},
             3));
}

// Translates TensorRT's plug-in node, which exporters of detectors write at the end: boxes [N,B,4],
// scores [N,B,C].
void efficient_nms(OnnxNode& n) {
  Edge boxes = n.in(0), scores = n.in(1);
  if (n.rank(boxes) == 4) boxes = n.squeeze(boxes, {2});
  if (n.dim(boxes, -1) != 4 || n.rank(boxes) != 3 || n.rank(scores) != 3)
    bad_node("needs boxes [N,B,4] and scores [N,B,C]");
  if (n.dim(boxes, 0) != 1) unsupported_node("a batch of more than one image is not supported");
  if (n.int_of("class_agnostic", 0)) unsupported_node("class_agnostic=1 is not supported");
  if (n.int_of("score_activation", 0)) scores = n.op("Sigmoid", 1, {scores});
  if (n.int_of("box_coding", 0)) {  // boxes are centre and size
    const Edge centre = n.slice(boxes, 2, 0, 2),
               half = n.multiply(n.slice(boxes, 2, 2, 4), n.number(0.5f));
    boxes = n.concat({n.subtract(centre, half), n.add(centre, half)}, 2);
  }
  const int64_t most = n.int_of("max_output_boxes", 100);
  if (most < 1 || most > n.dim(boxes, 1) * std::max<int64_t>(n.dim(scores, 2), 1))
    unsupported_node("max_output_boxes=" + std::to_string(most) + " is not supported here");
  const Edge rows =
      n.op("MulticlassNms", 8, {boxes, n.transpose(scores, {0, 2, 1})},
           {{"sort_result_type", "score"},
            {"sort_result_across_batch", "false"},
            {"output_type", "i32"},
            {"iou_threshold", text_of(double{n.float_of("iou_threshold", 0.5f)})},
            {"score_threshold", text_of(double{n.float_of("score_threshold", 0.25f)})},
            {"nms_top_k", "-1"},
            {"keep_top_k", std::to_string(most)},
            {"background_class", std::to_string(n.int_of("background_class", -1))},
            {"normalized", "true"},
            {"nms_eta", "1"}},
           3);  // [rows, 6]: class, score, corners; indices; how many
  const auto column = [&](int64_t first, int64_t end) {
    return n.unsqueeze(n.slice(rows, 1, first, end), {0});
  };
  n.out(0, n.unsqueeze(port(rows, 2), {1}));
  n.out(1, column(2, 6));
  n.out(2, n.squeeze(column(1, 2), {2}));
  n.out(3, n.convert(n.squeeze(column(0, 1), {2}), ElementType::i32));
}

// ---- grids --------------------------------------------------------------------------------------

void grid_sample(OnnxNode& n) {
  if (n.rank(n.in(0)) == 5) return onnx_grid_sample_volumes(n);
  std::string mode = n.string_of("mode", "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  n.out(n.op("GridSample", 9, {n.in(0), n.in(1)},
             {{"align_corners", text_of(n.int_of("align_corners", 0) != 0)},
              {"mode", mode},
              {"padding_mode", n.string_of("padding_mode", "zeros")}}));
}

// Multiplies the positions of all pixels by the matrices.
void affine_grid(OnnxNode& n) {
  const std::vector<int64_t> size = n.need_ints(n.in(1), "the size");
  if (size.size() != 4 && size.size() != 5) bad_node("the size must be of 4 or 5 dimensions");
  const bool corners = n.int_of("align_corners", 0) != 0;
  const size_t dims = size.size() - 2;
  for (const int64_t d : size)
    if (d < 1) bad_node("a size is not above 0");
  const int64_t places = checked_count(Shape(size.begin() + 2, size.end()));
  Tensor base = table({places, static_cast<int64_t>(dims) + 1});
  auto* to = base.mutable_data<float>();
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    for (size_t d = dims; d-- > 0;) {  // x comes first
      const int64_t length = size[2 + d], at = rest % length;
      rest /= length;
      const double spread = corners ? static_cast<double>(length - 1) : static_cast<double>(length);
      const double value = corners ? (length > 1 ? -1 + 2 * static_cast<double>(at) / spread : 0)
                                   : (2 * static_cast<double>(at) + 1) / spread - 1;
      to[p * static_cast<int64_t>(dims + 1) + static_cast<int64_t>(dims - 1 - d)] =
          static_cast<float>(value);
    }
    to[p * static_cast<int64_t>(dims + 1) + static_cast<int64_t>(dims)] = 1;
  }
  const Edge grid = n.matmul(n.constant(base), n.in(0), false, true);
  std::vector<int64_t> shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(static_cast<int64_t>(dims));
  n.out(n.reshape_to(grid, n.ints(shape)));
}

}  // namespace

std::vector<OnnxOp> onnx_vision_ops() {
  return {{"AffineGrid", affine_grid},
          {"AveragePool", average_pool},
          {"Conv", conv},
          {"ConvInteger", conv_integer},
          {"ConvTranspose", conv_transpose},
          {"DeformConv", deform_conv},
          {"GlobalAveragePool", global_average_pool},
          {"GlobalLpPool", global_lp_pool},
          {"GlobalMaxPool", global_max_pool},
          {"GridSample", grid_sample},
          {"LpPool", lp_pool},
          {"MaxPool", max_pool},
          {"MaxRoiPool", max_roi_pool},
          {"MaxUnpool", max_unpool},
          {"NonMaxSuppression", non_max_suppression},
          {"Resize", onnx_resize},
          {"RoiAlign", roi_align},
          {"Upsample", onnx_upsample},
          {"EfficientNMS_TRT", efficient_nms},
          {"EfficientNMS_TRT", efficient_nms, kTensorRt},
          {"FusedConv", fused_conv, kMicrosoft},
          {"GridSample", grid_sample, kMicrosoft},
          {"NhwcMaxPool", max_pool_channels_last, kMicrosoft}};
}

}  // namespace clinfer
