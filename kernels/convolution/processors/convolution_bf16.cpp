// Points, costs and packing of the convolution with products of bf16 (convolution_bf16.cl).
#include "kernels/convolution/processors/convolution_bf16.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kVector = 16;
constexpr int64_t kChunk = 512, kRow = kChunk + 32;  // in values: CHUNK and ROW of the kernel

struct Point {
  int64_t tile_p, vectors, times;  // UNIT: pixels of a unit, in tiles
  static constexpr std::array<Parameter<Point, int64_t>, 3> parameters() {
    return {{{"TILE_P", &Point::tile_p}, {"VECTORS", &Point::vectors}, {"UNIT", &Point::times}}};
  }
  int64_t block() const { return vectors * kVector; }
  int64_t unit() const { return tile_p * times; }
};

// Numbers of pixels and of vectors whose sums are in registers, best first; the last ones suit
// fewer pixels.
constexpr int kShapes[][2] = {{14, 2}, {6, 4}, {8, 3}, {4, 4}, {16, 1}, {2, 8}, {1, 8}, {1, 4}};

int64_t depth_of(const ConvShape& s) { return s.taps() * s.in_channels; }

// Returns whether the values that an output reads are adjacent, in whole vectors, and fit a chunk.
bool is_direct(const ConvShape& s) {
  const auto inside = [&](int axis) {
    return s.pad[axis] == 0 && (s.out[axis] - 1) * s.stride[axis] < s.in[axis];
  };
  return s.taps() == 1 && inside(1) && inside(2) && depth_of(s) <= kChunk &&
         depth_of(s) % kVector == 0;
}

// Returns how many runs of adjacent values an output reads, each of which is copied at once; 0 if
// none are copied.
int64_t runs_of(const TileProblem& problem) {
  const ConvShape& s = problem.shape;
  return is_direct(s) ? 0 : is_merged(problem) ? s.kernel[1] : s.taps();
}

// Returns whether converting the values takes longer than the products save. Costs are cycles of a
// core for one pixel, fitted to the layers of two networks on a Zen 5, where both kinds of products
// take half a cycle for a vector.
bool conversions_cost_more(const TileProblem& problem) {
  constexpr double kPixel = 26, kRun = 15;
  const ConvShape& s = problem.shape;
  const auto depth = static_cast<double>(depth_of(s));
  const auto vectors = static_cast<double>(ceil_div(s.out_channels, kVector));
  return depth * vectors / 4 <
         kPixel + kRun * static_cast<double>(runs_of(problem)) + depth / kVector;
}

UnitShares shares_of(const ConvShape& s, const Point& point, const DeviceTraits& traits) {
  return share_units(s, ceil_div(s.pixels(), point.unit()), ceil_div(s.out_channels, point.block()),
                     traits);
}

// Estimates cycles of a core: products or loads, conversions, tails, and loading of weights.
double cost(const TileProblem& problem, const Point& p, const DeviceTraits& traits) {
  constexpr double kConvert = 3, kRun = 15, kTail = 8;
  constexpr int64_t kCore = 1 << 20;  // bytes that a core's cache keeps
  const ConvShape& s = problem.shape;
  const UnitShares shares = shares_of(s, p, traits);
  const auto depth = static_cast<double>(depth_of(s));
  const auto unit = static_cast<double>(std::min(p.unit(), s.pixels()));
  const double tiles = std::ceil(unit / static_cast<double>(p.tile_p));
  const auto sums = static_cast<double>(p.tile_p * p.vectors);
  const double step = std::max(std::max(sums, static_cast<double>(p.tile_p + p.vectors)) / 2, 4.0);
  const double own =
      unit * (static_cast<double>(runs_of(problem)) * kRun + depth / kVector * kConvert);
  const auto weights = static_cast<double>(depth_of(s) * p.block() * 2);
  const double blocks =
      static_cast<double>(ceil_div(s.out_channels, p.block())) / static_cast<double>(shares.parts);
  const double cached = weights * blocks > kCore ? 12 : 40;  // bytes per cycle
  const double work =
      own + blocks * (weights / cached * 0.5 + tiles * (depth / 2 * step + sums * kTail + 20));
  const double cores = traits.alone ? std::max(traits.compute_units, 1u) : 1;
  return work * std::ceil(static_cast<double>(shares.works) / cores);
}

// Rounds to the nearest value, ties to even.
uint16_t as_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>(
      (std::isnan(value) ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::vector<std::byte> pack(const std::vector<float>& weights, const ConvShape& s,
                            const Point& point) {
  const int64_t depth = depth_of(s), pairs = ceil_div(depth, 2), block = point.block(),
                blocks = ceil_div(s.out_channels, block);
  std::vector<uint16_t> packed(static_cast<size_t>(s.groups * blocks * pairs * block * 2), 0);
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o) {
    const int64_t group = o / s.out_channels, channel = o % s.out_channels;
    uint16_t* const to = packed.data() + (group * blocks + channel / block) * pairs * block * 2;
    const float* const from = weights.data() + o * depth;
    for (int64_t i = 0; i < depth; ++i)
      to[(i / 2 * block + channel % block) * 2 + i % 2] = as_bf16(from[i]);
  }
  std::vector<std::byte> bytes(packed.size() * sizeof(uint16_t));
  std::memcpy(bytes.data(), packed.data(), bytes.size());
  return bytes;
}

struct Args {
#include "kernels/convolution/processors/convolution_bf16_args.cl"
};

}  // namespace

bool takes_bf16(const OpDesc& desc) {
  return desc.attributes.has("products") && desc.attributes.get_string("products") == "bf16";
}

std::string reject_bf16(const OpDesc& desc, const TileProblem& problem,
                        const DeviceTraits& traits) {
  if (traits.bf16 == Bf16::none) return "the device has no products of bf16";
  if (!takes_bf16(desc)) return "bf16 was not asked for (INFERENCE_PRECISION=bf16)";
  if (desc.inputs[problem.data].type != ElementType::f32) return "the data are not f32";
  const ConvShape& s = problem.shape;
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "a volume";
  if (s.in_channels == 0) return "no input channels";
  if (traits.bf16 == Bf16::avx512 && conversions_cost_more(problem))
    return "converting the data would cost more than the products save";
  if (!fits_groups(desc, s, kVector)) return "vectors of channels would straddle groups";
  return reject_tiling(desc, problem, traits, depth_of(s) + 1);
}

std::vector<TuningPoint> bf16_space(const OpDesc&, const TileProblem&, const DeviceTraits&) {
  std::vector<TuningPoint> points;
  for (const auto& [tile_p, vectors] : kShapes)
    for (const int times : {4, 2, 1, 8}) points.push_back(to_tuning(Point{tile_p, vectors, times}));
  return points;
}

std::vector<double> bf16_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits) {
  std::vector<double> costs;
  for (const TuningPoint& point : bf16_space(desc, problem, traits))
    costs.push_back(cost(problem, from_tuning<Point>(point), traits));
  return costs;
}

TuningPoint bf16_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits) {
  return cheapest(bf16_space(desc, problem, traits), bf16_costs(desc, problem, traits));
}

KernelPlan bf16_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& tuning) {
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const UnitShares shares = shares_of(s, point, traits);
  const int64_t scratch = ceil_div(depth_of(s), kChunk) * point.unit() * kRow;
  Args args{};
  set_geometry(args, s);
  set_strides(args, problem.in, problem.out);
  args.in_channels = to_int(s.in_channels);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(ceil_div(s.out_channels, point.block()));
  args.pixels = to_int(s.pixels());
  args.depth = to_int(depth_of(s));
  args.merged = is_merged(problem);
  args.direct = is_direct(s);
  args.scratch = to_int(scratch);
  args.unit_pixels = to_int(point.unit());
  args.units = to_int(shares.units);
  args.parts = to_int(shares.parts);
  args.works = to_int(shares.works);
  args.workers = to_int(shares.workers);

  KernelPlan plan;
  plan.workspace = sizeof(uint16_t) * static_cast<size_t>(shares.workers * scratch);
  plan.packed.push_back(
      [weights = problem.weights, s, point] { return pack(weights(), s, point); });
  KernelSpec spec;
  spec.source = "convolution_bf16.cl";
  spec.arguments = {Argument::input(problem.data, 4), Argument::packed(0, 4),
                    Argument::workspace(2), Argument::output(0, size_of(desc.outputs[0].type)),
                    Argument::value(args)};
  add_stored_tail(desc, kVector, problem.axes, traits, spec, plan);
  spec.defines.emplace_back("T", storage_name(desc.outputs[0].type));
  spec.defines.emplace_back("TILE_P", std::to_string(point.tile_p));
  spec.defines.emplace_back("VECTORS", std::to_string(point.vectors));
  spec.defines.emplace_back("AVX512_BF16", traits.bf16 == Bf16::avx512 ? "1" : "0");
  spec.global = {static_cast<size_t>(shares.workers), 1, 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
