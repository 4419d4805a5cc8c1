// Chooses points, estimates costs and packs weights for the convolution by the matrix instructions
// of sub-groups of sixteen lanes.
#include "kernels/convolution/intel/convolution_xmx16.h"

#include <algorithm>

#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int kLanes = 16;
constexpr int kRow = 32;   // bytes of a pixel for one instruction
constexpr int kWords = 8;  // words in these
// A message that reads rows returns two blocks of each of eight pixels.
constexpr int kRowBlocks = 2, kRowPixels = 8;

struct Point : TileShape {
  int reads = 1;
  int pixels = 1;  // pixels that a message reads

  Point() : Point(1, 1, 1, 1, 1, 1) {}
  Point(int vs, int t, int rd, int ps, int r, int s)
      : TileShape{1, vs, t, kLanes, r, s}, reads(rd), pixels(ps) {}
  static constexpr std::array<Parameter<Point>, 6> parameters() {
    return {{{"VECTORS", &Point::vectors},
             {"TILE_P", &Point::tile_p},
             {"READS", &Point::reads},
             {"PIXELS", &Point::pixels},
             {"ROWS", &Point::rows},
             {"SLICES", &Point::slices}}};
  }
};

// Return the bytes of an input channel, and how many channels of a row a lane holds.
int64_t channel_bytes(const OpDesc& desc) { return takes_bytes(desc) ? 1 : 2; }
int64_t unit(const OpDesc& desc) { return kRow / kLanes / channel_bytes(desc); }

// Returns the runs of a point. A message that reads rows gets zeros past the end of a pixel.
Runs runs_of(const OpDesc& desc, const TileProblem& problem, const Point& p) {
  if (p.pixels == 1) return subgroup_runs(problem, unit(desc), kLanes, kLanes);
  const ConvShape& s = problem.shape;
  const int step = p.reads * kLanes;
  return {false, s.taps(), s.in_channels / unit(desc), step, step};
}

// Returns whether pixels can be read as rows of a surface, which must begin at a multiple of 64
// bytes. The device reads zeros outside of it.
bool reads_rows(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits) {
  constexpr int64_t kMost = 1 << 24;  // limit of rows, and of bytes from row to row
  const ConvShape& s = problem.shape;
  const PixelWalk walk = walk_pixels(desc, problem);
  const int64_t bytes = channel_bytes(desc);
  const auto fits = [&](int64_t elements, int64_t size) { return elements * bytes % size == 0; };
  if (traits.blocks_2d == Blocks2d::none) return false;
  if (s.in_channels * bytes < 64 || walk.in.w < s.in_channels || walk.in.w * bytes >= kMost ||
      s.pixels() >= kMost || s.in[2] >= kMost)
    return false;
  if (!fits(desc.inputs[problem.data].offset, 64) || !fits(walk.in.w, 16) ||
      (s.groups > 1 && !fits(s.in_channels, 64)))
    return false;
  if (walk.row) return true;
  return s.stride[2] == 1 && s.kernel[0] == 1 && s.in[0] == 1 && s.out[0] == 1 &&
         (s.in[1] == 1 || fits(walk.in.h, 64)) && (s.batch == 1 || fits(walk.in.n, 64)) &&
         (!takes_bytes(desc) || zero_points(desc)[0] == 0);
}

// Counts sums (those of bytes also as floats), the weights of two vectors, and rows of the pixels.
// One place stands for all pixels that are read as rows of a surface.
bool fits_registers(const Point& p, const OpDesc& desc, const TileProblem& problem,
                    const DeviceTraits& traits) {
  const int64_t lane = int64_t{4} * (p.sums() * (takes_bytes(desc) ? 2 : 1) + 2 * kWords);
  return fits_registers(traits, kLanes * lane + int64_t{kRow} * p.tile_p * p.reads,
                        pixel_coordinates(desc, problem) * (p.pixels > 1 ? 1 : p.tile_p));
}

// Makes a tile whose pixels are read as rows lie in one row of the output, unless all pixels are
// one row.
Point point_for(const OpDesc& desc, const TileProblem& problem, Point point) {
  point.in_rows = point.pixels > 1 && !walk_pixels(desc, problem).row;
  return point;
}

std::vector<Point> points_of(const OpDesc& desc, const TileProblem& problem,
                             const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const bool bytes = takes_bytes(desc), has_surfaces = reads_rows(desc, problem, traits);
  std::vector<Point> points;
  const auto add = [&](const Point& p) {
    const Runs runs = runs_of(desc, problem, p);
    if (p.reads > 1 && p.pixels == 1 &&
        (runs.merged || !reads_blocks(desc, problem) || runs.length % (p.reads * kLanes) != 0))
      return;
    if (p.pixels > 1 && runs.padded() - runs.length >= kRowBlocks * kLanes)
      return;  // reads too much padding
    if (p.slices > 1 && (bytes || runs.length / (p.reads * kLanes) < p.slices)) return;
    if (p.tile_p > 1 && p.tile_p / 2 >= (p.in_rows ? s.out[2] : s.pixels())) return;
    const auto items = static_cast<size_t>(kLanes * p.rows * p.slices);
    if (items > traits.max_work_group) return;
    if (p.slices > 1 &&
        sizeof(float) * items * static_cast<size_t>(p.tile_p * p.vectors) > traits.local_memory)
      return;
    if (fits_registers(p, desc, problem, traits)) points.push_back(p);
  };
  for (const int vectors : {4, 2, 1}) {
    // Half of the lanes would idle.
    if (vectors > 1 && s.out_channels <= kLanes * vectors / 2) continue;
    for (const int tile_p : {16, 8, 4, 1})
      for (const int slices : {1, 4}) {
        const int rows = slices > 1 || s.pixels() <= 2 * tile_p ? 1 : 4;
        if (has_surfaces && tile_p >= kRowPixels)
          for (const int reads : {4, 2})
            add(point_for(desc, problem, {vectors, tile_p, reads, kRowPixels, rows, slices}));
        for (const int reads : {4, 2, 1}) add({vectors, tile_p, reads, 1, rows, slices});
      }
  }
  // Adds a point if the device's groups are smaller than any of these.
  if (points.empty()) points.emplace_back(1, 1, 1, 1, 1, 1);
  return points;
}

SubgroupCycles cycles(const OpDesc& desc, const TileProblem& problem, const Point& p,
                      const DeviceTraits& traits) {
  constexpr double kThreads = 7;    // of an execution unit
  constexpr double kProduct = 2;    // cycles for the row of one pixel
  constexpr double kSend = 3;       // instructions for a message, its header and its address
  constexpr double kMessage = 128;  // most bytes of a message
  constexpr double kLatency = 200;  // of the messages of a step, which are sent together
  constexpr double kCached = 16;    // bytes per cycle from the cache to a unit
  const ConvShape& s = problem.shape;
  const Runs runs = runs_of(desc, problem, p);
  const double tile_p = p.tile_p;
  const auto threads =
      static_cast<double>(s.groups * p.blocks(s) * p.slices) * static_cast<double>(p.tiles(s));
  // Counts the steps for each row of the pixels.
  const double steps = static_cast<double>(runs.count * runs.padded()) / (kLanes * p.slices);
  const double weights = 4.0 * kWords * kLanes * p.vectors;  // in bytes
  const double products = kProduct * tile_p * p.vectors;
  const double messages = p.pixels > 1                  ? tile_p / (kRowBlocks * p.pixels)
                          : reads_blocks(desc, problem) ? tile_p / p.reads
                                                        : 2 * tile_p;
  const double sends = kSend * (messages + weights / kMessage);
  constexpr double kWide = kLanes / 8.0;
  const double own = 100 + (20 + 12 * kWide * p.vectors) * tile_p +
                     (p.slices > 1 ? 50 + 8 * kWide * tile_p * p.vectors : 0);
  const double wait = steps / p.reads * kLatency;
  const double units = traits.compute_units;
  const double beside = std::clamp(threads / units, 1.0, kThreads);
  const double scale = std::max(1.0, threads / units), loops = scale * steps;
  return {loops * products, loops * std::max(products, sends),
          loops * sends,    loops * (weights + kRow * tile_p) / kCached,
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
  const int64_t per_word = 4 / bytes, per_row = kRow / bytes,
                length = runs.length * kRow / (bytes * kLanes);
  const int64_t block = point.block(), blocks = point.blocks(s), run = runs.padded() / kLanes;
  const int64_t row_size = per_row * block, block_size = runs.count * run * row_size;
  std::vector<float> packed(static_cast<size_t>(s.groups * blocks * block_size), 0.f);
  const float* from = weights.data();
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o) {
    const int64_t group = o / s.out_channels, channel = o % s.out_channels;
    const int64_t vector = channel % block / kLanes, lane = channel % kLanes;
    float* const to = packed.data() + (group * blocks + channel / block) * block_size +
                      vector * per_row * kLanes + lane * per_word;
    for (int64_t r = 0; r < runs.count; ++r)
      for (int64_t i = 0; i < length; ++i) {
        const int64_t in_row = i % per_row;
        to[(r * run + i / per_row) * row_size + in_row / per_word * kLanes * per_word +
           in_row % per_word] = *from++;
      }
  }
  if (bytes == 2) return to_bytes(packed, ElementType::f16);
  std::vector<std::byte> integers(packed.size());
  std::transform(packed.begin(), packed.end(), integers.begin(),
                 [](float value) { return static_cast<std::byte>(static_cast<int8_t>(value)); });
  return integers;
}

bool has_matrices(const DeviceTraits& traits, int lanes) {
  return lanes == 8
             ? traits.matrix == MatrixUnit::xmx8 || traits.matrix == MatrixUnit::emulated_xmx8
             : traits.matrix == MatrixUnit::xmx16 || traits.matrix == MatrixUnit::emulated_xmx16;
}

}  // namespace

std::string reject_xmx(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                       int lanes) {
  if (!has_matrices(traits, lanes))
    return "the device has no matrix instructions of sub-groups of " + std::to_string(lanes) +
           " lanes (XMX)";
  if ((traits.sub_groups & static_cast<unsigned>(lanes)) == 0)
    return "the device has no sub-groups that read blocks (cl_intel_subgroups)";
  const ConvShape& s = problem.shape;
  if (takes_bytes(desc)) {
    if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
    if (has_shifts(desc)) return "weights that do not fit bytes";
  } else {
    if (std::string why = reject_float_data(desc); !why.empty()) return why;
    if (desc.inputs[problem.data].type != ElementType::f16) return "the data are not f16";
  }
  if (s.in_channels == 0) return "no input channels";
  if (s.out_channels <= lanes / 2) return "half of a matrix would be empty";
  return reject_tiling(desc, problem, traits, s.taps() * (s.in_channels + 127));
}

std::string reject_xmx16(const OpDesc& desc, const TileProblem& problem,
                         const DeviceTraits& traits) {
  if (std::string why = reject_xmx(desc, problem, traits, kLanes); !why.empty()) return why;
  // Requires multiples of four bytes, at which blocks of bytes are read, also as halves of words.
  const int64_t part = takes_bytes(desc) ? 4 : 1;
  if (problem.shape.in_channels % part != 0 || !input_aligned(desc, problem, part))
    return "the channels of a pixel are not whole words";
  return reject_tail(desc, 1, problem.axes);
}

SubgroupCycles xmx16_cycles(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits, const TuningPoint& point) {
  return cycles(desc, problem, point_for(desc, problem, from_tuning<Point>(point)), traits);
}

std::vector<TuningPoint> xmx16_space(const OpDesc& desc, const TileProblem& problem,
                                     const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, problem, traits)) space.push_back(to_tuning(point));
  return space;
}

std::vector<double> xmx16_costs(const OpDesc& desc, const TileProblem& problem,
                                const DeviceTraits& traits) {
  return costs_of(points_of(desc, problem, traits), desc, problem, traits);
}

TuningPoint xmx16_heuristic(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits) {
  return cheapest(xmx16_space(desc, problem, traits), xmx16_costs(desc, problem, traits));
}

KernelPlan xmx16_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                      const TuningPoint& tuning) {
  const Point point = point_for(desc, problem, from_tuning<Point>(tuning));
  const Runs runs = runs_of(desc, problem, point);
  const auto packed = [weights = problem.weights, s = problem.shape, point, runs,
                       bytes = channel_bytes(desc)] {
    return pack(weights(), s, point, runs, bytes);
  };
  return subgroup_launch(desc, problem, traits,
                         {point, point.reads, runs, "int", packed,
                          traits.matrix == MatrixUnit::emulated_xmx16 ? SubgroupProducts::stand_in
                                                                      : SubgroupProducts::matrix,
                          point.pixels > 1 ? traits.blocks_2d : Blocks2d::none});
}

}  // namespace clinfer
