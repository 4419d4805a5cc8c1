// Chooses points of convolutions of pixels with few channels by warpgroup matrix
// instructions, whose taps share squares of pixels (convolution_squares.cl).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/convolution/nvidia/convolution_mma.h"
#include "kernels/convolution/nvidia/convolution_wgmma.h"
#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kChunkBytes = 16, kSquare = 8;
constexpr int kVector = 8;  // the fewest channels that a work-item stores at once

struct Point {
  int columns, warpgroups;

  static constexpr std::array<Parameter<Point>, 2> parameters() {
    return {{{"COLUMNS", &Point::columns}, {"WARPGROUPS", &Point::warpgroups}}};
  }
  int squares_w() const { return std::min(warpgroups, 2); }
  int squares_h() const { return warpgroups / squares_w(); }
  int64_t items() const { return int64_t{128} * warpgroups; }
};

int64_t chunks_of(const OpDesc& desc, const TileProblem& problem) {
  return problem.shape.in_channels * static_cast<int64_t>(size_of(desc.inputs[problem.data].type)) /
         kChunkBytes;
}

// The pixels of the input that a tile reads, and the places that they have in local memory.
struct Places {
  int64_t lines, columns, count;
  Places(const ConvShape& s, const Point& p)
      : lines(reach(s, 1, p.squares_h())), columns(reach(s, 2, p.squares_w())) {
    const int64_t line = ceil_div(columns, s.stride[2]) * s.stride[2];
    count = ceil_div(lines * line, int64_t{8}) * 8;
  }

 private:
  static int64_t reach(const ConvShape& s, size_t d, int64_t squares) {
    return (squares * kSquare - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1;
  }
};

int64_t tiles_h(const ConvShape& s, const Point& p) {
  return ceil_div(s.out[1], kSquare * p.squares_h());
}
int64_t tiles_w(const ConvShape& s, const Point& p) {
  return ceil_div(s.out[2], kSquare * p.squares_w());
}
int64_t tile_count(const ConvShape& s, const Point& p) {
  return s.batch * tiles_h(s, p) * tiles_w(s, p);
}

size_t shared_bytes(const ConvShape& s, const Point& p, int64_t chunks) {
  return static_cast<size_t>((s.taps() * p.columns + 2 * Places(s, p).count) * chunks *
                             kChunkBytes);
}

// Returns how many work-groups a compute unit holds at once.
int64_t groups_at_once(const ConvShape& s, const Point& p, int64_t chunks) {
  constexpr int64_t kRegisters = 65536, kReserved = 1024, kLocal = 227 << 10;
  const int64_t registers = ceil_div(int64_t{p.columns} / 2 + 48, int64_t{8}) * 8;
  return std::max<int64_t>(
      1, std::min(kRegisters / (p.items() * registers),
                  kLocal / (static_cast<int64_t>(shared_bytes(s, p, chunks)) + kReserved)));
}

std::vector<Point> points_of(const OpDesc& desc, const TileProblem& problem,
                             const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const size_t most_local = traits.wgmma ? 227 << 10 : traits.local_memory;
  std::vector<Point> points;
  for (const int warpgroups : {1, 2, 4}) {
    const Point point{s.out_channels > 32 ? 64 : 32, warpgroups};
    if (shared_bytes(s, point, chunks_of(desc, problem)) <= most_local &&
        static_cast<size_t>(point.items()) <= traits.max_work_group)
      points.push_back(point);
  }
  return points;
}

std::string reject_squares(const OpDesc& desc, const DeviceTraits& traits) {
  const TileProblem problem = convolution_problem(desc);
  if (std::string why = reject_wgmma_data(desc, problem, traits); !why.empty()) return why;
  const ConvShape& s = problem.shape;
  if (desc.inputs[problem.data].type == ElementType::f8e4m3) return "the data are floats of 8 bits";
  if (s.taps() == 1) return "a single tap";
  if (const int64_t chunks = chunks_of(desc, problem); chunks != 2 && chunks != 4 && chunks != 8)
    return "the channels of a pixel are not 32, 64 or 128 bytes";
  if (s.stride[1] > 2 || s.stride[2] > 2) return "steps of more than two pixels";
  if (s.out_channels <= 16) return "half of a block of output channels would be empty";
  if (s.out_channels > 64) return "more than 64 output channels";
  const std::vector<Point> points = points_of(desc, problem, traits);
  if (points.empty()) return "the weights of all taps do not fit into local memory";
  if (tile_count(s, points[0]) < int64_t{4} * traits.compute_units)
    return "fewer than four squares for each compute unit";
  return reject_tail(desc, kVector, problem.axes);
}

std::vector<TuningPoint> squares_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, convolution_problem(desc), traits))
    space.push_back(to_tuning(point));
  return space;
}

// Chooses the most squares of which a compute unit still holds four work-groups, else single ones: on an
// H200, pairs take 0.74 to 0.85 of the time for 32 channels to 32, and single squares are the best for 64
// output channels.
TuningPoint squares_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const TileProblem problem = convolution_problem(desc);
  const std::vector<Point> points = points_of(desc, problem, traits);
  Point best = points[0];
  for (const Point& point : points)
    if (groups_at_once(problem.shape, point, chunks_of(desc, problem)) >= 4) best = point;
  return to_tuning(best);
}

struct Args {
#include "kernels/convolution/nvidia/convolution_squares_args.cl"
};

KernelPlan squares_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& tuning) {
  const TileProblem problem = convolution_problem(desc);
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const bool bytes = takes_bytes(desc), ptx = traits.wgmma;
  const ElementType data = desc.inputs[problem.data].type, out = desc.outputs[0].type;
  const int64_t chunks = chunks_of(desc, problem), chunk = s.in_channels / chunks;
  const Places places(s, point);
  Args args{};
  set_strides(args,
              {.n = problem.in.n / chunk, .h = problem.in.h / chunk, .w = problem.in.w / chunk},
              problem.out);
  set_geometry(args, s);
  args.out_channels = to_int(s.out_channels);
  args.blocks = 1;
  args.steps = to_int(s.taps());
  args.tiles_h = to_int(tiles_h(s, point));
  args.tiles_w = to_int(tiles_w(s, point));
  args.tiles = to_int(tile_count(s, point));

  KernelPlan plan;
  const float zero = bytes ? zero_points(desc)[0] : 0;
  const int vector = wgmma_vector(desc, problem, problem.axes, point.columns);
  plan.packed.push_back([weights = problem.weights, s, point, vector, chunks, data, zero] {
    return wgmma_weights(weights(), s, point.columns, vector, to_int(chunks), data, zero);
  });
  KernelSpec spec;
  spec.source = "convolution_squares.cl";
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  spec.defines.emplace_back("T", storage_name(out));
  if (bytes) {
    add_start_sums(desc, problem, point.columns, spec, plan);
    if (zero == 0) define("START_SUM", has_small_sums(desc) ? kBitsOfSmallSums : 0);
  }
  add_defines(spec, point);
  define("VECTOR", vector);
  define("CHUNKS", chunks);
  define("BYTES", bytes);
  define("FLOAT8", 0);
  define("SQUARES_W", point.squares_w());
  define("KERNEL_H", s.kernel[1]);
  define("KERNEL_W", s.kernel[2]);
  define("TAP_H", s.dilation[1]);
  define("TAP_W", s.dilation[2]);
  define("LINE_STEP", s.stride[1]);
  define("COLUMN_STEP", s.stride[2]);
  define("TILE_LINES", places.lines);
  define("TILE_COLUMNS", places.columns);
  define("SQUARES_H", point.squares_h());
  define("ALIGNED", output_aligned(desc, problem, vector));
  define("WHOLE_BLOCKS", s.out_channels % point.columns == 0);
  define("WGMMA_PTX", ptx);
  spec.shared = shared_bytes(s, point, chunks);
  define("LOCAL_BYTES", static_cast<int64_t>(spec.shared));
  const int64_t at_once = groups_at_once(s, point, chunks);
  if (ptx) {
    spec.defines.emplace_back(
        "LIMIT_REGISTERS",
        at_once > 1 ? "asm volatile(\"//#groups " + std::to_string(at_once) + "\")" : "");
    spec.defines.emplace_back("MULTIPLY(s, a, b)",
                              wgmma_step(point.columns, to_int(chunks), data, true));
    spec.defines.emplace_back("FINISH(s)", wgmma_finish(point.columns, data));
  }
  spec.arguments = {Argument::input(problem.data, 16), Argument::packed(0, 16)};
  if (bytes) spec.arguments.push_back(Argument::packed(1, sizeof(int32_t)));
  spec.arguments.push_back(Argument::output(0, size_of(out)));
  spec.arguments.push_back(Argument::value(args));
  add_stored_tail(desc, vector, problem.axes, traits, spec, plan);
  spec.local = {static_cast<size_t>(point.items()), 1, 1};
  // No more work-groups than run at once.
  const int64_t most = std::max<int64_t>(traits.compute_units, 1) * at_once;
  spec.global = {static_cast<size_t>(std::min<int64_t>(args.tiles, most)) * spec.local[0], 1, 1};
  spec.marked_ptx = ptx;
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kFamily{
    "conv_squares", 1,       reject_squares, squares_space, squares_heuristic,
    squares_plan,   nullptr, kMatrixOrder};

}  // namespace

const KernelFamily& squares_family() { return kFamily; }

}  // namespace clinfer
