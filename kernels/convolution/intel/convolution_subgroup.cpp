// Chooses points, estimates costs and packs weights for the convolution by sub-groups
// (convolution_subgroup.cl).
#include "kernels/convolution/intel/convolution_subgroup.h"

#include <algorithm>

#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Point : TileShape {
  int reads = 1;
  int pixels = 1;  // pixels that a message reads: one, or all of the tile
  int weight = 4;  // bytes of a weight: floats need no conversion, halves need half the memory

  Point() : TileShape{1, 1, 1, 1, 1, 1} {}
  Point(int l, int vs, int t, int rd, int ps, int w, int r, int s)
      : TileShape{1, vs, t, l, r, s}, reads(rd), pixels(ps), weight(w) {}
  static constexpr std::array<Parameter<Point>, 8> parameters() {
    return {{{"LANES", &Point::lanes},
             {"VECTORS", &Point::vectors},
             {"TILE_P", &Point::tile_p},
             {"READS", &Point::reads},
             {"PIXELS", &Point::pixels},
             {"WEIGHT", &Point::weight},
             {"ROWS", &Point::rows},
             {"SLICES", &Point::slices}}};
  }
};

constexpr int kFour = 4;   // number of elements whose weights a lane reads at once
constexpr int kPart = 16;  // bytes of a pixel that a lane reads if a message reads all pixels
constexpr int64_t kMaxStep = 32;  // elements of a pixel in a step, if a message reads all pixels

// Returns the number of input channels in an element.
int64_t unit(const OpDesc& desc) { return takes_bytes(desc) ? 4 : 1; }

Runs runs_of(const OpDesc& desc, const TileProblem& problem, int lanes) {
  return subgroup_runs(problem, unit(desc), lanes, kFour);
}

bool has_halves(const OpDesc& desc, const TileProblem& problem) {
  return desc.inputs[problem.data].type == ElementType::f16;
}

int64_t element_size(const OpDesc& desc, const TileProblem& problem) {
  return has_halves(desc, problem) ? 2 : 4;
}

// Returns the number of elements of a pixel in a step of the loop.
int64_t step_of(const Point& p, int64_t size) {
  return p.pixels > 1 ? int64_t{p.reads} * (p.lanes / p.pixels) * kPart / size
                      : int64_t{p.reads} * p.lanes;
}

// Counts sums, four rows of weights, a pixel's operands of the tail, which compilers load early, and
// the blocks of the pixels, or what each lane reads of them, as floats. A lane that reads parts of
// one pixel finds that pixel alone; unless the pixels are a long row, it also keeps where the
// results of all lie, and where the activations of the tail do.
bool fits_registers(const Point& p, const OpDesc& desc, const TileProblem& problem,
                    const DeviceTraits& traits) {
  const int64_t read = has_halves(desc, problem) ? 2 * kPart : kPart;
  const int64_t pixels = p.pixels > 1 ? read : int64_t{4} * p.tile_p;
  const int64_t vectors = p.vectors * (kFour + count_operands(desc));
  const int64_t lane = 4 * (p.sums() + vectors) + p.reads * pixels;
  int coordinates = pixel_coordinates(desc, problem) * p.tile_p;
  if (p.pixels > 1 && (coordinates == p.tile_p || count_activations(desc) == 0))
    coordinates = 3 + (coordinates > p.tile_p ? p.tile_p : 0);
  return fits_registers(traits, p.lanes * lane, coordinates);
}

std::vector<Point> points_of(const OpDesc& desc, const TileProblem& problem,
                             const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const bool flat = walk_pixels(desc, problem).row || !s.is_deep();
  const bool bytes = takes_bytes(desc), halves = !bytes && has_halves(desc, problem);
  std::vector<Point> points;
  const bool eight = s.out_channels <= 8 && (traits.sub_groups & 8) != 0;
  const int lanes = eight || (traits.sub_groups & 16) == 0 ? 8 : 16;
  const Runs runs = runs_of(desc, problem, lanes);
  for (const int vectors : {2, 1, 4}) {
    // Half of the lanes would idle.
    if (vectors > 1 && s.out_channels <= lanes * vectors / 2) continue;
    const bool gathers = flat && (vectors < 4 || has_wide_registers(traits));
    for (const int tile_p : {8, 12, 4, 1, 16}) {
      if (tile_p > 1 && tile_p / 2 >= s.pixels()) continue;
      for (const auto& [reads, gathered] :
           {std::pair{1, false}, {2, false}, {1, true}, {2, true}, {4, true}}) {
        if (gathered ? !gathers || tile_p == 1 || lanes % tile_p != 0 : tile_p == 16) continue;
        const int pixels = gathered ? tile_p : 1;
        for (const int weight : {4, 2}) {
          if (weight == 2 && (!halves || gathered)) continue;
          for (const int slices : {1, 4}) {
            const int rows = slices > 1 || s.pixels() <= 2 * tile_p ? 1 : 4;
            const Point p(lanes, vectors, tile_p, reads, pixels, weight, rows, slices);
            const int64_t step = step_of(p, element_size(desc, problem));
            if (gathered && step > kMaxStep) continue;
            if (reads * pixels > 1 && (runs.merged || !reads_blocks(desc, problem) ||
                                       runs.rest() > 0 || runs.length % step != 0))
              continue;
            if (slices > 1 && (bytes || traits.ordered_sums || runs.length / step < slices))
              continue;
            if (slices > 1 && (tile_p > 4 || vectors > 2)) continue;  // slices are for few outputs
            const auto items = static_cast<size_t>(lanes * rows * slices);
            if (items > traits.max_work_group) continue;
            if (slices > 1 &&
                sizeof(float) * items * static_cast<size_t>(tile_p * vectors) > traits.local_memory)
              continue;
            if (fits_registers(p, desc, problem, traits)) points.push_back(p);
          }
        }
      }
    }
  }
  // Adds a point if the device's groups are smaller than any of these.
  if (points.empty()) points.emplace_back(lanes, 1, 1, 1, 1, halves ? 2 : 4, 1, 1);
  return points;
}

// Estimates cycles. An execution unit computes eight floats at once.
SubgroupCycles cycles(const OpDesc& desc, const TileProblem& problem, const Point& p,
                      const DeviceTraits& traits) {
  constexpr double kThreads = 7;    // of an execution unit
  constexpr double kSend = 3;       // instructions for a message, its header and its address
  constexpr double kMessage = 128;  // most bytes of a message that reads a block
  constexpr double kLatency = 200;  // of the messages of a step, which are sent together
  constexpr double kBytes = 8;      // per cycle, from the cache to a unit
  const ConvShape& s = problem.shape;
  const Runs runs = runs_of(desc, problem, p.lanes);
  const double wide = p.lanes / 8.0, lanes = p.lanes, tile_p = p.tile_p;
  const double size = has_halves(desc, problem) ? 2 : 4;  // bytes of an element
  const double tiles = static_cast<double>(ceil_div(s.pixels(), p.tile_p));
  const double threads = static_cast<double>(s.groups * p.blocks(s)) * tiles * p.slices;
  const double depth = static_cast<double>(runs.count * runs.padded()) / p.slices;
  // Counts for one input element.
  const double sums = wide * tile_p * p.vectors;
  const double conversions =
      (size == 2 ? wide * tile_p / lanes : 0) + (p.weight == 2 ? wide * p.vectors : 0);
  const double weights = p.weight * lanes * p.vectors;  // in bytes
  const double pixels = tile_p * size;
  const double step = static_cast<double>(step_of(p, element_size(desc, problem)));
  const double messages = p.pixels > 1 ? p.reads / step
                          : reads_blocks(desc, problem)
                              ? tile_p * std::max(1 / (p.reads * lanes), size / kMessage)
                              : tile_p * 2 / lanes;
  const double sends = kSend * (messages + p.vectors / double{kFour});
  const double own = 100 + (20 + 12 * wide * p.vectors) * tile_p +
                     (p.slices > 1 ? 50 + 8 * wide * tile_p * p.vectors : 0);
  const double wait = depth / step * kLatency;
  const double units = traits.compute_units;
  const double beside = std::clamp(threads / units, 1.0, kThreads);
  // Prefers groups of several sub-groups, which start faster and share what they read.
  const double group = threads / units >= 4 && p.rows > 1 ? 0.98 : 1;
  const double scale = group * std::max(1.0, threads / units), loops = scale * depth;
  return {loops * sums,  loops * (sums + conversions + sends),
          loops * sends, loops * (weights + pixels) / kBytes,
          scale * own,   scale * wait / beside};
}

std::vector<double> costs_of(const std::vector<Point>& points, const OpDesc& desc,
                             const TileProblem& problem, const DeviceTraits& traits) {
  std::vector<double> costs;
  for (const Point& point : points) costs.push_back(cycles(desc, problem, point, traits).total());
  return costs;
}

// Returns the weights in the order of the kernel, with zeros for missing channels and elements.
std::vector<std::byte> pack(const std::vector<float>& weights, const ConvShape& s,
                            const Point& point, const Runs& runs, bool bytes) {
  const int64_t unit = bytes ? 4 : 1, block = point.block(), blocks = point.blocks(s);
  const int64_t padded = runs.padded(), depth = runs.count * padded;
  std::vector<float> packed(static_cast<size_t>(s.groups * blocks * depth * block * unit), 0.f);
  const float* from = weights.data();
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o) {
    const int64_t group = o / s.out_channels, channel = o % s.out_channels;
    float* const to =
        packed.data() +
        ((group * blocks + channel / block) * depth * block + channel % block * kFour) * unit;
    for (int64_t r = 0; r < runs.count; ++r)
      for (int64_t i = 0; i < runs.length * unit; ++i) {
        const int64_t element = r * padded + i / unit;
        to[(element / kFour * block * kFour + element % kFour) * unit + i % unit] = *from++;
      }
  }
  if (!bytes) return to_bytes(packed, point.weight == 2 ? ElementType::f16 : ElementType::f32);
  std::vector<std::byte> integers(packed.size());
  std::transform(packed.begin(), packed.end(), integers.begin(),
                 [](float value) { return static_cast<std::byte>(static_cast<int8_t>(value)); });
  return integers;
}

}  // namespace

// Chooses the runs with fewer elements of padding; if equal, those of pixels, whose border is
// simpler.
Runs subgroup_runs(const TileProblem& problem, int64_t unit, int lanes, int step) {
  const ConvShape& s = problem.shape;
  const int64_t channels = s.in_channels / unit;
  const Runs pixels{false, s.taps(), channels, lanes, step};
  if (s.groups > 1 || s.dilation[2] != 1 || s.kernel[2] == 1 || problem.in.w != s.in_channels)
    return pixels;
  const Runs rows{true, s.taps() / s.kernel[2], s.kernel[2] * channels, lanes, step};
  return rows.count * rows.padded() < pixels.count * pixels.padded() ? rows : pixels;
}

SubgroupCycles subgroup_cycles(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits, const TuningPoint& point) {
  return cycles(desc, problem, from_tuning<Point>(point), traits);
}

bool reads_blocks(const OpDesc& desc, const TileProblem& problem) {
  return !has_halves(desc, problem) || input_aligned(desc, problem, 2);
}

std::string reject_subgroup(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits) {
  if ((traits.sub_groups & (8 + 16)) == 0)
    return "the device has no sub-groups that read blocks (cl_intel_subgroups)";
  if (traits.is_cpu) return "a CPU does as well with the tile kernel";
  const ConvShape& s = problem.shape;
  if (takes_bytes(desc)) {
    if (traits.dot == DotProduct::none)
      return "the device has no instruction for products of bytes";
    if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
    if (has_shifts(desc)) return "weights that do not fit bytes";
    if (s.in_channels % 4 != 0 || !input_aligned(desc, problem, 4))
      return "the channels of a pixel are not whole words";
  } else {
    if (std::string why = reject_float_data(desc); !why.empty()) return why;
  }
  if (s.in_channels == 0) return "no input channels";
  // Counts bytes, since weights are addressed by bytes, up to four for an element.
  if (std::string why = reject_tiling(desc, problem, traits, 4 * s.taps() * (s.in_channels + 15));
      !why.empty())
    return why;
  return reject_tail(desc, 1, problem.axes);
}

std::vector<TuningPoint> subgroup_space(const OpDesc& desc, const TileProblem& problem,
                                        const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, problem, traits)) space.push_back(to_tuning(point));
  return space;
}

std::vector<double> subgroup_costs(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits) {
  return costs_of(points_of(desc, problem, traits), desc, problem, traits);
}

TuningPoint subgroup_heuristic(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits) {
  return cheapest(subgroup_space(desc, problem, traits), subgroup_costs(desc, problem, traits));
}

KernelPlan subgroup_launch(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits, const SubgroupKernel& kernel) {
  const ConvShape& s = problem.shape;
  const ElementType type = desc.inputs[problem.data].type;
  const bool bytes = takes_bytes(desc);
  const Runs& runs = kernel.runs;
  const int64_t blocks = kernel.tile.blocks(s), block = kernel.tile.block();
  const int zero = bytes ? static_cast<int>(zero_points(desc)[0]) : 0;

  KernelPlan plan;
  std::vector<Argument> constants;
  const auto add = [&](size_t size, std::function<std::vector<std::byte>()> make) {
    constants.push_back(Argument::packed(plan.packed.size(), size));
    plan.packed.push_back(std::move(make));
  };
  add(kernel.weight == "half" ? 2 : 4, kernel.pack);
  if (!walk_pixels(desc, problem).row)
    add(size_of(type), [size = static_cast<size_t>(s.in_channels) * size_of(type), zero] {
      return std::vector<std::byte>(size, static_cast<std::byte>(zero));
    });
  if (bytes)
    add(4, [weights = problem.weights, s, channels = blocks * block, zero] {
      return start_sums(weights(), s, channels, zero, DotProduct::none);
    });
  KernelSpec spec = tile_launch("convolution_subgroup.cl", desc, problem, traits, kernel.tile,
                                runs.count * runs.padded(), runs.merged, constants, plan);
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  spec.defines.emplace_back("IN_T", storage_name(type));
  spec.defines.emplace_back("W_T", kernel.weight);
  define("BYTES", bytes);
  define("MATRIX", kernel.products != SubgroupProducts::broadcast);
  define("STAND_IN", kernel.products == SubgroupProducts::stand_in);
  define("READS", kernel.reads);
  define("BLOCKS", reads_blocks(desc, problem));
  define("BLOCKS_2D", kernel.blocks_2d != Blocks2d::none);
  define("OLDER_2D", kernel.blocks_2d == Blocks2d::extended);
  define("GATHERED", kernel.gathered);
  define("MERGED", runs.merged);
  define("REST", kernel.blocks_2d == Blocks2d::none ? runs.rest() : 0);
  plan.launches.push_back(std::move(spec));
  return plan;
}

KernelPlan subgroup_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                         const TuningPoint& tuning) {
  const auto point = from_tuning<Point>(tuning);
  const bool bytes = takes_bytes(desc);
  const Runs runs = runs_of(desc, problem, point.lanes);
  const auto packed = [weights = problem.weights, s = problem.shape, point, runs, bytes] {
    return pack(weights(), s, point, runs, bytes);
  };
  const char* const weight = bytes ? "int" : point.weight == 2 ? "half" : "float";
  return subgroup_launch(desc, problem, traits,
                         {point, point.reads, runs, weight, packed, SubgroupProducts::broadcast,
                          Blocks2d::none, point.pixels > 1});
}

}  // namespace clinfer
