// Interpolate: shapes, reference implementation, and the families tile (interpolate.cl) and
// general. All modes are separable: a table per axis lists, for each output position, the input
// positions and weights of its sum. Coordinates and weights follow OpenVINO's specification of
// Interpolate-4 and -11; the pillow modes follow Pillow's resize.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/arguments.h"
#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/expand.h"
#include "kernels/item_kernel.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

constexpr int64_t kMaxPad = 1 << 24;
constexpr int64_t kMostPlaces = 1 << 22;  // positions along an axis, each with an entry in a table
constexpr float kLeastScale = 1e-9f;  // any tensor is smaller; positions divided by it fit 64 bits
constexpr size_t kMostDims = 5;       // of the general kernel

enum class Mode { nearest, linear, cubic, pillow_linear, pillow_cubic };
enum class Coordinates {
  half_pixel,
  pytorch_half_pixel,
  asymmetric,
  tf_half_pixel_for_nn,
  align_corners
};
enum class Rounding { prefer_floor, prefer_ceil, floor, ceil, simple };

template <typename T>
T pick(const std::string& name, const std::string& text,
       std::initializer_list<std::pair<const char*, T>> known) {
  for (const auto& [spelling, value] : known)
    if (text == spelling) return value;
  fail_model("unknown " + name + " \"" + text + "\"");
}

// The mapping of positions, from the attributes of any version.
struct Style {
  Mode mode = Mode::nearest;
  Coordinates coordinates = Coordinates::asymmetric;
  Rounding rounding = Rounding::floor;
  bool antialias = false;  // for linear modes only, as in the specification
  bool by_scales = false;  // scales are given; the sizes follow from them
  double cube_coeff = -0.75;
};

Style style_of(int opset, const Attributes& attributes) {
  Style style;
  const std::string mode = attributes.get_string("mode");
  style.mode = pick<Mode>("mode", mode,
                          {{"nearest", Mode::nearest},
                           {"linear", Mode::linear},
                           {"linear_onnx", Mode::linear},
                           {"cubic", Mode::cubic},
                           {"bilinear_pillow", Mode::pillow_linear},
                           {"bicubic_pillow", Mode::pillow_cubic}});
  style.antialias = attributes.get_bool("antialias", false) && mode == "linear";
  if (opset < 4) {  // as in OpenVINO; the specification of the first version leaves it open
    style.rounding = Rounding::simple;
    if (attributes.get_bool("align_corners", true))
      style.coordinates = Coordinates::align_corners;
    else if (style.mode == Mode::linear && attributes.get_ints("axes").size() > 2)
      style.coordinates = Coordinates::half_pixel;
    return style;
  }
  style.coordinates =
      pick<Coordinates>("coordinate_transformation_mode",
                        attributes.get_string("coordinate_transformation_mode", "half_pixel"),
                        {{"half_pixel", Coordinates::half_pixel},
                         {"pytorch_half_pixel", Coordinates::pytorch_half_pixel},
                         {"asymmetric", Coordinates::asymmetric},
                         {"tf_half_pixel_for_nn", Coordinates::tf_half_pixel_for_nn},
                         {"align_corners", Coordinates::align_corners}});
  style.rounding =
      pick<Rounding>("nearest_mode", attributes.get_string("nearest_mode", "round_prefer_floor"),
                     {{"round_prefer_floor", Rounding::prefer_floor},
                      {"round_prefer_ceil", Rounding::prefer_ceil},
                      {"floor", Rounding::floor},
                      {"ceil", Rounding::ceil},
                      {"simple", Rounding::simple}});
  style.by_scales =
      pick<bool>("shape_calculation_mode", attributes.get_string("shape_calculation_mode"),
                 {{"sizes", false}, {"scales", true}});
  style.cube_coeff = attributes.get_float("cube_coeff", -0.75);
  return style;
}

// Return indices of inputs; -1 if a version lacks the input.
int scales_input(int opset) { return opset < 4 ? -1 : opset < 11 ? 2 : 1; }
int axes_input(int opset) { return opset < 4 ? -1 : opset < 11 ? 3 : 2; }

std::vector<int64_t> pads_of(const Attributes& attributes, const char* name, size_t rank) {
  std::vector<int64_t> pads = attributes.get_ints(name, std::vector<int64_t>{});
  for (int64_t pad : pads)
    if (pad < 0 || pad > kMaxPad)
      fail_model(std::string("attribute ") + name + " is out of range: " + std::to_string(pad));
  pads.resize(rank, 0);  // a short list is padded with zeros
  return pads;
}

// One dimension: its sizes, and the scale if the model states it.
struct Axis {
  int64_t in = 1, pad = 0, padded = 1, out = 1;
  float scale = 1;
};

// Makes each output position o a weighted sum of `taps` input positions from start[o] on, with the
// weights from weight[o * taps] on.
struct Table {
  int64_t taps = 1;
  std::vector<int32_t> start;
  std::vector<float> weight;
  bool is_plain() const {  // each position copies one input position
    return taps == 1 && std::all_of(weight.begin(), weight.end(), [](float w) { return w == 1; });
  }
};

float coordinate(const Style& style, const Axis& axis, int64_t at) {
  const float x = static_cast<float>(at);
  if (axis.out == axis.padded || axis.scale == 1) return x;
  switch (style.coordinates) {
    case Coordinates::half_pixel:
      return (x + 0.5f) / axis.scale - 0.5f;
    case Coordinates::pytorch_half_pixel:
      return axis.out > 1 ? (x + 0.5f) / axis.scale - 0.5f : 0;
    case Coordinates::asymmetric:
      return x / axis.scale;
    case Coordinates::tf_half_pixel_for_nn:
      return (x + 0.5f) / axis.scale;
    case Coordinates::align_corners:
      break;
  }
  return axis.out == 1 ? 0
                       : x * static_cast<float>(axis.padded - 1) / static_cast<float>(axis.out - 1);
}

int64_t rounded(const Style& style, const Axis& axis, float x) {
  switch (style.rounding) {
    case Rounding::prefer_floor:
      return static_cast<int64_t>(x == std::floor(x) + 0.5f ? std::floor(x) : std::round(x));
    case Rounding::prefer_ceil:
      return static_cast<int64_t>(std::round(x));
    case Rounding::floor:
      return static_cast<int64_t>(std::floor(x));
    case Rounding::ceil:
      return static_cast<int64_t>(std::ceil(x));
    case Rounding::simple:
      break;
  }
  return static_cast<int64_t>(axis.scale < 1 ? std::ceil(x) : std::trunc(x));
}

// Returns the weight of cubic convolution with coefficient a.
double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

// A position in the padded input, and its weight.
struct Term {
  int64_t at;
  double weight;
};

void normalize(std::vector<Term>& terms) {
  double sum = 0;
  for (const Term& term : terms) sum += term.weight;
  for (Term& term : terms) term.weight = sum != 0 ? term.weight / sum : 0;
}

// Computes the input positions and weights of output position `at`. Positions may repeat; all are
// inside the padded input.
void terms_of(const Style& style, const Axis& axis, int64_t at, std::vector<Term>& terms) {
  terms.clear();
  const int64_t last = axis.padded - 1;
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, last); };
  if (style.mode == Mode::pillow_linear || style.mode == Mode::pillow_cubic) {
    const bool cubic = style.mode == Mode::pillow_cubic;
    const double ratio = static_cast<double>(axis.padded) / static_cast<double>(axis.out),
                 wide = std::max(ratio, 1.0);
    const double support = (cubic ? 2.0 : 1.0) * wide,
                 center = (static_cast<double>(at) + 0.5) * ratio;
    const int64_t low = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t high =
        std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), axis.padded);
    for (int64_t i = low; i < high; ++i) {
      const double x = (static_cast<double>(i) - center + 0.5) / wide;
      terms.push_back({i, cubic ? cubic_weight(x, style.cube_coeff) : triangle(x)});
    }
    return normalize(terms);
  }
  const float x = coordinate(style, axis, at);
  if (style.mode == Mode::nearest) {
    terms.push_back({inside(rounded(style, axis, x)), 1});
  } else if (style.mode == Mode::cubic) {
    const float base = std::floor(x);
    for (int i = -1; i <= 2; ++i)
      terms.push_back({inside(static_cast<int64_t>(base) + i),
                       cubic_weight(static_cast<double>(x) - base - i, style.cube_coeff)});
  } else if (style.antialias) {
    const double narrow = axis.scale;
    const int64_t reach = narrow > 1 ? 2 : static_cast<int64_t>(std::ceil(2 / narrow));
    const int64_t middle = static_cast<int64_t>(std::round(x));
    for (int64_t i = std::max<int64_t>(middle - reach, 0); i <= std::min(middle + reach, last); ++i)
      terms.push_back({i, triangle(narrow * (static_cast<double>(x) - static_cast<double>(i)))});
    normalize(terms);
  } else {
    const float low = std::clamp(x, 0.f, static_cast<float>(last));
    const int64_t i = inside(static_cast<int64_t>(low));
    terms.push_back({i, 1 - (static_cast<double>(low) - static_cast<double>(i))});
    terms.push_back({inside(i + 1), static_cast<double>(low) - static_cast<double>(i)});
  }
}

// Leaves out the weights of pads, which do not exist in the input and have the value 0.
Table make_table(const Style& style, const Axis& axis) {
  const auto exists = [&](const Term& term) {
    return term.weight != 0 && term.at >= axis.pad && term.at < axis.pad + axis.in;
  };
  std::vector<Term> terms;
  Table table;
  for (int64_t o = 0; o < axis.out; ++o) {
    terms_of(style, axis, o, terms);
    int64_t low = std::numeric_limits<int64_t>::max(), high = -1;
    for (const Term& term : terms)
      if (exists(term)) low = std::min(low, term.at), high = std::max(high, term.at);
    table.start.push_back(high < 0 ? 0 : to_int(low - axis.pad));
    table.taps = std::max(table.taps, high < 0 ? 1 : high - low + 1);
  }
  table.weight.assign(static_cast<size_t>(axis.out * table.taps), 0.f);
  for (int64_t o = 0; o < axis.out; ++o) {
    terms_of(style, axis, o, terms);
    table.start[o] = to_int(std::min<int64_t>(table.start[o], axis.in - table.taps));
    for (const Term& term : terms)
      if (exists(term))
        table.weight[o * table.taps + term.at - axis.pad - table.start[o]] +=
            static_cast<float>(term.weight);
  }
  return table;
}

// Returns all dimensions without their output sizes, which axes_with_outputs() computes unless they
// are known already.
std::vector<Axis> padded_axes(const Attributes& attributes, const Shape& data) {
  const std::vector<int64_t> begin = pads_of(attributes, "pads_begin", data.size()),
                             end = pads_of(attributes, "pads_end", data.size());
  std::vector<Axis> axes(data.size());
  for (size_t d = 0; d < data.size(); ++d) {
    if (data[d] < 1) fail_model("the data " + to_string(data) + " is empty");
    axes[d].in = data[d];
    axes[d].pad = begin[d];
    axes[d].out = axes[d].padded = begin[d] + data[d] + end[d];
  }
  return axes;
}

void set_scales(std::vector<Axis>& axes, const std::vector<int64_t>& numbers,
                const std::vector<float>& scales) {
  if (numbers.size() != scales.size())
    fail_model("there are " + std::to_string(scales.size()) + " scales for " +
               std::to_string(numbers.size()) + " axes");
  for (size_t i = 0; i < scales.size(); ++i) {
    if (!(scales[i] >= kLeastScale) || !std::isfinite(scales[i]))
      fail_model("the scale " + std::to_string(scales[i]) + " is impossible");
    axes[checked_axis(numbers[i], axes.size(), "axis")].scale = scales[i];
  }
}

std::vector<int64_t> all_axes(size_t rank) {
  std::vector<int64_t> numbers(rank);
  for (size_t i = 0; i < rank; ++i) numbers[i] = static_cast<int64_t>(i);
  return numbers;
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  const int opset = context.opset;
  check_inputs(context, opset < 4 ? 2 : opset < 11 ? 3 : 2, opset < 4 ? 2 : opset < 11 ? 4 : 3);
  const Shape& data = context.inputs[0].shape;
  const Style style = style_of(opset, context.attributes);
  std::vector<Axis> axes = padded_axes(context.attributes, data);
  std::vector<int64_t> numbers = all_axes(data.size());
  const int axes_at = axes_input(opset);
  if (opset < 4)
    numbers = context.attributes.get_ints("axes");
  else if (has_input(context, static_cast<size_t>(axes_at)))
    numbers = constant_ints(context, static_cast<size_t>(axes_at), "axes");
  if (style.by_scales) {
    const ValueInfo& scales = context.inputs[static_cast<size_t>(scales_input(opset))];
    if (scales.value.empty()) fail_unsupported("the scales are not constant");
    set_scales(axes, numbers, scales.value.to_floats());
    for (Axis& axis : axes) {
      const double size =
          static_cast<double>(axis.padded) * (static_cast<double>(axis.scale) + 1e-6);
      if (size >= static_cast<double>(std::numeric_limits<int32_t>::max()))
        fail_unsupported("the output is too large");
      axis.out = static_cast<int64_t>(size);
    }
  } else {
    const std::vector<int64_t> sizes = constant_ints(context, 1, "the target shape");
    if (numbers.size() != sizes.size())
      fail_model("there are " + std::to_string(sizes.size()) + " sizes for " +
                 std::to_string(numbers.size()) + " axes");
    for (size_t i = 0; i < sizes.size(); ++i)
      axes[checked_axis(numbers[i], data.size(), "axis")].out = sizes[i];
  }
  Shape out;
  for (const Axis& axis : axes) {
    out.push_back(axis.out);
    if (axis.out < 1 || axis.out > std::numeric_limits<int32_t>::max())
      fail_model("the output would have the shape " + to_string(out));
    if (std::max(axis.out, axis.padded) > kMostPlaces)
      fail_unsupported("an axis of " + std::to_string(axis.padded) + " elements becomes " +
                       std::to_string(axis.out) + "; more than " + std::to_string(kMostPlaces) +
                       " are not resized");
  }
  return {{context.inputs[0].type, std::move(out), {}}};
}

// Returns whether the scales that the model states are available. Sizes always are, from the
// output's shape.
bool knows_scales(const OpDesc& desc) {
  if (!style_of(desc.opset, desc.attributes).by_scales) return true;
  const size_t scales = static_cast<size_t>(scales_input(desc.opset)),
               axes = static_cast<size_t>(axes_input(desc.opset));
  return !desc.constants[scales].empty() &&
         (axes >= desc.own_inputs || !desc.constants[axes].empty());
}

std::vector<Axis> resolve(const OpDesc& desc, std::span<const Tensor> values) {
  const Shape &data = desc.inputs[0].shape, &out = desc.outputs[0].shape;
  std::vector<Axis> axes = padded_axes(desc.attributes, data);
  for (size_t d = 0; d < axes.size(); ++d) {
    axes[d].out = out[d];
    axes[d].scale = static_cast<float>(out[d]) / static_cast<float>(axes[d].padded);
  }
  if (style_of(desc.opset, desc.attributes).by_scales) {
    const size_t at = static_cast<size_t>(axes_input(desc.opset));
    for (Axis& axis : axes) axis.scale = 1;
    set_scales(
        axes,
        at < values.size() && !values[at].empty() ? values[at].to_ints() : all_axes(data.size()),
        values[static_cast<size_t>(scales_input(desc.opset))].to_floats());
  }
  return axes;
}

std::vector<Table> tables_of(const OpDesc& desc, std::span<const Tensor> values) {
  const Style style = style_of(desc.opset, desc.attributes);
  std::vector<Table> tables;
  for (const Axis& axis : resolve(desc, values)) tables.push_back(make_table(style, axis));
  return tables;
}

std::vector<Table> tables_of(const OpDesc& desc) {
  return tables_of(desc, std::span(desc.constants).first(desc.own_inputs));
}

// Processes one dimension at a time, first those that shrink, so that no intermediate result has
// more elements than both the input and the output.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::vector<Table> tables = tables_of(desc, inputs);
  Shape shape = inputs[0].shape();
  std::vector<size_t> order(tables.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](size_t d) {
    return static_cast<int64_t>(tables[d].start.size()) < shape[d];
  });
  const auto resize = [&](auto values, size_t d) {
    const Table& table = tables[d];
    using Value = typename decltype(values)::value_type;
    const int64_t inner = row_major_strides(shape)[d], in = shape[d],
                  out = static_cast<int64_t>(table.start.size());
    const int64_t outer = count(shape) / (in * inner);
    std::vector<Value> result(static_cast<size_t>(outer * out * inner), Value{});
    for (int64_t a = 0; a < outer; ++a)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t t = 0; t < table.taps; ++t) {
          const float weight = table.weight[o * table.taps + t];
          const Value* from = values.data() + (a * in + table.start[o] + t) * inner;
          Value* to = result.data() + (a * out + o) * inner;
          if constexpr (std::is_floating_point_v<Value>) {
            for (int64_t i = 0; i < inner; ++i) to[i] += weight * from[i];
          } else if (weight != 0) {
            std::copy_n(from, inner, to);
          }
        }
    shape[d] = out;
    return result;
  };
  if (style_of(desc.opset, desc.attributes).mode != Mode::nearest ||
      outputs[0].type() == ElementType::f32) {
    std::vector<float> values = inputs[0].to_floats();
    for (size_t d : order) values = resize(std::move(values), d);
    if (!is_float(outputs[0].type()))
      for (float& value : values) value = std::nearbyint(value);
    outputs[0] = Tensor::of(outputs[0].type(), outputs[0].shape(), values);
    return;
  }
  with_size(outputs[0].type(), [&](auto zero) {
    using Value = decltype(zero);
    const Value* data = inputs[0].data<Value>();
    std::vector<Value> values(data, data + inputs[0].elements());
    for (size_t d : order) values = resize(std::move(values), d);
    std::copy(values.begin(), values.end(), outputs[0].mutable_data<Value>());
  });
}

// All tables as two packed constants, first `starts` and then `weights`, and the offset of each
// table.
struct PackedTables {
  std::vector<int32_t> starts;
  std::vector<float> weights;
  std::vector<int> start_at, weight_at, taps;

  void add(const Table& table) {
    if (weights.size() + table.weight.size() > std::numeric_limits<int32_t>::max())
      fail_unsupported("the tables of positions are too large");
    start_at.push_back(to_int(static_cast<int64_t>(starts.size())));
    weight_at.push_back(to_int(static_cast<int64_t>(weights.size())));
    taps.push_back(to_int(table.taps));
    starts.insert(starts.end(), table.start.begin(), table.start.end());
    weights.insert(weights.end(), table.weight.begin(), table.weight.end());
  }
  template <typename T>
  static std::function<std::vector<std::byte>()> bytes_of(const std::vector<T>& values) {
    return [values] {
      std::vector<std::byte> bytes(values.size() * sizeof(T));
      std::memcpy(bytes.data(), values.data(), bytes.size());
      return bytes;
    };
  }
  void pack(KernelPlan& plan) const {
    plan.packed.push_back(bytes_of(starts));
    plan.packed.push_back(bytes_of(weights));
  }
};

TailAxes tail_axes(size_t rank) {
  const int last = static_cast<int>(rank) - 1;
  return {0, rank >= 4 ? last - 1 : -1, last, 1};
}

bool moves_only(const OpDesc& desc) { return !is_float(desc.inputs[0].type); }

// ---- tile --------------------------------------------------------------------------------------

// Returns how many columns of the input a tile keeps in registers for its next pixels. Only an axis
// that grows reuses them. Keeping them requires channels as the outer loop; on a CPU with many
// vectors of channels, writing pixels in the order of memory saves more.
int64_t kept_columns(const OpDesc& desc, const Table& along_row, int64_t vectors,
                     const DeviceTraits& traits) {
  constexpr int64_t kMostColumns = 4, kMostVectorsOnCpu = 3;
  // Kept columns add up along them before they add up along the row.
  if (traits.ordered_sums) return 0;
  if (along_row.is_plain() || along_row.taps > kMostColumns) return 0;
  if (desc.outputs[0].shape.back() <= desc.inputs[0].shape.back()) return 0;
  return traits.is_cpu && vectors > kMostVectorsOnCpu ? 0 : along_row.taps;
}

std::string reject_tile(const OpDesc& desc, const DeviceTraits&) {
  const bool moved = moves_only(desc);
  if (std::string why = moved ? reject_bytes(desc) : reject_storage(desc, 1); !why.empty())
    return why;
  if (moved && style_of(desc.opset, desc.attributes).mode != Mode::nearest)
    return "bytes between others";
  const Shape &in = desc.inputs[0].shape, &out = desc.outputs[0].shape;
  if (in.size() < 3 || in.size() > 5) return "not an image of one to three dimensions";
  if (in[0] != out[0] || in[1] != out[1]) return "batch or channels are resized";
  if (in[1] > 1 && (desc.inputs[0].strides[1] != 1 || desc.outputs[0].strides[1] != 1))
    return "channels are not adjacent in memory";
  if (!knows_scales(desc)) return "the scales are not constant";
  const std::vector<Axis> axes = resolve(desc, std::span(desc.constants).first(desc.own_inputs));
  if (axes[0].pad != 0 || axes[1].pad != 0) return "batch or channels are padded";
  return reject_tail(desc, 16, tail_axes(in.size()));
}

std::vector<TuningPoint> tile_space(const OpDesc& desc, const DeviceTraits& traits) {
  return row_tile_space(desc.inputs[0].shape[1], traits, {8, 1, 2, 4}, {8});
}

TuningPoint tile_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const int64_t channels = desc.inputs[0].shape[1];
  const double pixels = static_cast<double>(desc.outputs[0].elements() / channels);
  const std::vector<TuningPoint> space = tile_space(desc, traits);
  if (traits.is_cpu)
    return cheapest(space, [&](const TuningPoint& p) {
      const double registers = p["VECTOR"] / static_cast<double>(std::max(1u, traits.vector_width));
      return static_cast<double>(ceil_div(channels, p["VECTOR"])) * (0.45 + registers);
    });
  const std::vector<Table> tables = tables_of(desc);
  const bool keeps = kept_columns(desc, tables.back(), 1, traits) > 0;
  double taps = 1;
  for (const Table& table : tables) taps *= static_cast<double>(table.taps);
  const double growth = static_cast<double>(desc.outputs[0].shape.back()) /
                        static_cast<double>(desc.inputs[0].shape.back());
  return cheapest(space, [&](const TuningPoint& p) {
    const int vector = p["VECTOR"], tile_p = p["TILE_P"];
    const double vectors = static_cast<double>(ceil_div(channels, vector));
    const int64_t width = desc.outputs[0].shape.back();
    const double items = vectors * pixels / static_cast<double>(width) *
                         static_cast<double>(ceil_div(width, tile_p));
    const double wanted = 512.0 * traits.compute_units;
    const int64_t groups = ceil_div(ceil_div(channels, vector), p["LANES"]);
    const double lanes = static_cast<double>(groups * p["LANES"]);
    // Measured on an H200: eight halves, read one by one, take longer than two times four.
    const bool at_once = traits.vendor == Vendor::nvidia && vectors_aligned(desc, traits, vector);
    double item = tile_p * (vector + 2.0 + 4.0 / tile_p) *
                  (vector == 4               ? 0.9
                   : vector == 8 && !at_once ? 1.5
                                             : 1.0);
    if (keeps) {
      // Fitted to an H200 (21 channels of f16, 33 to 257 pixels). Vectors of halves that are not
      // aligned are read and written element by element, and each access of a warp touches all
      // memory that its vectors span.
      const double accesses = tile_p + taps * (1 + (tile_p - 1) / growth);
      const double adjacent = static_cast<double>(p["LANES"] * vector) *
                              static_cast<double>(size_of(desc.inputs[0].type));
      item = (8 + tile_p + 0.3 * vector * (at_once ? 1 : vector) * accesses) *
             (groups > 1 ? std::max(1.0, 64 / adjacent) : 1.0);
    }
    return items * item * (items < wanted ? wanted / items : 1.0) * (lanes / vectors) *
           (p["LANES"] * p["ROWS"] == 128 ? 1.0 : 1.02);
  });
}

struct TileArgs {
#include "kernels/sampling/interpolate_args.cl"
};

KernelPlan tile_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const int vector = point["VECTOR"], tile_p = point["TILE_P"], lanes = point["LANES"],
            rows = point["ROWS"];
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const size_t rank = in.shape.size();
  const std::vector<Table> tables = tables_of(desc);
  // Depth, height, width; missing dimensions have size 1.
  const Table one{1, {0}, {1.f}};
  std::array<const Table*, 3> used{&one, &one, &one};
  std::array<int64_t, 3> size{1, 1, 1}, in_stride{}, out_stride{};
  for (size_t d = 2; d < rank; ++d) {
    const size_t i = d + 3 - rank;
    used[i] = &tables[d];
    size[i] = out.shape[d];
    in_stride[i] = in.strides[d];
    out_stride[i] = out.strides[d];
  }
  const bool nearest = used[0]->is_plain() && used[1]->is_plain() && used[2]->is_plain();
  PackedTables packed;
  for (const Table* table : used) packed.add(*table);
  const int64_t taps = used[0]->taps * used[1]->taps * used[2]->taps;
  const int64_t channels = in.shape[1], vectors = ceil_div(channels, vector),
                row_tiles = ceil_div(size[2], tile_p);
  const int64_t tiles = row_tiles * size[1] * size[0] * out.shape[0];
  const double work = 6.0 * static_cast<double>(taps * channels) * tile_p + 200;
  const int64_t per_item = traits.is_cpu ? tiles_per_item(tiles, 1, work, traits)
                                         : ceil_div(ceil_div(tiles, rows), kMaxGroups);

  KernelPlan plan;
  packed.pack(plan);
  KernelSpec spec;
  spec.source = "interpolate.cl";
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  spec.defines.emplace_back("T", storage_name(in.type));
  define("NEAREST", nearest);
  define("VECTOR", vector);
  define("TILE_P", tile_p);
  define("LANES", lanes);
  define("ROWS", rows);
  define_access(spec, vectors_aligned(desc, traits, vector));
  spec.defines.emplace_back("KH", used[1]->taps <= 4 ? std::to_string(used[1]->taps) : "a.kh");
  spec.defines.emplace_back("KW", used[2]->taps <= 4 ? std::to_string(used[2]->taps) : "a.kw");
  define("COLUMNS", kept_columns(desc, *used[2], vectors, traits));
  const size_t bytes = size_of(in.type);
  spec.arguments = {Argument::input(0, bytes), Argument::packed(0, sizeof(int32_t)),
                    Argument::packed(1, sizeof(float)), Argument::output(0, bytes),
                    Argument::value(TileArgs{.in_n = to_int(in.strides[0]),
                                             .in_d = to_int(in_stride[0]),
                                             .in_h = to_int(in_stride[1]),
                                             .in_w = to_int(in_stride[2]),
                                             .out_n = to_int(out.strides[0]),
                                             .out_d = to_int(out_stride[0]),
                                             .out_h = to_int(out_stride[1]),
                                             .out_w = to_int(out_stride[2]),
                                             .od = to_int(size[0]),
                                             .oh = to_int(size[1]),
                                             .ow = to_int(size[2]),
                                             .start_d = packed.start_at[0],
                                             .start_h = packed.start_at[1],
                                             .start_w = packed.start_at[2],
                                             .weight_d = packed.weight_at[0],
                                             .weight_h = packed.weight_at[1],
                                             .weight_w = packed.weight_at[2],
                                             .kd = packed.taps[0],
                                             .kh = packed.taps[1],
                                             .kw = packed.taps[2],
                                             .channels = to_int(channels),
                                             .vectors = to_int(vectors),
                                             .row_tiles = to_int(row_tiles),
                                             .tiles = to_int(tiles),
                                             .tiles_per_item = to_int(per_item)})};
  add_tail(desc, vector, tail_axes(rank), spec, plan);
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(rows), 1};
  spec.global = {spec.local[0] * static_cast<size_t>(traits.is_cpu ? 1 : ceil_div(vectors, lanes)),
                 spec.local[1] * static_cast<size_t>(ceil_div(ceil_div(tiles, per_item), rows)), 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kTile{"interpolate_tile", 2, reject_tile, tile_space, tile_heuristic, tile_plan};

// ---- general -----------------------------------------------------------------------------------

std::string reject_general(const OpDesc& desc, const DeviceTraits&) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  if (in.shape.size() > kMostDims) return "more than " + std::to_string(kMostDims) + " dimensions";
  if (!knows_scales(desc)) return "the scales are not constant";
  if (!moves_only(desc)) {
    if (std::string why = reject_storage(desc, 1); !why.empty()) return why;
    return reject_tail(desc, 1, tail_axes(in.shape.size()));
  }
  if (size_of(in.type) != size_of(out.type)) return "input and output differ in type";
  if (std::max(in.span(), out.span()) > std::numeric_limits<int32_t>::max())
    return "a tensor has more than 2^31 elements";
  return desc.tail.empty() ? "" : "takes no tail for integers";
}

struct GeneralArgs {
#include "kernels/sampling/interpolate_general_args.cl"
};

KernelPlan general_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const size_t rank = in.shape.size();
  const std::vector<Table> tables = tables_of(desc);
  // Orders dimensions from the innermost in the output's memory to the outermost.
  std::vector<size_t> order;
  for (size_t d = rank; d-- > 0;) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return out.strides[a] < out.strides[b]; });
  const Table one{1, {0}, {1.f}};
  PackedTables packed;
  std::vector<int64_t> sizes(kMostDims, 1), in_strides(kMostDims, 0), out_strides(kMostDims, 0);
  for (size_t i = 0; i < kMostDims; ++i) {
    packed.add(i < rank ? tables[order[i]] : one);
    if (i >= rank) continue;
    sizes[i] = out.shape[order[i]];
    in_strides[i] = in.strides[order[i]];
    out_strides[i] = out.strides[order[i]];
  }
  GeneralArgs args{};
  set_each(args.size, sizes);
  set_each(args.in, in_strides);
  set_each(args.out, out_strides);
  set_each(args.start, packed.start_at);
  set_each(args.weight, packed.weight_at);
  set_each(args.taps, packed.taps);
  const TailAxes axes = tail_axes(rank);
  const auto index_of = [&](int axis) {
    const auto at = std::find(order.begin(), order.end(), static_cast<size_t>(axis));
    return axis < 0 || at == order.end() ? -1 : static_cast<int>(at - order.begin());
  };
  args.n = index_of(axes.n), args.h = index_of(axes.h), args.w = index_of(axes.w),
  args.c = index_of(axes.c);
  args.elements = to_int(out.elements());

  KernelPlan plan;
  packed.pack(plan);
  KernelSpec spec;
  spec.source = "interpolate_general.cl";
  spec.defines = {{"T", moves_only(desc) ? moved_type(in.type) : storage_name(in.type)},
                  {"MOVE", moves_only(desc) ? "1" : "0"}};
  const size_t bytes = size_of(in.type);
  spec.arguments = {Argument::input(0, bytes), Argument::packed(0, sizeof(int32_t)),
                    Argument::packed(1, sizeof(float)), Argument::output(0, bytes),
                    Argument::value(args)};
  add_tail(desc, 1, axes, spec, plan);
  set_items(spec, out.elements(), point);
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kGeneral{"interpolate_general", 1,           reject_general, item_space,
                            item_heuristic,        general_plan};

// Returns whether the operation has no pads and its output has the input's size.
bool resizes_nothing(const ShapeContext& context) {
  const Shape& from = context.inputs[0].shape;
  for (const char* name : {"pads_begin", "pads_end"})
    for (const int64_t pad : pads_of(context.attributes, name, from.size()))
      if (pad != 0) return false;
  return !style_of(context.opset, context.attributes).by_scales &&
         infer_shapes(context)[0].shape == from;
}

// Expands a resize of [N, H, W, C], TensorFlow's layout, into transposes to [N, C, H, W] and back.
// Both are views of the same memory, and make dimension 1 the channels, as the kernels require.
void expand_channels_last(Expansion& x) {
  const ShapeContext& context = x.context();
  const int opset = context.opset;
  const Shape& from = context.inputs[0].shape;
  const Shape to = infer_shapes(context)[0].shape;
  if (from.size() != 4 || to[0] != from[0] || to[1] == from[1] || to[3] != from[3]) return;
  const std::vector<int64_t> order{0, 3, 1, 2}, back{0, 2, 3, 1};
  const auto turned = [&](const std::vector<int64_t>& axes) {
    std::vector<int64_t> now;
    for (const int64_t axis : axes) now.push_back(back[checked_axis(axis, 4, "axis")]);
    return now;
  };
  const auto text = [](const std::vector<int64_t>& numbers) {
    std::string list;
    for (const int64_t number : numbers) list += (list.empty() ? "" : ",") + std::to_string(number);
    return list;
  };
  Attributes attributes = context.attributes;
  for (const char* name : {"pads_begin", "pads_end"}) {
    const std::vector<int64_t> pads = pads_of(attributes, name, 4);
    attributes.set(name, text({pads[0], pads[3], pads[1], pads[2]}));
  }
  std::vector<size_t> inputs(context.inputs.size());
  std::iota(inputs.begin(), inputs.end(), size_t{0});
  inputs[0] = x.transpose(0, order);
  if (opset < 4) {
    attributes.set("axes", text(turned(attributes.get_ints("axes"))));
  } else {
    const auto at = static_cast<size_t>(axes_input(opset));
    inputs.resize(at + 1);
    inputs[at] =
        x.ints(turned(has_input(context, at) ? constant_ints(context, at, "axes") : all_axes(4)));
  }
  x.outputs = {x.transpose(x.step(context.type, opset, inputs, attributes, 1), back)};
}

}  // namespace

std::vector<OpDef> interpolate_ops() {
  OpDef interpolate;
  interpolate.type = "Interpolate";
  interpolate.opsets = opset_range(1);
  interpolate.infer_shapes = infer_shapes;
  interpolate.evaluate = evaluate;
  interpolate.families = {&kTile, &kGeneral};
  interpolate.layout = LayoutRule::image;
  interpolate.expand = [](Expansion& x) {
    if (resizes_nothing(x.context())) {
      x.outputs = {0};
      return;
    }
    if (style_of(x.context().opset, x.context().attributes).mode != Mode::nearest)
      compute_in_floats(x, 1, true);
    if (x.outputs.empty()) expand_channels_last(x);
  };
  return {std::move(interpolate)};
}

}  // namespace clinfer
