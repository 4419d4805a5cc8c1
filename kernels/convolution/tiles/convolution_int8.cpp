// Chooses points, estimates costs and packs weights for the tile kernel for bytes
// (convolution_int8.cl).
#include "kernels/convolution/tiles/convolution_int8.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "kernels/described_point.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Point : TileShape {
  Point() : Point(1, 1, 1, 1, 1) {}
  Point(int v, int vs, int p, int l, int r) : TileShape{v, vs, p, l, r, 1} {}
  static constexpr std::array<Parameter<Point>, 5> parameters() {
    return {{{"VECTOR", &Point::vector},
             {"VECTORS", &Point::vectors},
             {"TILE_P", &Point::tile_p},
             {"LANES", &Point::lanes},
             {"ROWS", &Point::rows}}};
  }
};

bool row_of_bytes(const TileProblem& problem) {
  const ConvShape& s = problem.shape;
  return s.in_channels % 4 != 0 && s.in_channels < 16 && s.kernel[2] > 1 && is_merged(problem);
}

// Counts sums (with shifted weights also those of the pixels' bytes, of which plain arithmetic needs
// as many), a row of weights, and a word of each pixel.
bool fits_registers(const Point& p, const OpDesc& desc, const TileProblem& problem,
                    const DeviceTraits& traits) {
  const int weights = p.vector * p.vectors, sums = p.sums();
  const int totals = !has_shifts(desc) ? 0 : traits.dot == DotProduct::none ? sums : p.tile_p;
  return fits_registers_of_items(traits, 4 * (sums + totals + weights + p.tile_p),
                                 pixel_coordinates(desc, problem) * p.tile_p);
}

// Returns whether vectors have 16 dot products.
bool is_wide(const DeviceTraits& traits) {
  return traits.dot == DotProduct::avx512 ||
         (traits.dot == DotProduct::pairs && traits.vector_width >= 16);
}

std::vector<Point> points_of(const OpDesc& desc, const TileProblem& problem,
                             const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  std::vector<Point> points;
  if (traits.is_cpu) {
    using Shapes = std::initializer_list<std::array<int, 3>>;
    static constexpr Shapes kShapes512 = {{16, 2, 8}, {16, 1, 12}, {16, 4, 6}, {16, 4, 1},
                                          {16, 3, 6}, {16, 1, 6},  {8, 1, 12}, {8, 2, 6},
                                          {4, 1, 12}, {8, 4, 1}};
    static constexpr Shapes kShapes256 = {{8, 2, 6}, {8, 1, 12}, {4, 1, 12}, {8, 4, 1}};
    // Shapes for instructions on pairs, which need three more of the 16 registers.
    static constexpr Shapes kShapesOfPairs = {{8, 2, 4}, {8, 1, 12}, {4, 1, 12}, {8, 4, 1}};
    // Shapes for rows of bytes, which take long to load: all channels of a first layer.
    static constexpr Shapes kShapesOfRows = {{8, 3, 4}, {8, 4, 2}}, kRowsOfPairs = {{8, 3, 4}};
    const auto add = [&](const Shapes& shapes) {
      for (const auto& [vector, vectors, tile_p] : shapes)
        if (fits_groups(desc, s, vector)) points.emplace_back(vector, vectors, tile_p, 1, 1);
    };
    const bool pairs = traits.dot == DotProduct::pairs;
    const bool wide = is_wide(traits);
    add(wide ? kShapes512 : pairs ? kShapesOfPairs : kShapes256);
    if (!wide && row_of_bytes(problem)) add(pairs ? kRowsOfPairs : kShapesOfRows);
  } else {
    for (int vector : {4, 2, 8})
      for (int lanes : {16, 8, 32, 4}) {
        if (!fits_groups(desc, s, vector)) continue;
        // Half of the lanes would idle.
        if (lanes > 4 && (lanes / 2) * vector >= s.out_channels) continue;
        for (int tile_p : {2, 1, 4, 8})
          for (int items : {128, 64, 256}) {
            const Point point(vector, 1, tile_p, lanes, items / lanes);
            if (static_cast<size_t>(items) <= traits.max_work_group &&
                fits_registers(point, desc, problem, traits))
              points.push_back(point);
          }
      }
  }
  if (points.empty()) points.emplace_back(traits.is_cpu ? 4 : 2, 1, 1, 1, 1);
  return points;
}

// The bytes that one output reads, in runs padded to multiples of four: the channels of a pixel or,
// with few channels, a row of the kernel.
struct Runs {
  int64_t count = 0, length = 0;
  int64_t fours() const { return ceil_div(length, 4); }
  int64_t depth() const { return count * fours(); }
};

Runs runs_of(const TileProblem& problem) {
  const ConvShape& s = problem.shape;
  if (row_of_bytes(problem)) return {s.kernel[1], s.kernel[2] * s.in_channels};
  return {s.taps(), s.in_channels};
}

// Estimates the cost in dot products of one register: for each step the products, the broadcasts of
// the pixels and the loads of the weights; for each tile the positions, the tail and the stores.
double cpu_cost(const TileProblem& problem, const Point& p, const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const double tiles = static_cast<double>(s.groups * ceil_div(s.out_channels, p.block()) *
                                           ceil_div(s.pixels(), p.tile_p));
  const double registers = std::max(1.0, p.vector / static_cast<double>(traits.vector_width));
  const double sums = p.tile_p * p.vectors * registers;
  const double depth = static_cast<double>(runs_of(problem).depth());
  // Rows of bytes are loaded across pixels, and their ends one by one.
  const double load = row_of_bytes(problem) && !is_wide(traits) ? 3 : 0.5;
  const double step = sums + load * p.tile_p + p.vectors * registers;
  const bool ragged = s.out_channels % p.vector != 0;  // channels are stored one by one
  const double own = 10 + 6 * sums + (ragged ? 20 : 3) * p.tile_p;
  return tiles * (depth * step * (sums > 26 ? 1.5 : 1) + own);
}

// Uses the cost of the f16 tile kernel, with a quarter of the steps.
double gpu_cost(const TileProblem& problem, const Point& p, const DeviceTraits& traits) {
  const ConvShape& s = problem.shape;
  const double items = static_cast<double>(s.groups * ceil_div(s.out_channels, p.block()) *
                                           p.lanes * ceil_div(s.pixels(), p.tile_p));
  const double depth = static_cast<double>(runs_of(problem).depth()), outputs = p.vector * p.tile_p;
  const double step = outputs + 1.5 * p.tile_p + 0.26 * p.vector + 9.4;
  const double own = 7.7 + 17 * outputs;
  return items / 32 / (4.0 * traits.compute_units) * (depth * step + own) + depth * (step + 3.7) +
         own * 26 + (p.lanes * p.rows == 128 ? 0 : 1);
}

const char* dot_define(const DeviceTraits& traits) {
  switch (traits.dot) {
    case DotProduct::avx512:
      return "DOT_AVX512";
    case DotProduct::avx:
      return "DOT_AVX";
    case DotProduct::pairs:
      return "DOT_PAIRS";
    case DotProduct::ptx:
      return "DOT_PTX";
    case DotProduct::khr:
      return traits.vendor == Vendor::intel ? "DOT_INTEL" : "DOT_KHR";
    case DotProduct::none:
      break;
  }
  return "DOT_PLAIN";
}

// Computes one number per output channel from the channel's weights.
template <typename Make>
std::vector<std::byte> for_each_channel(const std::vector<float>& weights, const ConvShape& s,
                                        int64_t padded, const Make& make) {
  std::vector<int32_t> numbers(static_cast<size_t>(s.groups * padded), 0);
  const auto depth = static_cast<size_t>(s.taps() * s.in_channels);
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o)
    numbers[static_cast<size_t>(o / s.out_channels * padded + o % s.out_channels)] =
        make(std::span(weights).subspan(static_cast<size_t>(o) * depth, depth));
  std::vector<std::byte> bytes(numbers.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

}  // namespace

bool takes_bytes(const OpDesc& desc) { return desc.inputs[0].type == ElementType::u8; }

std::vector<float> zero_points(const OpDesc& desc) {
  const std::vector<int64_t> given =
      desc.attributes.get_ints("zero_point", std::vector<int64_t>{0});
  return {given.begin(), given.end()};
}

std::vector<float> data_values(const OpDesc& desc, const Tensor& data) {
  std::vector<float> values = data.to_floats();
  if (!takes_bytes(desc)) return values;
  const std::vector<float> zeros = zero_points(desc);
  const Shape& shape = data.shape();
  const size_t plane =
      zeros.size() == 1 ? 1 : static_cast<size_t>(count(Shape(shape.begin() + 2, shape.end())));
  for (size_t i = 0; i < values.size(); ++i) values[i] -= zeros[i / plane % zeros.size()];
  return values;
}

bool has_shifts(const OpDesc& desc) { return desc.constants[1].type() == ElementType::i16; }

int shift_of(std::span<const float> weights) {
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  return static_cast<int>(*most > 127 ? *most - 127 : std::min(*least + 128, 0.f));
}

std::string reject_byte_sums(const OpDesc& desc, const TileProblem& problem) {
  const ConvShape& s = problem.shape;
  if (std::string why = reject_byte_storage(desc); !why.empty()) return why;
  if (zero_points(desc).size() != 1) return "a zero point for each channel";
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "three spatial dimensions";
  // Refuses problems whose sums of products, of shifts and of zero points may exceed 32 bits.
  const int64_t largest = has_shifts(desc) ? 255 * (128 + 128 + 255) : 255 * 128;
  if (s.taps() * (s.in_channels + 3) > kMaxIndex / largest) return "sums of too many products";
  if (!has_shifts(desc)) return "";
  const std::vector<float> weights = problem.weights();
  const auto depth = static_cast<size_t>(s.taps() * s.in_channels);
  for (size_t first = 0; first < weights.size(); first += depth) {
    const auto row = std::span(weights).subspan(first, depth);
    const auto [least, most] = std::minmax_element(row.begin(), row.end());
    if (*most - *least > 255 || *most > 255 || *least < -255)
      return "the weights of a channel lie more than 255 apart, or from 0";
  }
  return "";
}

std::vector<std::byte> start_sums(const std::vector<float>& weights, const ConvShape& s,
                                  int64_t padded, int zero, DotProduct dot, int32_t from) {
  return for_each_channel(weights, s, padded, [&](std::span<const float> row) {
    int32_t sum = from;
    for (const float weight : row) sum -= zero * static_cast<int>(weight);
    if (dot != DotProduct::pairs) return sum;
    const int shift = shift_of(row);
    for (const float weight : row) {
      const int byte = static_cast<int>(weight) - shift;
      sum += (byte < 0 ? 127 : 128) * byte;
    }
    return sum;
  });
}

namespace {

// The largest sum's size: of the channel whose weights above 0 meet the largest bytes, and those
// below 0 the smallest, or the other way round.
template <typename Weight>
int64_t largest_sum(const OpDesc& desc, int64_t channels, bool by_column) {
  const Weight* const weights = desc.constants[1].data<Weight>();
  const int64_t count = desc.constants[1].elements(), depth = count / channels;
  std::vector<int64_t> above(static_cast<size_t>(channels)), below = above;
  for (int64_t i = 0; i < count; ++i) {
    const auto channel = static_cast<size_t>(by_column ? i % channels : i / depth);
    (weights[i] > 0 ? above : below)[channel] += std::abs(weights[i]);
  }
  int64_t largest = 0;
  for (const float zero : zero_points(desc)) {
    const auto z = static_cast<int64_t>(zero);
    for (size_t c = 0; c < above.size(); ++c)
      largest = std::max(
          {largest, (255 - z) * above[c] + z * below[c], z * above[c] + (255 - z) * below[c]});
  }
  return largest;
}

}  // namespace

bool has_small_sums(const OpDesc& desc) {
  const Tensor& weights = desc.constants[1];
  const Shape& shape = weights.shape();
  const bool product = desc.type == "MatMul";
  const bool by_column = product && !desc.attributes.get_bool("transpose_b", false);
  const int64_t channels = by_column                         ? shape.back()
                           : product                         ? shape[shape.size() - 2]
                           : desc.type == "GroupConvolution" ? shape[0] * shape[1]
                                                             : shape[0];
  const int64_t largest = has_shifts(desc) ? largest_sum<int16_t>(desc, channels, by_column)
                                           : largest_sum<int8_t>(desc, channels, by_column);
  return largest < int64_t{1} << 22;
}

std::vector<std::byte> shifts(const std::vector<float>& weights, const ConvShape& s,
                              int64_t padded) {
  return for_each_channel(weights, s, padded, shift_of);
}

std::string reject_int8(const OpDesc& desc, const TileProblem& problem,
                        const DeviceTraits& traits) {
  if (!takes_bytes(desc)) return "the data are not bytes";
  if (std::string why = reject_byte_sums(desc, problem); !why.empty()) return why;
  return reject_tiling(desc, problem, traits,
                       (traits.dot == DotProduct::pairs ? 8 : 4) * runs_of(problem).depth());
}

std::vector<TuningPoint> int8_space(const OpDesc& desc, const TileProblem& problem,
                                    const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (const Point& point : points_of(desc, problem, traits)) space.push_back(to_tuning(point));
  return space;
}

TuningPoint int8_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits) {
  const std::vector<Point> points = points_of(desc, problem, traits);
  const auto cost = [&](const Point& p) {
    return traits.is_cpu ? cpu_cost(problem, p, traits) : gpu_cost(problem, p, traits);
  };
  // Prefers the first points on a CPU, which suit most layers; another program must save more than
  // its compilation costs.
  const Point* best = &points[0];
  double least = cost(*best);
  for (const Point& point : points)
    if (const double c = cost(point); c < least * (traits.is_cpu ? 0.92 : 1))
      best = &point, least = c;
  return to_tuning(*best);
}

std::vector<double> int8_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits) {
  std::vector<double> costs;
  for (const Point& point : points_of(desc, problem, traits))
    costs.push_back(traits.is_cpu ? cpu_cost(problem, point, traits)
                                  : gpu_cost(problem, point, traits));
  return costs;
}

KernelPlan int8_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& tuning) {
  const ConvShape& s = problem.shape;
  const auto point = from_tuning<Point>(tuning);
  const Runs runs = runs_of(problem);
  const int64_t blocks = point.blocks(s);
  // Packs weights; for a step of pairs their magnitudes, followed by the bytes that flip the data.
  const bool pairs = traits.dot == DotProduct::pairs;
  const int64_t depth_of_block = (pairs ? 2 : 1) * runs.depth();
  const int64_t packed_ints = s.groups * blocks * depth_of_block * point.block();

  KernelPlan plan;
  const int zero = static_cast<int>(zero_points(desc)[0]);
  plan.packed.push_back([weights = problem.weights, s, point, blocks, runs, pairs, depth_of_block,
                         packed_ints, zero] {
    const std::vector<float> plain = weights();
    std::vector<std::byte> packed(static_cast<size_t>(4 * (packed_ints + runs.fours())));
    std::fill(packed.end() - 4 * runs.fours(), packed.end(), static_cast<std::byte>(zero));
    const float* from = plain.data();
    const auto depth = static_cast<size_t>(s.taps() * s.in_channels);
    for (int64_t o = 0; o < s.groups * s.out_channels; ++o) {
      const int64_t channel = o % s.out_channels, group = o / s.out_channels;
      const int shift = shift_of({from, depth});
      const int64_t block = group * blocks + channel / point.block();
      for (int64_t r = 0; r < runs.count; ++r)
        for (int64_t i = 0; i < runs.length; ++i) {
          const int64_t step = (r * runs.fours() + i / 4) * (pairs ? 2 : 1);
          std::byte* const to =
              packed.data() + i % 4 +
              4 * ((block * depth_of_block + step) * point.block() + channel % point.block());
          const int byte = static_cast<int>(*from++) - shift;
          *to = static_cast<std::byte>(pairs ? std::abs(byte) : byte);
          if (pairs) to[4 * point.block()] = static_cast<std::byte>(byte < 0 ? 127 : 128);
        }
    }
    return packed;
  });
  plan.packed.push_back([weights = problem.weights, s, padded = blocks * point.block(), zero,
                         dot = traits.dot] { return start_sums(weights(), s, padded, zero, dot); });
  std::vector<Argument> constants{Argument::packed(0, 4), Argument::packed(1, 4)};
  if (has_shifts(desc)) {
    constants.push_back(Argument::packed(plan.packed.size(), 4));
    plan.packed.push_back([weights = problem.weights, s, padded = blocks * point.block()] {
      return shifts(weights(), s, padded);
    });
  }
  const bool merged = row_of_bytes(problem) || (is_merged(problem) && s.in_channels % 4 == 0);
  KernelSpec spec = tile_launch("convolution_int8.cl", desc, problem, traits, point, depth_of_block,
                                merged, constants, plan);
  const auto define = [&](const char* name, bool value) {
    spec.defines.emplace_back(name, value ? "1" : "0");
  };
  define(dot_define(traits), true);
  define("ROW_OF_BYTES", row_of_bytes(problem));
  define("ALIGNED", input_aligned(desc, problem, 4));
  define("SHIFTED", has_shifts(desc));
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
