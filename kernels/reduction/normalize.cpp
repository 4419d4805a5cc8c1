// MVN, NormalizeL2, GRN and GroupNormalization (normalize.cl), and LRN (lrn.cl). Formulas:
// OpenVINO's specifications of these operations.
#include <algorithm>
#include <cmath>

#include "kernels/arguments.h"
#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/expand.h"
#include "kernels/item_kernel.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

// The divisor of a row: values of SCALE in normalize.cl.
enum Divisor { kNone = 0, kRootOfSum = 1, kRootThenSum = 2, kRootOfMaximum = 3 };

// A normalisation as rows of a tensor. `view` is the tensor's shape (a group normalisation splits
// the channels into two dimensions); rows run along the marked dimensions.
struct Rows {
  Shape view;
  std::vector<bool> along;
  bool center = false;
  Divisor divisor = kNone;
  float epsilon = 0;
  // Strides of gamma and beta along the dimensions of `view`; empty without gamma and beta.
  std::vector<int64_t> channel_steps;
};

void mark(Rows& rows, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes) rows.along[checked_axis(axis, rows.view.size(), "axis")] = true;
}

bool has_axes_input(const std::string& type, int opset) {
  return type == "NormalizeL2" || (type == "MVN" && opset >= 6);
}

// `axes`: the value of input 1, for operations whose axes are an input.
Rows rows_of(const std::string& type, int opset, const Attributes& attributes, const Shape& data,
             const std::vector<int64_t>& axes) {
  Rows rows;
  rows.view = data;
  rows.along.resize(data.size(), false);
  if (type == "NormalizeL2") {
    mark(rows, axes);
    const std::string mode = attributes.get_string("eps_mode");
    if (mode != "add" && mode != "max") fail_model("unknown eps_mode \"" + mode + "\"");
    rows.divisor = mode == "add" ? kRootOfSum : kRootOfMaximum;
    rows.epsilon = positive_epsilon(attributes, "eps");
  } else if (type == "GRN") {
    check_rank(data, 2, 5, "the data");
    rows.along[1] = true;
    rows.divisor = kRootOfSum;
    rows.epsilon = positive_epsilon(attributes, "bias");
  } else if (type == "GroupNormalization") {
    check_rank(data, 2, 8, "the data");
    const int64_t groups = attributes.get_int("num_groups");
    if (groups < 1 || data[1] % groups != 0)
      fail_model(std::to_string(data[1]) + " channels cannot be split into " +
                 std::to_string(groups) + " groups");
    rows.view.insert(rows.view.begin() + 1, groups);
    rows.view[2] = data[1] / groups;
    rows.along.assign(rows.view.size(), true);
    rows.along[0] = rows.along[1] = false;
    rows.center = true;
    rows.divisor = kRootOfSum;
    rows.epsilon = positive_epsilon(attributes, "epsilon");
    rows.channel_steps.assign(rows.view.size(), 0);
    rows.channel_steps[1] = rows.view[2];
    rows.channel_steps[2] = 1;
  } else {
    rows.center = true;
    rows.epsilon = positive_epsilon(attributes, "eps");
    const bool divide = attributes.get_bool("normalize_variance");
    if (opset >= 6) {
      const std::string mode = attributes.get_string("eps_mode");
      if (mode != "INSIDE_SQRT" && mode != "OUTSIDE_SQRT" && mode != "inside_sqrt" &&
          mode != "outside_sqrt")
        fail_model("unknown eps_mode \"" + mode + "\"");
      if (divide) rows.divisor = mode[0] == 'I' || mode[0] == 'i' ? kRootOfSum : kRootThenSum;
      mark(rows, axes);
    } else {
      check_rank(data, 2, 8, "the data");
      if (divide) rows.divisor = kRootOfSum;
      std::vector<int64_t> listed = attributes.get_ints("reduction_axes", std::vector<int64_t>{});
      if (listed.empty())
        for (size_t d = attributes.get_bool("across_channels", false) ? 1 : 2; d < data.size(); ++d)
          listed.push_back(static_cast<int64_t>(d));
      mark(rows, listed);
    }
  }
  return rows;
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  const bool axes_input = has_axes_input(context.type, context.opset);
  const size_t inputs = context.type == "GroupNormalization" ? 3 : axes_input ? 2 : 1;
  check_inputs(context, inputs, inputs);
  const ValueInfo& data = context.inputs[0];
  // The shape is known even if the value of the axes is not.
  const bool known = axes_input && !context.inputs[1].value.empty();
  rows_of(context.type, context.opset, context.attributes, data.shape,
          known ? constant_ints(context, 1, "the axes") : std::vector<int64_t>{});
  if (inputs == 3)
    for (size_t i : {1, 2})
      if (context.inputs[i].shape != Shape{data.shape[1]})
        fail_model("input " + std::to_string(i) + " has the shape " +
                   to_string(context.inputs[i].shape) + " for " + std::to_string(data.shape[1]) +
                   " channels");
  return {{data.type, data.shape, {}}};
}

Rows rows_of(const OpDesc& desc, std::span<const Tensor> values) {
  return rows_of(
      desc.type, desc.opset, desc.attributes, desc.inputs[0].shape,
      has_axes_input(desc.type, desc.opset) ? values[1].to_ints() : std::vector<int64_t>{});
}

int64_t row_length(const Rows& rows) {
  int64_t length = 1;
  for (size_t d = 0; d < rows.view.size(); ++d) length *= rows.along[d] ? rows.view[d] : 1;
  return length;
}

// Sums in double; every element is added to the sums of its row.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Rows rows = rows_of(desc, inputs);
  const std::vector<float> data = inputs[0].to_floats();
  if (data.empty()) return;
  Shape row_steps(rows.view.size(), 0);
  int64_t count = 1;
  for (size_t d = rows.view.size(); d-- > 0;)
    if (!rows.along[d]) row_steps[d] = count, count *= rows.view[d];
  std::vector<int64_t> row(data.size()), channel(data.size());
  Shape index(rows.view.size(), 0);
  for (size_t i = 0; i < data.size(); ++i, next_index(index, rows.view))
    for (size_t d = 0; d < index.size(); ++d) {
      row[i] += index[d] * row_steps[d];
      if (!rows.channel_steps.empty()) channel[i] += index[d] * rows.channel_steps[d];
    }
  const double length = static_cast<double>(row_length(rows));
  std::vector<double> mean(static_cast<size_t>(count), 0), sum(static_cast<size_t>(count), 0);
  if (rows.center)
    for (size_t i = 0; i < data.size(); ++i) mean[row[i]] += data[i] / length;
  for (size_t i = 0; i < data.size(); ++i)
    sum[row[i]] += (data[i] - mean[row[i]]) * (data[i] - mean[row[i]]);
  const std::vector<float> gamma =
      rows.channel_steps.empty() ? std::vector<float>{} : inputs[1].to_floats();
  const std::vector<float> beta =
      rows.channel_steps.empty() ? std::vector<float>{} : inputs[2].to_floats();
  float* out = outputs[0].mutable_data<float>();
  for (size_t i = 0; i < data.size(); ++i) {
    const double v = rows.center ? sum[row[i]] / length : sum[row[i]], epsilon = rows.epsilon;
    const double divisor = rows.divisor == kNone          ? 1
                           : rows.divisor == kRootOfSum   ? std::sqrt(v + epsilon)
                           : rows.divisor == kRootThenSum ? std::sqrt(v) + epsilon
                                                          : std::sqrt(std::max(v, epsilon));
    double result = (data[i] - mean[row[i]]) / divisor;
    if (!gamma.empty()) result = result * gamma[channel[i]] + beta[channel[i]];
    out[i] = static_cast<float>(result);
  }
}

// ---- loops -------------------------------------------------------------------------------------

// A dimension as a loop of the kernels.
struct Loop {
  int64_t size = 1, in = 0, out = 0;
  bool marked = false;  // rows run along it (LRN: the sum reaches along it)
  int64_t channel = 0;  // step of gamma and beta
  int dim = -1;         // of the output
};

// The kernels' loops c, w, h, n. Unused loops have size 1; `fits` is false if four are not enough.
struct Loops {
  std::array<Loop, 4> loop;
  bool fits = true;
  bool unit() const { return loop[0].size == 1 || (loop[0].in == 1 && loop[0].out == 1); }
  TailAxes axes() const { return {loop[3].dim, loop[2].dim, loop[1].dim, loop[0].dim}; }
};

// Sorts the loops from the innermost in the output's memory to the outermost, and merges them
// unless they must stay separate.
Loops arrange(std::vector<Loop> loops, bool may_merge) {
  std::erase_if(loops, [](const Loop& l) { return l.size == 1; });
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Loop& a, const Loop& b) { return a.out < b.out; });
  std::vector<Loop> kept;
  for (const Loop& loop : loops) {
    if (may_merge && !kept.empty()) {
      Loop& inner = kept.back();
      if (inner.marked == loop.marked && inner.channel == 0 && loop.channel == 0 &&
          loop.in == inner.in * inner.size && loop.out == inner.out * inner.size) {
        inner.size *= loop.size;
        continue;
      }
    }
    kept.push_back(loop);
  }
  Loops result;
  result.fits = kept.size() <= result.loop.size();
  std::copy_n(kept.begin(), std::min(kept.size(), result.loop.size()), result.loop.begin());
  return result;
}

Loops loops_of(const OpDesc& desc, const Rows& rows) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const bool split = rows.view.size() != in.shape.size();
  std::vector<Loop> loops;
  for (size_t d = 0; d < rows.view.size(); ++d) {
    Loop loop;
    const size_t from = split && d >= 2 ? d - 1 : d;
    const int64_t factor = split && d == 1 ? rows.view[2] : 1;
    loop.size = rows.view[d];
    loop.in = in.strides[from] * factor;
    loop.out = out.strides[from] * factor;
    loop.marked = rows.along[d];
    loop.channel = rows.channel_steps.empty() ? 0 : rows.channel_steps[d];
    loop.dim = split ? -1 : static_cast<int>(d);
    loops.push_back(loop);
  }
  return arrange(std::move(loops), desc.tail.empty());
}

Rows known_rows(const OpDesc& desc) {
  return rows_of(desc, std::span(desc.constants).first(desc.own_inputs));
}

std::string reject_loops(const OpDesc& desc, const Loops& loops) {
  if (!loops.fits) return "needs more than four loops";
  return reject_tail(desc, loops.unit() ? 16 : 1, loops.axes());
}

// ---- rows --------------------------------------------------------------------------------------

std::string reject_rows(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_float_data(desc); !why.empty()) return why;
  const bool affine = desc.type == "GroupNormalization";
  if (has_axes_input(desc.type, desc.opset) && desc.constants[1].empty())
    return "the axes are not constant";
  if (affine && (desc.constants[1].empty() || desc.constants[2].empty()))
    return "scale or bias are not constant";
  if (affine && !desc.tail.empty()) return "takes no tail";
  return reject_loops(desc, loops_of(desc, known_rows(desc)));
}

TuningPoint rows_point(int vector, int lanes, int rows) {
  return {{{"VECTOR", vector}, {"LANES", lanes}, {"ROWS", rows}}};
}

std::vector<TuningPoint> rows_space(const OpDesc& desc, const DeviceTraits& traits) {
  const Loops loops = loops_of(desc, known_rows(desc));
  const bool along = loops.loop[0].marked;
  std::vector<TuningPoint> points;
  for (int vector : {1, 2, 4, 8, 16}) {
    if (vector > 1 && (!loops.unit() || vector > loops.loop[0].size)) continue;
    if (traits.is_cpu) {
      points.push_back(rows_point(vector, 1, 1));
      continue;
    }
    if (vector > 4) continue;
    for (int items : {64, 128, 256, 512, 1024}) {
      if (static_cast<size_t>(items) > traits.max_work_group) continue;
      if (items > 256 && traits.vendor != Vendor::nvidia) continue;  // measured nowhere else
      for (int lanes = 1; lanes <= items; lanes *= 2)
        if (along || lanes == 1 || items / lanes <= 32)
          points.push_back(rows_point(vector, lanes, items / lanes));
    }
  }
  if (traits.ordered_sums)  // a vector along the row or several work-items have several sums
    std::erase_if(points, [along](const TuningPoint& point) {
      return point["LANES"] > 1 || (along && point["VECTOR"] > 1);
    });
  if (points.empty()) points.push_back(rows_point(1, 1, 1));
  return points;
}

// Returns the number of vectors of rows, or of rows if vectors run along them.
int64_t items_of(const Loops& loops, int vector) {
  int64_t items = 1;
  for (size_t i = 0; i < loops.loop.size(); ++i)
    if (!loops.loop[i].marked)
      items *= i == 0 ? ceil_div(loops.loop[0].size, vector) : loops.loop[i].size;
  return items;
}

// Returns the time on an NVIDIA GPU in cycles of a compute unit: of instructions, of a work-item's
// wait for memory, or of the memory itself, whichever is the longest.
double nvidia_rows_cost(const OpDesc& desc, const Rows& rows, const Loops& loops,
                        const DeviceTraits& traits, const TuningPoint& point) {
  constexpr double kIssued = 128, kWait = 1200, kBytes = 24, kItemsAtOnce = 1024, kSector = 32;
  const bool along = loops.loop[0].marked;
  const int vector = point["VECTOR"], lanes = point["LANES"];
  const double units = std::max(traits.compute_units, 1u),
               passes = 1 + rows.center + (rows.divisor != kNone);
  const double steps =
      std::ceil(static_cast<double>(row_length(rows)) / (along ? lanes * vector : lanes));
  const double items = static_cast<double>(items_of(loops, vector)) * lanes;
  const double meeting = lanes > 1 ? std::log2(lanes) : 0;
  const double issued =
      items * (passes * steps * (6.0 + vector) + 12 * meeting + 20) / (kIssued * units);
  const double waits =
      (passes * steps * kWait + 60 * meeting) * std::max(1.0, items / (units * kItemsAtOnce));
  // Memory comes in sectors, of which a work-group may need parts only.
  const auto size = static_cast<double>(size_of(desc.inputs[0].type));
  const double row = static_cast<double>(loops.loop[0].size) * size,
               read = (along ? lanes : point["ROWS"]) * vector * size;
  const double moved = passes * static_cast<double>(desc.inputs[0].elements()) * size *
                       std::max(1.0, std::min(row, kSector) / read) / (kBytes * units);
  return std::max({issued, waits, moved});
}

TuningPoint rows_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const Rows rows = known_rows(desc);
  const Loops loops = loops_of(desc, rows);
  const bool along = loops.loop[0].marked;
  const auto cost = [&](const TuningPoint& point) {
    if (traits.vendor == Vendor::nvidia) return nvidia_rows_cost(desc, rows, loops, traits, point);
    const int vector = point["VECTOR"], lanes = point["LANES"];
    const double length = static_cast<double>(row_length(rows));
    const double steps = std::ceil(length / static_cast<double>(along ? lanes * vector : lanes));
    const double items = static_cast<double>(items_of(loops, vector)) * lanes;
    if (traits.is_cpu)
      return items *
             (steps * (3 + std::max(1.0, vector / static_cast<double>(traits.vector_width))) +
              (along ? 2.0 * vector : 4.0) + 20);
    const double wanted = 256.0 * traits.compute_units;
    const double meeting = lanes > 1 ? 12.0 * std::log2(lanes) : 0.0;
    // Neighbouring work-items should read adjacent memory, which takes enough lanes along the row,
    // or adjacent rows.
    const double side_by_side = static_cast<double>((along ? lanes : point["ROWS"]) * vector);
    return items * (steps * (6.0 + vector) * (side_by_side < 16 ? 2.0 : 1.0) + meeting + 20) *
           (items < wanted ? wanted / items : 1.0) * (lanes * point["ROWS"] == 128 ? 1.0 : 1.02);
  };
  return cheapest(rows_space(desc, traits), cost);
}

struct RowsArgs {
#include "kernels/reduction/normalize_args.cl"
};

struct LrnArgs {
#include "kernels/reduction/lrn_args.cl"
};

// Sets the sizes and strides of the loops.
template <typename Args>
void set_loops(Args& args, const Loops& loops) {
  const auto& [c, w, h, n] = loops.loop;
  args.size_c = to_int(c.size), args.size_w = to_int(w.size);
  args.size_h = to_int(h.size), args.size_n = to_int(n.size);
  args.in_c = to_int(c.in), args.in_w = to_int(w.in);
  args.in_h = to_int(h.in), args.in_n = to_int(n.in);
  args.out_c = to_int(c.out), args.out_w = to_int(w.out);
  args.out_h = to_int(h.out), args.out_n = to_int(n.out);
}

// Returns whether vectors of the rows are aligned to their size in the tensor.
bool aligned(const TensorDesc& tensor, int64_t Loop::*stride, const Loops& loops, int vector) {
  return tensor.offset % vector == 0 &&
         std::all_of(loops.loop.begin() + 1, loops.loop.end(),
                     [&](const Loop& loop) { return loop.*stride % vector == 0; });
}

KernelPlan rows_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Rows rows = known_rows(desc);
  const Loops loops = loops_of(desc, rows);
  const bool along = loops.loop[0].marked;
  const int vector = point["VECTOR"], lanes = point["LANES"], group_rows = point["ROWS"];
  const int64_t items = items_of(loops, vector);
  const double work = 6.0 * static_cast<double>(row_length(rows)) * (along ? 1 : vector) + 200;
  const int64_t per_group = traits.is_cpu ? tiles_per_item(items, 1, work, traits) : group_rows;

  KernelPlan plan;
  KernelSpec spec;
  spec.source = "normalize.cl";
  const auto define = [&](const char* name, int value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  spec.defines.emplace_back("T", storage_name(desc.inputs[0].type));
  spec.defines.emplace_back("OUT_T", storage_name(desc.outputs[0].type));
  define_access(spec, !traits.is_cpu && loops.unit() && loops.loop[0].size % vector == 0 &&
                          aligned(desc.inputs[0], &Loop::in, loops, vector) &&
                          aligned(desc.outputs[0], &Loop::out, loops, vector));
  define("ROW_C", loops.loop[0].marked);
  define("ROW_W", loops.loop[1].marked);
  define("ROW_H", loops.loop[2].marked);
  define("ROW_N", loops.loop[3].marked);
  define("CENTER", rows.center);
  define("SCALE", rows.divisor);
  define("AFFINE", rows.channel_steps.empty() ? 0 : loops.loop[0].channel == 1 ? 1 : 2);
  define("VECTOR", vector);
  define("LANES", lanes);
  define("ROWS", group_rows);
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)),
                    Argument::output(0, size_of(desc.outputs[0].type))};
  if (!rows.channel_steps.empty())
    for (size_t i : {1, 2}) {
      spec.arguments.push_back(Argument::packed(plan.packed.size(), sizeof(float)));
      plan.packed.push_back(
          [values = desc.constants[i]] { return to_bytes(values.to_floats(), ElementType::f32); });
    }
  RowsArgs args{};
  set_loops(args, loops);
  args.affine_c = to_int(loops.loop[0].channel), args.affine_w = to_int(loops.loop[1].channel);
  args.affine_h = to_int(loops.loop[2].channel), args.affine_n = to_int(loops.loop[3].channel);
  args.items = to_int(items), args.items_per_group = to_int(per_group);
  args.epsilon = rows.epsilon;
  args.share = rows.center ? 1.f / static_cast<float>(row_length(rows)) : 1.f;
  spec.arguments.push_back(Argument::value(args));
  add_tail(desc, vector, loops.axes(), spec, plan);
  spec.local = {static_cast<size_t>(along ? lanes : group_rows),
                static_cast<size_t>(along ? group_rows : lanes), 1};
  if (lanes > 1) spec.shared = sizeof(float) * static_cast<size_t>(lanes * group_rows * vector);
  spec.global = {spec.local[0] * static_cast<size_t>(ceil_div(items, per_group)), spec.local[1], 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kRows{"normalize", 1, reject_rows, rows_space, rows_heuristic, rows_plan};

// ---- rows in registers -------------------------------------------------------------------------

constexpr int64_t kMostKept = 32;  // elements of a work-item

// A row's vectors take so many work-items that each has few.
std::vector<TuningPoint> kept_space(const OpDesc& desc, const DeviceTraits& traits) {
  constexpr int kGroup = 128;
  const Loops loops = loops_of(desc, known_rows(desc));
  std::vector<TuningPoint> points;
  if (!loops.unit()) return points;
  const int64_t size = loops.loop[0].size;
  for (int vector : {8, 4, 2}) {
    if (size % vector != 0 || vector * size_of(desc.inputs[0].type) > 16) continue;
    if (!aligned(desc.inputs[0], &Loop::in, loops, vector) ||
        !aligned(desc.outputs[0], &Loop::out, loops, vector) ||
        !reject_tail(desc, vector, loops.axes()).empty())
      continue;
    for (int lanes : {8, 16, 32, 64, 128})
      if (ceil_div(size / vector, lanes) * vector <= kMostKept && lanes < 2 * size / vector &&
          static_cast<size_t>(kGroup) <= traits.max_work_group)
        points.push_back(rows_point(vector, lanes, kGroup / lanes));
  }
  return points;
}

std::string reject_kept(const OpDesc& desc, const DeviceTraits& traits) {
  if (traits.vendor != Vendor::nvidia) return "was measured on NVIDIA's GPUs only";
  if (std::string why = reject_rows(desc, traits); !why.empty()) return why;
  const Rows rows = known_rows(desc);
  if (!rows.channel_steps.empty()) return "takes no scale and bias";
  const Loops loops = loops_of(desc, rows);
  for (size_t i = 0; i < loops.loop.size(); ++i)
    if (loops.loop[i].marked != (i == 0)) return "rows are several loops";
  return kept_space(desc, traits).empty() ? "rows are not dense and aligned, or are too long" : "";
}

// Chooses the widest vectors, and the fewest work-items of which each has at most four.
TuningPoint kept_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<TuningPoint> points = kept_space(desc, traits);
  const int64_t size = loops_of(desc, known_rows(desc)).loop[0].size;
  for (const TuningPoint& point : points)
    if (ceil_div(size, point["VECTOR"] * point["LANES"]) <= 4) return point;
  return points.back();
}

KernelPlan kept_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const Rows rows = known_rows(desc);
  const Loops loops = loops_of(desc, rows);
  const int vector = point["VECTOR"], lanes = point["LANES"], group_rows = point["ROWS"];
  const int64_t items = items_of(loops, vector), size = loops.loop[0].size;
  KernelPlan plan;
  KernelSpec spec;
  spec.source = "normalize_kept.cl";
  spec.defines = {{"T", storage_name(desc.inputs[0].type)},
                  {"OUT_T", storage_name(desc.outputs[0].type)},
                  {"CENTER", std::to_string(rows.center)},
                  {"SCALE", std::to_string(rows.divisor)},
                  {"VECTOR", std::to_string(vector)},
                  {"VECTORS", std::to_string(ceil_div(size, int64_t{vector} * lanes))},
                  {"LANES", std::to_string(lanes)},
                  {"ROWS", std::to_string(group_rows)}};
  RowsArgs args{};
  set_loops(args, loops);
  args.items = to_int(items);
  args.epsilon = rows.epsilon;
  args.share = 1.f / static_cast<float>(size);
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)),
                    Argument::output(0, size_of(desc.outputs[0].type)), Argument::value(args)};
  add_tail(desc, vector, loops.axes(), spec, plan);
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(group_rows), 1};
  spec.shared = 2 * sizeof(float) * static_cast<size_t>(lanes * group_rows);
  spec.global = {spec.local[0] * static_cast<size_t>(ceil_div(items, int64_t{group_rows})),
                 spec.local[1], 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kKept{"normalize_kept", 1,         reject_kept, kept_space,
                         kept_heuristic,   kept_plan, nullptr,     kSharedSums};

// ---- LRN ---------------------------------------------------------------------------------------

// The sum reaches `near` elements to either side along the marked dimensions.
struct Lrn {
  std::vector<bool> along;
  int64_t near = 0;
  float alpha = 0, beta = 0, bias = 0;  // alpha of one element
};

Lrn lrn_of(const Attributes& attributes, size_t rank, const std::vector<int64_t>& axes) {
  Lrn lrn;
  lrn.along.resize(rank, false);
  for (int64_t axis : axes) lrn.along[checked_axis(axis, rank, "axis")] = true;
  const int64_t size = attributes.get_int("size");
  if (size < 1 || size > (1 << 20))
    fail_model("attribute size is out of range: " + std::to_string(size));
  lrn.near = (size - 1) / 2;
  const int64_t dims = std::count(lrn.along.begin(), lrn.along.end(), true);
  lrn.alpha = static_cast<float>(attributes.get_float("alpha") /
                                 std::pow(static_cast<double>(size), static_cast<double>(dims)));
  lrn.beta = static_cast<float>(attributes.get_float("beta"));
  lrn.bias = static_cast<float>(attributes.get_float("bias"));
  return lrn;
}

std::vector<ValueInfo> infer_lrn(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& data = context.inputs[0];
  lrn_of(context.attributes, data.shape.size(),
         context.inputs[1].value.empty() ? std::vector<int64_t>{}
                                         : constant_ints(context, 1, "the axes"));
  return {{data.type, data.shape, {}}};
}

// Processes one dimension at a time: sums of squares in double.
void evaluate_lrn(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const Lrn lrn = lrn_of(desc.attributes, shape.size(), inputs[1].to_ints());
  const std::vector<float> data = inputs[0].to_floats();
  std::vector<double> sums(data.begin(), data.end());
  for (double& v : sums) v *= v;
  const Shape strides = row_major_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!lrn.along[d]) continue;
    const std::vector<double> before = sums;
    for (int64_t i = 0; i < static_cast<int64_t>(sums.size()); ++i) {
      const int64_t at = i / strides[d] % shape[d];
      sums[i] = 0;
      for (int64_t k = std::max<int64_t>(at - lrn.near, 0);
           k <= std::min(at + lrn.near, shape[d] - 1); ++k)
        sums[i] += before[i + (k - at) * strides[d]];
    }
  }
  float* out = outputs[0].mutable_data<float>();
  for (size_t i = 0; i < data.size(); ++i)
    out[i] =
        static_cast<float>(data[i] * std::pow(static_cast<double>(lrn.bias) + lrn.alpha * sums[i],
                                              -static_cast<double>(lrn.beta)));
}

Lrn known_lrn(const OpDesc& desc) {
  return lrn_of(desc.attributes, desc.inputs[0].shape.size(), desc.constants[1].to_ints());
}

Loops lrn_loops(const OpDesc& desc) {
  const Lrn lrn = known_lrn(desc);
  std::vector<Loop> loops;
  for (size_t d = 0; d < lrn.along.size(); ++d) {
    Loop loop;
    loop.size = desc.inputs[0].shape[d], loop.in = desc.inputs[0].strides[d],
    loop.out = desc.outputs[0].strides[d];
    loop.marked = lrn.along[d];
    loop.channel = lrn.along[d];  // these loops stay separate
    loop.dim = static_cast<int>(d);
    loops.push_back(loop);
  }
  return arrange(std::move(loops), desc.tail.empty());
}

std::string reject_lrn(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_storage(desc, 1); !why.empty()) return why;
  if (desc.constants[1].empty()) return "the axes are not constant";
  return reject_loops(desc, lrn_loops(desc));
}

std::vector<TuningPoint> lrn_space(const OpDesc& desc, const DeviceTraits& traits) {
  const Loops loops = lrn_loops(desc);
  std::vector<TuningPoint> points;
  for (int vector : {1, 2, 4, 8, 16})
    for (int local : {16, 64, 128})
      if ((vector == 1 || (loops.unit() && vector <= loops.loop[0].size)) &&
          (traits.is_cpu || vector <= 4) && (traits.is_cpu == (local == 16)) &&
          static_cast<size_t>(local) <= traits.max_work_group)
        points.push_back({{{"VECTOR", vector}, {"LOCAL", local}}});
  if (points.empty()) points.push_back({{{"VECTOR", 1}, {"LOCAL", 1}}});
  return points;
}

// Chooses the widest vector; on a CPU, the widest one that fits a native vector.
TuningPoint lrn_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  TuningPoint best;
  for (const TuningPoint& point : lrn_space(desc, traits))
    if (best.values.empty() ||
        (traits.is_cpu && point["VECTOR"] <= static_cast<int>(std::max(8u, traits.vector_width))))
      best = point;
  return best;
}

KernelPlan lrn_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const Lrn lrn = known_lrn(desc);
  const Loops loops = lrn_loops(desc);
  const int vector = point["VECTOR"], local = point["LOCAL"];
  const int64_t vectors = ceil_div(loops.loop[0].size, vector),
                items = desc.outputs[0].elements() / loops.loop[0].size * vectors;
  KernelPlan plan;
  KernelSpec spec;
  spec.source = "lrn.cl";
  spec.defines = {{"T", storage_name(desc.inputs[0].type)},
                  {"THREE_QUARTERS", lrn.beta == 0.75f ? "1" : "0"},
                  {"VECTOR", std::to_string(vector)},
                  {"LOCAL", std::to_string(local)}};
  LrnArgs args{};
  set_loops(args, loops);
  const auto near = [&](size_t i) { return to_int(loops.loop[i].marked ? lrn.near : 0); };
  args.near_c = near(0), args.near_w = near(1), args.near_h = near(2), args.near_n = near(3);
  args.vectors = to_int(vectors), args.items = to_int(items);
  args.alpha = lrn.alpha, args.beta = lrn.beta, args.bias = lrn.bias;
  const size_t size = size_of(desc.inputs[0].type);
  spec.arguments = {Argument::input(0, size), Argument::output(0, size), Argument::value(args)};
  add_tail(desc, vector, loops.axes(), spec, plan);
  spec.local = {static_cast<size_t>(local), 1, 1};
  spec.global = {static_cast<size_t>(ceil_div(items, local)) * spec.local[0], 1, 1};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kLrn{"lrn", 1, reject_lrn, lrn_space, lrn_heuristic, lrn_plan};

// Rewrites GroupNormalization with scale and bias that are not constant: normalises without them,
// then applies them.
void expand_affine(Expansion& x) {
  if (x.context().type != "GroupNormalization" || (x.is_constant(1) && x.is_constant(2))) return;
  const int64_t channels = x.shape(0)[1];
  const auto filled = [&](float value) {
    return x.constant(Tensor::of(ElementType::f32, {channels},
                                 std::vector<float>(static_cast<size_t>(channels), value)));
  };
  const size_t normal = x.step(x.context().type, x.context().opset, {0, filled(1), filled(0)},
                               x.context().attributes, 1);
  Shape shape(x.shape(0).size(), 1);
  shape[1] = channels;
  const size_t scaled = x.step("Multiply", 1, {normal, x.reshape(1, shape)});
  x.outputs = {x.step("Add", 1, {scaled, x.reshape(2, shape)})};
}

}  // namespace

std::vector<OpDef> normalize_ops() {
  OpDef rows;
  rows.infer_shapes = infer_shapes;
  rows.evaluate = evaluate;
  rows.families = {&kKept, &kRows};
  rows.layout = LayoutRule::follow;
  rows.expand = expand_affine;
  std::vector<OpDef> ops;
  for (const auto& [type, first] :
       {std::pair{"MVN", 1}, {"NormalizeL2", 1}, {"GRN", 1}, {"GroupNormalization", 12}}) {
    rows.type = type;
    rows.opsets = opset_range(first);
    ops.push_back(rows);
  }
  ops.push_back({.type = "LRN",
                 .opsets = opset_range(1),
                 .infer_shapes = infer_lrn,
                 .evaluate = evaluate_lrn,
                 .families = {&kLrn},
                 .layout = LayoutRule::follow});
  return ops;
}

}  // namespace clinfer
