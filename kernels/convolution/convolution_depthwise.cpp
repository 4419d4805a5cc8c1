// Chooses points and packs weights for the depthwise kernel (convolution_depthwise.cl), for floats
// and for bytes.
#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// Number of products whose sum f32 holds exactly.
constexpr int64_t kExactTaps = (1 << 24) / (255 * 255);

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  if (std::string why = reject_float_data(desc); !why.empty()) return why;
  const TileProblem problem = convolution_problem(desc);
  if (std::string why = reject_depthwise_shape(problem.shape); !why.empty()) return why;
  if (std::string why = reject_channels(problem.shape, problem.in, problem.out); !why.empty())
    return why;
  return reject_tail(desc, 16, problem.axes);
}

std::string reject_int8(const OpDesc& desc, const DeviceTraits&) {
  if (!takes_bytes(desc)) return "the data are not bytes";
  if (std::string why = reject_byte_storage(desc); !why.empty()) return why;
  const TileProblem problem = convolution_problem(desc);
  if (std::string why = reject_depthwise_shape(problem.shape); !why.empty()) return why;
  if (std::string why = reject_depthwise_zeros(desc, problem.shape); !why.empty()) return why;
  if (problem.shape.taps() > kExactTaps) return "sums of too many products";
  if (std::string why = reject_channels(problem.shape, problem.in, problem.out); !why.empty())
    return why;
  return reject_tail(desc, 16, problem.axes);
}

// Returns points for a GPU, for each of these sizes of work-group.
std::vector<TuningPoint> points(const OpDesc& desc, const DeviceTraits& traits,
                                std::initializer_list<int> group_sizes) {
  const ConvShape shape = convolution_problem(desc).shape;
  const int64_t channels = shape.groups;
  const auto size = static_cast<int64_t>(size_of(desc.inputs[0].type));
  const int64_t weight = size == 1 ? 4 : size;  // those of bytes are floats
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
      // Counts sums, a row of weights, and the columns of a row that the tile reads; the tile and
      // each of its pixels have a place.
      const int64_t columns = (tile_p - 1) * shape.stride[2] + shape.kernel[2];
      const int64_t bytes = vector * (4 * tile_p + weight * shape.kernel[2] + size * columns);
      if (!fits_registers_of_items(traits, bytes, 3 + tile_p)) continue;
      for (int lanes : {32, 16, 8, 4, 2, 1})
        if (lanes == 1 || lanes * vector < 2 * channels)
          for (int items : group_sizes)
            if (static_cast<size_t>(items) <= traits.max_work_group)
              add(vector, tile_p, lanes, items / lanes);
    }
  }
  if (space.empty()) add(1, 1, 1, 1);
  return space;
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  return points(desc, traits, {128, 64, 256});
}

std::vector<TuningPoint> space_int8(const OpDesc& desc, const DeviceTraits& traits) {
  return points(desc, traits, {128});
}

// Estimates the cost in vector multiply-adds: multiplications, loads and register spills, and waits
// for memory if the activations do not stay in the last-level cache. The CPU prefetches a load that
// continues where the previous pixel's load ended, but not one that skips the other pixels of its
// tile. The constants are fitted to 4,640 timings of 236 layers of eleven networks on PoCL with
// AVX2 (32 MiB of cache, batches 1 and 8): the point with the lowest cost takes 1.07 times as long
// as the best one on average, and 1.06 times by the sum of times.
double cost_on_cpu(const ConvShape& s, const TuningPoint& p, const DeviceTraits& traits) {
  constexpr double kCached = 12 << 20;  // bytes; half of it stays, 1.5 times as much does not
  constexpr double kApart = 900;        // of the channels of a tile; more do not cost more
  const int vector = p["VECTOR"], tile_p = p["TILE_P"];
  const double channels = static_cast<double>(s.groups), lanes = traits.vector_width;
  const double items = static_cast<double>(ceil_div(s.groups, vector) * ceil_div(s.out[2], tile_p) *
                                           s.out[1] * s.batch);
  const double kh = static_cast<double>(s.kernel[1]), kw = static_cast<double>(s.kernel[2]);
  const double columns = (tile_p - 1) * static_cast<double>(s.stride[2]) + kw;
  const double width = std::max(1.0, vector / lanes);
  const double registers = traits.vector_width >= 16 ? 32 : 16;
  const double spilled = std::max(0.0, (tile_p + columns + 1) * width - registers);
  const double values =
      channels * static_cast<double>(s.batch * (s.in[1] * s.in[2] + s.out[1] * s.out[2]));
  const double beyond = std::clamp(values * sizeof(float) / kCached - 0.5, 0.0, 1.0);
  return items * (8 + kh * (width * (tile_p * kw + 0.7 * columns) + 0.2 * spilled)) +
         13 * beyond * values / lanes * std::min(1.0, tile_p * channels / kApart);
}

// Estimates the time on a GPU in cycles: memory reads, the wait of the slowest work-group, the
// instructions of all warps (four schedulers per compute unit), and starting work-groups.
// Work-groups that are neighbours along the channels share cache lines; an unaligned vector takes
// one load per channel. The constants are fitted to 15,576 timings of 48 layers of detection,
// segmentation and classification networks on an H200 (f16, batches 1 and 8), twelve of them also
// unaligned: the point with the lowest cost takes 1.12 times as long as the best one on average.
double cost_on_gpu(const ConvShape& s, const TuningPoint& p, const DeviceTraits& traits,
                   bool aligned) {
  constexpr double kWarp = 32, kLine = 128, kHalf = 2;
  const int64_t vectors = ceil_div(s.groups, p["VECTOR"]),
                tiles = ceil_div(s.out[2], p["TILE_P"]) * s.out[1] * s.batch,
                along = ceil_div(vectors, p["LANES"]);
  const double units = traits.compute_units, vector = p["VECTOR"], tile_p = p["TILE_P"],
               lanes = p["LANES"], items = lanes * p["ROWS"];
  const double kh = static_cast<double>(s.kernel[1]);
  const double columns =
      (tile_p - 1) * static_cast<double>(s.stride[2]) + static_cast<double>(s.kernel[2]);
  const double groups = static_cast<double>(along * ceil_div(tiles, p["ROWS"]));
  const double warps = groups * std::ceil(items / kWarp);
  const double run = std::min(lanes, static_cast<double>(vectors)) * vector * kHalf;
  const double lines = kWarp / lanes * std::max(1.0, lanes * vector * kHalf / kLine);
  const double shared = along > 1 ? std::max(0.0, kLine / run - 1) : 0;
  const double memory = static_cast<double>(tiles * s.groups) * columns * kh * kHalf / units *
                        0.0048 * (1 + 0.453 * shared);
  const double load = 9.86 + (aligned ? 1.39 * lines : vector * (1.39 * lines + 5.43));
  const double issue = kh * columns * load + 15.3 * tile_p * vector;
  const double alone = (354 + kh * (37 + 14 * columns * vector)) * (1 + 0.0114 * items / kWarp);
  const double resident = std::min(64.0, 65536 / (kWarp * (94 + 1.42 * tile_p * vector)));
  return memory + std::max(warps / units / resident, 1.0) * alone + warps / units / 4 * issue +
         6.9 * groups / units;
}

std::vector<double> costs(const OpDesc& desc, const DeviceTraits& traits) {
  const TileProblem problem = convolution_problem(desc);
  std::map<int, bool> aligned;  // by VECTOR
  for (int vector : {1, 2, 4, 8, 16}) aligned[vector] = vectors_aligned(desc, traits, vector);
  std::vector<double> values;
  for (const TuningPoint& point : space(desc, traits))
    values.push_back(traits.is_cpu
                         ? cost_on_cpu(problem.shape, point, traits)
                         : cost_on_gpu(problem.shape, point, traits, aligned[point["VECTOR"]]));
  return values;
}

// Counts multiply-adds, loads and conversions of all work-items; on a GPU adds a penalty for too
// few work-items.
std::vector<double> costs_int8(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = convolution_problem(desc).shape;
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
           (p["LANES"] * vector < 32 && s.groups >= 32 ? 1.2 : 1.0) *
           (vector * tile_p > 32 ? 1.5 : 1.0);  // more than 128 registers
  };
  std::vector<double> values;
  for (const TuningPoint& point : space_int8(desc, traits)) values.push_back(cost(point));
  return values;
}

TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return cheapest(space(desc, traits), costs(desc, traits));
}

TuningPoint heuristic_int8(const OpDesc& desc, const DeviceTraits& traits) {
  return cheapest(space_int8(desc, traits), costs_int8(desc, traits));
}

struct Args {
#include "kernels/convolution/convolution_depthwise_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const TileProblem problem = convolution_problem(desc);
  const ConvShape& s = problem.shape;
  const bool bytes = takes_bytes(desc);
  const ElementType type = desc.inputs[0].type, out = desc.outputs[0].type,
                    weight_type = bytes ? ElementType::f32 : type;
  const int vector = point["VECTOR"], tile_p = point["TILE_P"], lanes = point["LANES"],
            rows = point["ROWS"];
  const int64_t channels = s.groups, vectors = ceil_div(channels, vector),
                row_tiles = ceil_div(s.out[2], tile_p), tiles = row_tiles * s.out[1] * s.batch;
  const double flops = 2.0 * static_cast<double>(s.taps() * channels) * tile_p * 2;
  const int64_t per_item = traits.is_cpu ? tiles_per_item(tiles, 1, flops, traits)
                                         : ceil_div(ceil_div(tiles, rows), kMaxGroups);
  Args args{};
  set_strides(args, problem.in, problem.out);
  set_geometry(args, s);
  args.channels = to_int(channels);
  args.vectors = to_int(vectors);
  args.row_tiles = to_int(row_tiles);
  args.tiles = to_int(tiles);
  args.tiles_per_item = to_int(per_item);
  args.zeros = to_int(s.taps() * channels);

  KernelPlan plan;
  plan.packed.push_back([weights = problem.weights, s, vector, weight_type] {
    const std::vector<float> from = weights();
    std::vector<float> to(from.size() + static_cast<size_t>(vector), 0.f);
    for (int64_t c = 0; c < s.groups; ++c)
      for (int64_t t = 0; t < s.taps(); ++t) to[t * s.groups + c] = from[c * s.taps() + t];
    return to_bytes(to, weight_type);
  });
  KernelSpec spec;
  spec.source = "convolution_depthwise.cl";
  spec.arguments = {Argument::input(0, size_of(type)), Argument::packed(0, size_of(weight_type))};
  bool has_zero = false;
  if (bytes) {
    const std::vector<float> zeros = zero_points(desc);
    has_zero = std::any_of(zeros.begin(), zeros.end(), [](float zero) { return zero != 0; });
    plan.packed.push_back([zeros, channels] {
      std::vector<std::byte> packed;
      for (int64_t c = 0; c < channels; ++c)
        packed.push_back(
            static_cast<std::byte>(static_cast<int>(zeros[static_cast<size_t>(c) % zeros.size()])));
      return packed;
    });
    spec.arguments.push_back(Argument::packed(1, 1));
  }
  spec.arguments.push_back(Argument::output(0, size_of(out)));
  spec.arguments.push_back(Argument::value(args));
  add_stored_tail(desc, vector, problem.axes, traits, spec, plan);
  // Common kernel sizes are compiled with unrolled loops; all others share one program.
  const bool usual =
      s.kernel[1] == s.kernel[2] && (s.kernel[2] == 3 || s.kernel[2] == 5) && s.stride[2] <= 2;
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const auto define_loop = [&](const char* name, int64_t value, const char* member) {
    spec.defines.emplace_back(name, usual ? std::to_string(value) : std::string(member));
  };
  spec.defines.emplace_back("T", storage_name(out));
  spec.defines.emplace_back("IN_T", storage_name(type));
  define("VECTOR", vector);
  define("TILE_P", tile_p);
  define("LANES", lanes);
  define("ROWS", rows);
  define("BYTES", bytes);
  define_access(spec, vectors_aligned(desc, traits, vector));
  define("SPLIT", traits.is_cpu);
  define("COLUMNS", traits.is_cpu && usual && s.dilation[2] == 1
                        ? (tile_p - 1) * s.stride[2] + s.kernel[2]
                        : 0);
  define("HAS_ZERO", has_zero);
  define_loop("KH", s.kernel[1], "a.kh");
  define_loop("KW", s.kernel[2], "a.kw");
  define_loop("SW", s.stride[2], "a.sw");
  define_loop("DW", s.dilation[2], "a.dw");
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(rows), 1};
  const int64_t columns = traits.is_cpu ? 1 : ceil_div(vectors, lanes);
  spec.global = {spec.local[0] * static_cast<size_t>(columns),
                 static_cast<size_t>(ceil_div(ceil_div(tiles, per_item), rows)) * spec.local[1], 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace

std::string reject_depthwise_shape(const ConvShape& shape) {
  if (shape.in_channels != 1 || shape.out_channels != 1)
    return "not one input and one output channel in each group";
  if (shape.in[0] != 1 || shape.out[0] != 1 || shape.kernel[0] != 1)
    return "three spatial dimensions";
  return "";
}

std::string reject_depthwise_zeros(const OpDesc& desc, const ConvShape& shape) {
  const size_t zeros = zero_points(desc).size();
  return zeros == 1 || zeros == static_cast<size_t>(shape.groups)
             ? ""
             : "neither one zero point nor one for each channel";
}

const KernelFamily& depthwise_family() {
  static const auto& family =
      *new const KernelFamily{"conv_depthwise", 2, reject, space, heuristic, plan, costs};
  return family;
}

const KernelFamily& depthwise_int8_family() {
  static const auto& family = *new const KernelFamily{
      "conv_depthwise_int8", 2, reject_int8, space_int8, heuristic_int8, plan};
  return family;
}

}  // namespace clinfer
