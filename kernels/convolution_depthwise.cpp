// Points and packing of the depthwise kernel for bytes (convolution_depthwise_int8.cl).
#include <algorithm>

#include "kernels/convolution_int8.h"

namespace clinfer {

namespace {

constexpr int64_t kMaxGroups = 65535;  // work-groups along the second dimension (NVIDIA)
constexpr int64_t kExactTaps = (1 << 24) / (255 * 128);  // products whose sum f32 holds exactly

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Members as in convolution_depthwise_int8.cl.
struct Args {
  int in_n, in_h, in_w, out_n, out_h, out_w;
  int ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
  int channels, vectors;
  int row_tiles, tiles, tiles_per_item;
};

}  // namespace

std::string reject_depthwise_int8(const OpDesc& desc, const TileProblem& problem) {
  if (!takes_bytes(desc)) return "the data are not bytes";
  if (std::string why = reject_byte_storage(desc); !why.empty()) return why;
  const ConvShape& s = problem.shape;
  if (s.in_channels != 1 || s.out_channels != 1)
    return "not one input and one output channel in each group";
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "three spatial dimensions";
  if (const size_t zeros = zero_points(desc).size();
      zeros != 1 && zeros != static_cast<size_t>(s.groups))
    return "neither one zero point nor one for each channel";
  if (s.taps() > kExactTaps) return "sums of too many products";
  if (s.groups > 1 && (problem.in.c != 1 || problem.out.c != 1))
    return "channels are not adjacent in memory";
  return reject_tail(desc, 16, problem.axes);
}

std::vector<TuningPoint> depthwise_int8_space(const OpDesc&, const TileProblem& problem,
                                              const DeviceTraits& traits) {
  const int64_t channels = problem.shape.groups;
  std::vector<TuningPoint> space;
  const auto add = [&](int vector, int tile_p, int lanes, int rows) {
    space.push_back({{{"VECTOR", vector}, {"TILE_P", tile_p}, {"LANES", lanes}, {"ROWS", rows}}});
  };
  for (int vector : {16, 8, 4, 2, 1}) {
    if (vector > channels || (!traits.is_cpu && vector > 8)) continue;
    for (int tile_p : {4, 2, 8, 1}) {
      if (traits.is_cpu) {
        add(vector, tile_p, 1, 1);
        continue;
      }
      for (int lanes : {32, 16, 8, 4, 2, 1})
        if (lanes == 1 || lanes * vector < 2 * channels)
          if (const int items = 128; static_cast<size_t>(items) <= traits.max_work_group)
            add(vector, tile_p, lanes, items / lanes);
    }
  }
  if (space.empty()) add(1, 1, 1, 1);
  return space;
}

TuningPoint depthwise_int8_heuristic(const OpDesc& desc, const TileProblem& problem,
                                     const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const std::vector<TuningPoint> space = depthwise_int8_space(desc, problem, traits);
  // Multiply-adds, loads and conversions of all work-items; on a GPU also too few of them.
  const auto cost = [&](const TuningPoint& p) {
    const int vector = p["VECTOR"], tile_p = p["TILE_P"];
    const double vectors = static_cast<double>(ceil_div(s.groups, vector)),
                 tiles = static_cast<double>(ceil_div(s.out[2], tile_p) * s.out[1] * s.batch);
    const double columns = static_cast<double>((tile_p - 1) * s.stride[2] + s.kernel[2]);
    const double work =
        static_cast<double>(s.kernel[1]) * (static_cast<double>(tile_p * s.kernel[2]) +
                                            2 * columns + static_cast<double>(s.kernel[2])) +
        6 * tile_p + 8;
    if (traits.is_cpu) {
      const double registers = std::max(1.0, vector / static_cast<double>(traits.vector_width));
      return vectors * tiles * work * registers * (tile_p * registers > 10 ? 1.3 : 1.0);
    }
    const double items = vectors * tiles, wanted = 512.0 * traits.compute_units;
    const double lanes = static_cast<double>(p["LANES"]) *
                         static_cast<double>(ceil_div(static_cast<int64_t>(vectors), p["LANES"]));
    return items * vector * work * (items < wanted ? wanted / items : 1.0) * lanes / vectors *
           (p["LANES"] * vector < 32 && s.groups >= 32 ? 1.2 : 1.0);
  };
  return *std::min_element(
      space.begin(), space.end(),
      [&](const TuningPoint& a, const TuningPoint& b) { return cost(a) < cost(b); });
}

KernelPlan depthwise_int8_plan(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits, const TuningPoint& point) {
  const ConvShape& s = problem.shape;
  const int vector = point["VECTOR"], tile_p = point["TILE_P"], lanes = point["LANES"],
            rows = point["ROWS"];
  const int64_t channels = s.groups, row_tiles = ceil_div(s.out[2], tile_p),
                tiles = row_tiles * s.out[1] * s.batch;
  const auto i32 = [](int64_t v) { return static_cast<int>(v); };
  Args args{};
  args.in_n = i32(problem.in.n), args.in_h = i32(problem.in.h), args.in_w = i32(problem.in.w);
  args.out_n = i32(problem.out.n), args.out_h = i32(problem.out.h), args.out_w = i32(problem.out.w);
  args.ih = i32(s.in[1]), args.iw = i32(s.in[2]), args.oh = i32(s.out[1]), args.ow = i32(s.out[2]);
  args.kh = i32(s.kernel[1]), args.kw = i32(s.kernel[2]);
  args.sh = i32(s.stride[1]), args.sw = i32(s.stride[2]);
  args.dh = i32(s.dilation[1]), args.dw = i32(s.dilation[2]);
  args.ph = i32(s.pad[1]), args.pw = i32(s.pad[2]);
  args.channels = i32(channels);
  args.vectors = i32(ceil_div(channels, vector));
  args.row_tiles = i32(row_tiles);
  args.tiles = i32(tiles);
  const double flops = 2.0 * static_cast<double>(s.taps() * channels) * tile_p * 2;
  args.tiles_per_item = i32(traits.is_cpu ? tiles_per_item(tiles, 1, flops, traits)
                                          : ceil_div(ceil_div(tiles, rows), kMaxGroups));

  KernelPlan plan;
  plan.packed.push_back([weights = problem.weights, s] {
    const std::vector<float> from = weights();
    std::vector<float> to(from.size());
    for (int64_t c = 0; c < s.groups; ++c)
      for (int64_t t = 0; t < s.taps(); ++t) to[t * s.groups + c] = from[c * s.taps() + t];
    return to_bytes(to, ElementType::f32);
  });
  const std::vector<float> zeros = zero_points(desc);
  plan.packed.push_back([zeros, channels] {
    std::vector<std::byte> bytes;
    for (int64_t c = 0; c < channels; ++c)
      bytes.push_back(
          static_cast<std::byte>(static_cast<int>(zeros[static_cast<size_t>(c) % zeros.size()])));
    return bytes;
  });
  const Tail tail = make_tail(desc, vector, problem.axes, plan);
  KernelSpec spec;
  spec.source = "convolution_depthwise_int8.cl";
  // The usual kernels get loops of their own; all others share one program.
  const bool usual = s.dilation[2] == 1 && s.kernel[1] == s.kernel[2] &&
                     (s.kernel[2] == 3 || s.kernel[2] == 5) && s.stride[2] <= 2;
  const auto define = [&](const char* name, int value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const auto define_loop = [&](const char* name, int value, const char* member) {
    spec.defines.emplace_back(name, usual ? std::to_string(value) : std::string(member));
  };
  const ElementType out = desc.outputs[0].type;
  spec.defines.emplace_back("T", storage_name(out));
  define("VECTOR", vector);
  define("TILE_P", tile_p);
  define("LANES", lanes);
  define("ROWS", rows);
  define("HAS_ZERO", std::any_of(zeros.begin(), zeros.end(), [](float zero) { return zero != 0; }));
  define_loop("KH", args.kh, "a.kh");
  define_loop("KW", args.kw, "a.kw");
  define_loop("SW", args.sw, "a.sw");
  define_loop("DW", args.dw, "a.dw");
  spec.prologue = tail.prologue;
  spec.arguments = {Argument::input(problem.data, 1), Argument::packed(0, 4),
                    Argument::packed(1, 1), Argument::output(0, size_of(out)),
                    Argument::value(args)};
  spec.arguments.insert(spec.arguments.end(), tail.arguments.begin(), tail.arguments.end());
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(rows), 1};
  const int64_t columns = traits.is_cpu ? 1 : ceil_div(args.vectors, lanes);
  spec.global = {
      spec.local[0] * static_cast<size_t>(columns),
      static_cast<size_t>(ceil_div(ceil_div(tiles, args.tiles_per_item), rows)) * spec.local[1], 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
