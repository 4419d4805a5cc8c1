// TopK selects the k largest or smallest values along an axis, and their positions. Equal values
// keep their order; NaN comes last. Few values are selected on the device, by one work-item per
// row. Of long lists a GPU finds the last value that is selected, or compares each value with each;
// for a CPU they are sorted on the host.
#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <numeric>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Settings {
  size_t axis;
  bool largest, by_index;
};

Settings read_settings(const Attributes& a, const Shape& in) {
  const std::string mode = a.get_string("mode"), sort = a.get_string("sort");
  if (mode != "max" && mode != "min") fail_model("mode \"" + mode + "\"");
  if (sort != "value" && sort != "index" && sort != "none") fail_model("sort \"" + sort + "\"");
  return {checked_axis(a.get_int("axis"), in.size(), "axis"), mode == "max", sort == "index"};
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  const Settings s = read_settings(context.attributes, in.shape);
  const int64_t k = constant_int(context, 1, "k");
  if (k < 0) fail_model("k is " + std::to_string(k));
  Shape out = in.shape;
  out[s.axis] = std::min(out[s.axis], k);
  return {{in.type, out},
          {index_type(context.attributes, "index_element_type", ElementType::i32), out}};
}

// Returns whether a comes before b.
template <typename T>
bool is_before(T a, T b, bool largest) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  }
  return largest ? a > b : a < b;
}

// Returns the work of selecting from `size` elements, in multiplications, as WorkLimit counts work.
double work_of(int64_t size) { return 4 * static_cast<double>(size); }

// Returns the first k of 0 to size - 1 in the order of `before`, or by index. Each part of the row
// gives its first ones, from which the result is chosen.
template <typename Before>
std::vector<int32_t> first_of_row(int64_t size, int64_t k, const Before& before, bool by_index) {
  std::vector<int32_t> all;
  std::mutex mutex;
  bool sorted = false;
  WorkLimit::for_ranges(size, work_of(1), [&](int64_t begin, int64_t end) {
    std::vector<int32_t> part(static_cast<size_t>(end - begin));
    std::iota(part.begin(), part.end(), static_cast<int32_t>(begin));
    const auto most = std::min(k, end - begin);
    if (most == 1)
      part[0] = *std::min_element(part.begin(), part.end(), before);
    else
      std::partial_sort(part.begin(), part.begin() + most, part.end(), before);
    const std::lock_guard lock(mutex);
    sorted = end - begin == size;
    all.insert(all.end(), part.begin(), part.begin() + most);
  });
  if (!sorted) std::partial_sort(all.begin(), all.begin() + k, all.end(), before);
  all.resize(static_cast<size_t>(k));
  if (by_index) std::sort(all.begin(), all.end());
  return all;
}

template <typename T>
void select_rows(const Settings& s, const Tensor& in, Tensor& values,
                 std::vector<int32_t>& indices) {
  const Shape& shape = in.shape();
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    (d < s.axis ? outer : inner) *= d == s.axis ? 1 : shape[d];
  const int64_t size = shape[s.axis], k = values.shape()[s.axis];
  T* out = values.mutable_data<T>();
  const auto select_row = [&](int64_t row) {
    const T* from = in.data<T>() + row / inner * size * inner + row % inner;
    const int64_t to = row / inner * k * inner + row % inner;
    const std::vector<int32_t> order = first_of_row(
        size, k,
        [&](int32_t a, int32_t b) {
          const T x = from[a * inner], y = from[b * inner];
          if (is_before(x, y, s.largest) != is_before(y, x, s.largest))
            return is_before(x, y, s.largest);
          return a < b;
        },
        s.by_index);
    for (int64_t i = 0; i < k; ++i) {
      out[to + i * inner] = from[order[static_cast<size_t>(i)] * inner];
      indices[static_cast<size_t>(to + i * inner)] = order[static_cast<size_t>(i)];
    }
  };
  if (outer * inner == 1) return select_row(0);
  WorkLimit::for_ranges(outer * inner, work_of(size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) select_row(row);
  });
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (outputs[0].elements() == 0) return;
  const Settings s = read_settings(desc.attributes, inputs[0].shape());
  std::vector<int32_t> indices(static_cast<size_t>(outputs[0].elements()));
  with_number(inputs[0].type(),
              [&](auto zero) { select_rows<decltype(zero)>(s, inputs[0], outputs[0], indices); });
  if (outputs.size() > 1) store_ints(indices, outputs[1]);
}

// ---- kernel ------------------------------------------------------------------------------------

constexpr int64_t kMostSelected = 8;     // kept in registers
constexpr int64_t kLongestAlone = 4096;  // longer rows fill a device only if there are several

// Returns all dimensions except the axis, with steps through the input, the values and (along[0])
// the indices.
std::vector<CopyDim> rows_of(const OpDesc& desc, size_t axis) {
  std::vector<CopyDim> dims;
  for (size_t d = 0; d < desc.inputs[0].shape.size(); ++d)
    if (d != axis)
      dims.push_back({desc.inputs[0].shape[d],
                      desc.inputs[0].strides[d],
                      desc.outputs[0].strides[d],
                      {desc.outputs[1].strides[d]}});
  return merged(dims);
}

std::string reject_form(const OpDesc& desc) {
  if (!desc.tail.empty()) return "takes no tail";
  if (desc.outputs.size() != 2) return "needs both outputs";
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  if (in.type != out.type ||
      (in.type != ElementType::f32 && in.type != ElementType::f16 && in.type != ElementType::i32))
    return "takes f32, f16 and i32 only";
  if (out.elements() == 0) return "the output is empty";
  if (rows_of(desc, read_settings(desc.attributes, in.shape).axis).size() > kMostCopyDims)
    return "needs more than " + std::to_string(kMostCopyDims) + " loops";
  return "";
}

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_form(desc); !why.empty()) return why;
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const size_t axis = read_settings(desc.attributes, in.shape).axis;
  if (out.shape[axis] > kMostSelected) return "selects more than " + std::to_string(kMostSelected);
  if (in.shape[axis] > kLongestAlone && in.elements() / in.shape[axis] < 64)
    return "few long rows are sorted faster on the host";
  return "";
}

std::vector<TuningPoint> space(const OpDesc&, const DeviceTraits&) {
  return {{{{"GROUP", 16}}}, {{{"GROUP", 64}}}};
}
TuningPoint heuristic(const OpDesc&, const DeviceTraits& traits) {
  return {{{"GROUP", traits.is_cpu ? 16 : 64}}};
}

template <size_t DIMS>
struct Args {
#include "kernels/reduction/topk_args.cl"
};

template <size_t DIMS>
struct RankArgs {
#include "kernels/reduction/topk_ranks_args.cl"
};

// A launch, but for its size and arguments.
KernelSpec spec_of(const char* source, const OpDesc& desc, size_t loops, size_t group) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0], &at = desc.outputs[1];
  const Settings s = read_settings(desc.attributes, in.shape);
  KernelSpec spec;
  spec.source = source;
  const bool is_int = in.type == ElementType::i32;
  spec.defines = {{"T", is_int                        ? "int"
                        : in.type == ElementType::f16 ? "half"
                                                      : "float"},
                  {"INTEGER", is_int ? "1" : "0"},
                  {"INDEX", size_of(at.type) == 8 ? "long" : "int"},
                  {"K", std::to_string(out.shape[s.axis])},
                  {"LARGEST", s.largest ? "1" : "0"},
                  {"DIMS", std::to_string(loops)},
                  {"GROUP", std::to_string(group)}};
  spec.local[0] = group;
  spec.arguments = {Argument::input(0, size_of(in.type)), Argument::output(0, size_of(out.type)),
                    Argument::output(1, size_of(at.type))};
  return spec;
}

// Sets the members that all kernels' arguments have. The loops are innermost first.
template <typename A>
void set_rows(A& a, const OpDesc& desc, const std::vector<CopyDim>& dims) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0], &at = desc.outputs[1];
  const size_t axis = read_settings(desc.attributes, in.shape).axis;
  set_loops(a, dims);
  set_each(a.at, dims, [](const CopyDim& d) { return d.along[0]; });
  a.length = to_int(in.shape[axis]), a.from_step = to_int(in.strides[axis]);
  a.to_step = to_int(out.strides[axis]), a.at_step = to_int(at.strides[axis]);
}

// Returns how many loops a kernel has for the rows.
size_t loops_of(const std::vector<CopyDim>& rows) { return rows.size() <= 4 ? 4 : kMostCopyDims; }

Argument arguments_of(const OpDesc& desc, std::vector<CopyDim> rows) {
  const size_t loops = loops_of(rows);
  std::reverse(rows.begin(), rows.end());
  rows.resize(loops);
  return with_count<4, kMostCopyDims>(loops, [&](auto dim_count) {
    Args<dim_count> a{};
    set_rows(a, desc, rows);
    return Argument::value(a);
  });
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const Settings s = read_settings(desc.attributes, desc.inputs[0].shape);
  const std::vector<CopyDim> rows = rows_of(desc, s.axis);
  const auto group = static_cast<size_t>(point["GROUP"]);
  KernelSpec spec = spec_of("topk.cl", desc, loops_of(rows), group);
  spec.defines.emplace_back("BY_INDEX", s.by_index ? "1" : "0");
  spec.global[0] = run_items(rows, 1, group);
  spec.arguments.push_back(arguments_of(desc, rows));
  return {{spec}, {}, 0};
}

std::string reject_long(const OpDesc& desc, const DeviceTraits& traits) {
  if (traits.is_cpu) return "a CPU sorts long rows faster on the host";
  if (std::string why = reject_form(desc); !why.empty()) return why;
  if (read_settings(desc.attributes, desc.inputs[0].shape).by_index)
    return "gives no order by index";
  return "";
}

int64_t length_of(const OpDesc& desc) {
  const Shape& in = desc.inputs[0].shape;
  return in[read_settings(desc.attributes, in).axis];
}

// Returns how many values of a row are selected.
int64_t selected_of(const OpDesc& desc) {
  return desc.outputs[0].shape[read_settings(desc.attributes, desc.inputs[0].shape).axis];
}

constexpr int64_t kMostCompared = 1024;  // selected values are compared with each other
constexpr int64_t kMostOfItem = 16;      // values that a work-item keeps in registers
constexpr int64_t kFewOfItem = 4;        // with fewer, adding up counts takes most of the time
constexpr int kLanes = 32;               // work-items that add up the counts of all
constexpr int kMostBits = 32 + 15;       // of a key

// Returns the sizes of work-groups whose registers hold a row, the largest first.
std::vector<int> groups_of(int64_t length, const DeviceTraits& traits) {
  std::vector<int> groups;
  for (const int group : {1024, 512, 256, 128, 64, 16})
    if (static_cast<size_t>(group) <= traits.max_work_group &&
        ceil_div(length, int64_t{group}) <= kMostOfItem)
      groups.push_back(group);
  return groups;
}

// Returns the bytes of local memory: for selected keys, counts, and a sum of counts for each bit.
size_t select_bytes(int64_t selected, int group) {
  return static_cast<size_t>(8 * selected + 4 * (group + kMostBits + 1));
}

std::string reject_select(const OpDesc& desc, const DeviceTraits& traits) {
  if (std::string why = reject_long(desc, traits); !why.empty()) return why;
  if (selected_of(desc) > kMostCompared)
    return "selects more than " + std::to_string(kMostCompared);
  const std::vector<int> groups = groups_of(length_of(desc), traits);
  if (groups.empty()) return "a work-group's registers do not hold a row";
  if (select_bytes(selected_of(desc), groups[0]) > traits.local_memory)
    return "the device has too little local memory";
  return "";
}

std::vector<TuningPoint> select_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  for (const int group : groups_of(length_of(desc), traits)) points.push_back({{{"GROUP", group}}});
  return points;
}

TuningPoint select_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<TuningPoint> points = select_space(desc, traits);
  for (const TuningPoint& point : points)
    if (length_of(desc) >= kFewOfItem * point["GROUP"]) return point;
  return points.back();
}

KernelPlan plan_select(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const int64_t length = length_of(desc), selected = selected_of(desc);
  const std::vector<CopyDim> rows =
      rows_of(desc, read_settings(desc.attributes, desc.inputs[0].shape).axis);
  const int group = point["GROUP"];
  const int64_t own = ceil_div(length, int64_t{group});
  KernelSpec spec = spec_of("topk_select.cl", desc, loops_of(rows), static_cast<size_t>(group));
  const auto define = [&](const char* name, int64_t value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  define("PER_ITEM", own);
  define("PLACE_BITS", std::bit_width(static_cast<uint64_t>(own * group - 1)));
  // The float of a value of 16 bits has 13 more bits of mantissa, which are equal.
  define("NUMBER_BITS", desc.inputs[0].type == ElementType::f16 ? 19 : 32);
  define("LANES", std::min(group, kLanes));
  spec.global[0] =
      static_cast<size_t>(desc.inputs[0].elements() / length) * static_cast<size_t>(group);
  spec.shared = select_bytes(selected, group);
  spec.arguments.push_back(arguments_of(desc, rows));
  return {{spec}, {}, 0};
}

constexpr int64_t kLongestRanked = 1 << 15;  // a row is compared with itself
constexpr size_t kAhead = 8;  // values that a work-item loads at once, before all are compared

std::string reject_ranks(const OpDesc& desc, const DeviceTraits& traits) {
  if (std::string why = reject_long(desc, traits); !why.empty()) return why;
  if (length_of(desc) > kLongestRanked)
    return "rows of more than " + std::to_string(kLongestRanked) + " are sorted on the host";
  return "";
}

std::vector<TuningPoint> rank_space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  for (const int group : {128, 64, 256})
    if (static_cast<size_t>(group) <= traits.max_work_group) points.push_back({{{"GROUP", group}}});
  if (points.empty()) points.push_back({{{"GROUP", 16}}});
  return points;
}

// Chooses small work-groups where there are too few others for the device.
TuningPoint rank_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<TuningPoint> points = rank_space(desc, traits);
  const auto groups = desc.inputs[0].elements() / points[0]["GROUP"];
  return points[points.size() > 1 && groups < traits.compute_units ? 1 : 0];
}

KernelPlan plan_ranks(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const size_t axis = read_settings(desc.attributes, desc.inputs[0].shape).axis;
  std::vector<CopyDim> dims = rows_of(desc, axis);
  const size_t loops = loops_of(dims);
  const auto group = static_cast<size_t>(point["GROUP"]);
  const int64_t length = desc.inputs[0].shape[axis];
  const int64_t parts = ceil_div(length, static_cast<int64_t>(group));
  KernelSpec spec = spec_of("topk_ranks.cl", desc, loops, group);
  const int64_t rows = desc.inputs[0].elements() / length;
  spec.global[0] = static_cast<size_t>(rows * parts) * group;
  spec.shared = kAhead * group * sizeof(uint32_t);
  spec.defines.emplace_back("BLOCK", std::to_string(kAhead * group));
  std::reverse(dims.begin(), dims.end());
  dims.resize(loops);
  spec.arguments.push_back(with_count<4, kMostCopyDims>(loops, [&](auto dim_count) {
    RankArgs<dim_count> a{};
    set_rows(a, desc, dims);
    a.parts = to_int(parts);
    return Argument::value(a);
  }));
  return {{spec}, {}, 0};
}

const KernelFamily kTopK{"topk", 1, reject, space, heuristic, plan};
const KernelFamily kSelect{"topk_select",    1,          reject_select, select_space,
                           select_heuristic, plan_select};
const KernelFamily kRanks{"topk_ranks", 1, reject_ranks, rank_space, rank_heuristic, plan_ranks};

}  // namespace

std::vector<OpDef> topk_ops() {
  return {{.type = "TopK",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .families = {&kTopK, &kSelect, &kRanks},
           .layout = LayoutRule::follow,
           .host_reason = "long lists are sorted on the host"}};
}

}  // namespace clinfer
