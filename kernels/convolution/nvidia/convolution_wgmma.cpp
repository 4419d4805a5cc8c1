// Lists points, estimates costs and packs weights of the convolutions and products by warpgroup
// matrix instructions (convolution_wgmma.cl and convolution_wgmma_taps.cl).
#include "kernels/convolution/nvidia/convolution_wgmma.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/convolution/nvidia/convolution_mma.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kChunkBytes = 16;  // bytes copied at once
// Local memory of a work-group on devices with these instructions.
constexpr size_t kMostLocal = 227 << 10;
// Channels that a work-item stores at once, unless all are whole vectors of more.
constexpr int kVector = 8;
// Layers with fewer products for each compute unit are left to conv_mma. On an H100, 15 layers of
// ResNet-50 and YOLOv8s with 3e6 to 14e6 take 0.6 to 1.0 times as long as by conv_mma, those with
// 0.4e6 to 0.9e6 0.9 to 1.5 times, and three of MobileNetV2 with 0.3e6 1.3 times.
constexpr double kLeastProducts = 2e6;
// Tiles that are half empty still gain where sums are as long, if each compute unit has one: on an
// H200, 384 channels to 36 and to 18 by 3x3 at batch 32 take 25 us instead of 40 to 74, but 256 to
// 24 as long.
constexpr int64_t kFewColumns = 48, kLongSum = 3072;

// The compiler may use only so many registers that a compute unit can hold this number of
// work-groups, or as many as groups_at_once() says. Else it takes up to 150 for each work-item, and
// tiles of 128 x 128 are alone: on an H200, two such tiles of bytes at once take 0.8 of the time,
// three of 128 x 64 take 0.9. A fourth gains nothing: its values no longer fit into registers.
constexpr int kMostGroups = 3;

// Warps that copy for the others in convolution_wgmma_producer.cl: with fewer of them, registers would
// still be set aside for four.
constexpr int kProducers = 4;
// That kernel notes in 32 bits which taps of a row lie in the input, and some past the last one.
constexpr int64_t kMostTaps = 27;

struct Point {
  int columns, warpgroups, stages, chunks;
  // 0: convolution_wgmma.cl; else the number of buffers of convolution_wgmma_taps.cl.
  int buffers = 0;
  int slices = 1;     // parts of the sum, computed by separate warpgroups
  int producers = 0;  // warps that copy for the others; 0: all copy

  static constexpr std::array<Parameter<Point>, 7> parameters() {
    return {{{"COLUMNS", &Point::columns},
             {"WARPGROUPS", &Point::warpgroups},
             {"STAGES", &Point::stages},
             {"CHUNKS", &Point::chunks},
             {"BUFFERS", &Point::buffers},
             {"SLICES", &Point::slices},
             {"PRODUCERS", &Point::producers}}};
  }
  // Returns whether a step's products still run when the next step's begin. Its tiles are then
  // filled one step later, which needs at least four stages.
  bool late() const { return stages >= 4; }
  int64_t pixels() const { return int64_t{64} * warpgroups; }
  int items() const { return 128 * warpgroups * slices + 32 * producers; }
};

// Returns the channels of a pixel that are copied at once.
int64_t chunk_of(const OpDesc& desc) {
  return kChunkBytes / static_cast<int64_t>(size_of(desc.inputs[0].type));
}

int64_t steps_of(const ConvShape& s, const Point& p, int64_t chunk) {
  return ceil_div(s.taps() * (s.in_channels / chunk), p.chunks);
}

// Sums of products of f8e4m3 keep about 13 bits below the largest number that an instruction adds.
// So no more products than these are added up before the sum goes to a total of its own: on an H200
// sums of 4,608 numbers above 0 come out 8 % too small, and 0.2 % with totals.
constexpr int64_t kPartialSum = 256;
// Returns after how many steps a partial sum goes to the total; 0: there are no totals.
int64_t partial_steps(const OpDesc& desc, const ConvShape& s, const Point& p) {
  if (desc.inputs[0].type != ElementType::f8e4m3) return 0;
  const int64_t steps = kPartialSum / (p.chunks * kChunkBytes);
  return steps_of(s, p, kChunkBytes) / p.slices > steps ? steps : 0;
}
// Returns how many sums a work-item holds.
int64_t sums_of(const OpDesc& desc, const ConvShape& s, const Point& p) {
  return p.columns / 2 * (partial_steps(desc, s, p) > 0 ? 2 : 1);
}

double products_of(const ConvShape& s) {
  return static_cast<double>(s.pixels()) * static_cast<double>(s.out_channels) *
         static_cast<double>(s.taps() * s.in_channels);
}

// Sizes of a line and an image in convolution_wgmma_taps.cl, gaps included.
struct Places {
  int64_t wide, high;
  explicit Places(const ConvShape& s) : wide(s.out[2] + s.pad[2]), high(s.out[1] + s.pad[1]) {}
  int64_t of(const ConvShape& s) const { return s.batch * high * wide; }
  // Returns the rows that a tile reads, rounded up to a multiple of 8.
  int64_t read_by(const ConvShape& s, const Point& p) const {
    return ceil_div(p.pixels() + 2 * (s.pad[1] * wide + s.pad[2]), 8) * 8;
  }
};
// Returns whether convolution_wgmma_taps.cl can compute the layer in parts of `part` channels.
bool taps_can_share(const ConvShape& s, int64_t part) {
  const auto same = [&](int d) {
    return s.stride[d] == 1 && s.dilation[d] == 1 && s.out[d] == s.in[d] &&
           s.kernel[d] == 2 * s.pad[d] + 1;
  };
  return same(1) && same(2) && s.taps() > 1 && s.in_channels % part == 0;
}
int64_t tiled_pixels(const ConvShape& s, const Point& p) {
  return p.buffers > 0 ? Places(s).of(s) : s.pixels();
}
size_t shared_bytes(const ConvShape& s, const Point& p) {
  // Each stage has two barriers, and producers tell each other where rows of pixels lie.
  const int64_t chunks =
      p.buffers > 0
          ? (p.buffers * Places(s).read_by(s, p) + p.stages * p.columns) * p.chunks + p.stages
          : p.stages * (p.pixels() + p.columns) * p.chunks +
                (p.producers > 0 ? p.stages + p.pixels() / 2 : 0);
  return static_cast<size_t>(p.slices * chunks * kChunkBytes);
}

constexpr int64_t kRegisters = 65536, kRegistersOfItem = 255;  // of a compute unit, a work-item
// Returns the registers of a work-group, which are given to four warps at once.
int64_t registers_of(const OpDesc& desc, const ConvShape& s, const Point& p) {
  return ceil_div(p.items(), 128) * 128 * 8 *
         ceil_div(sums_of(desc, s, p) + (p.buffers > 0 ? 52 : 46), 8);
}

// Returns how many work-groups a compute unit holds at the same time, which registers and local
// memory limit.
int groups_at_once(const OpDesc& desc, const ConvShape& s, const Point& p) {
  constexpr int64_t kReserved = 1024;  // bytes of each group
  const int64_t registers = registers_of(desc, s, p);
  const auto shared = static_cast<int64_t>(shared_bytes(s, p)) + kReserved;
  return to_int(std::max<int64_t>(
      1, std::min(kRegisters / registers, static_cast<int64_t>(kMostLocal) / shared)));
}

// Constants of the cost in microseconds on a Hopper GPU, fitted to 2,800 timings of layers of
// ResNet-50 and YOLOv8s at batch 8 and 32 on two H100s. The points chosen by them take 1 to 2 %
// longer than the best.
struct Costs {
  double launch = 5.02, clock = 1700, memory = 3.42e6;  // us; cycles per us; bytes per us
  double local = 121;                                   // bytes of local memory per cycle
  double step = 192, with_two = 312, late = 412;        // waiting, in cycles per step
  double part = 759;  // waiting for the only buffer, in cycles per part
  // Cycles per tile, and per element of a tile.
  double start = 2650, store = 0.0396, function = 0.0509;
  // Share of the shorter one of computing and memory that adds to the longer one.
  double both = 0.4;
};
// Returns the bytes that a layer reads and writes, without its weights.
double moved_bytes(const OpDesc& desc) {
  double bytes = 0;
  const auto add = [&](const TensorDesc& tensor) {
    bytes += static_cast<double>(tensor.elements()) * static_cast<double>(size_of(tensor.type));
  };
  for (size_t i = 0; i < desc.inputs.size(); ++i)
    if (desc.constants[i].empty()) add(desc.inputs[i]);
  for (const TensorDesc& output : desc.outputs) add(output);
  return bytes;
}

// Constants of work-groups with producers, fitted to 378 timings of layers of ResNet-50, YOLOv8s and
// MobileNetV2 at batch 8 to 128 on three H200s, in the units of Costs. Where both models choose, layers
// take 1 to 3 % longer than at the best point.
struct ProducerCosts {
  double launch = 5.68, clock = 1700, memory = 4.75e6;
  double local = 149, step = 568, start = 1494;
  // Per element of a tile: for its sum, halves and bytes that the tail reads, gates, and limits of
  // quantised values; and how many times as long these take where they keep the compute unit busy.
  double store = 0.0225, half = 0.0262, byte = 0.003, gate = 0.0229, limit = 0.0107;
  double crowded = 4.03;
  double alone = 391;  // waiting for what the tail reads, per tile of a work-group that is alone
  double both = 0.17;
  double bytes = 0.97;  // Costs take the other points of layers of bytes for so much shorter
};
double producer_cost(const OpDesc& desc, const ConvShape& s, const Point& p,
                     const DeviceTraits& traits) {
  constexpr ProducerCosts c;
  const double units = std::max(traits.compute_units, 1u), at_once = groups_at_once(desc, s, p);
  const auto steps = static_cast<double>(steps_of(s, p, chunk_of(desc)));
  const auto pixels = static_cast<double>(p.pixels());
  const auto tiles =
      static_cast<double>(ceil_div(s.pixels(), p.pixels()) * ceil_div(s.out_channels, p.columns));
  // Taps copy from the first-level cache, which is the same memory.
  const double rows = pixels * (s.taps() > 1 ? 2 : 1) + p.columns + p.warpgroups * (64 + p.columns);
  const double busy = std::max(steps * p.chunks / 2 * p.columns / 2 * p.warpgroups,
                               steps * rows * p.chunks * kChunkBytes / c.local);
  const auto tensors = static_cast<double>(count_activations(desc));
  const bool bytes = is_quantized(desc.inputs[0].type);
  double element = c.store + tensors * (bytes ? c.byte : c.half);
  for (const PostOp& op : desc.tail)
    element += op.function == "swish" || op.function == "sigmoid"      ? c.gate
               : op.function == "to_byte" || op.function == "to_level" ? c.limit
                                                                       : 0;
  const double own = pixels * p.columns * element, wait = at_once > 1 ? 0 : c.alone * tensors;
  const double alone = std::max(busy, steps * c.step) + c.start + own;
  const auto wave = [&](double n) {
    return n > 0 ? std::max(alone, n * (busy + own * c.crowded)) + wait : 0;
  };
  const double waves = std::floor(tiles / (units * at_once));
  const double left = std::ceil((tiles - waves * units * at_once) / units);
  const double computing = (waves * wave(at_once) + wave(left)) / c.clock;
  const double moving = moved_bytes(desc) / c.memory;
  return (bytes ? c.bytes : 1) *
         (c.launch + std::max(computing, moving) + c.both * std::min(computing, moving));
}

double cost_of(const OpDesc& desc, const ConvShape& s, const Point& p, const DeviceTraits& traits) {
  if (p.producers > 0) return producer_cost(desc, s, p, traits);
  constexpr Costs c;
  const double units = std::max(traits.compute_units, 1u);
  const auto steps = static_cast<double>(steps_of(s, p, chunk_of(desc)));
  const auto tiles = static_cast<double>(ceil_div(tiled_pixels(s, p), p.pixels()) *
                                         ceil_div(s.out_channels, p.columns));
  const auto pixels = static_cast<double>(p.pixels());
  const double at_once = groups_at_once(desc, s, p);

  // The time of a tile is that of its matrix instructions or of local memory, whichever is longer;
  // local memory takes the copied rows and the operands.
  const double instructions = steps * p.chunks / 2 * p.columns / 2 * p.warpgroups;
  const double copied =
      p.buffers > 0 ? static_cast<double>(Places(s).read_by(s, p)) / static_cast<double>(s.taps())
                    : pixels;
  const double rows = copied + p.columns + p.warpgroups * (64 + p.columns);
  const double busy = std::max(instructions, steps * rows * p.chunks * kChunkBytes / c.local);
  // Slices wait at the same time, and one slice's wait is hidden by others' work.
  const double own_steps = steps / p.slices, parts = own_steps / static_cast<double>(s.taps());
  const double waits = (p.late() ? std::max(own_steps * c.late - busy / p.slices, 0.0)
                                 : own_steps * (p.stages == 2 ? c.with_two : c.step)) +
                       (p.buffers == 1 && parts > 1 ? parts * c.part : 0);
  const double alone = std::max(busy, busy / p.slices + waits);
  double functions = 0;
  for (const PostOp& op : desc.tail)
    functions += !op.is_unary() ? (desc.constants[op.operand].empty() ? 1 : 0)
                 : op.function == "relu" || op.function == "clamp" ? 0
                                                                   : 1.8;
  // The other slices' sums are written to local memory and read from it.
  const double own =
      c.start +
      pixels * p.columns * (c.store + c.function * functions + (p.slices - 1) * 8 / c.local);
  // Waits of one tile are hidden by other tiles of the same compute unit.
  const auto wave = [&](double n) { return n > 0 ? std::max(alone, n * busy) + own : 0; };
  const double waves = std::floor(tiles / (units * at_once));
  const double left = std::ceil((tiles - waves * units * at_once) / units);
  const double computing = (waves * wave(at_once) + wave(left)) / c.clock;

  const double moving = moved_bytes(desc) / c.memory;
  return c.launch + std::max(computing, moving) + c.both * std::min(computing, moving);
}

// Returns the points with tiles, stages and buffers that were the best for some layer. Points whose
// taps share pixels come last, because they gain nothing where waits of steps dominate. Steps of
// 128 bytes that do not end with a tap gain only in large tiles.
std::vector<Point> points_of(const OpDesc& desc, const ConvShape& s, const DeviceTraits& traits) {
  const int64_t chunk = chunk_of(desc);
  std::vector<Point> points;
  const auto add = [&](const Point& p) {
    // Half of the tile would be empty.
    if (p.columns > 64 && p.columns / 2 >= s.out_channels) return;
    if (shared_bytes(s, p) > (traits.wgmma ? kMostLocal : traits.local_memory)) return;
    if (static_cast<size_t>(p.items()) > traits.max_work_group) return;
    if (partial_steps(desc, s, p) > 0 &&
        registers_of(desc, s, p) > std::min(kRegisters, kRegistersOfItem * p.items()))
      return;
    points.push_back(p);
  };
  if (s.out_channels < kFewColumns) {
    const int columns = s.out_channels > 32 ? 64 : 32;
    const int chunks = s.in_channels % (8 * chunk) == 0 ? 8 : 4;
    for (const auto& [warpgroups, stages] : {std::pair{1, 3}, {1, 4}, {2, 4}})
      add({columns, warpgroups, stages, chunks});
    if (taps_can_share(s, 8 * chunk))
      for (const int warpgroups : {1, 2})
        for (const int buffers : {2, 1})
          if (buffers == 1 || s.in_channels > 8 * chunk) add({columns, warpgroups, 4, 8, buffers});
    return points;
  }
  if (s.in_channels % (8 * chunk) != 0) {
    for (const auto& [columns, warpgroups, stages] :
         {std::tuple{128, 1, 3}, {64, 2, 3}, {128, 1, 4}})
      add({columns, warpgroups, stages, 4});
  } else {
    if (s.taps() * s.in_channels == 8 * chunk) add({128, 1, 2, 8});
    for (const auto& [columns, warpgroups, stages] :
         {std::tuple{128, 1, 3}, {128, 2, 3}, {64, 2, 3}, {128, 1, 4}, {64, 1, 4}, {256, 1, 4}})
      add({columns, warpgroups, stages, 8});
  }
  if (s.in_channels >= 8 * chunk)
    for (const auto& [columns, warpgroups] : {std::pair{128, 2}, {128, 3}, {128, 4}, {256, 2}})
      add({columns, warpgroups, 4, 8});
  // A single tap whose channels are no whole steps takes longer with producers.
  const int step_chunks = s.in_channels < 8 * chunk ? 4 : 8;
  if (s.taps() <= kMostTaps && (s.taps() > 1 || s.in_channels % (step_chunks * chunk) == 0))
    for (const auto& [columns, warpgroups, stages] :
         {std::tuple{64, 2, 3}, {128, 2, 4}, {128, 2, 6}, {128, 3, 4}})
      // Three warpgroups of bytes need more registers than there are.
      if (!takes_bytes(desc) || warpgroups < 3)
        add({columns, warpgroups, stages, step_chunks, 0, 1, kProducers});
  const bool taps_share = taps_can_share(s, 8 * chunk);
  // If there are few tiles, several slices share the steps of each. A slice takes whole parts of
  // the channels.
  if (s.in_channels % (8 * chunk) == 0 &&
      ceil_div(s.pixels(), 64) * ceil_div(s.out_channels, 64) < 2 * traits.compute_units) {
    const int64_t parts = s.in_channels / (8 * chunk), steps = parts * s.taps();
    for (const auto& [columns, stages, slices] :
         {std::tuple{64, 4, 2}, {32, 3, 2}, {32, 4, 2}, {32, 4, 3}, {32, 4, 4}})
      if (steps % slices == 0 && steps / slices >= stages) add({columns, 1, stages, 8, 0, slices});
    for (const auto& [columns, slices] : {std::pair{128, 2}, {64, 2}, {64, 4}, {32, 4}})
      for (const int buffers : {2, 1})
        if (taps_share && parts % slices == 0 && (buffers == 1 || parts > slices))
          add({columns, 1, 4, 8, buffers, slices});
  }
  if (!taps_share) return points;
  for (const auto& [columns, warpgroups] :
       {std::pair{128, 2}, {128, 4}, {128, 1}, {64, 2}, {64, 1}}) {
    if (s.in_channels > 8 * chunk) add({columns, warpgroups, 4, 8, 2});
    add({columns, warpgroups, 4, 8, 1});
  }
  return points;
}

}  // namespace

std::string reject_wgmma_data(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  if (!traits.wgmma && traits.matrix != MatrixUnit::emulated)
    return "the device has no warpgroup matrix instructions";
  const ConvShape& s = problem.shape;
  if (takes_bytes(desc)) {
    if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
    if (has_shifts(desc)) return "the weights are bytes only after a shift";
  } else if (desc.inputs[problem.data].type == ElementType::f8e4m3) {
    if (std::string why = reject_byte_storage(desc); !why.empty()) return why;
    if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "three spatial dimensions";
  } else {
    if (std::string why = reject_float_data(desc); !why.empty()) return why;
    if (desc.inputs[problem.data].type != ElementType::f16) return "the data are not f16";
    if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "three spatial dimensions";
  }
  if (s.groups != 1) return "groups";
  if (std::string why = reject_channels(s, problem.in, problem.out); !why.empty()) return why;
  const int64_t chunk = chunk_of(desc);
  if (s.in_channels % chunk != 0 || !input_aligned(desc, problem, static_cast<int>(chunk)))
    return "the input channels of a pixel are no whole chunks of 16 bytes";
  return "";
}

std::string reject_wgmma(const OpDesc& desc, const TileProblem& problem,
                         const DeviceTraits& traits) {
  if (std::string why = reject_wgmma_data(desc, problem, traits); !why.empty()) return why;
  const ConvShape& s = problem.shape;
  const int64_t chunk = chunk_of(desc);
  if (s.out_channels < kFewColumns &&
      (s.out_channels <= 16 || s.taps() * s.in_channels < kLongSum ||
       s.pixels() < int64_t{64} * traits.compute_units))
    return "fewer than 48 output channels, and short sums or few pixels: tiles would be half empty";
  if (s.out_channels >= kFewColumns && products_of(s) < kLeastProducts * traits.compute_units)
    return "fewer than 2e6 products for each compute unit";
  if ((s.out_channels + 256) * (s.taps() * s.in_channels + 8 * chunk) > kMaxIndex)
    return "the weights have more than 2^31 elements";
  if (points_of(desc, s, traits).empty()) return "the device has too little local memory";
  return reject_tail(desc, kVector, problem.axes);
}

std::vector<TuningPoint> wgmma_space(const OpDesc& desc, const TileProblem& problem,
                                     const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, problem.shape, traits))
    space.push_back(to_tuning(point));
  return space;
}

std::vector<double> wgmma_costs(const OpDesc& desc, const TileProblem& problem,
                                const DeviceTraits& traits) {
  std::vector<double> costs;
  for (const Point& point : points_of(desc, problem.shape, traits))
    costs.push_back(cost_of(desc, problem.shape, point, traits));
  return costs;
}

TuningPoint wgmma_heuristic(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits) {
  return cheapest(wgmma_space(desc, problem, traits), wgmma_costs(desc, problem, traits));
}

std::string sums_as_operands(int sums, bool bytes, bool written_only) {
  std::string operands;
  const std::string constraint = std::string(written_only ? "=&" : "+") + (bytes ? "r" : "f");
  for (int i = 0; i < sums; ++i)
    operands += (i ? ", \"" : "\"") + constraint + "\"((s)[" + std::to_string(i) + "])";
  return operands;
}

std::string wgmma_name(int columns, ElementType data) {
  return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
         (data == ElementType::u8       ? "k32.s32.u8.s8"
          : data == ElementType::f8e4m3 ? "k32.f32.e4m3.e4m3"
                                        : "k16.f32.f16.f16");
}

// A single statement keeps the compiler from moving sums while the instructions run.
std::string wgmma_step(int columns, int chunks, ElementType data, bool late) {
  const int sums = columns / 2;
  std::string list, descriptors;
  const std::string operands = sums_as_operands(sums, data == ElementType::u8);
  // The sums are added to; then signs of the operands, and their orders in memory.
  const char* const how = data == ElementType::u8       ? ", 1;\\n\""
                          : data == ElementType::f8e4m3 ? ", 1, 1, 1;\\n\""
                                                        : ", 1, 1, 1, 0, 0;\\n\"";
  for (int i = 0; i < sums; ++i) {
    list += (i ? ",%" : "%") + std::to_string(i);
  }
  std::string text = "asm volatile(\"//@wgmma.fence.sync.aligned;\\n\"";
  for (int k = 0; k < chunks / 2; ++k) {
    const std::string at = std::to_string(2 * k);
    descriptors += (k ? ", " : "") + ("\"l\"((a) + " + at + "), \"l\"((b) + " + at + ")");
    text += " \"//@" + wgmma_name(columns, data) + " {" + list + "}, %" +
            std::to_string(sums + 2 * k) + ", %" + std::to_string(sums + 2 * k + 1) + how;
  }
  text += std::string(
              " \"//@wgmma.commit_group.sync.aligned;\\n\" \"//@wgmma.wait_group.sync.aligned ") +
          (late ? "1" : "0") + ";\" : " + operands + " : " + descriptors + " : \"memory\")";
  return text;
}

std::string wgmma_finish(int columns, ElementType data) {
  return "asm volatile(\"//@wgmma.wait_group.sync.aligned 0;\" : " +
         sums_as_operands(columns / 2, data == ElementType::u8) + " : : \"memory\")";
}

int wgmma_vector(const OpDesc& desc, const TileProblem& problem, const TailAxes& axes,
                 int columns) {
  constexpr int kWide = 16;
  return desc.outputs[0].type == ElementType::u8 && columns % (4 * kWide) == 0 &&
                 problem.shape.out_channels % kWide == 0 && output_aligned(desc, problem, kWide) &&
                 operands_aligned(desc, kWide, axes)
             ? kWide
             : kVector;
}

std::vector<std::byte> wgmma_weights(const std::vector<float>& plain, const ConvShape& s,
                                     int columns, int vector, int chunks, ElementType data,
                                     float zero) {
  const int64_t chunk = kChunkBytes / static_cast<int64_t>(size_of(data)), row = chunks * chunk;
  const int64_t steps = ceil_div(s.taps() * (s.in_channels / chunk), int64_t{chunks});
  const int64_t depth = s.taps() * s.in_channels;
  const bool whole = s.in_channels % row == 0;
  std::vector<float> packed(static_cast<size_t>(
      ceil_div(s.out_channels, int64_t{columns}) * steps * columns * row + chunk));
  std::fill(packed.end() - chunk, packed.end(), zero);
  for (int64_t o = 0; o < s.out_channels; ++o) {
    const MmaPlace own(o % columns, vector);
    const int64_t column = own.tile * 8 + own.column;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t tap = k / s.in_channels, channel = k % s.in_channels;
      const int64_t step = whole ? channel / row * s.taps() + tap : k / row;
      const int64_t place = k % row / chunk ^ column * chunks / 8 % chunks;
      packed[static_cast<size_t>(((o / columns * steps + step) * columns + column) * row +
                                 place * chunk + k % chunk)] =
          plain[static_cast<size_t>(o * depth + k)];
    }
  }
  if (data != ElementType::u8) return to_bytes(packed, data);
  std::vector<std::byte> integers(packed.size());
  std::transform(packed.begin(), packed.end(), integers.begin(),
                 [](float value) { return static_cast<std::byte>(static_cast<int>(value)); });
  return integers;
}

namespace {

struct Args {
#include "kernels/convolution/nvidia/convolution_wgmma_args.cl"
};

}  // namespace

KernelPlan wgmma_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                      const TuningPoint& tuning) {
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const bool bytes = takes_bytes(desc);
  const int64_t chunk = chunk_of(desc), blocks = ceil_div(s.out_channels, point.columns);
  const int64_t steps = steps_of(s, point, chunk) / point.slices;
  const PixelWalk walk = walk_pixels(desc, problem);
  const PixelStrides& in = walk.in;
  Args args{};
  set_strides(args, {.n = in.n / chunk, .h = in.h / chunk, .w = in.w / chunk}, walk.out);
  set_geometry(args, s);
  args.chunks = to_int(s.in_channels / chunk);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.steps = to_int(steps);
  args.pixels = to_int(tiled_pixels(s, point));
  if (point.buffers > 0) set_lines(args, Places(s).high, Places(s).wide);

  KernelPlan plan;
  const bool whole = s.in_channels % (point.chunks * chunk) == 0;
  const float zero = bytes ? zero_points(desc)[0] : 0;
  const ElementType data = desc.inputs[problem.data].type;
  const int vector = wgmma_vector(desc, problem, walk.axes, point.columns);
  plan.packed.push_back([weights = problem.weights, s, point, vector, data, zero] {
    return wgmma_weights(weights(), s, point.columns, vector, point.chunks, data, zero);
  });
  KernelSpec spec;
  spec.source = point.buffers > 0     ? "convolution_wgmma_taps.cl"
                : point.producers > 0 ? "convolution_wgmma_producer.cl"
                                      : "convolution_wgmma.cl";
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const ElementType out = desc.outputs[0].type;
  const bool ptx = traits.wgmma;
  spec.defines.emplace_back("T", storage_name(out));
  if (bytes) {
    add_start_sums(desc, problem, blocks * point.columns, spec, plan);
    if (zero == 0) define("START_SUM", has_small_sums(desc) ? kBitsOfSmallSums : 0);
  }
  define("VECTOR", vector);
  define("COLUMNS", point.columns);
  define("WARPGROUPS", point.warpgroups);
  define("STAGES", point.stages);
  define("SLICES", point.slices);
  define("CHUNKS", point.chunks);
  define("BYTES", bytes);
  define("FLOAT8", data == ElementType::f8e4m3);
  if (const int64_t partial = partial_steps(desc, s, point); partial > 0)
    define("PARTIAL_STEPS", partial);
  define("WHOLE_STEPS", whole);
  define("POINTWISE", walk.row);
  define("FLAT_TAIL", walk.flat_tail);
  define("ALIGNED", output_aligned(desc, problem, vector));
  define("WHOLE_BLOCKS", s.out_channels % point.columns == 0);
  define("WGMMA_PTX", ptx);
  define("LATE", point.late());
  spec.shared = shared_bytes(s, point);
  define("LOCAL_BYTES", static_cast<int64_t>(spec.shared));
  if (point.buffers > 0) {
    define("HALO_ROWS", Places(s).read_by(s, point));
    define("BUFFERS", point.buffers);
  }
  if (point.producers > 0) {
    define("PRODUCERS", 32 * point.producers);
    define("ZERO_OUTSIDE", zero == 0);
  }
  define("COPIES_LEFT", point.stages - 2 - point.late());
  if (ptx) {
    const int groups = std::min(groups_at_once(desc, s, point), kMostGroups);
    spec.defines.emplace_back(
        "LIMIT_REGISTERS",
        groups > 1 ? "asm volatile(\"//#groups " + std::to_string(groups) + "\")" : "");
    spec.defines.emplace_back("MULTIPLY(s, a, b)",
                              wgmma_step(point.columns, point.chunks, data, point.late()));
    spec.defines.emplace_back("FINISH(s)", wgmma_finish(point.columns, data));
  }
  spec.arguments = {Argument::input(problem.data, 16), Argument::packed(0, 16)};
  if (bytes) spec.arguments.push_back(Argument::packed(1, sizeof(int32_t)));
  spec.arguments.push_back(Argument::output(0, size_of(out)));
  spec.arguments.push_back(Argument::value(args));
  add_stored_tail(desc, vector, walk.axes, traits, spec, plan, ptx && point.producers > 0);
  spec.local = {static_cast<size_t>(128 * point.warpgroups + 32 * point.producers),
                static_cast<size_t>(point.slices), 1};
  int64_t groups = ceil_div(args.pixels, point.pixels()) * blocks;
  if (point.producers > 0)
    groups = std::min(groups,
                      std::max<int64_t>(traits.compute_units, 1) * groups_at_once(desc, s, point));
  spec.global = {static_cast<size_t>(groups) * spec.local[0], spec.local[1], 1};
  spec.marked_ptx = ptx;
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
