// Chooses points, estimates costs and packs weights for convolutions of pixels with few channels by
// matrix instructions (convolution_rows.cl).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/convolution/nvidia/convolution_mma.h"
#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Point {
  int vector, vectors, tile_p, lines, wide;

  static constexpr std::array<Parameter<Point>, 5> parameters() {
    return {{{"VECTOR", &Point::vector},
             {"VECTORS", &Point::vectors},
             {"TILE_P", &Point::tile_p},
             {"LINES", &Point::lines},
             {"WIDE", &Point::wide}}};
  }
  int64_t block() const { return int64_t{4} * vector * vectors; }
  int64_t tiles() const { return vectors * vector / 2; }
};

// Returns the problem with a row of the kernel as one tap: its elements are the channels of a pixel
// as wide as the row, and lines, strides and pads count elements.
TileProblem rows_problem(const OpDesc& desc) {
  TileProblem problem = convolution_problem(desc);
  ConvShape& s = problem.shape;
  const int64_t channels = s.in_channels;
  s.in_channels *= s.kernel[2];
  s.kernel[2] = 1;
  for (auto* elements : {&s.in, &s.stride, &s.pad}) (*elements)[2] *= channels;
  return problem;
}

// Kernels of one pixel gain with fewer channels: on an H200, from 8 bytes to 32 at 75x75, batch 8,
// they take 7 to 8 us instead of 10 by conv_int8; from 58 to 58 at 52x52 as long or longer.
constexpr int64_t kFewChannels = 16;

int64_t per_word(const OpDesc& desc) { return takes_bytes(desc) ? 4 : 2; }

// Holds the sizes of what a work-group copies to local memory, in elements.
struct Copied {
  int64_t rows, pitch, copies, unit = 1, lead = 0;
  int64_t run_words;  // of a row of the kernel, including the part of the lead in its first word

  Copied(const OpDesc& desc, const TileProblem& problem, const Point& p) {
    const ConvShape& s = problem.shape;
    const int64_t word = per_word(desc), pixel = s.stride[2];
    rows = (p.lines - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
    copies = word / std::gcd(word, pixel);
    // Chooses units that divide lines and everything before them. Tiles begin at multiples of 16
    // pixels.
    for (int64_t u : {word, 2 * word})
      if (u == word || copies == 1)
        if (s.in[2] % u == 0 && problem.in.h % u == 0 && problem.in.n % u == 0 &&
            desc.inputs[problem.data].offset % u == 0)
          unit = u;
    lead = ceil_div(s.pad[2], unit) * unit - s.pad[2];
    run_words = ceil_div(lead % word + s.in_channels, word);
    const int64_t whole = std::max(unit, word);
    pitch = ceil_div((p.wide - 1) * pixel + (lead / word + run_words) * word, whole) * whole;
  }
  int64_t steps(const ConvShape& s) const { return ceil_div(s.kernel[1] * run_words, 8); }
  // Rounds to pairs of words, because units may be such pairs.
  size_t bytes(const OpDesc& desc) const {
    return static_cast<size_t>(8 * ceil_div(copies * rows * pitch, 2 * per_word(desc)));
  }
};

std::vector<Point> points_of(const OpDesc& desc, const TileProblem& problem,
                             const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  std::vector<Point> points;
  for (const auto& [vector, vectors] :
       {std::pair{8, 2}, std::pair{8, 1}, std::pair{4, 1}, std::pair{2, 1}}) {
    const int tiles = vector * vectors / 2;
    if (tiles > 1 && 4 * tiles >= s.out_channels) continue;  // half of a block would be empty
    for (int tile_p : {1, 2}) {
      if (tile_p * tiles > 16) continue;  // too many registers for sums
      for (int lines : {8, 4, 2})
        for (int most : {64, 32}) {
          // Divides a line's columns evenly among its tiles.
          const int64_t side = 16 * tile_p;
          const auto wide = static_cast<int>(
              ceil_div(ceil_div(s.out[2], ceil_div(s.out[2], int64_t{most})), side) * side);
          const Point p{vector, vectors, tile_p, lines, wide};
          if (Copied(desc, problem, p).bytes(desc) > traits.local_memory) continue;
          if (static_cast<size_t>(32 * lines) > traits.max_work_group) continue;
          if (std::none_of(points.begin(), points.end(),
                           [&](const Point& q) { return to_tuning(q) == to_tuning(p); }))
            points.push_back(p);
        }
    }
  }
  return points;
}

// Costs on a Hopper GPU, in microseconds or cycles. The constants are fitted to 336 timings of
// first layers of eight networks at batch 8 and 32 on an H100; the points that they choose take 6 %
// longer than the best on average.
struct Costs {
  double launch = 5, clock = 1700;         // in us; cycles per us
  double copy = 43, tile = 39, warp = 79;  // cycles of a warp for each copy, tile and warp
  double product = 9.6, weights = 1.4, pixels = 2.6;  // cycles for each of these in a step
  double store = 30, function = 37;                   // cycles for 16 pixels of eight channels
  double waiting = 803, copy_waits = 149,
         tile_waits = 214;  // cycles that pass if no other warp can run
};
double cost_of(const OpDesc& desc, const TileProblem& problem, const Point& p,
               const DeviceTraits& traits) {
  constexpr Costs c;
  const ConvShape& s = problem.shape;
  const Copied copied(desc, problem, p);
  const double units = std::max(traits.compute_units, 1u);
  const int64_t tiles_w = ceil_div(s.out[2], p.wide);
  const auto groups = static_cast<double>(s.batch * ceil_div(s.out[1], p.lines) * tiles_w);
  // Counts the copies that a warp makes.
  const auto copies =
      static_cast<double>(ceil_div(copied.rows * copied.pitch / copied.unit, 32 * p.lines));
  const double tiles =
      static_cast<double>(ceil_div(s.out[2], 16 * p.tile_p) * ceil_div(s.out_channels, p.block())) /
      static_cast<double>(tiles_w);
  const auto columns = static_cast<double>(p.tiles()), sums = p.tile_p * columns;
  double functions = 0;
  for (const PostOp& op : desc.tail)
    functions += op.is_unary() && op.function != "relu" && op.function != "clamp";
  const double of_tile = c.tile + sums * (c.store + c.function * functions) +
                         static_cast<double>(copied.steps(s)) *
                             (c.product * sums + c.weights * columns + c.pixels * p.tile_p);
  const double of_warp = c.warp + c.copy * copies + tiles * of_tile;
  const double waits = c.waiting + c.copy_waits * copies + c.tile_waits * tiles;
  // Limits the work-groups of a compute unit at the same time by registers and local memory.
  const double registers = 40 + 6 * sums + 8 * p.tile_p + 2 * columns;
  const double at_once = std::max(
      1.0, std::floor(std::min({64.0 / p.lines, 65536 / (registers * 32 * p.lines),
                                232448.0 / static_cast<double>(copied.bytes(desc) + 1024)})));
  const double waves = std::ceil(groups / (units * at_once));
  return c.launch +
         (groups * p.lines * of_warp / (4 * units) + waves * (waits + of_warp)) / c.clock;
}

std::string reject_rows(const OpDesc& desc, const DeviceTraits& traits) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  const TileProblem given = convolution_problem(desc);
  const ConvShape& s = given.shape;
  if (std::string why = reject_mma_data(desc, given, traits); !why.empty()) return why;
  if (pixels_are_words(desc, given)) return "the channels of a pixel are whole words";
  if (s.groups > 1) return "groups";
  const bool few = takes_bytes(desc) && s.in_channels < kFewChannels;
  if ((s.taps() == 1 && !few) || s.dilation[2] != 1 || given.in.w != s.in_channels)
    return "rows of the kernel are no runs of adjacent elements";
  if (s.in_channels * s.kernel[2] < 2) return "rows of one element";
  if (s.out_channels < 8) return "fewer than eight output channels";
  if (s.in_channels * (s.in[2] + s.pad[2] + (s.out[2] + 128) * s.stride[2]) > kMaxIndex ||
      s.in[1] + s.pad[1] + (s.out[1] + 8) * s.stride[1] > kMaxIndex)
    return "lines of more than 2^31 elements";
  // Adds the padding: a block is at most 64 channels wide, and a run and the last step end with up
  // to 9 words of zeros.
  if ((s.out_channels + 64) * (s.taps() * s.in_channels + 36 * s.kernel[1]) > kMaxIndex)
    return "the weights have more than 2^31 elements";
  if (points_of(desc, rows_problem(desc), traits).empty())
    return "the rows do not fit into local memory";
  return reject_tail(desc, 8, given.axes);
}

std::vector<TuningPoint> rows_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, rows_problem(desc), traits))
    space.push_back(to_tuning(point));
  return space;
}

std::vector<double> rows_costs(const OpDesc& desc, const DeviceTraits& traits) {
  const TileProblem problem = rows_problem(desc);
  std::vector<double> costs;
  for (const Point& point : points_of(desc, problem, traits))
    costs.push_back(cost_of(desc, problem, point, traits));
  return costs;
}

TuningPoint rows_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return cheapest(rows_space(desc, traits), rows_costs(desc, traits));
}

struct Args {
#include "kernels/convolution/nvidia/convolution_rows_args.cl"
};

// Returns the filters in the order in which the work-items of a warp load them, as halves, or as
// bytes minus the shift of their output channel.
std::vector<std::byte> packed_weights(const OpDesc& desc, const std::vector<float>& plain,
                                      const ConvShape& s, const Point& p, const Copied& copied) {
  const int64_t word = per_word(desc), steps = copied.steps(s),
                blocks = ceil_div(s.out_channels, p.block());
  const int64_t step = p.tiles() * 32 * 2 * word;  // in elements
  std::vector<float> packed(static_cast<size_t>(blocks * steps * step), 0.f);
  const int64_t depth = s.kernel[1] * s.in_channels;
  for (int64_t o = 0; o < s.out_channels; ++o) {
    const float* const filter = plain.data() + o * depth;
    const float shift =
        takes_bytes(desc) ? static_cast<float>(shift_of({filter, static_cast<size_t>(depth)})) : 0;
    const MmaPlace place(o % p.block(), p.vector);
    float* const block = packed.data() + o / p.block() * steps * step;
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t in_run = copied.lead % word + i % s.in_channels;
      const int64_t k = i / s.in_channels * copied.run_words + in_run / word;
      const int64_t lane = place.column * 4 + k % 4, half = k % 8 / 4;
      block[k / 8 * step + ((place.tile * 32 + lane) * 2 + half) * word + in_run % word] =
          filter[i] - shift;
    }
  }
  return mma_factors(packed, takes_bytes(desc));
}

KernelPlan rows_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& tuning) {
  const TileProblem problem = rows_problem(desc);
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const Copied copied(desc, problem, point);
  const bool bytes = takes_bytes(desc), shifted = bytes && has_shifts(desc);
  const int64_t blocks = ceil_div(s.out_channels, point.block());
  const int64_t tiles_w = ceil_div(s.out[2], point.wide), tiles_h = ceil_div(s.out[1], point.lines);
  const auto zero = bytes ? static_cast<uint32_t>(zero_points(desc)[0]) : 0;

  Args args{};
  set_strides(args, problem.in, problem.out);
  set_geometry(args, s);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.tiles_w = to_int(tiles_w);
  args.tiles_h = to_int(tiles_h);
  args.outside = static_cast<int>(zero * 0x01010101u);

  KernelPlan plan;
  plan.packed.push_back([desc, weights = problem.weights, s, point, copied] {
    return packed_weights(desc, weights(), s, point, copied);
  });
  KernelSpec spec;
  spec.source = "convolution_rows.cl";
  add_start_sums(desc, problem, blocks * point.block(), spec, plan);
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const ElementType out = desc.outputs[0].type;
  const bool ptx = traits.matrix == MatrixUnit::ptx;
  spec.defines.emplace_back("T", storage_name(out));
  define("BYTES", bytes);
  define("SHIFTED", shifted);
  add_defines(spec, point);
  define("RUN", s.in_channels);
  define("RUNS", s.kernel[1]);
  define("STEPS", copied.steps(s));
  define("PIXEL", s.stride[2]);
  define("LINE", s.stride[1]);
  define("APART", s.dilation[1]);
  define("ROWS", copied.rows);
  define("PITCH", copied.pitch);
  define("UNIT", copied.unit);
  define("LEAD", copied.lead);
  define("COPIES", copied.copies);
  define("ALIGNED", output_aligned(desc, problem, point.vector));
  define("WHOLE_BLOCKS", s.out_channels % point.block() == 0);
  define("MMA_PTX", ptx);
  spec.arguments = {Argument::input(problem.data, size_of(desc.inputs[problem.data].type)),
                    Argument::packed(0, 8), Argument::packed(1, 4)};
  if (shifted) spec.arguments.push_back(Argument::packed(2, 4));
  spec.arguments.push_back(Argument::output(0, size_of(out)));
  spec.arguments.push_back(Argument::value(args));
  add_stored_tail(desc, point.vector, problem.axes, traits, spec, plan);
  spec.local = {32, static_cast<size_t>(point.lines), 1};
  spec.shared = copied.bytes(desc);
  spec.global = {32 * static_cast<size_t>(s.batch * tiles_h * tiles_w),
                 static_cast<size_t>(point.lines), 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kFamily{"conv_rows",    1,         reject_rows, rows_space,
                           rows_heuristic, rows_plan, rows_costs,  kMatrixOrder};

}  // namespace

const KernelFamily& rows_family() { return kFamily; }

}  // namespace clinfer
