// MaxPool and AvgPool: shapes, reference implementation, and the families tile (pooling.cl), wide
// and general.
#include "kernels/sampling/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/expand.h"
#include "kernels/item_kernel.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

constexpr int64_t kMaxSize = 1 << 30;  // of a dimension, so that positions with pads fit 32 bits

}  // namespace

PoolShape resolve_pooling(const std::string& type, const Attributes& attributes,
                          const Shape& data) {
  check_rank(data, 3, 5, "the data");
  const size_t spatial = data.size() - 2, first = 3 - spatial;
  PoolShape s;
  s.mode = type == "MaxPool"                    ? kMaximum
           : attributes.get_bool("exclude-pad") ? kAverageInside
                                                : kAverageWithPads;
  s.batch = data[0];
  s.in_channels = s.out_channels = data[1];
  const std::vector<int64_t> kernel = spatial_steps(attributes, "kernel", spatial, 1, {});
  const std::vector<int64_t> strides = spatial_steps(attributes, "strides", spatial, 1, 1);
  const std::vector<int64_t> dilations = spatial_steps(attributes, "dilations", spatial, 1, 1);
  const std::string auto_pad = attributes.get_string("auto_pad", "explicit");
  const bool same = auto_pad == "same_upper" || auto_pad == "same_lower";
  std::vector<int64_t> begin(spatial, 0), end(spatial, 0);
  if (auto_pad == "explicit" || auto_pad == "notset") {
    begin = spatial_steps(attributes, "pads_begin", spatial, 0, 0);
    end = spatial_steps(attributes, "pads_end", spatial, 0, 0);
  } else if (!same && auto_pad != "valid") {
    fail_model("unknown auto_pad \"" + auto_pad + "\"");
  }
  const std::string rounding = attributes.get_string("rounding_type", "floor");
  if (rounding != "floor" && rounding != "ceil" && rounding != "ceil_torch")
    fail_model("unknown rounding_type \"" + rounding + "\"");
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = first + i;
    s.in[d] = data[2 + i];
    if (s.in[d] < 1) fail_model("the data " + to_string(data) + " has no pixels");
    if (s.in[d] > kMaxSize) fail_unsupported("the data " + to_string(data) + " is too large");
    s.kernel[d] = kernel[i];
    s.stride[d] = strides[i];
    s.dilation[d] = kernel[i] == 1 ? 1 : dilations[i];
    const int64_t extent = (s.kernel[d] - 1) * s.dilation[d] + 1;
    if (extent > kMaxStep)
      fail_unsupported("the kernel covers " + std::to_string(extent) + " positions");
    if (same) {
      const int64_t steps = ceil_div(s.in[d], s.stride[d]) - 1;
      const int64_t total = std::max<int64_t>(0, steps * s.stride[d] + extent - s.in[d]);
      begin[i] = auto_pad == "same_upper" ? total / 2 : total - total / 2;
      end[i] = total - begin[i];
    }
    const int64_t padded = s.in[d] + begin[i] + end[i];
    if (padded < extent)
      fail_model("the kernel covers " + std::to_string(extent) +
                 " positions, the padded input has " + std::to_string(padded));
    s.out[d] = (rounding == "floor" ? (padded - extent) / s.stride[d]
                                    : ceil_div(padded - extent, s.stride[d])) +
               1;
    // The last window must start before the end pads.
    if (rounding == "ceil_torch" && (s.out[d] - 1) * s.stride[d] >= s.in[d] + begin[i]) --s.out[d];
    s.pad[d] = begin[i];
    s.end[d] = s.in[d] + end[i];
  }
  // With rounding up, the last window may reach past the pads. If there are pads and averages
  // include them, it counts as a whole nevertheless, as in OpenVINO.
  if (std::any_of(begin.begin(), begin.end(), [](int64_t v) { return v != 0; }) ||
      std::any_of(end.begin(), end.end(), [](int64_t v) { return v != 0; }))
    for (size_t d = first; d < 3; ++d)
      s.end[d] = std::max(s.end[d], (s.out[d] - 1) * s.stride[d] - s.pad[d] +
                                        (s.kernel[d] - 1) * s.dilation[d] + 1);
  return s;
}

namespace {

PoolShape resolve(const OpDesc& desc) {
  return resolve_pooling(desc.type, desc.attributes, desc.inputs[0].shape);
}

// Returns the product of the dimensions from `axis` on, modulo which indices are taken.
int64_t index_range(const Attributes& attributes, const Shape& data) {
  const size_t axis = checked_axis(attributes.get_int("axis", 0), data.size(), "axis");
  return count(Shape(data.begin() + static_cast<std::ptrdiff_t>(axis), data.end()));
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const Shape& data = context.inputs[0].shape;
  const PoolShape s = resolve_pooling(context.type, context.attributes, data);
  Shape out{data[0], data[1]};
  for (size_t i = 5 - data.size(); i < 3; ++i) out.push_back(s.out[i]);
  std::vector<ValueInfo> outputs{{context.inputs[0].type, out, {}}};
  if (context.type == "MaxPool" && context.opset >= 8) {
    const ElementType type = index_type(context.attributes, "index_element_type");
    index_range(context.attributes, data);
    if (context.output_count > 1) outputs.push_back({type, out, {}});
  }
  return outputs;
}

// Sums averages in double. Of equal maxima the first one is chosen; NaN counts as the maximum
// wherever it stands.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const PoolShape s = resolve_pooling(desc.type, desc.attributes, inputs[0].shape());
  const std::vector<float> data = inputs[0].to_floats();
  std::vector<float> values;
  std::vector<int64_t> indices;
  const int64_t plane = s.in[0] * s.in[1] * s.in[2];
  const int64_t range = outputs.size() > 1 ? index_range(desc.attributes, inputs[0].shape()) : 1;
  for (int64_t nc = 0; nc < s.batch * s.in_channels; ++nc)
    for (int64_t z = 0; z < s.out[0]; ++z)
      for (int64_t y = 0; y < s.out[1]; ++y)
        for (int64_t x = 0; x < s.out[2]; ++x) {
          double sum = 0;
          float largest = -std::numeric_limits<float>::infinity();
          int64_t inside = 0, counted = 0, at = 0;
          for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
            for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
              for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
                const int64_t iz = z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
                const int64_t iy = y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
                const int64_t ix = x * s.stride[2] - s.pad[2] + kx * s.dilation[2];
                counted += iz < s.end[0] && iy < s.end[1] && ix < s.end[2];
                if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1] || ix < 0 || ix >= s.in[2])
                  continue;
                const int64_t position = nc * plane + (iz * s.in[1] + iy) * s.in[2] + ix;
                const float value = data[position];
                sum += value;
                const bool first_nan = std::isnan(value) && !std::isnan(largest);
                if (value > largest || inside == 0 || first_nan) largest = value, at = position;
                ++inside;
              }
          if (s.mode == kMaximum) {
            values.push_back(largest);
            indices.push_back((inside > 0 ? at : nc * plane) % range);
          } else {
            const int64_t taps = s.mode == kAverageInside ? inside : counted;
            values.push_back(taps > 0 ? static_cast<float>(sum / static_cast<double>(taps)) : 0.f);
          }
        }
  if (!is_float(outputs[0].type()) && outputs[0].type() != ElementType::f8e4m3)
    for (float& value : values) value = std::nearbyint(value);
  outputs[0] = Tensor::of(outputs[0].type(), outputs[0].shape(), values);
  if (outputs.size() > 1) store_ints(indices, outputs[1]);
}

struct TileArgs {
#include "kernels/sampling/pooling_args.cl"
};

struct WideArgs {
#include "kernels/sampling/pooling_wide_args.cl"
};

struct GeneralArgs {
#include "kernels/sampling/pooling_general_args.cl"
};

// Sets the arguments that all three kernels have; the others are 0.
template <typename Args>
Args common_arguments(const OpDesc& desc, const PoolShape& s) {
  Args args{};
  set_strides(args, pixel_strides(desc.inputs[0]), pixel_strides(desc.outputs[0]));
  set_geometry(args, s);
  args.end_d = to_int(s.end[0]), args.end_h = to_int(s.end[1]), args.end_w = to_int(s.end[2]);
  args.channels = to_int(s.in_channels);
  return args;
}

// Refuses types. The maxima of quantised values are quantised; the tail may quantise floats.
std::string reject_stored(const OpDesc& desc) {
  const bool bytes = desc.type == "MaxPool" && is_quantized(desc.inputs[0].type);
  if (bytes && desc.tail.empty() && desc.outputs.size() == 1) return reject_bytes(desc);
  return reject_float_data(desc);
}

// Chooses the type in which maxima of bytes are compared, and the access to vectors. A GPU's
// compilers take bytes out of their word for each operation, so that they are widened once.
void define_values(KernelSpec& spec, const OpDesc& desc, const DeviceTraits& traits, int vector) {
  const bool aligned = vectors_aligned(desc, traits, vector);
  define_access(spec, aligned);
  if (desc.inputs[0].type != ElementType::u8) return;
  spec.defines.emplace_back("LEVEL", traits.is_cpu ? "uchar" : "int");
  spec.defines.emplace_back("ALIGNED", aligned ? "1" : "0");
}

std::string reject_image(const OpDesc& desc, int vector) {
  if (desc.outputs.size() > 1) return "does not write indices";
  if (std::string why = reject_stored(desc); !why.empty()) return why;
  if (desc.inputs[0].shape[1] > 1 &&
      (desc.inputs[0].strides[1] != 1 || desc.outputs[0].strides[1] != 1))
    return "channels are not adjacent in memory";
  return reject_tail(desc, vector, spatial_axes(desc.outputs[0].shape.size()));
}

// ---- tile --------------------------------------------------------------------------------------

std::string reject_tile_pool(const OpDesc& desc, const DeviceTraits&) {
  return reject_image(desc, 16);
}

std::vector<TuningPoint> pool_tile_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space =
      row_tile_space(desc.inputs[0].shape[1], traits, {1, 2, 4, 8}, {1, 2, 4, 8});
  // Counts results and an element of each pixel; the tile and each of its pixels have a place.
  std::erase_if(space, [&](const TuningPoint& p) {
    const int vector = p["VECTOR"], tile_p = p["TILE_P"];
    return !fits_registers_of_items(traits, 4 * vector * (tile_p + 1), 3 + tile_p);
  });
  return space;
}

TuningPoint pool_tile_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const PoolShape s = resolve(desc);
  const int64_t channels = s.in_channels;
  const auto cost = [&](const TuningPoint& p) {
    const int vector = p["VECTOR"], tile_p = p["TILE_P"];
    const int64_t vectors = ceil_div(channels, vector);
    const int64_t tiles = ceil_div(s.out[2], tile_p) * s.out[1] * s.out[0] * s.batch;
    // Counts columns: adjacent windows of small kernels share those that they load.
    const bool shares = s.kernel[2] <= 5 && s.stride[2] <= 2;
    const double columns = static_cast<double>(shares ? (tile_p - 1) * s.stride[2] + s.kernel[2]
                                                      : tile_p * s.kernel[2]);
    const double inside = columns + 0.3 * static_cast<double>(tile_p * s.kernel[2]);
    // Counts the tiles at the ends of a row, which compute their pixels one by one.
    const int64_t row_tiles = ceil_div(s.out[2], tile_p);
    const int64_t ends = (s.pad[2] > 0) + (s.end[2] > s.in[2] || s.out[2] % tile_p != 0);
    const double slow =
        static_cast<double>(std::min(ends, row_tiles)) / static_cast<double>(row_tiles);
    const double work =
        (1 - slow) * inside + slow * 2.0 * static_cast<double>(tile_p * s.kernel[2]);
    if (traits.is_cpu) {
      // Measured: AVX-512 gains nothing from its width, AVX2 gains from two adjacent registers.
      const bool avx512 = traits.vector_width >= 16;
      const bool bytes = desc.inputs[0].type == ElementType::u8;  // 16 fill half a register
      const double registers =
          bytes ? 1 : std::max(1.0, vector / static_cast<double>(traits.vector_width));
      const double each = bytes || vector <= 8 ? 1 : avx512 ? 2.1 : 0.9;
      return static_cast<double>(vectors * tiles) * (work * registers * each + (avx512 ? 4 : 2)) *
             (tile_p * registers > (avx512 ? 10 : 6) ? 1.3 : 1.0);
    }
    const double items = static_cast<double>(vectors * tiles),
                 wanted = 512.0 * traits.compute_units;
    // Each work-item also finds its place, which pays with many values for each. But eight pixels
    // take so many registers that too few work-items wait for memory at once: 3x3 windows with
    // stride 2 on 128 x 64 x 112 x 112 halves take an H200 119 us with two or four pixels in vectors
    // of eight, 125 to 174 with at most eight values, and 193 with eight pixels in vectors of four.
    const bool few = traits.sub_groups != 0;
    if (!few && tile_p == 8) return std::numeric_limits<double>::max();
    const double place = few ? 0 : 40;
    double value = items * (vector * (work + 4) + place) * (items < wanted ? wanted / items : 1.0);
    if (p["LANES"] * p["ROWS"] != 128) value *= 1.02;
    const int64_t lanes = ceil_div(vectors, p["LANES"]) * p["LANES"];
    return value * static_cast<double>(lanes) / static_cast<double>(vectors) *
           (few && vector == 4 ? 0.9 : 1.0) *
           (p["LANES"] * vector < 32 && channels >= 32 ? 1.2 : 1.0);
  };
  return cheapest(pool_tile_space(desc, traits), cost);
}

KernelPlan pool_tile_plan(const OpDesc& desc, const DeviceTraits& traits,
                          const TuningPoint& point) {
  const PoolShape s = resolve(desc);
  const int vector = point["VECTOR"], tile_p = point["TILE_P"], lanes = point["LANES"],
            rows = point["ROWS"];
  const int64_t vectors = ceil_div(s.in_channels, vector);
  const int64_t row_tiles = ceil_div(s.out[2], tile_p),
                tiles = row_tiles * s.out[1] * s.out[0] * s.batch;
  const double work = 4.0 * static_cast<double>(s.taps() * s.in_channels) * tile_p;
  const int64_t per_item = traits.is_cpu ? tiles_per_item(tiles, 1, work, traits)
                                         : ceil_div(ceil_div(tiles, rows), kMaxGroups);
  auto args = common_arguments<TileArgs>(desc, s);
  args.vectors = to_int(vectors), args.row_tiles = to_int(row_tiles);
  args.tiles = to_int(tiles), args.tiles_per_item = to_int(per_item);

  KernelPlan plan;
  KernelSpec spec;
  spec.source = "pooling.cl";
  // Common kernel sizes are compiled with unrolled loops; all others share one program.
  const bool usual =
      s.dilation[2] == 1 && s.kernel[1] == s.kernel[2] && s.kernel[2] <= 5 && s.stride[2] <= 2;
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  const auto define_loop = [&](const char* name, int64_t value, const char* member) {
    spec.defines.emplace_back(name, usual ? std::to_string(value) : std::string(member));
  };
  spec.defines.emplace_back("T", storage_name(desc.inputs[0].type));
  spec.defines.emplace_back("OUT_T", storage_name(desc.outputs[0].type));
  define("MODE", s.mode);
  define("VECTOR", vector);
  define("TILE_P", tile_p);
  define("LANES", lanes);
  define("ROWS", rows);
  define_values(spec, desc, traits, vector);
  define("UNROLL", usual);
  define_loop("KH", s.kernel[1], "a.kh");
  define_loop("KW", s.kernel[2], "a.kw");
  define_loop("SW", s.stride[2], "a.sw");
  define_loop("DW", s.dilation[2], "a.dw");
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)),
                    Argument::output(0, size_of(desc.outputs[0].type)), Argument::value(args)};
  add_tail(desc, vector, spatial_axes(desc.outputs[0].shape.size()), spec, plan);
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(rows), 1};
  const int64_t rows_of_items = ceil_div(tiles, per_item);
  // With few pixels of many channels, lets cores share the channels instead.
  const int64_t columns =
      traits.is_cpu
          ? std::clamp<int64_t>(4 * traits.compute_units / rows_of_items, 1, ceil_div(vectors, 8))
          : ceil_div(vectors, lanes);
  spec.global = {spec.local[0] * static_cast<size_t>(columns),
                 static_cast<size_t>(ceil_div(rows_of_items, rows)) * spec.local[1], 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kTile{"pool_tile",   1, reject_tile_pool, pool_tile_space, pool_tile_heuristic,
                         pool_tile_plan};

// ---- wide --------------------------------------------------------------------------------------

std::string reject_wide(const OpDesc& desc, const DeviceTraits& traits) {
  if (traits.is_cpu) return "shares a window among work-items, which a CPU does not gain from";
  if (traits.max_work_group < 64) return "work-groups are too small";
  const PoolShape s = resolve(desc);
  if (s.taps() < 32) return "the window has fewer than 32 pixels";
  // One work-item per vector of channels and pixel is enough if there are many of these.
  if (s.pixels() * ceil_div(s.in_channels, 4) > static_cast<int64_t>(256) * traits.compute_units)
    return "there are enough outputs for one work-item each";
  return reject_image(desc, 4);
}

std::vector<TuningPoint> wide_space(const OpDesc& desc, const DeviceTraits& traits) {
  const PoolShape s = resolve(desc);
  std::vector<TuningPoint> space;
  for (int vector : {4, 2, 1})
    for (int lanes : {8, 16, 32, 4, 1})
      for (int slices : {16, 32, 64, 8})
        if (vector <= s.in_channels && (lanes == 1 || lanes * vector < 2 * s.in_channels) &&
            static_cast<size_t>(lanes * slices) <= traits.max_work_group && lanes * slices >= 64)
          space.push_back({{{"VECTOR", vector}, {"LANES", lanes}, {"SLICES", slices}}});
  return space;  // contains 1 x 1 x 64 in any case
}

TuningPoint wide_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const PoolShape s = resolve(desc);
  std::vector<TuningPoint> space = wide_space(desc, traits);
  // Chooses, with the widest vectors, the largest number of slices that all have a few pixels.
  TuningPoint best = space[0];
  for (const TuningPoint& point : space)
    if (point["VECTOR"] == best["VECTOR"] && point["LANES"] == best["LANES"] &&
        point["SLICES"] > best["SLICES"] && point["SLICES"] * 4 <= s.taps())
      best = point;
  return best;
}

KernelPlan wide_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const PoolShape s = resolve(desc);
  const int vector = point["VECTOR"], lanes = point["LANES"], slices = point["SLICES"];
  const int64_t vectors = ceil_div(s.in_channels, vector),
                per_group = ceil_div(s.pixels(), kMaxGroups);
  auto args = common_arguments<WideArgs>(desc, s);
  args.vectors = to_int(vectors);
  args.pixels = to_int(s.pixels()), args.pixels_per_group = to_int(per_group);
  KernelPlan plan;
  KernelSpec spec;
  spec.source = "pooling_wide.cl";
  spec.defines = {
      {"T", storage_name(desc.inputs[0].type)}, {"OUT_T", storage_name(desc.outputs[0].type)},
      {"MODE", std::to_string(s.mode)},         {"VECTOR", std::to_string(vector)},
      {"LANES", std::to_string(lanes)},         {"SLICES", std::to_string(slices)}};
  define_values(spec, desc, traits, vector);
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)),
                    Argument::output(0, size_of(desc.outputs[0].type)), Argument::value(args)};
  add_tail(desc, vector, spatial_axes(desc.outputs[0].shape.size()), spec, plan);
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(slices), 1};
  spec.shared = sizeof(float) * static_cast<size_t>(lanes * slices * vector);
  spec.global = {spec.local[0] * static_cast<size_t>(ceil_div(vectors, lanes)),
                 spec.local[1] * static_cast<size_t>(ceil_div(s.pixels(), per_group)), 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kWide{"pool_wide",    1,         reject_wide, wide_space,
                         wide_heuristic, wide_plan, nullptr,     kSharedSums};

// ---- general -----------------------------------------------------------------------------------

std::string reject_general(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_stored(desc); !why.empty()) return why;
  if (desc.outputs.size() > 1) {
    if (desc.outputs[1].type != ElementType::i32) return "indices are written as i32 only";
    if (desc.outputs[1].span() > std::numeric_limits<int32_t>::max())
      return "the indices have more than 2^31 elements";
  }
  return reject_tail(desc, 1, spatial_axes(desc.outputs[0].shape.size()));
}

KernelPlan general_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const PoolShape s = resolve(desc);
  const bool indices = desc.outputs.size() > 1;
  auto args = common_arguments<GeneralArgs>(desc, s);
  const PixelStrides index = indices ? pixel_strides(desc.outputs[1]) : PixelStrides{};
  args.index_n = to_int(index.n), args.index_c = to_int(index.c), args.index_d = to_int(index.d);
  args.index_h = to_int(index.h), args.index_w = to_int(index.w);
  args.index_range = indices ? to_int(index_range(desc.attributes, desc.inputs[0].shape)) : 1;
  args.elements = to_int(desc.outputs[0].elements());
  KernelPlan plan;
  KernelSpec spec;
  spec.source = "pooling_general.cl";
  spec.defines = {{"T", storage_name(desc.inputs[0].type)},
                  {"OUT_T", storage_name(desc.outputs[0].type)},
                  {"MODE", std::to_string(s.mode)},
                  {"INDICES", indices ? "1" : "0"},
                  {"CHANNELS_INNER", desc.outputs[0].strides[1] == 1 ? "1" : "0"}};
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)),
                    Argument::output(0, size_of(desc.outputs[0].type))};
  if (indices) spec.arguments.push_back(Argument::output(1, sizeof(int32_t)));
  spec.arguments.push_back(Argument::value(args));
  add_tail(desc, 1, spatial_axes(desc.outputs[0].shape.size()), spec, plan);
  set_items(spec, args.elements, point);
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kGeneral{"pool_general", 1,           reject_general, item_space,
                            item_heuristic, general_plan};

}  // namespace

std::vector<OpDef> pooling_ops() {
  OpDef max_pool;
  max_pool.type = "MaxPool";
  max_pool.opsets = opset_range(1);
  max_pool.infer_shapes = infer_shapes;
  max_pool.evaluate = evaluate;
  max_pool.families = {&kWide, &kTile, &kGeneral};
  max_pool.layout = LayoutRule::image;
  max_pool.expand = [](Expansion& x) { compute_in_floats(x, 1, true); };
  OpDef avg_pool = max_pool;
  avg_pool.type = "AvgPool";
  return {std::move(max_pool), std::move(avg_pool)};
}

}  // namespace clinfer
