// Chooses points, estimates costs and packs weights for the convolution by the matrix instructions
// of sub-groups of eight lanes.
#include "kernels/convolution/intel/convolution_xmx8.h"

#include <algorithm>

#include "kernels/convolution/intel/convolution_xmx16.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int kLanes = 8;  // pixels for one instruction
constexpr int kRows = 8;   // output channels for one instruction
constexpr int kWords = 8;  // words of a row or a column

struct Point : TileShape {
  int reads = 1;

  Point() : Point(1, 1, 1, 1, 1) {}
  Point(int vs, int t, int rd, int r, int s) : TileShape{kRows, vs, t, 1, r, s}, reads(rd) {}
  static constexpr std::array<Parameter<Point>, 5> parameters() {
    return {{{"VECTORS", &Point::vectors},
             {"TILE_P", &Point::tile_p},
             {"READS", &Point::reads},
             {"ROWS", &Point::rows},
             {"SLICES", &Point::slices}}};
  }
};

int64_t channel_bytes(const OpDesc& desc) { return takes_bytes(desc) ? 1 : 2; }

// Returns the runs, in which an element is a word.
Runs runs_of(const OpDesc& desc, const TileProblem& problem) {
  return subgroup_runs(problem, 4 / channel_bytes(desc), kWords, kWords);
}

// Makes a tile lie in one row of the output, unless all pixels are one row.
Point point_for(const OpDesc& desc, const TileProblem& problem, Point point) {
  point.in_rows = !walk_pixels(desc, problem).row;
  return point;
}

// Counts sums, the columns of the pixels, and rows of weights, which are as large as one of these.
bool fits_registers(const Point& p, const OpDesc& desc, const TileProblem& problem,
                    const DeviceTraits& traits) {
  const int64_t lane = int64_t{4} * (p.sums() + kRows * (p.tile_p * p.reads + 1));
  return fits_registers(traits, kLanes * lane, pixel_coordinates(desc, problem) * p.tile_p);
}

std::vector<Point> points_of(const OpDesc& desc, const TileProblem& problem,
                             const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const Runs runs = runs_of(desc, problem);
  std::vector<Point> points;
  for (const int vectors : {4, 2, 1}) {
    // Half of the lanes would idle.
    if (vectors > 1 && s.out_channels <= kRows * vectors / 2) continue;
    for (const int tile_p : {2, 1}) {
      if (tile_p > 1 && (kLanes * tile_p / 2 >= s.pixels() || tile_p / 2 >= s.out[2])) continue;
      for (const int slices : {1, 4}) {
        const int rows = slices > 1 || s.pixels() <= 2 * kLanes * tile_p ? kLanes : 4 * kLanes;
        for (const int reads : {4, 2, 1}) {
          const Point p = point_for(desc, problem, {vectors, tile_p, reads, rows, slices});
          const int step = reads * kWords;
          if (reads > 1 && (runs.merged || runs.length % step != 0)) continue;
          if (slices > 1 && (takes_bytes(desc) || runs.length / step < slices)) continue;
          const auto items = static_cast<size_t>(rows * slices);
          if (items > traits.max_work_group) continue;
          if (slices > 1 &&
              sizeof(float) * items * static_cast<size_t>(tile_p) * static_cast<size_t>(p.block()) >
                  traits.local_memory)
            continue;
          if (fits_registers(p, desc, problem, traits)) points.push_back(p);
        }
      }
    }
  }
  // Adds a point if the device's groups are smaller than any of these.
  if (points.empty()) points.push_back(point_for(desc, problem, {1, 1, 1, kLanes, 1}));
  return points;
}

SubgroupCycles cycles(const OpDesc& desc, const TileProblem& problem, const Point& p,
                      const DeviceTraits& traits) {
  constexpr double kThreads = 7;          // of an execution unit
  constexpr double kProduct = 2 * kRows;  // cycles for one instruction
  constexpr double kSend = 3;             // instructions for a message, its header and its address
  constexpr double kMessages = 2;         // messages for 32 bytes of eight pixels or channels
  constexpr double kBytes = 32 * kLanes;  // bytes of these messages
  constexpr double kCached = 8;           // bytes per cycle from the cache to a unit
  constexpr double kLatency = 200;        // of the messages of a step, which are sent together
  const ConvShape& s = problem.shape;
  const Runs runs = runs_of(desc, problem);
  const double tile_p = p.tile_p, vectors = p.vectors;
  const bool row = walk_pixels(desc, problem).row;
  const auto threads = static_cast<double>(s.groups * p.blocks(s) * p.slices *
                                           ceil_div(p.tiles(s), int64_t{kLanes}));
  // Counts the steps: one for each 32 bytes of the pixels.
  const double steps = static_cast<double>(runs.count * runs.padded()) / (kWords * p.slices);
  const double products = kProduct * tile_p * vectors;
  const double sends = kSend * kMessages * (tile_p + vectors);
  const double masks = row || runs.merged ? 0 : kWords * tile_p;
  const double own =
      250 + (30 + 40 * vectors) * tile_p + (p.slices > 1 ? 50 + 64 * tile_p * vectors : 0);
  const double wait = steps / p.reads * kLatency;
  const double units = traits.compute_units;
  const double beside = std::clamp(threads / units, 1.0, kThreads);
  const double scale = std::max(1.0, threads / units), loops = scale * steps;
  return {loops * products, loops * std::max(products, sends + masks),
          loops * sends,    loops * kBytes * (tile_p + vectors) / kCached,
          scale * own,      scale * wait / beside};
}

std::vector<double> costs_of(const std::vector<Point>& points, const OpDesc& desc,
                             const TileProblem& problem, const DeviceTraits& traits) {
  std::vector<double> costs;
  for (const Point& point : points) costs.push_back(cycles(desc, problem, point, traits).total());
  return costs;
}

// Returns the weights in the order of the kernel, with zeros for missing channels.
std::vector<std::byte> pack(const std::vector<float>& weights, const ConvShape& s,
                            const Point& point, const Runs& runs, int64_t bytes) {
  const int64_t in_word = 4 / bytes, in_row = kWords * in_word;  // in input channels
  const int64_t block = point.block(), blocks = point.blocks(s);
  const int64_t run = runs.padded() / kWords * block * in_row, length = runs.length * in_word;
  std::vector<float> packed(static_cast<size_t>(s.groups * blocks * runs.count * run), 0.f);
  const float* from = weights.data();
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o) {
    const int64_t group = o / s.out_channels, channel = o % s.out_channels;
    float* const to = packed.data() + (group * blocks + channel / block) * runs.count * run +
                      channel % block * in_row;
    for (int64_t r = 0; r < runs.count; ++r)
      for (int64_t i = 0; i < length; ++i)
        to[r * run + i / in_row * block * in_row + i % in_row] = *from++;
  }
  if (bytes == 2) return to_bytes(packed, ElementType::f16);
  std::vector<std::byte> integers(packed.size());
  std::transform(packed.begin(), packed.end(), integers.begin(),
                 [](float value) { return static_cast<std::byte>(static_cast<int8_t>(value)); });
  return integers;
}

}  // namespace

std::string reject_xmx8(const OpDesc& desc, const TileProblem& problem,
                        const DeviceTraits& traits) {
  if (std::string why = reject_xmx(desc, problem, traits, kLanes); !why.empty()) return why;
  // Requires whole words, by which pixels are read.
  const int64_t word = 4 / channel_bytes(desc);
  if (problem.shape.in_channels % word != 0 || !input_aligned(desc, problem, word))
    return "the channels of a pixel are not whole words";
  if (!fits_groups(desc, problem.shape, kRows)) return "vectors of channels would straddle groups";
  return reject_tail(desc, kRows, problem.axes);
}

SubgroupCycles xmx8_cycles(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits, const TuningPoint& point) {
  return cycles(desc, problem, point_for(desc, problem, from_tuning<Point>(point)), traits);
}

std::vector<TuningPoint> xmx8_space(const OpDesc& desc, const TileProblem& problem,
                                    const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, problem, traits)) space.push_back(to_tuning(point));
  return space;
}

std::vector<double> xmx8_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits) {
  return costs_of(points_of(desc, problem, traits), desc, problem, traits);
}

TuningPoint xmx8_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits) {
  return cheapest(xmx8_space(desc, problem, traits), xmx8_costs(desc, problem, traits));
}

KernelPlan xmx8_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& tuning) {
  const ConvShape& s = problem.shape;
  const Point point = point_for(desc, problem, from_tuning<Point>(tuning));
  const Runs runs = runs_of(desc, problem);
  const bool bytes = takes_bytes(desc);
  const int zero = bytes ? static_cast<int>(zero_points(desc)[0]) : 0;

  KernelPlan plan;
  std::vector<Argument> constants;
  const auto add = [&](std::function<std::vector<std::byte>()> make) {
    constants.push_back(Argument::packed(plan.packed.size(), 4));
    plan.packed.push_back(std::move(make));
  };
  add([weights = problem.weights, s, point, runs, size = channel_bytes(desc)] {
    return pack(weights(), s, point, runs, size);
  });
  if (bytes && !walk_pixels(desc, problem).row)
    add([zero] { return std::vector<std::byte>(4, static_cast<std::byte>(zero)); });
  if (bytes)
    add([weights = problem.weights, s, channels = point.blocks(s) * point.block(), zero] {
      return start_sums(weights(), s, channels, zero, DotProduct::none);
    });
  KernelSpec spec = tile_launch("convolution_xmx8.cl", desc, problem, traits, point,
                                runs.count * runs.padded(), runs.merged, constants, plan);
  // Gives each lane of a sub-group a tile.
  spec.local = {kLanes, spec.local[1] / kLanes, spec.local[2]};
  spec.global = {kLanes, spec.global[1] / kLanes, spec.global[2]};
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  spec.defines.emplace_back("IN_T", storage_name(desc.inputs[problem.data].type));
  define("BYTES", bytes);
  define("STAND_IN", traits.matrix == MatrixUnit::emulated_xmx8);
  define("READS", point.reads);
  define("MERGED", runs.merged);
  define("REST", runs.rest());
  define("REST_WORDS", runs.length % kWords);
  if (output_aligned(desc, problem, kRows)) define("ALIGNED_OUT", 1);
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
