// GridSample: samples the data at points given by a grid of coordinates in -1..1, interpolating
// between pixels.
#include "kernels/sampling/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "kernels/arguments.h"
#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/item_kernel.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// Returns the pixel that index `i` of `size` reads; -1 for none, which has the value 0.
int64_t placed(int64_t i, int64_t size, const Sampling& s) {
  if (i >= 0 && i < size) return i;
  if (s.padding == Sampling::Padding::zeros) return -1;
  if (s.padding == Sampling::Padding::border || size == 1)
    return std::clamp<int64_t>(i, 0, size - 1);
  const int64_t period = s.align_corners ? 2 * (size - 1) : 2 * size;
  i = (i % period + period) % period;
  return i < size ? i : (s.align_corners ? period : period - 1) - i;
}

}  // namespace

Sampling sampling_of(const Attributes& attributes) {
  const auto choose = [&](const char* name, const char* otherwise,
                          const std::array<const char*, 3>& names) {
    const std::string value = attributes.get_string(name, otherwise);
    for (size_t i = 0; i < names.size(); ++i)
      if (value == names[i]) return static_cast<int>(i);
    fail_model(std::string("unknown ") + name + " \"" + value + "\"");
  };
  return {
      static_cast<Sampling::Mode>(choose("mode", "bilinear", {"nearest", "bilinear", "bicubic"})),
      static_cast<Sampling::Padding>(
          choose("padding_mode", "zeros", {"zeros", "border", "reflection"})),
      attributes.get_bool("align_corners", false)};
}

std::vector<std::pair<std::string, std::string>> Sampling::defines() const {
  return {{"TAPS", std::to_string(taps())},
          {"PADDING", std::to_string(static_cast<int>(padding))},
          {"ALIGN", align_corners ? "1" : "0"}};
}

Taps taps_of(float coordinate, int64_t size, const Sampling& s) {
  const float extent = static_cast<float>(size);
  float place =
      s.align_corners ? (coordinate + 1) / 2 * (extent - 1) : ((coordinate + 1) * extent - 1) / 2;
  // Limits positions far outside, and NaN: the result is the same for any distant pixel.
  constexpr float kFar = 1 << 24;
  place = place > -kFar ? std::min(place, kFar) : -kFar;
  Taps taps{};
  if (s.mode == Sampling::Mode::nearest) {
    taps.at[0] = placed(static_cast<int64_t>(std::nearbyint(place)), size, s);
    taps.share[0] = 1;
    return taps;
  }
  const auto first = static_cast<int64_t>(std::floor(place));
  const float t = place - static_cast<float>(first);
  if (s.mode == Sampling::Mode::bilinear) {
    taps.share = {1 - t, t};
  } else {
    constexpr float a = -0.75f;
    const auto near = [](float d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](float d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    taps.share = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  }
  for (int k = 0; k < s.taps(); ++k)
    taps.at[static_cast<size_t>(k)] =
        placed(first + k - (s.mode == Sampling::Mode::bicubic ? 1 : 0), size, s);
  return taps;
}

namespace {

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const Shape &data = context.inputs[0].shape, &grid = context.inputs[1].shape;
  check_rank(data, 4, 4, "the data");
  check_rank(grid, 4, 4, "the grid");
  if (grid[0] != data[0] || grid[3] != 2 || data[2] < 1 || data[3] < 1)
    fail_model("the grid " + to_string(grid) + " does not fit the data " + to_string(data));
  if (!is_float(context.inputs[1].type)) fail_model("the grid must be of floats");
  sampling_of(context.attributes);
  const Shape out{data[0], data[1], grid[1], grid[2]};
  checked_count(out);
  return {{context.inputs[0].type, out, {}}};
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Sampling s = sampling_of(desc.attributes);
  const Shape &data = inputs[0].shape(), &out = outputs[0].shape();
  const int64_t plane = data[2] * data[3], points = out[2] * out[3];
  const std::vector<float> values = inputs[0].to_floats(), grid = inputs[1].to_floats();
  std::vector<float> sampled(static_cast<size_t>(count(out)));
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t p = 0; p < points; ++p) {
      const float* place = grid.data() + 2 * (n * points + p);
      const Taps x = taps_of(place[0], data[3], s), y = taps_of(place[1], data[2], s);
      for (int64_t c = 0; c < out[1]; ++c) {
        const float* image = values.data() + (n * data[1] + c) * plane;
        float sum = 0;
        for (size_t i = 0; i < static_cast<size_t>(s.taps()); ++i)
          for (size_t k = 0; k < static_cast<size_t>(s.taps()); ++k)
            if (y.at[i] >= 0 && x.at[k] >= 0)
              sum += image[y.at[i] * data[3] + x.at[k]] * y.share[i] * x.share[k];
        sampled[static_cast<size_t>((n * out[1] + c) * points + p)] = sum;
      }
    }
  outputs[0] = Tensor::of(outputs[0].type(), out, sampled);
}

// ---- kernel ------------------------------------------------------------------------------------

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_storage(desc, 2); !why.empty()) return why;
  const ElementType grid = desc.inputs[1].type;
  if (grid != ElementType::f32 && grid != ElementType::f16) return "the grid is not of floats";
  return reject_tail(desc, 4, spatial_axes(4));
}

// Uses vectors of channels if channels are adjacent.
std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  const bool adjacent = desc.inputs[0].strides[1] == 1 && desc.outputs[0].strides[1] == 1;
  std::vector<TuningPoint> points;
  for (int vector : {4, 1})
    if (vector == 1 || (adjacent && desc.outputs[0].shape[1] % vector == 0))
      for (TuningPoint point : item_space(desc, traits)) {
        point.values.insert(point.values.begin(), {"VECTOR", vector});
        points.push_back(std::move(point));
      }
  return points;
}

struct Args {
#include "kernels/sampling/grid_sample_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const Sampling s = sampling_of(desc.attributes);
  const int vector = point["VECTOR"];
  const Shape &data = desc.inputs[0].shape, &shape = desc.outputs[0].shape;
  const PixelStrides in = pixel_strides(desc.inputs[0]), grid = pixel_strides(desc.inputs[1]),
                     out = pixel_strides(desc.outputs[0]);
  const int64_t vectors = shape[1] / vector, items = shape[0] * shape[2] * shape[3] * vectors;
  KernelPlan plan;
  KernelSpec spec;
  spec.source = "grid_sample.cl";
  spec.defines = {{"T", storage_name(desc.inputs[0].type)},
                  {"GRID", storage_name(desc.inputs[1].type)},
                  {"VECTOR", std::to_string(vector)}};
  for (auto& define : s.defines()) spec.defines.push_back(std::move(define));
  Args args{};
  set_strides(args, in, out);
  args.grid_n = to_int(grid.n), args.grid_c = to_int(grid.c);
  args.grid_h = to_int(grid.h), args.grid_w = to_int(grid.w);
  args.ih = to_int(data[2]), args.iw = to_int(data[3]);
  args.oh = to_int(shape[2]), args.ow = to_int(shape[3]);
  args.vectors = to_int(vectors), args.items = to_int(items);
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)),
                    Argument::input(1, size_of(desc.inputs[1].type)),
                    Argument::output(0, size_of(desc.outputs[0].type)), Argument::value(args)};
  add_tail(desc, vector, spatial_axes(4), spec, plan);
  set_items(spec, items, point);
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kGridSample{
    "grid_sample",
    1,
    reject,
    space,
    [](const OpDesc& desc, const DeviceTraits& traits) { return space(desc, traits)[0]; },
    plan};

}  // namespace

std::vector<OpDef> grid_sample_ops() {
  return {{.type = "GridSample",
           .opsets = opset_range(9),
           .infer_shapes = infer_shapes,
           .evaluate = evaluate,
           .families = {&kGridSample},
           .layout = LayoutRule::image}};
}

}  // namespace clinfer
