// Points, costs and packing of the convolution by warpgroup matrix instructions
// (convolution_wgmma.cl).
#include <string>

#include "kernels/convolution/convolution_families.h"
#include "kernels/convolution/convolution_int8.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kChunk = 8;       // halves that are copied at once: 16 bytes
constexpr int kVector = 8;          // channels that a work-item stores at once
constexpr int64_t kStepChunks = 4;  // of a row of a tile, each step
// Layers with less work than this are left to conv_mma if it can be part of a persistent kernel,
// which cannot contain these instructions: launches would cost more than the faster multiplications
// save.
constexpr double kLeastProducts = 1e9;

struct Point {
  int columns, warpgroups, stages;

  Point(int c, int w, int s) : columns(c), warpgroups(w), stages(s) {}
  explicit Point(const TuningPoint& p) : Point(p["COLUMNS"], p["WARPGROUPS"], p["STAGES"]) {}
  TuningPoint tuning() const {
    return {{{"COLUMNS", columns}, {"WARPGROUPS", warpgroups}, {"STAGES", stages}}};
  }
  int64_t pixels() const { return int64_t{64} * warpgroups; }
  size_t shared_bytes() const {
    return static_cast<size_t>(stages * (pixels() + columns) * kStepChunks * kChunk * 2);
  }
};

int64_t steps_of(const ConvShape& s) {
  return ceil_div(s.taps() * (s.in_channels / kChunk), kStepChunks);
}

double products_of(const ConvShape& s) {
  return static_cast<double>(s.pixels()) * static_cast<double>(s.out_channels) *
         static_cast<double>(s.taps() * s.in_channels);
}

// Ordered from the most promising on, by timings of the 3x3 and 1x1 layers of YOLOv8 and ResNet-50
// on an H200 at batch 32: wide tiles of one warpgroup, several of which share a compute unit, and
// more stages if there are too few work-groups to hide each other's waits.
std::vector<Point> points_of(const ConvShape& s, const DeviceTraits& traits) {
  std::vector<Point> points;
  const int wide = s.out_channels > 64 ? 128 : 64;
  const int64_t tiles = ceil_div(s.pixels(), 64) * ceil_div(s.out_channels, wide);
  const bool few = tiles < int64_t{3} * traits.compute_units;
  for (int columns : {wide, 64, 256, 32}) {
    if (columns != wide && (columns == 64 || columns / 2 >= s.out_channels)) continue;
    for (int warpgroups : {columns == 64 ? 2 : 1, columns == 64 ? 1 : 2})
      for (int stages : {few ? 4 : 3, few ? 3 : 4, 2}) {
        const Point p(columns, warpgroups, stages);
        if (p.shared_bytes() > traits.local_memory) continue;
        if (static_cast<size_t>(128 * warpgroups) > traits.max_work_group) continue;
        points.push_back(p);
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
  if (takes_bytes(desc)) return "the data are bytes";
  if (std::string why = reject_float_data(desc); !why.empty()) return why;
  if (desc.inputs[problem.data].type != ElementType::f16) return "the data are not f16";
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "three spatial dimensions";
  if (s.groups != 1) return "groups";
  if (std::string why = reject_channels(s, problem.in, problem.out); !why.empty()) return why;
  if (s.in_channels % kChunk != 0 || !input_aligned(desc, problem, kChunk))
    return "the input channels of a pixel are no whole chunks of 16 bytes";
  if (s.out_channels < 48) return "fewer than 48 output channels: half of a tile would be empty";
  if (traits.grid_barrier != GridBarrier::none && products_of(s) < kLeastProducts)
    return "fewer than 1e9 products: left to persistent kernels";
  if ((s.out_channels + 128) * (s.taps() * s.in_channels + 32) > kMaxIndex)
    return "the weights have more than 2^31 elements";
  return reject_tail(desc, kVector, problem.axes);
}

std::vector<TuningPoint> wgmma_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(convolution_problem(desc).shape, traits))
    space.push_back(point.tuning());
  return space;
}

TuningPoint wgmma_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return wgmma_space(desc, traits).front();
}

// The statement that multiplies a step's tiles, as marked PTX: two instructions of 16 channels, and
// the wait for them. It is one statement, so that the compiler moves no sum while the instructions
// run.
std::string multiply_text(int columns) {
  const int sums = columns / 2;
  std::string list, operands;
  for (int i = 0; i < sums; ++i) {
    list += (i ? ",%" : "%") + std::to_string(i);
    operands += (i ? ", \"+f\"((s)[" : "\"+f\"((s)[") + std::to_string(i) + "])";
  }
  std::string text = "asm volatile(\"//@wgmma.fence.sync.aligned;\\n\"";
  for (int k = 0; k < 2; ++k)
    text += " \"//@wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
            "k16.f32.f16.f16 {" + list + "}, %" + std::to_string(sums + 2 * k) + ", %" +
            std::to_string(sums + 2 * k + 1) + ", 1, 1, 1, 0, 0;\\n\"";
  text += " \"//@wgmma.commit_group.sync.aligned;\\n\" \"//@wgmma.wait_group.sync.aligned 0;\" : " +
          operands + " : \"l\"(a), \"l\"(b), \"l\"((a) + 2), \"l\"((b) + 2) : \"memory\")";
  return text;
}

struct Args {
#include "kernels/convolution/convolution_wgmma_args.cl"
};

KernelPlan wgmma_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& tuning) {
  const TileProblem problem = convolution_problem(desc);
  const ConvShape& s = problem.shape;
  const Point point(tuning);
  const int64_t blocks = ceil_div(s.out_channels, point.columns), steps = steps_of(s);
  const PixelWalk walk = walk_pixels(desc, problem);
  const PixelStrides& in = walk.in;
  Args args{};
  set_strides(args, {.n = in.n / kChunk, .h = in.h / kChunk, .w = in.w / kChunk}, walk.out);
  set_geometry(args, s);
  args.chunks = to_int(s.in_channels / kChunk);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.steps = to_int(steps);
  args.pixels = to_int(s.pixels());

  KernelPlan plan;
  const bool whole = s.in_channels % (kStepChunks * kChunk) == 0;
  plan.packed.push_back([weights = problem.weights, s, point, steps, blocks, whole] {
    const std::vector<float> plain = weights();
    const int64_t row = kStepChunks * kChunk, depth = s.taps() * s.in_channels;
    std::vector<float> packed(static_cast<size_t>(blocks * steps * point.columns * row), 0.f);
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
        const int64_t chunk = k % row / kChunk ^ (column / 2 % 4);
        packed[static_cast<size_t>(
            ((o / point.columns * steps + step) * point.columns + column) * row + chunk * kChunk +
            k % kChunk)] = plain[static_cast<size_t>(o * depth + k)];
      }
    }
    return to_bytes(packed, ElementType::f16);
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
  define("WHOLE_STEPS", whole);
  define("POINTWISE", walk.row);
  define("FLAT_TAIL", walk.flat_tail);
  define("ALIGNED", output_aligned(desc, problem, kVector));
  define("WGMMA_PTX", ptx);
  if (ptx) spec.defines.emplace_back("MULTIPLY(s, a, b)", multiply_text(point.columns));
  spec.arguments = {Argument::input(problem.data, 16), Argument::packed(0, 16),
                    Argument::output(0, size_of(out)), Argument::value(args)};
  add_tail(desc, kVector, walk.axes, spec, plan);
  spec.local = {static_cast<size_t>(128 * point.warpgroups), 1, 1};
  spec.shared = point.shared_bytes();
  spec.global = {static_cast<size_t>(ceil_div(s.pixels(), point.pixels()) * blocks) * spec.local[0],
                 1, 1};
  spec.marked_ptx = ptx;
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kFamily{"conv_wgmma", 1, reject_wgmma, wgmma_space, wgmma_heuristic, wgmma_plan};

}  // namespace

const KernelFamily& wgmma_family() { return kFamily; }

}  // namespace clinfer
