// Points, costs and packing of the convolution by AMX (convolution_amx.cl).
#include "kernels/convolution/processors/convolution_amx.h"

#include <algorithm>
#include <cmath>

#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kSide = 16;  // pixels and channels of a tile
constexpr int64_t kRow = 64;   // most bytes of a tile's row
// The fewest bytes and pixels for which AMX is used; for fewer, instructions that multiply vectors
// are as fast.
constexpr int64_t kFewestBytes = 32, kFewestPixels = 4;
constexpr int64_t kCore = 1 << 20;  // bytes that a core's cache keeps beside other things

struct Point {
  int64_t tiles_p, tiles_c, unit;
  static constexpr std::array<Parameter<Point, int64_t>, 3> parameters() {
    return {{{"TILES_P", &Point::tiles_p}, {"TILES_C", &Point::tiles_c}, {"UNIT", &Point::unit}}};
  }
  int64_t block() const { return tiles_c * kSide; }
};

// The bytes that an output reads, divided into equal steps.
struct Steps {
  int64_t count, size;
  int64_t bytes() const { return count * size; }
};

Steps steps_of(const ConvShape& s) {
  const int64_t bytes = s.taps() * s.in_channels, count = ceil_div(bytes, kRow);
  return {count, ceil_div(ceil_div(bytes, count), 4) * 4};
}

// Returns whether tiles are loaded from the input, not from a copy.
bool is_direct(const OpDesc& desc, const TileProblem& problem) {
  const PixelWalk walk = walk_pixels(desc, problem);
  return walk.row && walk.flat_tail && walk.in.w > 0;
}

// Returns whether copying the bytes that outputs read takes longer than the products save. Costs
// are cycles of a core for one pixel, as measured on layers of five networks. Other kernels read
// runs of bytes four at a time.
bool copies_cost_more(const TileProblem& problem) {
  constexpr double kVectors = 80, kPixel = 20, kRun = 4.5, kStep = 3, kTile = 1.3;
  const ConvShape& s = problem.shape;
  const int64_t runs = is_merged(problem) ? s.kernel[1] : s.taps();
  const int64_t run = s.taps() * s.in_channels / runs, tiles = ceil_div(s.out_channels, kSide);
  const auto steps = static_cast<double>(steps_of(s).count);
  const double vectors =
      static_cast<double>(runs * ceil_div(run, 4) * 4 * tiles * kSide) / kVectors;
  return vectors < kPixel + kRun * static_cast<double>(runs) +
                       steps * (kStep + kTile * static_cast<double>(tiles));
}

UnitShares shares_of(const ConvShape& s, const Point& point, const DeviceTraits& traits) {
  return share_units(s, ceil_div(ceil_div(s.pixels(), kSide), point.unit),
                     ceil_div(s.out_channels, point.block()), traits);
}

// Estimates cycles of a core: products or loads of tiles, copies, tails, and loading of weights.
double cost(const OpDesc& desc, const TileProblem& problem, const Point& p,
            const DeviceTraits& traits) {
  constexpr double kProduct = 16, kLoad = 8, kTail = 6;
  const ConvShape& s = problem.shape;
  const Steps steps = steps_of(s);
  const UnitShares shares = shares_of(s, p, traits);
  const auto tiles = static_cast<double>(p.tiles_p * p.tiles_c);
  const auto sides = static_cast<double>(p.tiles_p + p.tiles_c);
  const double groups = std::ceil(static_cast<double>(p.unit) / static_cast<double>(p.tiles_p));
  const double products = std::max(kProduct * tiles, kLoad * sides) + 4;
  const double sums = tiles * (2 * kProduct + kSide * kTail) + 30;
  const double blocks =
      static_cast<double>(ceil_div(s.out_channels, p.block())) / static_cast<double>(shares.parts);
  const auto depth = static_cast<double>(steps.count);
  const double copies =
      is_direct(desc, problem)
          ? 0
          : static_cast<double>(s.taps()) * 5 + static_cast<double>(steps.bytes()) / kRow * 2;
  const double own = static_cast<double>(p.unit * kSide) * (6 + copies);
  const double weights = static_cast<double>(steps.bytes() * p.block());
  const double cached = weights * blocks > kCore ? 8 : 40;  // bytes per cycle
  const double unit = own + blocks * (weights / cached * 0.3 + groups * (depth * products + sums));
  const double cores = traits.alone ? std::max(traits.compute_units, 1u) : 1;
  return unit * std::ceil(static_cast<double>(shares.works) / cores);
}

struct Args {
#include "kernels/convolution/processors/convolution_amx_args.cl"
};

std::vector<std::byte> pack(const std::vector<float>& weights, const ConvShape& s,
                            const Point& point) {
  const Steps steps = steps_of(s);
  const int64_t depth = s.taps() * s.in_channels, blocks = ceil_div(s.out_channels, point.block()),
                block_bytes = steps.bytes() * point.block();
  std::vector<std::byte> packed(static_cast<size_t>(s.groups * blocks * block_bytes));
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o) {
    const int64_t group = o / s.out_channels, channel = o % s.out_channels,
                  tile = channel % point.block() / kSide;
    std::byte* const to = packed.data() + (group * blocks + channel / point.block()) * block_bytes;
    const float* const from = weights.data() + o * depth;
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t step = i / steps.size, byte = i % steps.size;
      to[(step * point.tiles_c + tile) * steps.size * kSide + byte / 4 * kRow +
         channel % kSide * 4 + byte % 4] = static_cast<std::byte>(static_cast<int8_t>(from[i]));
    }
  }
  return packed;
}

}  // namespace

std::string reject_amx(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits) {
  if (traits.matrix != MatrixUnit::amx && traits.matrix != MatrixUnit::emulated_amx)
    return traits.no_amx.empty() ? "the device has no AMX" : traits.no_amx;
  if (!takes_bytes(desc)) return "the data are not bytes";
  if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
  if (has_shifts(desc)) return "weights that do not fit bytes";
  const ConvShape& s = problem.shape;
  if (s.taps() * s.in_channels < kFewestBytes || s.pixels() < kFewestPixels)
    return "too few products, or outputs of a channel";
  if (traits.matrix == MatrixUnit::amx && !is_direct(desc, problem) && copies_cost_more(problem))
    return "copying the data would cost more than the products save";
  if (!fits_groups(desc, s, kSide)) return "tiles of channels would straddle groups";
  return reject_tiling(desc, problem, traits, steps_of(s).bytes());
}

std::vector<TuningPoint> amx_space(const OpDesc&, const TileProblem&, const DeviceTraits&) {
  // Numbers of tiles of pixels and of channels whose sums are in registers; most layers suit the
  // first pair.
  static constexpr int kShapes[][2] = {{2, 2}, {4, 1}, {2, 1}, {1, 2}, {1, 1}};
  std::vector<TuningPoint> points;
  for (const auto& [tiles_p, tiles_c] : kShapes)
    for (const int unit : {8, 4, 2, 1})
      if (unit % tiles_p == 0) points.push_back(to_tuning(Point{tiles_p, tiles_c, unit}));
  return points;
}

std::vector<double> amx_costs(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits) {
  std::vector<double> costs;
  for (const TuningPoint& point : amx_space(desc, problem, traits))
    costs.push_back(cost(desc, problem, from_tuning<Point>(point), traits));
  return costs;
}

TuningPoint amx_heuristic(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits) {
  return cheapest(amx_space(desc, problem, traits), amx_costs(desc, problem, traits));
}

KernelPlan amx_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                    const TuningPoint& tuning) {
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const Steps steps = steps_of(s);
  const UnitShares shares = shares_of(s, point, traits);
  const PixelWalk walk = walk_pixels(desc, problem);
  const bool flat = walk.row && walk.flat_tail;
  const int64_t blocks = ceil_div(s.out_channels, point.block());
  // Avoids rows of a copy at multiples of 512 bytes, which would compete for the same cache sets.
  const int64_t copy_row = steps.bytes() + (steps.bytes() % 512 == 0 ? kRow : 0);
  const int zero = static_cast<int>(zero_points(desc)[0]);
  Args args{};
  set_geometry(args, s);
  if (flat) {
    set_strides(args, walk.in, walk.out);
    args.ih = args.oh = 1;
    args.iw = args.ow = to_int(s.pixels());
    if (walk.in.w > 0)
      args.readable = to_int((s.pixels() - 1) * walk.in.w + s.groups * s.in_channels);
  } else {
    set_strides(args, problem.in, problem.out);
  }
  args.in_channels = to_int(s.in_channels);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.pixels = to_int(s.pixels());
  args.rows = to_int(std::min(s.pixels(), kSide));
  args.step = to_int(steps.size);
  args.steps = to_int(steps.count);
  args.merged = is_merged(problem);
  args.copy_row = to_int(copy_row);
  args.scratch = to_int(point.unit * kSide * copy_row);
  args.zero = zero;
  args.unit_tiles = to_int(point.unit);
  args.units = to_int(shares.units);
  args.parts = to_int(shares.parts);
  args.works = to_int(shares.works);
  args.workers = to_int(shares.workers);

  KernelPlan plan;
  plan.workspace = static_cast<size_t>(shares.workers * point.unit * kSide * copy_row);
  plan.packed.push_back(
      [weights = problem.weights, s, point] { return pack(weights(), s, point); });
  plan.packed.push_back([weights = problem.weights, s, padded = blocks * point.block(), zero] {
    return start_sums(weights(), s, padded, zero, DotProduct::none);
  });
  KernelSpec spec;
  spec.source = "convolution_amx.cl";
  spec.arguments = {Argument::input(problem.data, 1),
                    Argument::packed(0, 1),
                    Argument::packed(1, 4),
                    Argument::workspace(1),
                    Argument::output(0, size_of(desc.outputs[0].type)),
                    Argument::value(args)};
  add_stored_tail(desc, kSide, flat ? walk.axes : problem.axes, traits, spec, plan);
  spec.defines.emplace_back("T", storage_name(desc.outputs[0].type));
  spec.defines.emplace_back("TILES_P", std::to_string(point.tiles_p));
  spec.defines.emplace_back("TILES_C", std::to_string(point.tiles_c));
  spec.defines.emplace_back("AMX", traits.matrix == MatrixUnit::amx ? "1" : "0");
  spec.global = {static_cast<size_t>(shares.workers), 1, 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
