// Points, costs and packing of the depthwise kernel by dot products (convolution_depthwise_dot.cl).
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Point {
  int vector, tile_p, lines, lanes, rows;

  static constexpr std::array<Parameter<Point>, 5> parameters() {
    return {{{"VECTOR", &Point::vector},
             {"TILE_P", &Point::tile_p},
             {"LINES", &Point::lines},
             {"LANES", &Point::lanes},
             {"ROWS", &Point::rows}}};
  }
};

// Groups of four columns, as the kernel forms them of what a tile reads, and the shifts of the taps
// in them.
struct Groups {
  int64_t apart, first_shift, shifts, count, columns;
  Groups(const ConvShape& s, const Point& p)
      : apart(s.kernel[2] == 3 ? 2 : 4),
        first_shift(s.kernel[2] == 3 ? 0 : -4),
        shifts(s.kernel[2] == 3 ? 2 : 8),
        columns((p.tile_p - 1) * s.stride[2] + s.kernel[2]) {
    count = s.kernel[2] == 3 ? (p.tile_p - 1) * s.stride[2] / 2 + 1 : ceil_div(columns, 4);
  }
};

std::vector<Point> points_of(const OpDesc& desc, const ConvShape& s, const DeviceTraits& traits) {
  std::vector<Point> points;
  for (const int vector : {4, 8}) {
    if (s.groups % vector != 0 || !vectors_aligned(desc, traits, vector)) continue;
    const int64_t vectors = s.groups / vector;
    for (const int tile_p : {4, 2})
      for (const int lines : {1, 2, 4}) {
        if (vector * tile_p * lines > 64) continue;  // registers
        if ((tile_p > 2 && tile_p / 2 >= s.out[2]) || (lines > 1 && lines / 2 >= s.out[1]))
          continue;
        for (const int lanes : {32, 16, 8, 4, 2, 1})
          if (lanes == 1 || lanes < 2 * vectors)
            for (const int items : {128, 64})
              if (static_cast<size_t>(items) <= traits.max_work_group)
                points.push_back({vector, tile_p, lines, lanes, items / lanes});
      }
  }
  return points;
}

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  if (!takes_bytes(desc)) return "the data are not bytes";
  if (std::string why = reject_byte_storage(desc); !why.empty()) return why;
  if (traits.dot != DotProduct::ptx && traits.matrix != MatrixUnit::emulated)
    return "no GPU of NVIDIA's with dot products";
  const TileProblem problem = convolution_problem(desc);
  const ConvShape& s = problem.shape;
  if (std::string why = reject_depthwise_shape(s); !why.empty()) return why;
  if (has_shifts(desc)) return "the weights are bytes only after a shift";
  if (s.kernel[1] != s.kernel[2] || (s.kernel[2] != 3 && s.kernel[2] != 5))
    return "a kernel of other sizes than 3x3 and 5x5";
  if (s.dilation[1] != 1 || s.dilation[2] != 1) return "dilations";
  if (s.stride[1] > 2 || s.stride[2] > 2) return "strides above 2";
  if (std::string why = reject_depthwise_zeros(desc, s); !why.empty()) return why;
  if (std::string why = reject_channels(s, problem.in, problem.out); !why.empty()) return why;
  if (points_of(desc, s, traits).empty()) return "the channels of a pixel are no whole words";
  return reject_tail(desc, 8, problem.axes);
}

// Microseconds on a Hopper GPU. The constants are fitted to 195 timings of 13 layers of detection
// networks, MobileNets and ShuffleNet on an H200; the points that they choose take 12 % longer than
// the best in the mean.
struct Costs {
  double launch = 5.9, clock = 1700;  // us; cycles in a us
  double load = 3.9, line = 2.2,
         store = 4.4;             // of a warp's access, and of each line of memory it touches
  double group = 33, dot = 2.05;  // to form a group's words, and of a dot product
  double row = 110, issue = 0.39, waves = 2;  // that a work-item waits
  double columns = 8.8;                       // registers of a column
};
double cost_of(const ConvShape& s, const Point& p, const DeviceTraits& traits) {
  constexpr Costs c;
  const Groups groups(s, p);
  const double units = std::max(traits.compute_units, 1u);
  const int64_t along = ceil_div(s.groups / p.vector, p.lanes),
                tiles = ceil_div(s.out[2], p.tile_p) * ceil_div(s.out[1], p.lines) * s.batch;
  const double words = p.vector / 4, pixels = p.tile_p * p.lines;
  const auto rows = static_cast<double>((p.lines - 1) * s.stride[1] + s.kernel[1]);
  const auto columns = static_cast<double>(groups.columns);
  const double dots =
      static_cast<double>(s.kernel[1]) * pixels * p.vector * (s.kernel[2] == 3 ? 1 : 2);
  const double lines = std::min(32.0, 32.0 / p.lanes * std::max(1.0, p.lanes * p.vector / 128.0));
  const double issue = rows * columns * (c.load + c.line * lines) + c.store * pixels * lines +
                       c.group * rows * static_cast<double>(groups.count) * words + c.dot * dots;
  const double warps =
      static_cast<double>(along * ceil_div(tiles, p.rows)) * std::ceil(p.lanes * p.rows / 32.0);
  const double registers = pixels * p.vector + c.columns * columns * words;
  const double resident = std::min(64.0, 65536 / (32 * registers));
  const double alone = c.row * rows + c.issue * issue;
  return c.launch +
         (c.waves * std::max(warps / units / resident, 1.0) * alone + warps / units / 4 * issue) /
             c.clock;
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, convolution_problem(desc).shape, traits))
    space.push_back(to_tuning(point));
  return space;
}

std::vector<double> costs(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = convolution_problem(desc).shape;
  std::vector<double> costs;
  for (const Point& point : points_of(desc, s, traits)) costs.push_back(cost_of(s, point, traits));
  return costs;
}

TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return cheapest(space(desc, traits), costs(desc, traits));
}

struct Args {
#include "kernels/convolution/convolution_depthwise_dot_args.cl"
};

std::vector<std::byte> packed_weights(const std::vector<float>& plain, const ConvShape& s,
                                      const Groups& groups) {
  std::vector<std::byte> packed(static_cast<size_t>(4 * s.kernel[1] * groups.shifts * s.groups));
  for (int64_t c = 0; c < s.groups; ++c)
    for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
      for (int64_t shift = 0; shift < groups.shifts; ++shift)
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t tap = i - shift - groups.first_shift;
          if (tap >= 0 && tap < s.kernel[2])
            packed[static_cast<size_t>(4 * ((ky * groups.shifts + shift) * s.groups + c) + i)] =
                static_cast<std::byte>(static_cast<int8_t>(
                    plain[static_cast<size_t>(c * s.taps() + ky * s.kernel[2] + tap)]));
        }
  return packed;
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& tuning) {
  const TileProblem problem = convolution_problem(desc);
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const Groups groups(s, point);
  const int64_t vectors = s.groups / point.vector;
  const auto by_words = [](const PixelStrides& in) {
    return PixelStrides{.n = in.n / 4, .h = in.h / 4, .w = in.w / 4};
  };
  Args args{};
  set_strides(args, by_words(problem.in), problem.out);
  set_geometry(args, s);
  args.channels = to_int(s.groups);
  args.vectors = to_int(vectors);
  args.along = to_int(ceil_div(vectors, point.lanes));
  args.wide = to_int(ceil_div(s.out[2], point.tile_p));
  args.high = to_int(ceil_div(s.out[1], point.lines));
  args.tiles = to_int(int64_t{args.wide} * args.high * s.batch);
  const Quotient by_along = quotient_by(args.along), by_wide = quotient_by(args.wide),
                 by_high = quotient_by(args.high);
  args.along_scale = by_along.scale, args.along_shift = by_along.shift;
  args.wide_scale = by_wide.scale, args.wide_shift = by_wide.shift;
  args.high_scale = by_high.scale, args.high_shift = by_high.shift;

  KernelPlan plan;
  const std::vector<float> zeros = zero_points(desc);
  const auto zero_of = [zeros](int64_t channel) {
    return static_cast<int>(zeros[static_cast<size_t>(channel) % zeros.size()]);
  };
  plan.packed.push_back(
      [weights = problem.weights, s, groups] { return packed_weights(weights(), s, groups); });
  plan.packed.push_back([s, zero_of] {
    std::vector<std::byte> packed;
    for (int64_t c = 0; c < s.groups; ++c) packed.push_back(static_cast<std::byte>(zero_of(c)));
    return packed;
  });
  plan.packed.push_back([weights = problem.weights, s, zero_of] {
    const std::vector<float> plain = weights();
    std::vector<int32_t> starts;
    for (int64_t c = 0; c < s.groups; ++c) {
      int32_t start = kBitsOfSmallSums;
      for (int64_t t = 0; t < s.taps(); ++t)
        start -= zero_of(c) * static_cast<int>(plain[static_cast<size_t>(c * s.taps() + t)]);
      starts.push_back(start);
    }
    std::vector<std::byte> bytes(starts.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), starts.data(), bytes.size());
    return bytes;
  });

  KernelSpec spec;
  spec.source = "convolution_depthwise_dot.cl";
  spec.defines.emplace_back("T", storage_name(desc.outputs[0].type));
  add_defines(spec, point);
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  define("KERNEL_SIZE", s.kernel[2]);
  define("STEP_X", s.stride[2]);
  define("STEP_Y", s.stride[1]);
  define("DOT_PTX", traits.dot == DotProduct::ptx);
  spec.arguments = {Argument::input(0, 4),
                    Argument::packed(0, 4),
                    Argument::packed(1, 4),
                    Argument::packed(2, 4),
                    Argument::output(0, size_of(desc.outputs[0].type)),
                    Argument::value(args)};
  add_stored_tail(desc, point.vector, problem.axes, traits, spec, plan);
  spec.local = {static_cast<size_t>(point.lanes), static_cast<size_t>(point.rows), 1};
  spec.global = {static_cast<size_t>(args.along * ceil_div(args.tiles, point.rows)) * spec.local[0],
                 spec.local[1], 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kFamily{"conv_depthwise_dot", 1, reject, space, heuristic, plan, costs};

}  // namespace

const KernelFamily& depthwise_dot_family() { return kFamily; }

}  // namespace clinfer
