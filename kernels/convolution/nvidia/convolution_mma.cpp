// Lists points, estimates costs and packs weights of the convolution by matrix instructions
// (convolution_mma.cl).
#include "kernels/convolution/nvidia/convolution_mma.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Point {
  int words, vector, vectors, tile_p, ahead, warps_p, warps_c, slices;

  static constexpr std::array<Parameter<Point>, 8> parameters() {
    return {{{"WORDS", &Point::words},
             {"VECTOR", &Point::vector},
             {"VECTORS", &Point::vectors},
             {"TILE_P", &Point::tile_p},
             {"AHEAD", &Point::ahead},
             {"WARPS_P", &Point::warps_p},
             {"WARPS_C", &Point::warps_c},
             {"SLICES", &Point::slices}}};
  }
  int64_t block() const { return int64_t{4} * vector * vectors; }
  int tiles() const { return vectors * vector / 2; }
  int warps() const { return warps_p * warps_c * slices; }
  // Returns the bytes of local memory in which slices are added.
  size_t shared_bytes() const {
    return static_cast<size_t>((slices - 1) * warps_p * warps_c * 32 * tile_p * tiles() * 16);
  }
};

// Divides the sum over input channels and taps into steps.
struct Steps {
  int64_t channels;   // per step
  int64_t parts;      // steps per tap
  int64_t per_slice;  // steps per slice; the last slice's last ones may be empty

  Steps(const OpDesc& desc, const ConvShape& s, const Point& p)
      : channels(16 * p.words / static_cast<int64_t>(size_of(desc.inputs[0].type))),
        parts(ceil_div(s.in_channels, channels)),
        per_slice(ceil_div(s.taps() * parts, p.slices)) {}
};

// Returns whether the memory that a work-item reads at once, `bytes`, is aligned to its size and
// lies entirely inside or entirely outside the data.
bool aligned(const OpDesc& desc, const TileProblem& problem, int64_t bytes) {
  const int64_t elements = bytes / static_cast<int64_t>(size_of(desc.inputs[problem.data].type));
  return problem.shape.in_channels % elements == 0 && input_aligned(desc, problem, elements);
}

// Returns whether pixels of bytes are whole words that a work-item can read one by one.
bool reads_single_words(const OpDesc& desc, const TileProblem& problem) {
  return takes_bytes(desc) && aligned(desc, problem, 4);
}

// Returns whether pixels are read in pieces of a word or half a word, because their channels are no
// whole pairs of words or do not begin with one. Kernels of several taps are left to conv_rows.
bool reads_pieces(const OpDesc& desc, const TileProblem& problem) {
  constexpr int64_t kLeastBytes = 48;
  const auto size = static_cast<int64_t>(size_of(desc.inputs[problem.data].type));
  return problem.shape.taps() == 1 && problem.shape.in_channels * size >= kLeastBytes &&
         aligned(desc, problem, 2);
}

// Returns how many bytes a work-item reads at once.
int64_t piece_of(const OpDesc& desc, const TileProblem& problem, int words) {
  return aligned(desc, problem, 4 * words) ? 4 * words : aligned(desc, problem, 4) ? 4 : 2;
}

// Numbers of warps in a work-group: along pixels, along blocks of channels, and slices of the
// steps.
constexpr std::array<int, 3> kWarps[] = {{1, 1, 1}, {4, 1, 1}, {2, 2, 1}, {1, 4, 1}, {1, 1, 2},
                                         {1, 1, 4}, {1, 1, 8}, {2, 1, 2}, {2, 1, 4}};

std::vector<Point> points_of(const OpDesc& desc, const TileProblem& problem,
                             const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const int64_t pixel_bytes =
      s.in_channels * static_cast<int64_t>(size_of(desc.inputs[problem.data].type));
  std::vector<Point> points;
  for (int words : {4, 2}) {
    if (!aligned(desc, problem, 4 * words) &&
        (words > 2 || !(reads_single_words(desc, problem) || reads_pieces(desc, problem))))
      continue;
    if (words == 4 && pixel_bytes <= 32) continue;  // half of a step would be empty
    for (const auto& [vector, vectors] :
         {std::pair{8, 1}, std::pair{8, 2}, std::pair{8, 4}, std::pair{4, 1}, std::pair{2, 1}}) {
      const int tiles = vector * vectors / 2;
      if (!fits_groups(desc, s, vector)) continue;
      if (tiles > 1 && 4 * tiles >= s.out_channels) continue;  // half of a block would be empty
      for (int tile_p : {1, 2, 4})
        for (int ahead : {1, 2, 4}) {
          // The registers hold sums and words that are being loaded.
          const auto fits = [&, words = words, tile_p = tile_p](int steps) {
            return 4 * tile_p * tiles + steps * words * (2 * tile_p + tiles) <= 200;
          };
          if (!fits(ahead) || (ahead == 2 && fits(4))) continue;
          for (const auto& [warps_p, warps_c, slices] : kWarps) {
            const Point p{words, vector, vectors, tile_p, ahead, warps_p, warps_c, slices};
            if (static_cast<size_t>(32 * p.warps()) > traits.max_work_group) continue;
            if (warps_c > 1 && p.block() * warps_c / 2 >= s.out_channels) continue;
            if (slices > 1 && Steps(desc, s, p).per_slice < 2) continue;
            if (p.shared_bytes() > traits.local_memory) continue;
            points.push_back(p);
          }
        }
    }
  }
  return points;
}

// The factors of the terms in cost(), in cycles.
struct Cycles {
  double sum, tile_p, tiles, near, step;                        // per instruction issued
  double item, item_sum, item_tile_p, scattered;                // per work-item, per write
  double slices, slices_sum;                                    // for adding slices
  double registers, registers_sum;                              // (registers, not cycles)
  double latency, hidden, starting, ahead, waves, grow, group;  // for waiting
};
// Constants fitted to all points of 238 layers of detection, segmentation and re-identification
// networks on an H200 (53,653 timings, f16, batches 1 and 8), with one launch at a time.
constexpr Cycles kAlone{.sum = 3.5,
                        .tile_p = 15,
                        .tiles = 2,
                        .near = 0.68,
                        .step = 10.4,
                        .item = 54,
                        .item_sum = 146,
                        .item_tile_p = 514,
                        .scattered = 215,
                        .slices = 54,
                        .slices_sum = 2.5,
                        .registers = 50,
                        .registers_sum = 7.3,
                        .latency = 333,
                        .hidden = 0.113,
                        .starting = 1.17,
                        .ahead = 785,
                        .waves = 4.3,
                        .grow = 0.937,
                        .group = 412};
// Constants fitted to 382 timings of 26 layers of bytes of detection and classification networks on
// an H200, batches 1 to 32, with one launch at a time; the points that they choose take 6 % longer
// than the best measured.
constexpr Cycles kBytesAlone{.sum = 3.5,
                             .tile_p = 29,
                             .tiles = 2.3,
                             .near = 0.335,
                             .step = 15,
                             .item = 0,
                             .item_sum = 58,
                             .item_tile_p = 90,
                             .scattered = 215,
                             .slices = 42,
                             .slices_sum = 12,
                             .registers = 65,
                             .registers_sum = 5.1,
                             .latency = 172,
                             .hidden = 0,
                             .starting = 1.08,
                             .ahead = 105,
                             .waves = 1.66,
                             .grow = 0.643,
                             .group = 113};
// Constants fitted to whole networks on two streams: 2134 timings of such layers (f16 and bytes)
// and, for the initial cost of reading far ahead, 1244 timings of batch 8. kAlone reaches 20 %
// fewer images per second there with face-detection-retail-0004 at batch 8, but takes 8 % less time
// for them on one stream.
constexpr Cycles kBeside{.sum = 5.9,
                         .tile_p = 6.8,
                         .tiles = 3.4,
                         .near = 0.66,
                         .step = 9.4,
                         .item = 204,
                         .item_sum = 128,
                         .item_tile_p = 0,
                         .scattered = 0,
                         .slices = 125,
                         .slices_sum = 2.3,
                         .registers = 74,
                         .registers_sum = 4,
                         .latency = 280,
                         .hidden = 0.17,
                         .starting = 1.4,
                         .ahead = 200,
                         .waves = 1.1,
                         .grow = 0.71,
                         .group = 86};

// Returns the time on a GPU in cycles: the wait of the slowest work-group, the instructions of all
// warps (four schedulers per compute unit), and the start of work-groups. Warps of a group that
// read the same words find them in the cache.
double cost(const OpDesc& desc, const TileProblem& problem, const Point& p,
            const DeviceTraits& traits) {
  const Cycles& c = !traits.alone ? kBeside : takes_bytes(desc) ? kBytesAlone : kAlone;
  const ConvShape& s = problem.shape;
  const double units = traits.compute_units;
  const double warps_p =
      p.warps_p * static_cast<double>(ceil_div(s.pixels(), int64_t{16} * p.tile_p * p.warps_p));
  const double warps_c =
      p.warps_c * static_cast<double>(ceil_div(ceil_div(s.out_channels, p.block()), p.warps_c));
  const double warps = static_cast<double>(s.groups) * warps_p * warps_c * p.slices;
  const double steps = static_cast<double>(Steps(desc, s, p).per_slice);
  const double sums = p.tile_p * p.tiles();
  const double words = p.words / 2.0;
  const double loads = c.tile_p * p.tile_p / std::pow(p.warps_c, c.near) +
                       c.tiles * p.tiles() / std::pow(p.warps_p, c.near);
  const double issue = (c.sum * sums + loads) * words + c.step;
  double own = c.item + c.item_sum * sums + c.item_tile_p * p.tile_p;
  if (!output_aligned(desc, problem, p.vector)) own += c.scattered * sums * p.vector;
  if (p.slices > 1) own += c.slices + c.slices_sum * sums;
  const double registers =
      c.registers + c.registers_sum * sums + p.ahead * p.words * (2 * p.tile_p + p.tiles());
  const double resident = std::min(64.0, 65536 / (32 * registers));
  const double alone = steps * (c.latency / std::pow(p.ahead, c.hidden) + issue) +
                       c.starting * own + c.ahead * (p.ahead - 1);
  return c.waves * std::pow(std::max(warps / units / resident, 1.0), c.grow) * alone +
         warps / units / 4 * (steps * issue + own) + c.group * warps / (p.warps() * units);
}

std::vector<double> costs_of(const std::vector<Point>& points, const OpDesc& desc,
                             const TileProblem& problem, const DeviceTraits& traits) {
  std::vector<double> costs;
  for (const Point& point : points) costs.push_back(cost(desc, problem, point, traits));
  return costs;
}

struct Args {
#include "kernels/convolution/nvidia/convolution_mma_args.cl"
};

// Returns the filters in the order in which the work-items of a warp load them: by group, block of
// output channels, step and tile. Bytes have the shift of their output channel subtracted.
std::vector<std::byte> mma_weights(const std::vector<float>& weights, const ConvShape& s,
                                   const Point& point, const Steps& steps, bool bytes) {
  const int64_t blocks = ceil_div(s.out_channels, point.block());
  const int64_t per_word = bytes ? 4 : 2, all_steps = steps.per_slice * point.slices;
  const int64_t tile_size = 32 * point.words * per_word;  // in elements
  std::vector<float> packed(
      static_cast<size_t>(s.groups * blocks * all_steps * point.tiles() * tile_size), 0.f);
  const float* from = weights.data();
  const auto depth = static_cast<size_t>(s.taps() * s.in_channels);
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o) {
    const int64_t group = o / s.out_channels, channel = o % s.out_channels;
    const float shift = bytes ? static_cast<float>(shift_of({from, depth})) : 0;
    const MmaPlace place(channel % point.block(), point.vector);
    float* const block = packed.data() + (group * blocks + channel / point.block()) * all_steps *
                                             point.tiles() * tile_size;
    for (int64_t tap = 0; tap < s.taps(); ++tap)
      for (int64_t i = 0; i < s.in_channels; ++i) {
        const int64_t step = tap * steps.parts + i / steps.channels, in_step = i % steps.channels;
        const int64_t lane = place.column * 4 + in_step / (point.words * per_word);
        block[(step * point.tiles() + place.tile) * tile_size + lane * point.words * per_word +
              in_step % (point.words * per_word)] = *from++ - shift;
      }
  }
  return mma_factors(packed, bytes);
}

}  // namespace

bool pixels_are_words(const OpDesc& desc, const TileProblem& problem) {
  const auto size = static_cast<int64_t>(size_of(desc.inputs[problem.data].type));
  return problem.shape.in_channels * size >= 16 &&
         (aligned(desc, problem, 8) || reads_single_words(desc, problem));
}

std::string reject_mma_data(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits) {
  if (traits.matrix != MatrixUnit::ptx && traits.matrix != MatrixUnit::emulated)
    return "the device has no matrix instructions of warps";
  const ConvShape& s = problem.shape;
  if (takes_bytes(desc)) {
    if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
  } else {
    if (std::string why = reject_float_data(desc); !why.empty()) return why;
    if (desc.inputs[problem.data].type != ElementType::f16) return "the data are not f16";
    if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "three spatial dimensions";
  }
  return reject_channels(s, problem.in, problem.out);
}

std::vector<std::byte> mma_factors(const std::vector<float>& packed, bool bytes) {
  if (!bytes) return to_bytes(packed, ElementType::f16);
  std::vector<std::byte> integers(packed.size());
  std::transform(packed.begin(), packed.end(), integers.begin(),
                 [](float value) { return static_cast<std::byte>(static_cast<int8_t>(value)); });
  return integers;
}

void add_start_sums(const OpDesc& desc, const TileProblem& problem, int64_t padded,
                    KernelSpec& spec, KernelPlan& plan) {
  const bool bytes = takes_bytes(desc), small = bytes && has_small_sums(desc);
  const int zero = bytes ? static_cast<int>(zero_points(desc)[0]) : 0;
  spec.defines.emplace_back("SMALL_SUMS", small ? "1" : "0");
  plan.packed.push_back([weights = problem.weights, s = problem.shape, padded, zero, bytes,
                         from = small ? kBitsOfSmallSums : 0] {
    return bytes ? start_sums(weights(), s, padded, zero, DotProduct::none, from)
                 : std::vector<std::byte>(sizeof(int32_t));  // sums of halves start at 0
  });
  if (bytes && has_shifts(desc))
    plan.packed.push_back([weights = problem.weights, s = problem.shape, padded] {
      return shifts(weights(), s, padded);
    });
}

std::string reject_mma(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  if (std::string why = reject_mma_data(desc, problem, traits); !why.empty()) return why;
  if (!pixels_are_words(desc, problem) && !reads_pieces(desc, problem))
    return "the channels of a pixel are no whole words";
  if (s.out_channels < 8) return "fewer than eight output channels";
  // A block is at most 128 channels wide, a step takes at most 64 bytes of a pixel.
  if (s.groups * (s.out_channels + 128) * s.taps() * (s.in_channels + 64) > kMaxIndex)
    return "the weights have more than 2^31 elements";
  if (s.groups * s.out_channels > kMaxGroups) return "more than 65535 output channels";
  if (!fits_groups(desc, s, 2)) return "vectors of channels would straddle groups";
  return reject_tail(desc, 8, problem.axes);
}

std::vector<TuningPoint> mma_space(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, problem, traits)) space.push_back(to_tuning(point));
  return space;
}

std::vector<double> mma_costs(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits) {
  return costs_of(points_of(desc, problem, traits), desc, problem, traits);
}

TuningPoint mma_heuristic(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits) {
  return cheapest(mma_space(desc, problem, traits), mma_costs(desc, problem, traits));
}

KernelPlan mma_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                    const TuningPoint& tuning) {
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const Steps steps(desc, s, point);
  const bool bytes = takes_bytes(desc), shifted = bytes && has_shifts(desc);
  const int64_t blocks = ceil_div(s.out_channels, point.block());
  const auto zero = bytes ? static_cast<uint32_t>(zero_points(desc)[0]) : 0;

  const PixelWalk walk = walk_pixels(desc, problem);
  Args args{};
  set_strides(args, walk.in, walk.out);
  set_geometry(args, s);
  args.in_channels = to_int(s.in_channels);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.parts = to_int(steps.parts);
  args.steps = to_int(steps.per_slice);
  args.pixels = to_int(s.pixels());
  args.outside = static_cast<int>(zero * 0x01010101u);

  KernelPlan plan;
  plan.packed.push_back([weights = problem.weights, s, point, steps, bytes] {
    return mma_weights(weights(), s, point, steps, bytes);
  });
  KernelSpec spec;
  spec.source = "convolution_mma.cl";
  add_start_sums(desc, problem, blocks * point.block(), spec, plan);
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const ElementType out = desc.outputs[0].type;
  spec.defines.emplace_back("T", storage_name(out));
  define("BYTES", bytes);
  define("SHIFTED", shifted);
  define("PIECE", piece_of(desc, problem, point.words));
  add_defines(spec, point);
  define("POINTWISE", walk.row);
  define("FLAT_TAIL", walk.flat_tail);
  define("ALIGNED", output_aligned(desc, problem, point.vector));
  define("PAIRS", output_aligned(desc, problem, 2));
  define("WHOLE_BLOCKS", s.out_channels % point.block() == 0);
  define("MMA_PTX", traits.matrix == MatrixUnit::ptx);
  spec.arguments = {Argument::input(problem.data, size_of(desc.inputs[problem.data].type)),
                    Argument::packed(0, 4), Argument::packed(1, 4)};
  if (shifted) spec.arguments.push_back(Argument::packed(2, 4));
  spec.arguments.push_back(Argument::output(0, size_of(out)));
  spec.arguments.push_back(Argument::value(args));
  add_stored_tail(desc, point.vector, walk.axes, traits, spec, plan);
  spec.local = {32, static_cast<size_t>(point.warps_p * point.warps_c),
                static_cast<size_t>(point.slices)};
  spec.shared = point.shared_bytes();
  const int64_t pixel_groups = ceil_div(s.pixels(), int64_t{16} * point.tile_p * point.warps_p);
  spec.global = {32 * static_cast<size_t>(pixel_groups),
                 static_cast<size_t>(s.groups * ceil_div(blocks, point.warps_c)) * spec.local[1],
                 spec.local[2]};
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
