// Chooses points and packs weights for the Winograd kernel (convolution_winograd.cl), for CPUs.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kOutputs = 4, kProducts = 36;
// The fewest products of a vector of channels for which the kernel is used; for fewer, transforms
// cost what the multiplications save.
constexpr int64_t kFewestProducts = 4096;
// With weights of more bytes than stay in a cache, there must be this many tiles, because loading
// the weights takes longer than using them for few tiles.
constexpr int64_t kCachedWeights = 4 << 20, kFewestTiles = 16;

int vector_of(const DeviceTraits& traits) { return traits.vector_width >= 16 ? 16 : 8; }
// Returns the number of input channels that are transformed at a time.
int in_vector_of(const ConvShape& s, const DeviceTraits& traits) {
  return s.in_channels % 16 == 0 ? vector_of(traits) : 8;
}

int64_t row_tiles(const ConvShape& s) { return ceil_div(s.out[2], kOutputs); }
int64_t image_tiles(const ConvShape& s) { return row_tiles(s) * ceil_div(s.out[1], kOutputs); }

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  if (!traits.is_cpu || traits.vector_width < 8) return "no CPU with vectors of 8 or 16 floats";
  if (desc.constants[1].empty()) return "the weights are not constant";
  const TileProblem problem = convolution_problem(desc);
  if (takes_bytes(desc)) {
    if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
    // Multiplies bytes as floats only where the device adds products of bytes in pairs: a quarter
    // of the multiplications in floats is then faster.
    if (traits.dot != DotProduct::pairs && traits.dot != DotProduct::none)
      return "the device adds four products of bytes at a time";
  } else {
    if (std::string why = reject_float_data(desc); !why.empty()) return why;
    if (desc.inputs[0].type != ElementType::f32) return "the activations are halves";
  }
  const ConvShape& s = problem.shape;
  const std::array<int64_t, 3> ones{1, 1, 1};
  if (s.kernel != std::array<int64_t, 3>{1, 3, 3} || s.stride != ones || s.dilation != ones ||
      s.groups != 1 || s.in[0] != 1)
    return "not 3x3 with stride 1";
  const int64_t vector = vector_of(traits), tiles = s.batch * image_tiles(s);
  if (s.in_channels % in_vector_of(s, traits) != 0 || s.out_channels < vector)
    return "too few channels, or input channels in no whole vectors";
  if (tiles * s.in_channels * s.out_channels < kFewestProducts * vector) return "too few products";
  const int64_t weights = kProducts * s.in_channels * s.out_channels;
  if (weights * static_cast<int64_t>(sizeof(float)) > kCachedWeights && tiles < kFewestTiles)
    return "too few outputs for so many weights";
  // Counts full tiles: outputs of tiles that are not full are computed, but not stored.
  if (2 * s.out[1] * s.out[2] < kOutputs * kOutputs * image_tiles(s))
    return "tiles that are half empty";
  if (kProducts * s.in_channels * (s.out_channels + 256) > kMaxIndex)
    return "the weights have more than 2^31 elements";
  if (std::string why = reject_channels(s, problem.in, problem.out); !why.empty()) return why;
  return reject_tail(desc, static_cast<int>(vector), problem.axes);
}

// Computes APART of the kernel.
int64_t apart(int64_t values) { return (values / 16 | 1) * 16; }

// Numbers of vectors and tiles whose sums are in registers, best first: for the 32 registers of
// AVX-512, and the 16 of AVX2.
struct Sums {
  int vectors, tile_p;
};
constexpr Sums kShapes512[] = {{4, 6}, {2, 8}, {3, 6}, {3, 8}};
constexpr Sums kShapes256[] = {{2, 6}, {3, 4}};
std::span<const Sums> shapes_of(const DeviceTraits& traits) {
  if (vector_of(traits) == 16) return kShapes512;
  return kShapes256;
}

std::vector<TuningPoint> space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  for (const auto& [vectors, tile_p] : shapes_of(traits))
    for (const int times : {4, 2, 1, 8})
      points.push_back({{{"VECTORS", vectors}, {"TILE_P", tile_p}, {"UNIT", tile_p * times}}});
  return points;
}

// Counts products of vectors, including those of missing tiles and channels, and loading of the
// weights, once for each unit.
double cost(const ConvShape& s, const TuningPoint& point, const DeviceTraits& traits) {
  const int64_t unit = point["UNIT"], block = point["VECTORS"] * vector_of(traits),
                tiles = ceil_div(s.batch * image_tiles(s), point["TILE_P"]) * point["TILE_P"],
                units = ceil_div(tiles, unit);
  const double cores = traits.alone ? traits.compute_units : 1;
  const double rounds = std::ceil(static_cast<double>(units) / cores);
  const double channels = static_cast<double>(ceil_div(s.out_channels, block) * block);
  const Sums best = shapes_of(traits)[0];
  const double rate = 0.7 + 0.3 * std::min(1.0, point["VECTORS"] * point["TILE_P"] /
                                                    double(best.vectors * best.tile_p));
  constexpr double kWeights = 4;  // cost of loading weights, in tiles
  const double most = std::min(rounds * static_cast<double>(unit), static_cast<double>(tiles));
  return channels * (most / rate + rounds * kWeights);
}

TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = convolution_problem(desc).shape;
  return cheapest(space(desc, traits),
                  [&](const TuningPoint& point) { return cost(s, point, traits); });
}

// Computes G g G^T for one kernel.
std::array<double, 36> transformed(const std::array<double, 9>& g) {
  constexpr double kG[6][3] = {{1. / 4, 0, 0},
                               {-1. / 6, -1. / 6, -1. / 6},
                               {-1. / 6, 1. / 6, -1. / 6},
                               {1. / 24, 1. / 12, 1. / 6},
                               {1. / 24, -1. / 12, 1. / 6},
                               {0, 0, 1}};
  std::array<double, 36> to{};
  for (size_t i = 0; i < 6; ++i)
    for (size_t j = 0; j < 6; ++j)
      for (size_t y = 0; y < 3; ++y)
        for (size_t x = 0; x < 3; ++x) to[i * 6 + j] += kG[i][y] * kG[j][x] * g[y * 3 + x];
  return to;
}

struct Args {
#include "kernels/convolution/processors/convolution_winograd_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const TileProblem problem = convolution_problem(desc);
  const ConvShape& s = problem.shape;
  const int vector = vector_of(traits);
  const int64_t unit = point["UNIT"], block = point["VECTORS"] * vector,
                blocks = ceil_div(s.out_channels, block), tiles = s.batch * image_tiles(s),
                units = ceil_div(tiles, unit);
  // Makes two work-groups for each core, so that one that is held up does not hold up all.
  const int64_t groups = std::min<int64_t>(units, 2 * std::max(traits.compute_units, 1u));
  const int64_t scratch = kProducts * (apart(unit * s.in_channels) + apart(unit * block));
  Args args{};
  set_strides(args, problem.in, problem.out);
  args.ih = to_int(s.in[1]), args.iw = to_int(s.in[2]);
  args.oh = to_int(s.out[1]), args.ow = to_int(s.out[2]);
  args.ph = to_int(s.pad[1]), args.pw = to_int(s.pad[2]);
  args.in_channels = to_int(s.in_channels);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.row_tiles = to_int(row_tiles(s));
  args.image_tiles = to_int(image_tiles(s));
  args.tiles = to_int(tiles);
  args.units = to_int(units);
  args.groups = to_int(groups);
  args.scratch = to_int(scratch);
  if (takes_bytes(desc)) args.zero = zero_points(desc)[0];

  KernelPlan plan;
  plan.workspace = sizeof(float) * static_cast<size_t>(groups * scratch);
  plan.packed.push_back([weights = problem.weights, s, block, blocks] {
    const std::vector<float> from = weights();  // [output channel][tap][input channel]
    std::vector<float> to(static_cast<size_t>(blocks * kProducts * s.in_channels * block), 0.f);
    for (int64_t o = 0; o < s.out_channels; ++o)
      for (int64_t i = 0; i < s.in_channels; ++i) {
        std::array<double, 9> taps{};
        for (int64_t t = 0; t < 9; ++t)
          taps[static_cast<size_t>(t)] = from[static_cast<size_t>((o * 9 + t) * s.in_channels + i)];
        const std::array<double, 36> values = transformed(taps);
        for (int64_t p = 0; p < kProducts; ++p)
          to[static_cast<size_t>(((o / block * kProducts + p) * s.in_channels + i) * block +
                                 o % block)] = static_cast<float>(values[static_cast<size_t>(p)]);
      }
    return to_bytes(to, ElementType::f32);
  });
  KernelSpec spec;
  spec.source = "convolution_winograd.cl";
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)), Argument::packed(0, 4),
                    Argument::workspace(4), Argument::output(0, size_of(desc.outputs[0].type)),
                    Argument::value(args)};
  add_stored_tail(desc, vector, problem.axes, traits, spec, plan);
  spec.defines.emplace_back("T", storage_name(desc.outputs[0].type));
  spec.defines.emplace_back("IN_T", storage_name(desc.inputs[0].type));
  spec.defines.emplace_back("BYTES", takes_bytes(desc) ? "1" : "0");
  spec.defines.emplace_back("VECTOR", std::to_string(vector));
  spec.defines.emplace_back("IN_VECTOR", std::to_string(in_vector_of(s, traits)));
  for (const char* name : {"UNIT", "TILE_P", "VECTORS"})
    spec.defines.emplace_back(name, std::to_string(point[name]));
  spec.global = {static_cast<size_t>(groups), 1, 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace

const KernelFamily& winograd_family() {
  static const auto& family =
      *new const KernelFamily{"conv_winograd",
                              2,
                              reject,
                              space,
                              heuristic,
                              plan,
                              [](const OpDesc& desc, const DeviceTraits& traits) {
                                const ConvShape s = convolution_problem(desc).shape;
                                std::vector<double> costs;
                                for (const TuningPoint& point : space(desc, traits))
                                  costs.push_back(cost(s, point, traits));
                                return costs;
                              },
                              "adds up sums of transformed tiles"};
  return family;
}

}  // namespace clinfer
