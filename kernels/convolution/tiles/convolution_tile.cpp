// Chooses points, estimates costs and packs weights for the tile kernel (convolution.cl).
#include "kernels/convolution/tiles/convolution_tile.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/convolution/tiles/unit_levels.h"
#include "kernels/described_point.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Point : TileShape {
  int unroll = 1;
  int shares = 1;  // parts of the tiles for each CPU core; 1 on a GPU

  Point() : TileShape{1, 1, 1, 1, 1, 1} {}
  Point(int v, int vs, int p, int l, int r, int s, int u, int sh)
      : TileShape{v, vs, p, l, r, s}, unroll(u), shares(sh) {}
  static constexpr std::array<Parameter<Point>, 8> parameters() {
    return {{{"VECTOR", &Point::vector},
             {"VECTORS", &Point::vectors},
             {"TILE_P", &Point::tile_p},
             {"LANES", &Point::lanes},
             {"ROWS", &Point::rows},
             {"SLICES", &Point::slices},
             {"UNROLL", &Point::unroll},
             {"SHARES", &Point::shares}}};
  }
};

// Returns whether all pixels have the same distance: rows, slices and images follow one another
// without gaps. Ignores missing dimensions.
bool is_row(const std::array<int64_t, 3>& size, int64_t batch, const PixelStrides& s) {
  int64_t expected = s.w, seen = size[2];
  const auto follows = [&](int64_t count, int64_t stride) {
    if (count == 1) return true;
    if (seen == 1) {
      expected = stride;  // the first dimension with more than one position determines the distance
    } else if (stride != expected * seen) {
      return false;
    }
    seen *= count;
    return true;
  };
  return follows(size[1], s.h) && follows(size[0], s.d) && follows(batch, s.n);
}

// A point on a CPU, where a work-group has one work-item that loops over many tiles, and the speed
// of its inner loop.
struct CpuShape {
  int vector, vectors, tile_p;
  double rate;
};

// Speeds relative to the best shape, on PoCL with one core of a Sapphire Rapids. With these values
// the choices come closest to the best ones over the layers of five networks. Few accumulators wait
// for one another, many spill, and narrow vectors leave parts of the registers empty. The first
// shape suits most layers.
constexpr CpuShape kShapes512[] = {
    {16, 2, 8, 0.94}, {16, 4, 6, 1.00}, {16, 4, 4, 0.98}, {16, 3, 6, 0.97}, {16, 1, 8, 0.80},
    {16, 4, 2, 0.80}, {16, 2, 3, 0.67}, {16, 4, 1, 0.58}, {16, 1, 3, 0.48}, {16, 2, 1, 0.37},
    {8, 5, 4, 0.55},  {8, 4, 6, 0.53},  {8, 3, 4, 0.50},  {8, 2, 8, 0.50},  {8, 1, 12, 0.41},
    {4, 2, 8, 0.26},  {4, 1, 12, 0.23}};
// Speeds with the 16 registers of AVX2: medians over 22 layers, PoCL on two cores of an EPYC.
constexpr CpuShape kShapes256[] = {
    {16, 1, 6, 1.00}, {8, 3, 4, 0.96},  {8, 2, 6, 0.92},  {16, 1, 3, 0.78}, {8, 1, 8, 0.69},
    {8, 1, 12, 0.61}, {16, 4, 1, 0.60}, {16, 2, 1, 0.58}, {16, 4, 2, 0.56}, {16, 2, 3, 0.55},
    {8, 5, 4, 0.46},  {4, 1, 12, 0.34}, {4, 2, 8, 0.23}};

std::vector<CpuShape> cpu_shapes(const OpDesc& desc, const TileProblem& problem,
                                 const DeviceTraits& traits) {
  const auto all = traits.vector_width >= 16 ? std::span<const CpuShape>(kShapes512)
                                             : std::span<const CpuShape>(kShapes256);
  std::vector<CpuShape> fitting;
  for (const CpuShape& shape : all)
    if (fits_groups(desc, problem.shape, shape.vector)) fitting.push_back(shape);
  return fitting;
}

constexpr int kUsualShares = 8;
constexpr double kUnknownRate = 0.7;  // for shapes that are not in the tables

Point point_of(const CpuShape& c) {
  return {c.vector, c.vectors, c.tile_p, 1, 1, 1, 1, kUsualShares};
}

// The points to list. `usual` ones are candidates for the choice without measurements; the others
// are only measured. More points lengthen a tuning run but change nothing else.
enum class Points { usual, all };

std::vector<Point> cpu_points(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits) {
  static constexpr int kFurther[][3] = {
      {16, 2, 12}, {16, 2, 9}, {16, 3, 8}, {16, 1, 12}, {16, 1, 6},  {16, 2, 8},
      {16, 2, 6},  {16, 3, 6}, {16, 3, 4}, {16, 4, 6},  {16, 1, 16}, {8, 2, 12},
      {8, 4, 4},   {8, 1, 16}, {8, 1, 8},  {8, 3, 6},   {4, 1, 16}};
  std::vector<Point> points;
  for (const CpuShape& shape : cpu_shapes(desc, problem, traits)) points.push_back(point_of(shape));
  for (const auto& [vector, vectors, tile_p] : kFurther)
    if (const CpuShape further{vector, vectors, tile_p, 0};
        fits_groups(desc, problem.shape, vector) &&
        std::none_of(points.begin(), points.end(),
                     [&](const Point& p) { return to_tuning(p) == to_tuning(point_of(further)); }))
      points.push_back(point_of(further));
  // Adds points with the same programs, but fewer or more work-groups.
  const size_t shapes = points.size();
  for (const int shares : {2, 32})
    for (size_t i = 0; i < shapes; ++i) {
      points.push_back(points[i]);
      points.back().shares = shares;
    }
  return points;
}

// Estimates the cost with waiting for memory, in layers with few multiply-adds per output and more
// data than the cache holds: each pixel of a tile is written to a different place, in vectors. The
// constants are fitted to 265 layers of five networks (PoCL with AVX2, 32 MiB of cache, batches 1
// and 8): five choices change, and take 0.69 to 0.97 of their previous time.
double cpu_cost(const TileProblem& problem, const CpuShape& c, const DeviceTraits& traits) {
  constexpr double kCached = 8e6, kApart = 5;  // in bytes; in multiply-adds of a vector
  constexpr int kLine = 16;                    // floats in a cache line
  const ConvShape& s = problem.shape;
  const int64_t block = int64_t{c.vector} * c.vectors;
  const double channels = static_cast<double>(ceil_div(s.out_channels, block) * block);
  const double pixels = static_cast<double>(ceil_div(s.pixels(), c.tile_p) * c.tile_p);
  // Counts a tile's positions, pointers, tail and stores, in units of one multiply-add of a vector.
  const double own = 2 + 5.0 * c.tile_p * c.vectors;
  const double depth = static_cast<double>(s.taps() * s.in_channels);
  const double work = depth * c.tile_p * c.vectors;
  const double outputs = static_cast<double>(s.groups * s.out_channels * s.pixels());
  const bool waits = traits.vector_width < kLine && s.out_channels > 2 * kLine &&
                     outputs * sizeof(float) > kCached;
  const double memory = waits ? kApart * c.tile_p * kLine / c.vector / depth : 0;
  return channels * pixels * ((1 + own / work) / c.rate + memory);
}

// Counts sums, a row of weights, and the elements of each pixel that are loaded at once.
bool fits_registers(const Point& p, int coordinates, const DeviceTraits& traits) {
  const int values = p.sums() + p.vector * p.vectors + p.unroll * p.tile_p;
  return fits_registers_of_items(traits, 4 * values, coordinates * p.tile_p);
}

// Returns points for a GPU, with one tile per work-item. Lanes of a work-group compute neighbouring
// channels and share the pixels' loads. Slices of the input channels make up for few outputs.
std::vector<Point> gpu_points(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits, Points which) {
  const ConvShape& s = problem.shape;
  const int coordinates = pixel_coordinates(desc, problem);
  std::vector<Point> points;
  const auto add = [&](int vector, int vectors, int lanes, int tile_p, int slices, int items) {
    if (static_cast<size_t>(items) > traits.max_work_group || lanes * slices > items) return;
    if (slices > 1 && (traits.ordered_sums || s.in_channels < 4 * slices)) return;
    if (slices > 1 && sizeof(float) * items * tile_p * vector * vectors > traits.local_memory)
      return;
    const Point point(vector, vectors, tile_p, lanes, items / lanes / slices, slices,
                      s.in_channels >= 4 ? 4 : 1, 1);
    if (fits_registers(point, coordinates, traits)) points.push_back(point);
  };
  for (int vector : {2, 4, 8})
    for (int lanes : {16, 8, 32, 4}) {
      if (!fits_groups(desc, s, vector)) continue;
      if (lanes > 4 && (lanes / 2) * vector >= s.out_channels)
        continue;  // half of the lanes would idle
      for (int tile_p : {2, 1, 4, 8})
        for (int slices : {1, 2, 4, 8})
          for (int items : {128, 256}) add(vector, 1, lanes, tile_p, slices, items);
      if (which == Points::usual) continue;
      for (int tile_p : {3, 6})
        for (int slices : {1, 2, 4})
          for (int items : {128, 256}) add(vector, 1, lanes, tile_p, slices, items);
      for (int tile_p : {1, 2, 4, 8})
        for (int slices : {1, 2, 4, 8}) add(vector, 1, lanes, tile_p, slices, 64);
      if (lanes * vector >= s.out_channels || vector == 2) continue;
      for (int tile_p : {1, 2, 4})
        for (int slices : {1, 2, 4})
          for (int items : {64, 128}) add(vector, 2, lanes, tile_p, slices, items);
    }
  // Adds a point if there is no usual one, so that the untuned choice is a member of the space.
  if (points.empty() || traits.max_work_group < 128) points.emplace_back(2, 1, 1, 1, 1, 1, 1, 1);
  return points;
}

// Estimates the time on a GPU: the instructions of all work-items that the schedulers issue (four
// per compute unit, each one warp per cycle), plus the wait of one work-item. The constants are
// fitted to some 700 timings of layers of detection networks on an H200 (f16, batches 1 and 16);
// the chosen points are 10 % slower than the best of the space there.
double gpu_cost(const TileProblem& problem, const Point& p, const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const double blocks = static_cast<double>(s.groups * ceil_div(s.out_channels, p.block()));
  const double items =
      blocks * p.lanes * p.slices * static_cast<double>(ceil_div(s.pixels(), p.tile_p));
  const double depth = static_cast<double>(s.taps() * s.in_channels) / p.slices;
  const double outputs = p.vector * p.tile_p;
  // Counts one step: multiply-adds, loads of inputs (four channels at once) and of weights.
  const double step = outputs + p.tile_p * (p.unroll == 4 ? 0.38 : 0.76) + 0.13 * p.vector + 9.4;
  const double own = 7.7 + 17 * outputs + (p.slices > 1 ? 8.4 + 0.84 * outputs : 0);
  double value = items / 32 / (4.0 * traits.compute_units) * (depth * step + own) +
                 depth * (step + 3.7) + own * 26;
  // Adds for narrow rows of weights, which waste parts of cache lines.
  if (p.lanes * p.vector < 32 && s.out_channels > p.lanes * p.vector) value *= 1.11;
  if (p.lanes * p.vector < 64 && s.out_channels > p.lanes * p.vector) value *= 1.18;
  if (p.lanes * p.rows * p.slices != 128) value *= 1.02;
  return value;
}

// Returns the distance between the pixels of activations that is_row() accepts.
int64_t row_step(const std::array<int64_t, 3>& size, int64_t batch, const PixelStrides& s) {
  if (size[2] > 1) return s.w;
  if (size[1] > 1) return s.h;
  if (size[0] > 1) return s.d;
  return batch > 1 ? s.n : s.w;
}

// Returns whether this is a 1x1 convolution whose input and output are each one long row of pixels,
// row_step() apart.
bool is_pointwise(const TileProblem& problem) {
  const ConvShape& s = problem.shape;
  for (int i = 0; i < 3; ++i)
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad[i] != 0 || s.in[i] != s.out[i]) return false;
  return is_row(s.in, s.batch, problem.in) && is_row(s.out, s.batch, problem.out);
}

bool aligned(int64_t offset, const PixelStrides& strides, const std::array<int64_t, 3>& size,
             const ConvShape& s, int64_t channels, int64_t elements) {
  const auto fits = [&](int64_t count, int64_t stride) {
    return count == 1 || stride % elements == 0;
  };
  return offset % elements == 0 && fits(s.batch, strides.n) && fits(size[0], strides.d) &&
         fits(size[1], strides.h) && fits(size[2], strides.w) && fits(s.groups, channels);
}

// Finds the axes along which the output is one long row. Returns whether the tail's operands allow
// that: each must vary along channels only, or be a long row in memory as well.
bool flat_tail(const OpDesc& desc, const TileProblem& problem, TailAxes& axes) {
  const ConvShape& s = problem.shape;
  if (s.out[0] > 1) return false;
  if (s.out[2] == 1 && s.out[1] > 1) std::swap(axes.h, axes.w);
  if (s.out[2] == 1 && s.out[1] == 1 && s.batch > 1) std::swap(axes.n, axes.w);
  const size_t rank = desc.outputs[0].shape.size();
  for (const PostOp& op : desc.tail) {
    const bool kept = op.function == "keep";
    if (op.is_unary() && !kept) continue;
    const TensorDesc& operand = kept ? desc.outputs[1] : desc.inputs[op.operand];
    const auto size = [&](int axis) -> int64_t {
      const int at = axis - static_cast<int>(rank - operand.shape.size());
      return axis < 0 || at < 0 ? 1 : operand.shape[at];
    };
    const auto stride = [&](int axis) -> int64_t {
      return size(axis) == 1
                 ? 0
                 : operand.strides[axis - static_cast<int>(rank - operand.shape.size())];
    };
    const TailAxes& a = problem.axes;
    if (size(a.n) == 1 && size(a.h) == 1 && size(a.w) == 1) continue;
    const bool whole = size(a.n) == s.batch && size(a.h) == s.out[1] && size(a.w) == s.out[2];
    const bool constant =
        // Packed densely, so that a whole one is a long row.
        !kept && !desc.constants[op.operand].empty();
    if (!whole) return false;
    if (!constant && !is_row(s.out, s.batch, {stride(a.n), 0, 0, stride(a.h), stride(a.w)}))
      return false;
  }
  return true;
}

}  // namespace

PixelWalk walk_pixels(const OpDesc& desc, const TileProblem& problem) {
  const ConvShape& s = problem.shape;
  PixelWalk walk{is_pointwise(problem), problem.in, problem.out, problem.axes};
  if (!walk.row) return walk;
  walk.in.w = row_step(s.in, s.batch, walk.in);
  walk.out.w = row_step(s.out, s.batch, walk.out);
  walk.flat_tail = flat_tail(desc, problem, walk.axes);
  if (!walk.flat_tail) walk.axes = problem.axes;
  return walk;
}

int pixel_coordinates(const OpDesc& desc, const TileProblem& problem) {
  const PixelWalk walk = walk_pixels(desc, problem);
  return walk.row && walk.flat_tail ? 1 : problem.shape.is_deep() ? 4 : 3;
}

bool input_aligned(const OpDesc& desc, const TileProblem& problem, int64_t elements) {
  const ConvShape& s = problem.shape;
  return aligned(desc.inputs[problem.data].offset, problem.in, s.in, s, s.in_channels, elements);
}

bool output_aligned(const OpDesc& desc, const TileProblem& problem, int64_t elements) {
  const ConvShape& s = problem.shape;
  return aligned(desc.outputs[0].offset, problem.out, s.out, s, s.out_channels, elements);
}

bool is_merged(const TileProblem& problem) {
  const ConvShape& s = problem.shape;
  return s.groups == 1 && s.dilation[2] == 1 && problem.in.w == s.in_channels;
}

UnitShares share_units(const ConvShape& s, int64_t units, int64_t blocks,
                       const DeviceTraits& traits) {
  const int64_t cores = std::max(traits.compute_units, 1u);
  UnitShares shares{};
  shares.units = units;
  // Makes two work-groups for each core, so that one that is held up does not hold up all.
  shares.parts = std::clamp<int64_t>(ceil_div(2 * cores, units * s.groups), 1, blocks);
  if (cores == 1) shares.parts = 1;
  shares.works = units * shares.parts * s.groups;
  shares.workers = std::min(shares.works, 2 * cores);
  return shares;
}

bool fits_groups(const OpDesc& desc, const ConvShape& s, int vector) {
  return s.groups == 1 || desc.tail.empty() || s.out_channels % vector == 0;
}

namespace {

// Returns the number of tiles with all channels that stay in a CPU core's cache while work-groups
// compute them block of channels by block of channels: their inputs, and the output's cache lines,
// then need not be loaded from memory again. Returns 0 if launches should not put blocks first: on
// GPUs, with a single block, or if the weights do not stay in the cache, so that all tiles should
// use one block of them first.
int64_t cached_tiles(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TileShape& shape) {
  constexpr int64_t kCached = 128 << 10;
  const ConvShape& s = problem.shape;
  const int64_t blocks = s.groups * shape.blocks(s);
  const auto in = static_cast<int64_t>(size_of(desc.inputs[problem.data].type));
  const auto out = static_cast<int64_t>(size_of(desc.outputs[0].type));
  if (!traits.is_cpu || blocks == 1) return 0;
  if (blocks * shape.block() * s.taps() * s.in_channels * in > kCached) return 0;
  // Counts the output twice, because the tail may have an operand of the same size.
  const int64_t pixel = s.groups * (s.in_channels * in + 2 * s.out_channels * out);
  return std::max<int64_t>(1, kCached / (pixel * shape.tile_p));
}

}  // namespace

std::string reject_channels(const ConvShape& s, const PixelStrides& in, const PixelStrides& out) {
  if (in.c != 1 && s.in_channels * s.groups > 1)
    return "the input's channels are not adjacent in memory";
  if (out.c != 1 && s.out_channels * s.groups > 1)
    return "the output's channels are not adjacent in memory";
  return "";
}

std::string reject_tiling(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits, int64_t weights) {
  const ConvShape& s = problem.shape;
  if (std::string why = reject_channels(s, problem.in, problem.out); !why.empty()) return why;
  if (s.groups > 1 && s.out_channels < 4) return "fewer than four output channels in a group";
  // Adds the padding of blocks, which are at most 256 channels wide.
  if (s.groups * (s.out_channels + 256) * weights > kMaxIndex)
    return "the weights have more than 2^31 elements";
  if (s.groups * s.out_channels > kMaxGroups) return "more than 65535 output channels";
  if (!fits_groups(desc, s, traits.is_cpu ? 4 : 2))
    return "vectors of channels would straddle groups";
  return reject_tail(desc, 16, problem.axes);
}

namespace {

struct TileArgs {
#include "kernels/common/tile_args.cl"
};

// Returns how many bytes of the next block's weights a CPU brings into its cache with each row of
// this block's, or 0. A block's weights stay in the cache while tiles are multiplied by them, but the
// first of these tiles would wait for memory, because prefetchers of processors end at a page. With
// many tiles the wait is short beside the products.
int64_t bytes_ahead(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                    const TileShape& shape) {
  constexpr int64_t kMostTiles = 64;
  const ConvShape& s = problem.shape;
  const int64_t tiles = shape.tiles(s);
  if (traits.vendor != Vendor::pocl || shape.blocks(s) == 1 || tiles > kMostTiles) return 0;
  const ElementType type = desc.inputs[problem.data].type;
  // A row has four bytes of each channel.
  const size_t element = is_float(type) ? size_of(type) : 4;
  return ceil_div(shape.block() * static_cast<int64_t>(element), tiles);
}

// Sums of bytes are numbers, and so is what a tail makes of them by finite constants and other
// bytes: limits need not keep what is none.
void limit_numbers(OpDesc& desc) {
  if (desc.inputs[0].type != ElementType::u8) return;
  for (PostOp& op : desc.tail) {
    if (op.is_unary()) {
      if (op.function == "clamp") op.function = "clamp_number";
      if (op.function == "to_level") op.function = "number_to_level";
      continue;
    }
    if (op.function != "multiply" && op.function != "add") return;
    const Tensor& constant = desc.constants[op.operand];
    if (constant.empty() && desc.inputs[op.operand].type != ElementType::u8) return;
    const std::vector<float> values =
        constant.empty() ? std::vector<float>() : constant.to_floats();
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
      return;
  }
}

}  // namespace

void add_stored_tail(const OpDesc& desc, int vector, const TailAxes& axes,
                     const DeviceTraits& traits, KernelSpec& spec, KernelPlan& plan, bool ahead) {
  const bool rounds = traits.vendor != Vendor::intel && desc.outputs[0].type == ElementType::u8 &&
                      quantizes(desc.tail) && desc.tail.back().alpha == 0;
  const bool units = rounds && traits.vendor == Vendor::nvidia;
  spec.defines.emplace_back("STORED", units    ? "unit"
                                      : rounds ? "level"
                                               : storage_name(desc.outputs[0].type));
  OpDesc stored = desc;
  if (!traits.is_cpu) limit_numbers(stored);
  if (traits.wgmma)
    for (PostOp& op : stored.tail)
      if (op.function == "to_f8e4m3" && op.alpha == op.beta) op.function = "nearest_f8e4m3";
  if (rounds)
    stored.tail.back() = {traits.is_cpu ? "clamp" : "clamp_number", 0, desc.tail.back().beta};
  if (units) {
    spec.defines.emplace_back("HIGHEST", std::to_string(desc.tail.back().beta) + "f");
    limit_units(stored);
    if (traits.matrix == MatrixUnit::ptx && !traits.ordered_sums && !keeps(stored.tail))
      for (PostOp& op : stored.tail)
        if (op.function == "swish") op.function = "swish_of_levels";
  }
  const Tail tail = make_tail(stored, vector, axes, plan);
  spec.prologue += tail.prologue + (ahead ? tail.ahead : "");
  spec.arguments.insert(spec.arguments.end(), tail.arguments.begin(), tail.arguments.end());
}

KernelSpec tile_launch(const char* source, const OpDesc& desc, const TileProblem& problem,
                       const DeviceTraits& traits, const TileShape& shape, int64_t depth,
                       bool merged, const std::vector<Argument>& constants, KernelPlan& plan,
                       int shares) {
  const ConvShape& s = problem.shape;
  const int64_t blocks = shape.blocks(s), tiles = shape.tiles(s);
  const double flops =
      2.0 * static_cast<double>(depth) * shape.tile_p * shape.vector * shape.vectors;
  const int64_t cached = cached_tiles(desc, problem, traits, shape);
  int64_t per_item = traits.is_cpu ? tiles_per_item(tiles, s.groups * blocks, flops, traits, shares)
                                   : ceil_div(ceil_div(tiles, shape.rows), kMaxGroups);
  if (cached) per_item = std::min(per_item, cached);
  const PixelWalk walk = walk_pixels(desc, problem);
  TileArgs args{};
  set_strides(args, walk.in, walk.out);
  set_geometry(args, s);
  args.in_channels = to_int(s.in_channels);
  args.out_channels = to_int(s.out_channels);
  args.blocks = to_int(blocks);
  args.depth = to_int(depth);
  args.pixels = to_int(s.pixels());
  args.tiles = to_int(tiles);
  args.tiles_per_item = to_int(per_item);
  args.merged = merged;
  args.outside = to_int(s.groups * blocks * depth * shape.block());
  args.blocks_first = cached > 0;
  args.ahead = to_int(cached ? 0 : bytes_ahead(desc, problem, traits, shape));

  const TensorDesc& output = desc.outputs[0];
  KernelSpec spec;
  spec.source = source;
  spec.defines.emplace_back("T", storage_name(output.type));
  const auto define = [&](const char* name, int value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  define("VECTOR", shape.vector);
  define("VECTORS", shape.vectors);
  define("TILE_P", shape.tile_p);
  define("LANES", shape.lanes);
  define("ROWS", shape.rows);
  define("SLICES", shape.slices);
  define("ROLLED", traits.is_cpu);
  define("AHEAD", (args.ahead + 63) / 64);
  define("POINTWISE", walk.row);
  define("DEPTH", !walk.row && s.is_deep());
  define("FLAT_TAIL", walk.flat_tail);
  spec.arguments = {Argument::input(problem.data, size_of(desc.inputs[problem.data].type))};
  spec.arguments.insert(spec.arguments.end(), constants.begin(), constants.end());
  spec.arguments.push_back(Argument::output(0, size_of(output.type)));
  spec.arguments.push_back(Argument::value(args));
  add_stored_tail(desc, shape.vector, walk.axes, traits, spec, plan);
  spec.local = {static_cast<size_t>(shape.lanes), static_cast<size_t>(shape.rows),
                static_cast<size_t>(shape.slices)};
  if (shape.slices > 1)
    spec.shared = sizeof(float) * spec.local[0] * spec.local[1] * spec.local[2] *
                  static_cast<size_t>(shape.tile_p * shape.vectors * shape.vector);
  const int64_t rows = ceil_div(ceil_div(tiles, per_item), shape.rows);
  spec.global = {spec.local[0], static_cast<size_t>(rows) * spec.local[1],
                 static_cast<size_t>(s.groups * blocks) * spec.local[2]};
  if (cached) std::swap(spec.global[1], spec.global[2]);
  return spec;
}

std::string reject_tile(const OpDesc& desc, const TileProblem& problem,
                        const DeviceTraits& traits) {
  if (std::string why = reject_float_data(desc); !why.empty()) return why;
  const ConvShape& s = problem.shape;
  if (s.in_channels == 0) return "no input channels";
  return reject_tiling(desc, problem, traits, s.taps() * s.in_channels);
}

std::vector<TuningPoint> tile_space(const OpDesc& desc, const TileProblem& problem,
                                    const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : traits.is_cpu ? cpu_points(desc, problem, traits)
                                          : gpu_points(desc, problem, traits, Points::all))
    space.push_back(to_tuning(point));
  return space;
}

TuningPoint tile_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits) {
  if (traits.is_cpu) {
    const std::vector<CpuShape> shapes = cpu_shapes(desc, problem, traits);
    const CpuShape* best = &shapes[0];
    // Prefers the first shape, which suits most layers; another program must save more than its
    // compilation costs.
    double least = cpu_cost(problem, *best, traits) * 0.97;
    for (const CpuShape& shape : shapes)
      if (const double cost = cpu_cost(problem, shape, traits); cost < least)
        best = &shape, least = cost;
    return to_tuning(point_of(*best));
  }
  const std::vector<Point> points = gpu_points(desc, problem, traits, Points::usual);
  const Point* best = &points[0];
  double least = gpu_cost(problem, *best, traits);
  for (const Point& point : points)
    if (const double c = gpu_cost(problem, point, traits); c < least) best = &point, least = c;
  return to_tuning(*best);
}

std::vector<double> tile_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits) {
  std::vector<double> costs;
  if (!traits.is_cpu) {
    for (const Point& point : gpu_points(desc, problem, traits, Points::all))
      costs.push_back(gpu_cost(problem, point, traits));
    return costs;
  }
  const std::vector<CpuShape> shapes = cpu_shapes(desc, problem, traits);
  for (const Point& point : cpu_points(desc, problem, traits)) {
    CpuShape shape{point.vector, point.vectors, point.tile_p, kUnknownRate};
    for (const CpuShape& known : shapes)
      if (known.vector == shape.vector && known.vectors == shape.vectors &&
          known.tile_p == shape.tile_p)
        shape.rate = known.rate;
    costs.push_back(cpu_cost(problem, shape, traits) * (point.shares == kUsualShares ? 1 : 1.02));
  }
  return costs;
}

KernelPlan tile_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& tuning) {
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const ElementType type = desc.inputs[problem.data].type;
  const int64_t blocks = point.blocks(s), depth = s.taps() * s.in_channels;

  KernelPlan plan;
  plan.packed.push_back([weights = problem.weights, s, point, type, blocks, depth] {
    const std::vector<float> plain = weights();
    const int64_t block = point.block();
    std::vector<float> packed(
        static_cast<size_t>(s.groups * blocks * depth * block + s.in_channels), 0.f);
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t o = 0; o < s.out_channels; ++o) {
        const float* from = plain.data() + (g * s.out_channels + o) * depth;
        float* to = packed.data() + (g * blocks + o / block) * depth * block + o % block;
        for (int64_t i = 0; i < depth; ++i) to[i * block] = from[i];
      }
    return to_bytes(packed, type);
  });
  KernelSpec spec =
      tile_launch("convolution.cl", desc, problem, traits, point, depth, is_merged(problem),
                  {Argument::packed(0, size_of(type))}, plan, point.shares);
  const bool aligned = point.unroll == 4 && input_aligned(desc, problem, 4);
  spec.defines.emplace_back("IN_T", storage_name(type));
  spec.defines.emplace_back("UNROLL", std::to_string(point.unroll));
  spec.defines.emplace_back("ALIGNED", aligned ? "1" : "0");
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
