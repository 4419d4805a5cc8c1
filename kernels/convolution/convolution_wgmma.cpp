// Points and packing of the convolution by warpgroup matrix instructions
// (convolution_wgmma.cl).
#include <algorithm>
#include <string>

#include "kernels/convolution/convolution_families.h"
#include "kernels/convolution/convolution_int8.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kChunkBytes = 16;       // that are copied at once
constexpr size_t kMostLocal = 227 << 10;  // of a work-group on a device that has the instructions
constexpr int kVector = 8;                // channels that a work-item stores at once
// Layers with fewer products for each compute unit are left to conv_mma where they can be part of a
// persistent kernel, or where it shares the steps of tiles that are too few.
constexpr double kLeastProducts = 8e6;

struct Point {
  int columns, warpgroups, stages, chunks;

  Point(int c, int w, int s, int k) : columns(c), warpgroups(w), stages(s), chunks(k) {}
  explicit Point(const TuningPoint& p)
      : Point(p["COLUMNS"], p["WARPGROUPS"], p["STAGES"], p["CHUNKS"]) {}
  TuningPoint tuning() const {
    return {
        {{"COLUMNS", columns}, {"WARPGROUPS", warpgroups}, {"STAGES", stages}, {"CHUNKS", chunks}}};
  }
  // Whether a step's products run on while the next step's begin: its tiles are then filled a step
  // later, for which fewer stages are too few.
  bool late() const { return stages >= 4; }
  int64_t pixels() const { return int64_t{64} * warpgroups; }
  size_t shared_bytes() const {
    return static_cast<size_t>(stages * (pixels() + columns) * chunks * kChunkBytes);
  }
};

// Channels of a pixel that are copied at once.
int64_t chunk_of(const OpDesc& desc) { return takes_bytes(desc) ? kChunkBytes : kChunkBytes / 2; }

int64_t steps_of(const ConvShape& s, const Point& p, int64_t chunk) {
  return ceil_div(s.taps() * (s.in_channels / chunk), p.chunks);
}

double products_of(const ConvShape& s) {
  return static_cast<double>(s.pixels()) * static_cast<double>(s.out_channels) *
         static_cast<double>(s.taps() * s.in_channels);
}

// The sizes of a tile that suit a layer: as many channels as there are, but not half empty, and few
// pixels, so that several work-groups share a compute unit; fewer channels where the sums are long
// and there would be too few tiles for all compute units.
struct Tile {
  int columns, warpgroups;
  int64_t tiles;  // of the layer
};
int64_t tiles_of(const ConvShape& s, int columns, int warpgroups) {
  return ceil_div(s.pixels(), int64_t{64} * warpgroups) * ceil_div(s.out_channels, columns);
}
// Steps of 128 bytes.
int64_t long_steps(const ConvShape& s, int64_t chunk) {
  return ceil_div(s.taps() * s.in_channels, 8 * chunk);
}
Tile suitable_tile(const ConvShape& s, int64_t chunk, int64_t units) {
  Tile tile{s.out_channels > 64 ? 128 : 64, s.out_channels > 64 ? 1 : 2, 0};
  if (long_steps(s, chunk) >= 8) {
    if (tiles_of(s, tile.columns, tile.warpgroups) < 2 * units) tile.warpgroups = 1;
    if (4 * tiles_of(s, tile.columns, 1) < 3 * units) tile.columns = 64;
  }
  tile.tiles = tiles_of(s, tile.columns, tile.warpgroups);
  return tile;
}

// Ordered from the most promising on, by timings of layers of YOLOv8s and ResNet-50 at batch 8 and
// 32 on an H100 and an H200: long steps; larger tiles where there are many, and of 128 x 256 for long
// sums if they occupy all compute units; stages whose products overlap if the sums are long and few
// work-groups hide each other's waits.
std::vector<Point> points_of(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = convolution_problem(desc).shape;
  const int64_t chunk = chunk_of(desc), units = traits.compute_units, steps = long_steps(s, chunk);
  const Tile best = suitable_tile(s, chunk, units);
  const bool few = best.tiles < 2 * units, long_sums = steps >= 8;
  std::vector<Point> points;
  const auto add = [&](const Point& p) {
    if (p.shared_bytes() > (traits.wgmma ? kMostLocal : traits.local_memory)) return;
    if (static_cast<size_t>(128 * p.warpgroups) > traits.max_work_group) return;
    if (std::none_of(points.begin(), points.end(),
                     [&](const Point& other) { return other.tuning() == p.tuning(); }))
      points.push_back(p);
  };
  if (s.in_channels % (8 * chunk) == 0) {
    if (long_sums && s.out_channels >= 256 && tiles_of(s, 256, 2) >= units) add({256, 2, 4, 8});
    if (best.columns == 128 && steps > 1 && tiles_of(s, 128, 2) >= 4 * units) add({128, 2, 3, 8});
    for (int n : {steps == 1 ? 2 : few && long_sums ? 4 : 3, 3, 2})
      add({best.columns, best.warpgroups, n, 8});
  }
  for (int stages : {few ? 4 : 3, few ? 3 : 4, 2}) add({best.columns, best.warpgroups, stages, 4});
  for (int columns : {best.columns, 64, 128, 256, 32}) {
    if (columns != best.columns && columns != 64 && columns / 2 >= s.out_channels) continue;
    for (int warpgroups : {1, 2, 4}) {
      if (columns * warpgroups > 512) continue;  // too few registers
      for (int stages : {4, 3, 2}) {
        if (s.in_channels >= 8 * chunk) add({columns, warpgroups, stages, 8});
        add({columns, warpgroups, stages, 4});
      }
    }
  }
  return points;
}

std::string reject_wgmma(const OpDesc& desc, const DeviceTraits& traits) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  const TileProblem problem = convolution_problem(desc);
  if (!traits.wgmma && traits.matrix != MatrixUnit::emulated)
    return "the device has no warpgroup matrix instructions";
  const ConvShape& s = problem.shape;
  if (takes_bytes(desc)) {
    if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
    if (has_shifts(desc)) return "the weights are bytes only after a shift";
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
  if (s.out_channels < 48) return "fewer than 48 output channels: half of a tile would be empty";
  if (products_of(s) < kLeastProducts * traits.compute_units &&
      (traits.grid_barrier != GridBarrier::none ||
       4 * suitable_tile(s, chunk, traits.compute_units).tiles <
           (long_steps(s, chunk) >= 8 ? 3 : 4) * int64_t{traits.compute_units}))
    return "fewer than 8e6 products for each compute unit";
  if ((s.out_channels + 256) * (s.taps() * s.in_channels + 8 * chunk) > kMaxIndex)
    return "the weights have more than 2^31 elements";
  return reject_tail(desc, kVector, problem.axes);
}

std::vector<TuningPoint> wgmma_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, traits)) space.push_back(point.tuning());
  return space;
}

TuningPoint wgmma_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return wgmma_space(desc, traits).front();
}

// "+f"((s)[0]), ...
std::string sums_as_operands(int sums, bool bytes) {
  std::string operands;
  for (int i = 0; i < sums; ++i)
    operands += std::string(i ? ", " : "") + (bytes ? "\"+r\"" : "\"+f\"") + "((s)[" +
                std::to_string(i) + "])";
  return operands;
}

// The statement that multiplies a step's tiles, as marked PTX: an instruction for each 32 bytes,
// and the wait for them. It is one statement, so that the compiler moves no sum while the instructions
// run.
std::string multiply_text(int columns, int chunks, bool bytes, bool late) {
  const int sums = columns / 2;
  std::string list, descriptors;
  const std::string operands = sums_as_operands(sums, bytes);
  for (int i = 0; i < sums; ++i) {
    list += (i ? ",%" : "%") + std::to_string(i);
  }
  std::string text = "asm volatile(\"//@wgmma.fence.sync.aligned;\\n\"";
  for (int k = 0; k < chunks / 2; ++k) {
    const std::string at = std::to_string(2 * k);
    descriptors += (k ? ", " : "") + ("\"l\"((a) + " + at + "), \"l\"((b) + " + at + ")");
    text += " \"//@wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
            (bytes ? "k32.s32.u8.s8 {" : "k16.f32.f16.f16 {") + list + "}, %" +
            std::to_string(sums + 2 * k) + ", %" + std::to_string(sums + 2 * k + 1) +
            (bytes ? ", 1;\\n\"" : ", 1, 1, 1, 0, 0;\\n\"");
  }
  text += std::string(
              " \"//@wgmma.commit_group.sync.aligned;\\n\" \"//@wgmma.wait_group.sync.aligned ") +
          (late ? "1" : "0") + ";\" : " + operands + " : " + descriptors + " : \"memory\")";
  return text;
}

struct Args {
#include "kernels/convolution/convolution_wgmma_args.cl"
};

// The filters as the kernel's work-groups copy them, and one chunk of zero points.
std::vector<float> packed_weights(const std::vector<float>& plain, const ConvShape& s,
                                  const Point& point, int64_t chunk, float zero) {
  const int64_t steps = steps_of(s, point, chunk), row = point.chunks * chunk;
  const int64_t depth = s.taps() * s.in_channels;
  const bool whole = s.in_channels % row == 0;
  std::vector<float> packed(static_cast<size_t>(
      ceil_div(s.out_channels, point.columns) * steps * point.columns * row + chunk));
  std::fill(packed.end() - chunk, packed.end(), zero);
  for (int64_t o = 0; o < s.out_channels; ++o) {
    // The vector of one of four work-items, and the pair of channels in it.
    const int64_t in_block = o % point.columns, in_vector = in_block % kVector;
    const int64_t vector = in_block / (4 * kVector);
    const int64_t quarter = in_block / kVector % 4;
    const int64_t tile = vector * (kVector / 2) + in_vector / 2;
    const int64_t column = tile * 8 + quarter * 2 + in_vector % 2;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t tap = k / s.in_channels, channel = k % s.in_channels;
      const int64_t step = whole ? channel / row * s.taps() + tap : k / row;
      const int64_t place = k % row / chunk ^ (point.chunks == 4 ? column / 2 % 4 : column % 8);
      packed[static_cast<size_t>(
          ((o / point.columns * steps + step) * point.columns + column) * row + place * chunk +
          k % chunk)] = plain[static_cast<size_t>(o * depth + k)];
    }
  }
  return packed;
}

KernelPlan wgmma_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& tuning) {
  const TileProblem problem = convolution_problem(desc);
  const ConvShape& s = problem.shape;
  const Point point(tuning);
  const bool bytes = takes_bytes(desc);
  const int64_t chunk = chunk_of(desc), blocks = ceil_div(s.out_channels, point.columns);
  const int64_t steps = steps_of(s, point, chunk);
  const PixelWalk walk = walk_pixels(desc, problem);
  const PixelStrides& in = walk.in;
  Args args{};
  set_strides(args, {.n = in.n / chunk, .h = in.h / chunk, .w = in.w / chunk}, walk.out);
  set_geometry(args, s);
  args.chunks = to_int(s.in_channels / chunk);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.steps = to_int(steps);
  args.pixels = to_int(s.pixels());

  KernelPlan plan;
  const bool whole = s.in_channels % (point.chunks * chunk) == 0;
  const float zero = bytes ? zero_points(desc)[0] : 0;
  plan.packed.push_back([weights = problem.weights, s, point, chunk, bytes, zero] {
    const std::vector<float> packed = packed_weights(weights(), s, point, chunk, zero);
    if (!bytes) return to_bytes(packed, ElementType::f16);
    std::vector<std::byte> integers(packed.size());
    std::transform(packed.begin(), packed.end(), integers.begin(),
                   [](float value) { return static_cast<std::byte>(static_cast<int>(value)); });
    return integers;
  });
  if (bytes)
    plan.packed.push_back([weights = problem.weights, s, padded = blocks * point.columns, zero] {
      return start_sums(weights(), s, padded, static_cast<int>(zero), DotProduct::none);
    });

  KernelSpec spec;
  spec.source = "convolution_wgmma.cl";
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const ElementType out = desc.outputs[0].type;
  const bool ptx = traits.wgmma;
  spec.defines.emplace_back("T", storage_name(out));
  define("VECTOR", kVector);
  define("COLUMNS", point.columns);
  define("WARPGROUPS", point.warpgroups);
  define("STAGES", point.stages);
  define("CHUNKS", point.chunks);
  define("BYTES", bytes);
  define("WHOLE_STEPS", whole);
  define("POINTWISE", walk.row);
  define("FLAT_TAIL", walk.flat_tail);
  define("ALIGNED", output_aligned(desc, problem, kVector));
  define("WHOLE_BLOCKS", s.out_channels % point.columns == 0);
  define("WGMMA_PTX", ptx);
  define("LATE", point.late());
  define("LOCAL_BYTES", static_cast<int64_t>(point.shared_bytes()));
  define("COPIES_LEFT", point.stages - 2 - point.late());
  if (ptx) {
    spec.defines.emplace_back("MULTIPLY(s, a, b)",
                              multiply_text(point.columns, point.chunks, bytes, point.late()));
    spec.defines.emplace_back("FINISH(s)",
                              "asm volatile(\"//@wgmma.wait_group.sync.aligned 0;\" : " +
                                  sums_as_operands(point.columns / 2, bytes) + " : : \"memory\")");
  }
  spec.arguments = {Argument::input(problem.data, 16), Argument::packed(0, 16)};
  if (bytes) spec.arguments.push_back(Argument::packed(1, sizeof(int32_t)));
  spec.arguments.push_back(Argument::output(0, size_of(out)));
  spec.arguments.push_back(Argument::value(args));
  add_tail(desc, kVector, walk.axes, spec, plan);
  spec.local = {static_cast<size_t>(128 * point.warpgroups), 1, 1};
  spec.shared = point.shared_bytes();
  spec.global = {static_cast<size_t>(ceil_div(s.pixels(), point.pixels()) * blocks) * spec.local[0],
                 1, 1};
  spec.marked_ptx = ptx;
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kFamily{"conv_wgmma", 3, reject_wgmma, wgmma_space, wgmma_heuristic, wgmma_plan};

}  // namespace

const KernelFamily& wgmma_family() { return kFamily; }

}  // namespace clinfer
