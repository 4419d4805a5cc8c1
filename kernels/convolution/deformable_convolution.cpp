// DeformableConvolution: data, offsets (pairs y, x for each tap), weights and, from opset 8, a
// mask.
#include <algorithm>
#include <cmath>

#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/item_kernel.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Deformable {
  ConvShape shape;
  int64_t deformed = 1;  // input channels that share offsets
  bool border = false;   // true if samples may lie up to a pixel outside
};

int64_t positive(const Attributes& a, const char* name) {
  const int64_t value = a.get_int(name, 1);
  if (value < 1 || value > kMaxStep)
    fail_model(std::string("attribute ") + name + " is " + std::to_string(value));
  return value;
}

Deformable resolve(const Attributes& a, const Shape& data, const Shape& filter) {
  check_rank(data, 4, 4, "the data");
  check_rank(filter, 4, 4, "the filter");
  const int64_t groups = positive(a, "group"), deformable = positive(a, "deformable_group");
  if (data[1] < 1 || data[1] % deformable != 0 || filter[0] % groups != 0 ||
      data[1] != filter[1] * groups)
    fail_model("the filter " + to_string(filter) + " in " + std::to_string(groups) +
               " groups and " + std::to_string(deformable) +
               " deformable ones do not fit the data " + to_string(data));
  Deformable d;
  d.shape = resolve_convolution("Convolution", a, {data[0], filter[1], data[2], data[3]}, filter);
  d.shape.groups = groups;
  d.shape.out_channels /= groups;
  d.deformed = data[1] / deformable;
  d.border = a.get_bool("bilinear_interpolation_pad", false);
  return d;
}

Deformable resolve(const OpDesc& desc) {
  return resolve(desc.attributes, desc.inputs[0].shape, desc.inputs[2].shape);
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 3, context.opset >= 8 ? 4 : 3);
  const Shape &data = context.inputs[0].shape, &filter = context.inputs[2].shape;
  const Deformable d = resolve(context.attributes, data, filter);
  const ConvShape& s = d.shape;
  const int64_t taps = data[1] / d.deformed * s.taps();
  const auto expect = [&](size_t input, int64_t channels, const char* what) {
    const Shape shape{s.batch, channels, s.out[1], s.out[2]};
    if (context.inputs[input].shape != shape)
      fail_model(std::string(what) + " the shape " + to_string(context.inputs[input].shape) +
                 ", expected " + to_string(shape));
  };
  expect(1, 2 * taps, "the offsets have");
  if (has_input(context, 3)) expect(3, taps, "the mask has");
  return {{context.inputs[0].type, {s.batch, s.groups * s.out_channels, s.out[1], s.out[2]}, {}}};
}

// Returns the value between the four pixels around (y, x).
float between(const float* plane, float y, float x, int64_t height, int64_t width, bool border) {
  const float least = border ? -1.0f : 0.0f;
  const bool inside = (border ? y > least && x > least : y >= least && x >= least) &&
                      y < static_cast<float>(height) && x < static_cast<float>(width);
  if (!inside) return 0;
  const auto y1 = static_cast<int64_t>(std::floor(y)), x1 = static_cast<int64_t>(std::floor(x));
  const int64_t y2 = border ? y1 + 1 : std::min(static_cast<int64_t>(std::ceil(y)), height - 1),
                x2 = border ? x1 + 1 : std::min(static_cast<int64_t>(std::ceil(x)), width - 1);
  const float fy = y - static_cast<float>(y1), fx = x - static_cast<float>(x1);
  const auto at = [&](int64_t r, int64_t c) {
    return r < 0 || r >= height || c < 0 || c >= width ? 0.0f : plane[r * width + c];
  };
  return (1 - fy) * ((1 - fx) * at(y1, x1) + fx * at(y1, x2)) +
         fy * ((1 - fx) * at(y2, x1) + fx * at(y2, x2));
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Deformable d = resolve(desc.attributes, inputs[0].shape(), inputs[2].shape());
  const ConvShape& s = d.shape;
  const int64_t channels = s.groups * s.in_channels, deformable = channels / d.deformed;
  const int64_t in_plane = s.in[1] * s.in[2], out_plane = s.out[1] * s.out[2];
  const auto *data = inputs[0].data<float>(), *offsets = inputs[1].data<float>(),
             *filter = inputs[2].data<float>(),
             *mask = inputs.size() > 3 ? inputs[3].data<float>() : nullptr;
  float* out = outputs[0].mutable_data<float>();
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.groups * s.out_channels; ++c)
      for (int64_t pixel = 0; pixel < out_plane; ++pixel) {
        const int64_t y = pixel / s.out[2], x = pixel % s.out[2];
        double sum = 0;
        for (int64_t i = 0; i < s.in_channels; ++i) {
          const int64_t channel = c / s.out_channels * s.in_channels + i;
          for (int64_t tap = 0; tap < s.taps(); ++tap) {
            const int64_t at = (n * deformable + channel / d.deformed) * s.taps() + tap;
            const int64_t iy = y * s.stride[1] - s.pad[1] + tap / s.kernel[2] * s.dilation[1],
                          ix = x * s.stride[2] - s.pad[2] + tap % s.kernel[2] * s.dilation[2];
            const float value =
                between(data + (n * channels + channel) * in_plane,
                        static_cast<float>(iy) + offsets[2 * at * out_plane + pixel],
                        static_cast<float>(ix) + offsets[(2 * at + 1) * out_plane + pixel], s.in[1],
                        s.in[2], d.border);
            sum += static_cast<double>(value) * filter[(c * s.in_channels + i) * s.taps() + tap] *
                   (mask ? mask[at * out_plane + pixel] : 1.0f);
          }
        }
        *out++ = static_cast<float>(sum);
      }
}

// ---- kernel ------------------------------------------------------------------------------------

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (desc.constants[2].empty()) return "the weights are not constant";
  if (std::string why = reject_storage(desc, 2); !why.empty()) return why;
  for (size_t i = 1; i < desc.own_inputs; ++i)
    if (i != 2 && desc.inputs[i].type != desc.inputs[0].type)
      return "offsets or mask are of another type than the data";
  const ConvShape s = resolve(desc).shape;
  if (s.groups * (s.out_channels + 16) * s.taps() * s.in_channels > kMaxIndex)
    return "the weights have more than 2^31 elements";
  return reject_tail(desc, 16, spatial_axes(4));
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = resolve(desc).shape;
  std::vector<TuningPoint> points;
  for (int vector : {16, 8, 4, 2, 1})
    // Counts sums, a row of weights, and four elements of the input with their shares and places.
    if (fits_registers_of_items(traits, 4 * (2 * vector + 4 + 4), 4 + 4 + 4) &&
        fits_groups(desc, s, vector) && (vector == 1 || vector / 2 < s.out_channels))
      for (TuningPoint point : item_space(desc, traits)) {
        point.values.insert(point.values.begin(), {"VECTOR", vector});
        points.push_back(std::move(point));
      }
  return points;
}

struct Args {
#include "kernels/convolution/deformable_convolution_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const Deformable d = resolve(desc);
  const ConvShape& s = d.shape;
  const ElementType type = desc.inputs[0].type;
  const int vector = point["VECTOR"];
  const bool mask = desc.own_inputs > 3;
  const int64_t blocks = (s.out_channels + vector - 1) / vector;
  const PixelStrides in = pixel_strides(desc.inputs[0]), off = pixel_strides(desc.inputs[1]),
                     weight = mask ? pixel_strides(desc.inputs[3]) : PixelStrides{},
                     out = pixel_strides(desc.outputs[0]);
  KernelPlan plan;
  plan.packed.push_back([filter = desc.constants[2], s, vector, blocks, type] {
    const std::vector<float> from = filter.to_floats();
    std::vector<float> to(
        static_cast<size_t>(s.groups * blocks * vector * s.taps() * s.in_channels), 0.f);
    const float* value = from.data();
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t o = 0; o < s.out_channels; ++o)
        for (int64_t i = 0; i < s.in_channels; ++i)
          for (int64_t t = 0; t < s.taps(); ++t)
            to[static_cast<size_t>(
                (((g * blocks + o / vector) * s.taps() + t) * s.in_channels + i) * vector +
                o % vector)] = *value++;
    return to_bytes(to, type);
  });
  KernelSpec spec;
  spec.source = "deformable_convolution.cl";
  spec.defines = {{"T", storage_name(type)},
                  {"VECTOR", std::to_string(vector)},
                  {"MASK", mask ? "1" : "0"},
                  {"BORDER", d.border ? "1" : "0"}};
  const int64_t items = s.groups * blocks * s.pixels();
  const size_t size = size_of(type);
  spec.arguments = {Argument::input(0, size), Argument::input(1, size), Argument::packed(0, size)};
  if (mask) spec.arguments.push_back(Argument::input(3, size));
  spec.arguments.push_back(Argument::output(0, size));
  Args args{};
  set_strides(args, in, out);
  args.off_n = to_int(off.n), args.off_c = to_int(off.c);
  args.off_h = to_int(off.h), args.off_w = to_int(off.w);
  args.mask_n = to_int(weight.n), args.mask_c = to_int(weight.c);
  args.mask_h = to_int(weight.h), args.mask_w = to_int(weight.w);
  set_geometry(args, s);
  args.in_channels = to_int(s.in_channels);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.all_blocks = to_int(s.groups * blocks);
  args.deformed = to_int(d.deformed);
  args.items = to_int(items);
  spec.arguments.push_back(Argument::value(args));
  add_tail(desc, vector, spatial_axes(4), spec, plan);
  set_items(spec, items, point);
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kDeformable{
    "deformable_conv",
    1,
    reject,
    space,
    [](const OpDesc& desc, const DeviceTraits& traits) { return space(desc, traits)[0]; },
    plan};

}  // namespace

std::vector<OpDef> deformable_convolution_ops() {
  return {{.type = "DeformableConvolution",
           .opsets = {1, 8},
           .infer_shapes = infer_shapes,
           .evaluate = evaluate,
           .families = {&kDeformable},
           .layout = LayoutRule::image}};
}

}  // namespace clinfer
