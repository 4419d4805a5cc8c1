// Convolution and GroupConvolution: shapes, plain reference, and the families tile
// (convolution.cl), depthwise and general.
#include <algorithm>
#include <limits>

#include "kernels/convolution_int8.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kMaxIndex = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxGroups = 65535;  // work-groups along the second dimension (NVIDIA)

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const Shape& data = context.inputs[0].shape;
  const ConvShape s =
      resolve_convolution(context.type, context.attributes, data, context.inputs[1].shape);
  Shape out{s.batch, s.groups * s.out_channels};
  for (size_t i = 5 - data.size(); i < 3; ++i) out.push_back(s.out[i]);
  const ElementType type = context.inputs[0].type;  // sums of bytes are floats to what follows
  return {{type == ElementType::u8 ? ElementType::f32 : type, std::move(out), {}}};
}

// Sums in double, one row of outputs at a time.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const ConvShape s =
      resolve_convolution(desc.type, desc.attributes, inputs[0].shape(), inputs[1].shape());
  const std::vector<float> data = data_values(desc, inputs[0]), filter = inputs[1].to_floats();
  float* out = outputs[0].mutable_data<float>();
  const int64_t plane = s.in[0] * s.in[1] * s.in[2];
  std::vector<double> sums(static_cast<size_t>(s.out[2]));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.groups * s.out_channels; ++c) {
      const int64_t group = c / s.out_channels;
      for (int64_t z = 0; z < s.out[0]; ++z)
        for (int64_t y = 0; y < s.out[1]; ++y) {
          std::fill(sums.begin(), sums.end(), 0.0);
          const float* w = filter.data() + c * s.in_channels * s.taps();
          for (int64_t i = 0; i < s.in_channels; ++i) {
            const float* channel =
                data.data() + (n * s.groups * s.in_channels + group * s.in_channels + i) * plane;
            for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
              for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
                for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
                  const double weight = *w++;
                  const int64_t iz = z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
                  const int64_t iy = y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
                  if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) continue;
                  const float* row = channel + (iz * s.in[1] + iy) * s.in[2];
                  // Outputs whose input column ix = x * stride + shift lies inside.
                  const int64_t shift = kx * s.dilation[2] - s.pad[2], step = s.stride[2];
                  const int64_t low = shift < 0 ? ceil_div(-shift, step) : 0;
                  const int64_t high =
                      s.in[2] > shift ? std::min(s.out[2], ceil_div(s.in[2] - shift, step)) : 0;
                  for (int64_t x = low; x < high; ++x) sums[x] += weight * row[x * step + shift];
                }
          }
          for (double sum : sums) *out++ = static_cast<float>(sum);
        }
    }
}

ConvShape resolve(const OpDesc& desc) {
  return resolve_convolution(desc.type, desc.attributes, desc.inputs[0].shape,
                             desc.inputs[1].shape);
}

// ---- tile
// ----------------------------------------------------------------------------------------------------------

std::string reject_conv_tile(const OpDesc& desc, const DeviceTraits& traits) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  return reject_tile(desc, convolution_problem(desc), traits);
}

const KernelFamily kTile{
    "conv_tile",
    2,
    reject_conv_tile,
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return tile_space(desc, convolution_problem(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return tile_heuristic(desc, convolution_problem(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
      return tile_plan(desc, convolution_problem(desc), traits, point);
    }};

// ---- depthwise
// -----------------------------------------------------------------------------------------------------

// Members as in convolution_depthwise.cl.
struct DepthwiseArgs {
  int in_n, in_h, in_w, out_n, out_h, out_w;
  int ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
  int channels, vectors;
  int row_tiles, tiles, tiles_per_item;
  int zeros;
};

std::string reject_depthwise(const OpDesc& desc, const DeviceTraits&) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  if (std::string why = reject_storage(desc, 1); !why.empty()) return why;
  const ConvShape s = resolve(desc);
  if (s.in_channels != 1 || s.out_channels != 1)
    return "not one input and one output channel in each group";
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "three spatial dimensions";
  if (s.groups > 1 && (desc.inputs[0].strides[1] != 1 || desc.outputs[0].strides[1] != 1))
    return "channels are not adjacent in memory";
  return reject_tail(desc, 16, spatial_axes(desc.outputs[0].shape.size()));
}

TuningPoint depthwise_point(int vector, int tile_p, int lanes, int rows) {
  return {{{"VECTOR", vector}, {"TILE_P", tile_p}, {"LANES", lanes}, {"ROWS", rows}}};
}

std::vector<TuningPoint> depthwise_space(const OpDesc& desc, const DeviceTraits& traits) {
  const int64_t channels = resolve(desc).groups;
  std::vector<TuningPoint> space;
  for (int vector : {16, 8, 4, 2, 1}) {
    if (vector > channels || (!traits.is_cpu && vector > 8)) continue;
    for (int tile_p : {4, 2, 8, 1}) {
      if (traits.is_cpu) {
        space.push_back(depthwise_point(vector, tile_p, 1, 1));
        continue;
      }
      for (int lanes : {32, 16, 8, 4, 2, 1})
        if (lanes == 1 || lanes * vector < 2 * channels)
          for (int items : {128, 64, 256})
            if (static_cast<size_t>(items) <= traits.max_work_group)
              space.push_back(depthwise_point(vector, tile_p, lanes, items / lanes));
    }
  }
  if (space.empty()) space.push_back(depthwise_point(1, 1, 1, 1));
  return space;
}

TuningPoint depthwise_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = resolve(desc);
  const int64_t channels = s.groups;
  const std::vector<TuningPoint> space = depthwise_space(desc, traits);
  const auto cost = [&](const TuningPoint& p) {
    const int vector = p["VECTOR"], tile_p = p["TILE_P"];
    const int64_t vectors = ceil_div(channels, vector),
                  tiles = ceil_div(s.out[2], tile_p) * s.out[1] * s.batch;
    const double columns = static_cast<double>((tile_p - 1) * s.stride[2] + s.kernel[2]);
    const double work = static_cast<double>(tile_p * s.kernel[2]) + columns + 2;
    if (traits.is_cpu) {
      const double registers = std::max(1.0, vector / static_cast<double>(traits.vector_width));
      return static_cast<double>(vectors * tiles) * (work * registers + 4) *
             (tile_p * registers > 10 ? 1.3 : 1.0);
    }
    const double items = static_cast<double>(vectors * tiles),
                 wanted = 512.0 * traits.compute_units;
    double value = items * vector * (work + 4) * (items < wanted ? wanted / items : 1.0);
    if (p["LANES"] * p["ROWS"] != 128) value *= 1.02;
    const int64_t lanes = ceil_div(vectors, p["LANES"]) * p["LANES"];
    return value * static_cast<double>(lanes) / static_cast<double>(vectors) *
           (vector == 4 ? 0.9 : 1.0) * (p["LANES"] * vector < 32 && channels >= 32 ? 1.2 : 1.0);
  };
  return *std::min_element(
      space.begin(), space.end(),
      [&](const TuningPoint& a, const TuningPoint& b) { return cost(a) < cost(b); });
}

KernelPlan depthwise_plan(const OpDesc& desc, const DeviceTraits& traits,
                          const TuningPoint& point) {
  const ConvShape s = resolve(desc);
  const PixelStrides in = pixel_strides(desc.inputs[0]), out = pixel_strides(desc.outputs[0]);
  const ElementType type = desc.inputs[0].type;
  const int vector = point["VECTOR"], tile_p = point["TILE_P"], lanes = point["LANES"],
            rows = point["ROWS"];
  const int64_t channels = s.groups, row_tiles = ceil_div(s.out[2], tile_p),
                tiles = row_tiles * s.out[1] * s.batch;
  const auto i32 = [](int64_t v) { return static_cast<int>(v); };
  DepthwiseArgs args{};
  args.in_n = i32(in.n), args.in_h = i32(in.h), args.in_w = i32(in.w);
  args.out_n = i32(out.n), args.out_h = i32(out.h), args.out_w = i32(out.w);
  args.ih = i32(s.in[1]), args.iw = i32(s.in[2]), args.oh = i32(s.out[1]), args.ow = i32(s.out[2]);
  args.kh = i32(s.kernel[1]), args.kw = i32(s.kernel[2]), args.sh = i32(s.stride[1]),
  args.sw = i32(s.stride[2]);
  args.dh = i32(s.dilation[1]), args.dw = i32(s.dilation[2]), args.ph = i32(s.pad[1]),
  args.pw = i32(s.pad[2]);
  args.channels = i32(channels);
  args.vectors = i32(ceil_div(channels, vector));
  args.row_tiles = i32(row_tiles);
  args.tiles = i32(tiles);
  args.zeros = i32(s.taps() * channels);
  const double flops = 2.0 * static_cast<double>(s.taps() * channels) * tile_p * 2;
  args.tiles_per_item = i32(traits.is_cpu ? tiles_per_item(tiles, 1, flops, traits)
                                          : ceil_div(ceil_div(tiles, rows), kMaxGroups));

  KernelPlan plan;
  plan.packed.push_back([filter = desc.constants[1], s, vector, type] {
    const std::vector<float> from = filter.to_floats();
    std::vector<float> to(from.size() + vector, 0.f);
    for (int64_t c = 0; c < s.groups; ++c)
      for (int64_t t = 0; t < s.taps(); ++t) to[t * s.groups + c] = from[c * s.taps() + t];
    return to_bytes(to, type);
  });
  const Tail tail = make_tail(desc, vector, spatial_axes(desc.outputs[0].shape.size()), plan);
  KernelSpec spec;
  spec.source = "convolution_depthwise.cl";
  // The usual kernels get loops of their own; all others share one program.
  const bool usual = s.dilation[2] == 1 && s.kernel[1] == s.kernel[2] &&
                     (s.kernel[2] == 3 || s.kernel[2] == 5) && s.stride[2] <= 2;
  const auto define = [&](const char* name, int value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const auto define_loop = [&](const char* name, int value, const char* member) {
    spec.defines.emplace_back(name, usual ? std::to_string(value) : std::string(member));
  };
  spec.defines.emplace_back("T", storage_name(type));
  define("VECTOR", vector);
  define("TILE_P", tile_p);
  define("LANES", lanes);
  define("ROWS", rows);
  define_loop("KH", args.kh, "a.kh");
  define_loop("KW", args.kw, "a.kw");
  define_loop("SW", args.sw, "a.sw");
  define_loop("DW", args.dw, "a.dw");
  spec.prologue = tail.prologue;
  const size_t size = size_of(type);
  spec.arguments = {Argument::input(0, size), Argument::packed(0, size), Argument::output(0, size),
                    Argument::value(args)};
  spec.arguments.insert(spec.arguments.end(), tail.arguments.begin(), tail.arguments.end());
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(rows), 1};
  const int64_t columns = traits.is_cpu ? 1 : ceil_div(args.vectors, lanes);
  spec.global = {
      spec.local[0] * columns,
      static_cast<size_t>(ceil_div(ceil_div(tiles, args.tiles_per_item), rows)) * spec.local[1], 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kDepthwise{
    "conv_depthwise", 1, reject_depthwise, depthwise_space, depthwise_heuristic, depthwise_plan};

// ---- general
// -------------------------------------------------------------------------------------------------------

// Members as in convolution_general.cl.
struct GeneralArgs {
  int in_n, in_c, in_d, in_h, in_w, out_n, out_c, out_d, out_h, out_w;
  int w_group, w_out, w_in, w_d, w_h, w_w;
  int id, ih, iw, od, oh, ow, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw;
  int in_channels, out_channels, all_channels;
  int elements;
};

std::string reject_general(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_storage(desc, 2); !why.empty()) return why;
  if (!is_float(desc.inputs[1].type)) return "the weights are not of a float type";
  return reject_tail(desc, 1, spatial_axes(desc.outputs[0].shape.size()));
}

std::vector<TuningPoint> general_space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (int local : {64, 128, 256})
    if (static_cast<size_t>(local) <= traits.max_work_group) space.push_back({{{"LOCAL", local}}});
  if (space.empty()) space.push_back({{{"LOCAL", 1}}});
  return space;
}

KernelPlan general_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const ConvShape s = resolve(desc);
  const PixelStrides in = pixel_strides(desc.inputs[0]), out = pixel_strides(desc.outputs[0]);
  const ElementType type = desc.inputs[0].type;
  const bool constant = !desc.constants[1].empty();
  const auto i32 = [](int64_t v) { return static_cast<int>(v); };
  GeneralArgs args{};
  args.in_n = i32(in.n), args.in_c = i32(in.c), args.in_d = i32(in.d), args.in_h = i32(in.h),
  args.in_w = i32(in.w);
  args.out_n = i32(out.n), args.out_c = i32(out.c), args.out_d = i32(out.d),
  args.out_h = i32(out.h), args.out_w = i32(out.w);
  if (constant) {  // [group][output channel][tap][input channel]
    args.w_in = 1;
    args.w_w = i32(s.in_channels);
    args.w_h = i32(s.kernel[2] * args.w_w);
    args.w_d = i32(s.kernel[1] * args.w_h);
    args.w_out = i32(s.kernel[0] * args.w_d);
    args.w_group = i32(s.out_channels * args.w_out);
  } else {
    const bool grouped = desc.type == "GroupConvolution";
    const TensorDesc& w = desc.inputs[1];
    const size_t rank = w.shape.size();
    const size_t spatial = desc.inputs[0].shape.size() - 2;
    args.w_group = grouped ? i32(w.strides[0]) : 0;
    args.w_out = i32(w.strides[grouped]);
    args.w_in = i32(w.strides[grouped + 1]);
    args.w_w = i32(w.strides[rank - 1]);
    if (spatial >= 2) args.w_h = i32(w.strides[rank - 2]);
    if (spatial == 3) args.w_d = i32(w.strides[rank - 3]);
  }
  args.id = i32(s.in[0]), args.ih = i32(s.in[1]), args.iw = i32(s.in[2]);
  args.od = i32(s.out[0]), args.oh = i32(s.out[1]), args.ow = i32(s.out[2]);
  args.kd = i32(s.kernel[0]), args.kh = i32(s.kernel[1]), args.kw = i32(s.kernel[2]);
  args.sd = i32(s.stride[0]), args.sh = i32(s.stride[1]), args.sw = i32(s.stride[2]);
  args.dd = i32(s.dilation[0]), args.dh = i32(s.dilation[1]), args.dw = i32(s.dilation[2]);
  args.pd = i32(s.pad[0]), args.ph = i32(s.pad[1]), args.pw = i32(s.pad[2]);
  args.in_channels = i32(s.in_channels), args.out_channels = i32(s.out_channels);
  args.all_channels = i32(s.groups * s.out_channels);
  args.elements = i32(desc.outputs[0].elements());

  KernelPlan plan;
  const ElementType weight_type = constant ? type : desc.inputs[1].type;
  KernelSpec spec;
  spec.source = "convolution_general.cl";
  const size_t size = size_of(type), weight_size = size_of(weight_type);
  spec.arguments = {Argument::input(0, size),
                    constant ? Argument::packed(0, weight_size) : Argument::input(1, weight_size),
                    Argument::output(0, size), Argument::value(args)};
  if (constant)
    plan.packed.push_back(
        [weights = convolution_problem(desc).weights, type] { return to_bytes(weights(), type); });
  const Tail tail = make_tail(desc, 1, spatial_axes(desc.outputs[0].shape.size()), plan);
  const int local = point["LOCAL"];
  spec.defines = {{"T", storage_name(type)},
                  {"WT", storage_name(weight_type)},
                  {"LOCAL", std::to_string(local)},
                  {"CHANNELS_INNER", out.c == 1 || s.pixels() == 1 ? "1" : "0"}};
  spec.prologue = tail.prologue;
  spec.arguments.insert(spec.arguments.end(), tail.arguments.begin(), tail.arguments.end());
  spec.local = {static_cast<size_t>(local), 1, 1};
  spec.global = {static_cast<size_t>(ceil_div(args.elements, local)) * spec.local[0], 1, 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kGeneral{
    "conv_general",
    1,
    reject_general,
    general_space,
    [](const OpDesc& desc, const DeviceTraits& traits) { return general_space(desc, traits)[0]; },
    general_plan};

// ---- bytes

const KernelFamily kInt8{
    "conv_int8",
    1,
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return reject_int8(desc, convolution_problem(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return int8_space(desc, convolution_problem(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return int8_heuristic(desc, convolution_problem(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
      return int8_plan(desc, convolution_problem(desc), traits, point);
    }};

const KernelFamily kDepthwiseInt8{
    "conv_depthwise_int8",
    1,
    [](const OpDesc& desc, const DeviceTraits&) {
      return reject_depthwise_int8(desc, convolution_problem(desc));
    },
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return depthwise_int8_space(desc, convolution_problem(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits) {
      return depthwise_int8_heuristic(desc, convolution_problem(desc), traits);
    },
    [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
      return depthwise_int8_plan(desc, convolution_problem(desc), traits, point);
    }};

}  // namespace

TileProblem convolution_problem(const OpDesc& desc) {
  TileProblem problem;
  problem.shape = resolve(desc);
  problem.in = pixel_strides(desc.inputs[0]);
  problem.out = pixel_strides(desc.outputs[0]);
  problem.axes = spatial_axes(desc.outputs[0].shape.size());
  problem.weights = [filter = desc.constants[1], s = problem.shape] {
    const std::vector<float> from = filter.to_floats();
    std::vector<float> to(from.size());
    for (int64_t o = 0; o < s.groups * s.out_channels; ++o)
      for (int64_t i = 0; i < s.in_channels; ++i)
        for (int64_t t = 0; t < s.taps(); ++t)
          to[(o * s.taps() + t) * s.in_channels + i] = from[(o * s.in_channels + i) * s.taps() + t];
    return to;
  };
  return problem;
}

std::vector<OpDef> convolution_ops() {
  OpDef convolution;
  convolution.type = "Convolution";
  convolution.opsets = {1};
  convolution.infer_shapes = infer_shapes;
  convolution.evaluate = evaluate;
  convolution.families = {&kTile, &kInt8, &kGeneral};
  convolution.layout = LayoutRule::image;
  OpDef grouped = convolution;
  grouped.type = "GroupConvolution";
  grouped.families = {&kDepthwise, &kTile, &kDepthwiseInt8, &kInt8, &kGeneral};
  return {std::move(convolution), std::move(grouped)};
}

}  // namespace clinfer
