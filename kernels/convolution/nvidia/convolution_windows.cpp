// Chooses points, estimates costs and packs weights for convolutions of images by warpgroup matrix
// instructions that read windows in place (convolution_windows.cl).
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/convolution/nvidia/convolution_mma.h"
#include "kernels/convolution/nvidia/convolution_wgmma.h"
#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/convolution/tiles/fused_convolution.h"
#include "kernels/described_point.h"
#include "kernels/sampling/pooling.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kUnitBytes = 16, kPixelElements = 4;

struct Point {
  int columns, warpgroups, lines;

  static constexpr std::array<Parameter<Point>, 3> parameters() {
    return {{{"COLUMNS", &Point::columns},
             {"WARPGROUPS", &Point::warpgroups},
             {"LINES", &Point::lines}}};
  }
  int vector() const { return std::min(columns / 4, 8); }
  int64_t tile_lines() const { return int64_t{warpgroups} * lines; }
};

// A convolution, and the maxima of its sums that are stored, if any.
struct Problem : TileProblem {
  OpDesc op;  // the convolution alone
  bool bytes, quantizes;
  std::optional<PoolShape> pool;

  explicit Problem(const OpDesc& desc) : Problem(desc, convolution_within(desc)) {}
  Problem(const OpDesc& desc, const OpDesc& within)
      : TileProblem(convolution_problem(within)),
        op(within),
        bytes(takes_bytes(within)),
        quantizes(quantizes_data(desc)) {
    if (!stores_maxima(desc)) return;
    pool = resolve_pooling("MaxPool", without_prefix(desc.attributes, kPoolPrefix),
                           shape.output(op.inputs[0].shape.size()));
  }
  const ConvShape& stored() const { return pool ? *pool : shape; }
  int64_t pool_size() const { return pool ? pool->kernel[1] : 0; }
  int64_t planes() const { return pool ? 2 : 1; }
  int64_t unit_pixels() const { return kUnitBytes / kPixelElements / (bytes ? 1 : 2); }
  // Returns the outputs between those whose windows begin a unit apart.
  int64_t unit_steps() const { return unit_pixels() / shape.stride[2]; }
  int64_t units_of_row() const { return ceil_div(shape.kernel[2], unit_pixels()); }
  // Returns the distance of a warpgroup's eight groups of windows.
  int64_t group() const { return pool_size() == 3 ? 7 : 8; }
  int64_t lines_of_sums(int64_t lines) const {
    return pool ? 2 * (lines - 1) + pool_size() : lines;
  }
  int64_t rows(int64_t lines) const {
    return (lines_of_sums(lines) - 1) * shape.stride[1] +
           (shape.kernel[1] - 1) * shape.dilation[1] + 1;
  }
  // Returns the units of a plane of a row.
  int64_t units() const {
    return 7 * group() + 8 + (planes() - 1 + (units_of_row() - 1) * unit_steps()) / planes();
  }
};

// Where units of the windows of one pixel lie, from those of the tap in the first row and column on.
struct Unit {
  int64_t row, in_row;  // of the kernel
  int64_t place(const Problem& p, int64_t plane) const {
    const int64_t at = plane + in_row * p.unit_steps();
    return row * p.shape.dilation[1] * p.planes() * p.units() + at % p.planes() * p.units() +
           at / p.planes();
  }
};

// A step multiplies two units, which are as far apart in each plane; or one, and then the second one has
// weights of 0.
struct Step {
  Unit first;
  std::optional<Unit> second;
  int64_t apart(const Problem& p, int64_t plane) const {
    return second ? second->place(p, plane) - first.place(p, plane) : 0;
  }
};

std::vector<Step> steps_of(const Problem& p) {
  std::vector<Unit> units;
  for (int64_t row = 0; row < p.shape.kernel[1]; ++row)
    for (int64_t i = 0; i < p.units_of_row(); ++i) units.push_back({row, i});
  std::vector<Step> steps;
  while (!units.empty()) {
    Step step{units.front(), {}};
    units.erase(units.begin());
    for (size_t i = 0; i < units.size() && !step.second; ++i) {
      const Step both{step.first, units[i]};
      if (both.apart(p, 0) <= 0 || both.apart(p, 0) != both.apart(p, p.planes() - 1)) continue;
      step = both;
      units.erase(units.begin() + static_cast<std::ptrdiff_t>(i));
    }
    steps.push_back(step);
  }
  return steps;
}

int64_t step_count(const Problem& p) { return static_cast<int64_t>(steps_of(p).size()); }

size_t shared_bytes(const Problem& p, const Point& point) {
  return static_cast<size_t>(kUnitBytes * (step_count(p) * 2 * point.columns +
                                           p.rows(point.tile_lines()) * p.planes() * p.units()));
}

// Returns how many work-groups a compute unit holds at once.
int64_t groups_at_once(const Problem& p, const Point& point) {
  constexpr int64_t kRegisters = 65536, kReserved = 1024, kLocal = 227 << 10, kMostItems = 2048;
  const int64_t items = int64_t{128} * point.warpgroups;
  // Counts sums, those kept for maxima, and the others that the compiler takes.
  const int64_t registers = p.pool ? 32 + 3 * point.columns / 2 : 48 + point.columns / 2;
  return std::max<int64_t>(
      1, std::min({kRegisters / (items * ceil_div(registers, 8) * 8), kMostItems / items,
                   kLocal / (static_cast<int64_t>(shared_bytes(p, point)) + kReserved)}));
}

int64_t group_count(const Problem& p, const Point& point) {
  const ConvShape& stored = p.stored();
  return p.shape.batch * ceil_div(stored.out[1], point.tile_lines()) *
         ceil_div(stored.out[2], 8 * p.group()) * ceil_div(p.shape.out_channels, point.columns);
}

// Constants of the cost on a Hopper GPU, in microseconds and cycles, fitted to 59 timings of the first layers
// of ResNet-50 at batch 128 and YOLOv8s at 32, of bytes, on an H200: the points that they choose take up to
// 6 % longer than the best.
struct Costs {
  double launch = 5, clock = 1700;
  double step = 0.8;               // for a cycle of the matrix units
  double line = 88;                // for each line of sums
  double maximum = 5.6;            // for each sum of which there are maxima
  double value = 12.2;             // for each value to store
  double level = 3.8;              // for each element to quantise
  double start = 2326, row = 167;  // waiting, while other work-groups run
};
double cost_of(const Problem& p, const Point& point, const DeviceTraits& traits) {
  constexpr Costs c;
  const double units = std::max(traits.compute_units, 1u);
  const auto at_once = static_cast<double>(groups_at_once(p, point)),
             lines = static_cast<double>(p.lines_of_sums(point.lines)),
             planes = static_cast<double>(p.planes());
  const double sums = point.columns / 2.0, warpgroups = point.warpgroups;
  // Counts the blocks that a work-item copies.
  const int64_t items = int64_t{128} * point.warpgroups,
                blocks = p.planes() * p.units() + p.unit_steps() - 1;
  const auto copies = static_cast<double>(
      ceil_div(p.rows(point.tile_lines()), std::max<int64_t>(items / blocks, 1)) *
      ceil_div(blocks, items));
  // Local memory gives 128 bytes a cycle: the operands of a step, or what is multiplied meanwhile.
  const double multiplying = lines * static_cast<double>(step_count(p)) * planes *
                             std::max(sums, 16 + point.columns / 4.0);
  const double elements = static_cast<double>(p.shape.stride[2] * p.shape.in_channels);
  const double busy =
      warpgroups *
      (c.step * multiplying + c.line * lines + (p.pool ? c.maximum * lines * planes * sums : 0) +
       c.value * point.lines * sums + (p.quantizes ? c.level * copies * elements : 0));
  const auto groups = static_cast<double>(group_count(p, point)) / units;  // of a compute unit
  constexpr double kManyWaves = 8;
  const double rounded =
      groups / at_once < kManyWaves ? std::ceil(groups / at_once) * at_once : groups;
  return c.launch + rounded * (busy + (c.start + c.row * copies) / at_once) / c.clock;
}

std::vector<Point> points_of(const Problem& p, const DeviceTraits& traits) {
  std::vector<Point> points;
  // Local memory of a work-group on devices with these instructions.
  const size_t most_local = traits.wgmma ? 227 << 10 : traits.local_memory;
  for (const int columns : {64, 32, 16}) {
    if (columns > 16 && columns / 2 >= p.shape.out_channels) continue;  // half would be empty
    if (columns < 64 && 2 * columns < p.shape.out_channels) continue;
    for (const int warpgroups : {1, 2})
      for (const int lines : {1, 2, 4, 8}) {
        const Point point{columns, warpgroups, lines};
        if (point.tile_lines() >= 2 * p.stored().out[1] && point.tile_lines() > 1) continue;
        if (shared_bytes(p, point) > most_local) continue;
        if (static_cast<size_t>(128 * warpgroups) > traits.max_work_group) continue;
        points.push_back(point);
      }
  }
  return points;
}

std::string reject_pool(const Problem& p) {
  const PoolShape& pool = *p.pool;
  for (const size_t d : {1, 2}) {
    if (pool.stride[d] != 2 || pool.dilation[d] != 1 || pool.kernel[d] != pool.kernel[1] ||
        (pool.kernel[d] != 2 && pool.kernel[d] != 3))
      return "maxima other than of 2x2 or 3x3 sums, two apart";
    if (pool.pad[d] >= pool.kernel[d] ||
        (pool.out[d] - 1) * pool.stride[d] - pool.pad[d] >= pool.in[d])
      return "maxima of pads alone";
  }
  return "";
}

std::string reject_windows(const OpDesc& desc, const DeviceTraits& traits) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  if (!traits.wgmma && traits.matrix != MatrixUnit::emulated)
    return "the device has no warpgroup matrix instructions";
  const Problem p(desc);
  const ConvShape& s = p.shape;
  if (std::string why = reject_mma_data(p.op, p, traits); !why.empty()) return why;
  if (p.bytes && has_shifts(p.op)) return "the weights are bytes only after a shift";
  if (p.quantizes) {
    if (desc.inputs[0].type != ElementType::f32) return "the floats to quantise are not f32";
    Shape by_channel(desc.inputs[0].shape.size(), 1);
    by_channel[1] = s.in_channels;
    for (const size_t i : {2, 3})
      if (desc.constants[i].elements() != 1 && desc.constants[i].shape() != by_channel)
        return "scales that differ along other dimensions than the channels";
  }
  if (s.groups > 1) return "groups";
  if (s.in_channels > kPixelElements) return "pixels of more than four channels";
  if (s.taps() < 4 || s.dilation[2] != 1) return "few taps, or columns of the kernel are apart";
  if (p.unit_pixels() % s.stride[2] != 0) return "windows that begin within 16 bytes";
  if (s.out_channels < 8) return "fewer than eight output channels";
  if (p.pool)
    if (std::string why = reject_pool(p); !why.empty()) return why;
  if (s.in[2] + s.pad[2] + (s.out[2] + 256) * s.stride[2] > kMaxIndex ||
      s.in[1] + s.pad[1] + (s.out[1] + 256) * s.stride[1] > kMaxIndex)
    return "lines of more than 2^31 pixels";
  // Sums of bytes stay above the number that stands for none.
  constexpr int64_t kMostProducts = 8192;
  if (s.taps() * kPixelElements > kMostProducts) return "sums of more than 8192 products";
  if (points_of(p, traits).empty()) return "the rows do not fit into local memory";
  return reject_tail(desc, 8, p.axes);
}

std::vector<TuningPoint> windows_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(Problem(desc), traits)) space.push_back(to_tuning(point));
  return space;
}

std::vector<double> windows_costs(const OpDesc& desc, const DeviceTraits& traits) {
  const Problem p(desc);
  std::vector<double> costs;
  for (const Point& point : points_of(p, traits)) costs.push_back(cost_of(p, point, traits));
  return costs;
}

TuningPoint windows_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return cheapest(windows_space(desc, traits), windows_costs(desc, traits));
}

// Returns the statement that adds up all steps of a line of sums, as marked PTX: of each plane, whose sums
// follow those of the plane before. `a` and `b` describe the windows and the weights.
std::string multiply_text(const Problem& p, int columns, bool bytes) {
  const int sums = columns / 2, all = to_int(p.planes()) * sums;
  const std::string from_a = "%" + std::to_string(all), from_b = "%" + std::to_string(all + 1);
  std::string text = "asm volatile(\"{\\n .reg .b64 ma, mb;\\n //@wgmma.fence.sync.aligned;\\n\"";
  const std::vector<Step> steps = steps_of(p);
  for (int64_t plane = 0; plane < p.planes(); ++plane) {
    std::string list;
    for (int i = 0; i < sums; ++i) list += (i ? ",%" : "%") + std::to_string(plane * sums + i);
    for (size_t k = 0; k < steps.size(); ++k) {
      const int64_t a = steps[k].first.place(p, plane) + (steps[k].apart(p, plane) << 16);
      text += " \"add.s64 ma, " + from_a + ", " + std::to_string(a) + ";\\n add.s64 mb, " + from_b +
              ", " + std::to_string(static_cast<int64_t>(k) * 2 * columns) + ";\\n //@" +
              wgmma_name(columns, bytes ? ElementType::u8 : ElementType::f16) + " {" + list +
              "}, ma, mb, " + (k > 0 ? "1" : "0") + (bytes ? "" : ", 1, 1, 0, 0") + ";\\n\"";
    }
  }
  return text +
         " \"//@wgmma.commit_group.sync.aligned;\\n //@wgmma.wait_group.sync.aligned 0;\\n}\" : " +
         sums_as_operands(all, bytes, true) + " : \"l\"(a), \"l\"(b) : \"memory\")";
}

struct Args {
#include "kernels/convolution/nvidia/convolution_windows_args.cl"
};

std::vector<float> packed_weights(const std::vector<float>& plain, const Problem& p, int columns,
                                  int vector) {
  const ConvShape& s = p.shape;
  const std::vector<Step> steps = steps_of(p);
  const auto count = static_cast<int64_t>(steps.size());
  const int64_t elements = kPixelElements * p.unit_pixels();  // of a unit
  std::vector<float> packed(
      static_cast<size_t>(ceil_div(s.out_channels, columns) * count * 2 * columns * elements), 0.f);
  const auto pack = [&](int64_t o, int64_t at, const Unit& unit) {
    const MmaPlace own(o % columns, vector);
    float* const to =
        packed.data() +
        ((o / columns * count * 2 + at) * columns + own.tile * 8 + own.column) * elements;
    for (int64_t i = 0; i < p.unit_pixels(); ++i) {
      const int64_t kx = unit.in_row * p.unit_pixels() + i;
      if (kx >= s.kernel[2]) break;
      const float* const from =
          plain.data() + ((o * s.kernel[1] + unit.row) * s.kernel[2] + kx) * s.in_channels;
      std::copy_n(from, s.in_channels, to + i * kPixelElements);
    }
  };
  for (int64_t o = 0; o < s.out_channels; ++o)
    for (int64_t k = 0; k < count; ++k) {
      const Step& step = steps[static_cast<size_t>(k)];
      pack(o, 2 * k, step.first);
      if (step.second) pack(o, 2 * k + 1, *step.second);
    }
  return packed;
}

// Returns the table of the units of all steps, for plain C.
std::string places_text(const Problem& p) {
  std::string text = "__constant int FN(places)[] = {";
  for (int64_t plane = 0; plane < p.planes(); ++plane)
    for (const Step& step : steps_of(p)) {
      const int64_t first = step.first.place(p, plane);
      text += std::to_string(first) + ", " + std::to_string(first + step.apart(p, plane)) + ", ";
    }
  return text + "};\n";
}

KernelPlan windows_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& tuning) {
  const Problem p(desc);
  const ConvShape &s = p.shape, &stored = p.stored();
  const auto point = from_tuning<Point>(tuning);
  const bool bytes = p.bytes, ptx = traits.wgmma;
  const int64_t blocks = ceil_div(s.out_channels, point.columns);
  const int zero = bytes ? static_cast<int>(zero_points(p.op)[0]) : 0;

  Args args{};
  set_strides(args, p.in, p.out);
  set_geometry(args, s);
  set_lines(args, stored.out[1], stored.out[2]);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.tiles_w = to_int(ceil_div(stored.out[2], 8 * p.group()));
  args.tiles_h = to_int(ceil_div(stored.out[1], point.tile_lines()));
  args.outside = static_cast<int>(static_cast<uint32_t>(zero) * 0x01010101u);
  args.summed_h = to_int(s.out[1]), args.summed_w = to_int(s.out[2]);
  if (p.pool) args.pool_h = to_int(p.pool->pad[1]), args.pool_w = to_int(p.pool->pad[2]);
  if (p.quantizes) {
    const std::vector<float> scale = desc.constants[2].to_floats(),
                             shift = desc.constants[3].to_floats();
    for (size_t c = 0; c < static_cast<size_t>(s.in_channels); ++c) {
      args.scale[c] = scale[scale.size() == 1 ? 0 : c];
      args.shift[c] = shift[shift.size() == 1 ? 0 : c];
    }
  }

  KernelPlan plan;
  plan.packed.push_back([weights = p.weights, p, point, bytes] {
    return mma_factors(packed_weights(weights(), p, point.columns, point.vector()), bytes);
  });
  KernelSpec spec;
  spec.source = "convolution_windows.cl";
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const ElementType out = desc.outputs[0].type;
  spec.defines.emplace_back("T", storage_name(out));
  if (bytes) {
    add_start_sums(p.op, p, blocks * point.columns, spec, plan);
    if (zero == 0) define("START_SUM", has_small_sums(p.op) ? kBitsOfSmallSums : 0);
  }
  add_defines(spec, point);
  define("VECTOR", point.vector());
  define("BYTES", bytes);
  define("QUANTIZES", p.quantizes);
  if (p.quantizes) {
    const Attributes quantize = without_prefix(desc.attributes, kQuantizePrefix);
    const int64_t lowest = quantize.get_int("lowest", 0);
    define("LOWEST_LEVEL", lowest);
    define("HIGHEST_LEVEL", lowest + quantize.get_int("levels") - 1);
  }
  define("CHANNELS", s.in_channels);
  define("PIXEL", s.stride[2]);
  define("LINE", s.stride[1]);
  define("POOL", p.pool_size());
  define("PLANES", p.planes());
  define("ROWS", p.rows(point.tile_lines()));
  define("UNITS", p.units());
  define("STEPS", step_count(p));
  define("ALIGNED", output_aligned(p.op, p, point.vector()));
  define("WHOLE_BLOCKS", s.out_channels % point.columns == 0);
  define("WGMMA_PTX", ptx);
  spec.shared = shared_bytes(p, point);
  define("LOCAL_BYTES", static_cast<int64_t>(spec.shared));
  if (ptx) {
    const int64_t groups = groups_at_once(p, point);
    spec.defines.emplace_back(
        "LIMIT_REGISTERS",
        groups > 1 ? "asm volatile(\"//#groups " + std::to_string(groups) + "\")" : "");
    spec.defines.emplace_back("MULTIPLY(s, a, b)", multiply_text(p, point.columns, bytes));
  } else {
    spec.prologue = places_text(p);
  }
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)), Argument::packed(0, 16)};
  if (bytes) spec.arguments.push_back(Argument::packed(1, sizeof(int32_t)));
  spec.arguments.push_back(Argument::output(0, size_of(out)));
  spec.arguments.push_back(Argument::value(args));
  add_stored_tail(desc, point.vector(), p.axes, traits, spec, plan);
  spec.local = {static_cast<size_t>(128 * point.warpgroups), 1, 1};
  spec.global = {static_cast<size_t>(group_count(p, point)) * spec.local[0], 1, 1};
  spec.marked_ptx = ptx;
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kFamily{
    "conv_windows", 1, reject_windows, windows_space, windows_heuristic, windows_plan,
    windows_costs};

}  // namespace

const KernelFamily& windows_family() { return kFamily; }

}  // namespace clinfer
