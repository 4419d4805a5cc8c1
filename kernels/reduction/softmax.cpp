// SoftMax, LogSoftmax and the engine's own SoftMaxMean: shapes, reference implementation, and one
// family, whose points choose whether vectors and work-items run along the axis or across it.
//
// SoftMaxMean is the mean of numbers, weighted by the probabilities of a SoftMax: input 1 has a
// number for each element of the axis, which the output keeps with size 1. Detectors compute
// distances in this way.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/item_kernel.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

constexpr size_t kMostLoops = 5;  // around the axis, after merging
constexpr int64_t kShortRow = 64;

size_t axis_of(const std::string& type, const Attributes& attributes, size_t rank) {
  return checked_axis(attributes.get_int("axis", type == "SoftMax" ? 1 : -1), rank, "axis");
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const ValueInfo& in = context.inputs[0];
  axis_of(context.type, context.attributes, in.shape.size());
  if (!is_float(in.type))
    fail_model("its input is " + std::string(name_of(in.type)) + ", no floats");
  return {{in.type, in.shape, {}}};
}

std::vector<ValueInfo> infer_mean_shapes(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  if (!is_float(in.type))
    fail_model("its input is " + std::string(name_of(in.type)) + ", no floats");
  Shape shape = in.shape;
  int64_t& size = shape[axis_of(context.type, context.attributes, shape.size())];
  if (context.inputs[1].shape != Shape{size}) fail_model("its numbers do not fit the axis");
  size = 1;
  return {{in.type, shape, {}}};
}

// Sums in double.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const size_t axis = axis_of(desc.type, desc.attributes, shape.size());
  const std::vector<float> data = inputs[0].to_floats();
  if (data.empty()) return;
  const std::vector<float> numbers =
      inputs.size() > 1 ? inputs[1].to_floats() : std::vector<float>{};
  float* out = outputs[0].mutable_data<float>();
  const int64_t size = shape[axis], inner = row_major_strides(shape)[axis];
  for (int64_t row = 0; row < inputs[0].elements() / size; ++row) {
    const int64_t base = row / inner * inner * size + row % inner;
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < size; ++i) largest = std::max(largest, data[base + i * inner]);
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += std::exp(static_cast<double>(data[base + i * inner]) - largest);
    if (desc.type == "SoftMaxMean") {
      double mean = 0;
      for (int64_t i = 0; i < size; ++i)
        mean += std::exp(static_cast<double>(data[base + i * inner]) - largest) * numbers[i];
      out[row] = static_cast<float>(mean / sum);
      continue;
    }
    for (int64_t i = 0; i < size; ++i) {
      const double x = static_cast<double>(data[base + i * inner]) - largest;
      out[base + i * inner] =
          static_cast<float>(desc.type == "LogSoftmax" ? x - std::log(sum) : std::exp(x) / sum);
    }
  }
}

// The axis and the loops around it, outermost first.
struct Rows {
  CopyDim axis;
  std::vector<CopyDim> loops;
  int64_t count = 1;
};

Rows rows_of(const OpDesc& desc) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const size_t axis = axis_of(desc.type, desc.attributes, in.shape.size());
  Rows rows;
  std::vector<CopyDim> dims;
  for (size_t d = 0; d < in.shape.size(); ++d) {
    CopyDim dim;
    dim.size = in.shape[d], dim.from = in.strides[d], dim.to = out.strides[d];
    if (d == axis) {
      rows.axis = dim;
    } else {
      dims.push_back(dim);
      rows.count *= dim.size;
    }
  }
  rows.loops = merged(std::move(dims));
  return rows;
}

bool is_unit(const CopyDim& dim) { return dim.from == 1 && dim.to == 1; }

// Returns the loop along which the elements of a vector across the axis lie: the one with adjacent
// elements, else the longest.
size_t inner_loop(const std::vector<CopyDim>& loops) {
  size_t best = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (is_unit(loops[i])) return i;
    if (loops[i].size > loops[best].size) best = i;
  }
  return best;
}

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (!desc.tail.empty()) return "takes no tail";
  if (desc.type == "SoftMaxMean" && desc.constants[1].empty())
    return "its numbers are not constant";
  // Input and output may each be f32 or the storage type.
  OpDesc same = desc;
  if (is_float(desc.outputs[0].type)) same.outputs[0].type = desc.inputs[0].type;
  if (std::string why = reject_storage(same, 1); !why.empty()) return why;
  if (rows_of(desc).loops.size() > kMostLoops)
    return "needs more than " + std::to_string(kMostLoops) + " loops around the axis";
  return "";
}

TuningPoint point_of(bool along, int vector, int lanes, int rows) {
  return {{{"ALONG", along}, {"VECTOR", vector}, {"LANES", lanes}, {"ROWS", rows}}};
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  const Rows rows = rows_of(desc);
  const int64_t inner = rows.loops.empty() ? 1 : rows.loops[inner_loop(rows.loops)].size;
  const bool unit = rows.axis.size == 1 || is_unit(rows.axis);
  std::vector<TuningPoint> points;
  for (int vector : {1, 2, 4, 8, 16}) {
    if (traits.is_cpu) {
      if (vector == 1 || (vector <= rows.axis.size && unit))
        points.push_back(point_of(true, vector, 1, 1));
      if (vector <= inner) points.push_back(point_of(false, vector, 1, 1));
      continue;
    }
    if (vector > 4) continue;
    for (int items : {64, 128, 256}) {
      if (static_cast<size_t>(items) > traits.max_work_group) continue;
      if (vector <= inner) points.push_back(point_of(false, vector, 1, items));
      // In a short row whose probabilities are not stored, work-items need not exchange values.
      if (desc.type == "SoftMaxMean" && rows.axis.size <= kShortRow &&
          (vector == 1 || (unit && vector <= rows.axis.size)))
        points.push_back(point_of(true, vector, 1, items));
      for (int lanes = 4; lanes <= items; lanes *= 2)
        if (vector == 1 || (unit && lanes * vector < 2 * rows.axis.size))
          points.push_back(point_of(true, vector, lanes, items / lanes));
    }
  }
  if (traits.ordered_sums)  // a vector or work-items along the axis have several sums
    std::erase_if(points, [](const TuningPoint& point) {
      return point["ALONG"] && point["VECTOR"] * point["LANES"] > 1;
    });
  if (points.empty()) points.push_back(point_of(true, 1, 1, 1));
  return points;
}

TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const Rows rows = rows_of(desc);
  const CopyDim inner = rows.loops.empty() ? CopyDim{} : rows.loops[inner_loop(rows.loops)];
  const bool unit = rows.axis.size == 1 || is_unit(rows.axis);
  const auto cost = [&](const TuningPoint& point) {
    const int vector = point["VECTOR"], lanes = point["LANES"];
    const bool along = point["ALONG"];
    // The number of vectors of exponentials that one work-item computes, and the cost of gathering
    // their elements.
    const double axis = static_cast<double>(rows.axis.size);
    const double steps = along ? std::ceil(axis / (lanes * vector)) : axis;
    const double items = along ? static_cast<double>(rows.count) * lanes
                               : static_cast<double>(rows.count) / static_cast<double>(inner.size) *
                                     static_cast<double>(ceil_div(inner.size, vector));
    if (traits.is_cpu) {
      const double exponential =
          8.0 * std::max(1.0, vector / static_cast<double>(traits.vector_width));
      const double gather = along || vector == 1 || is_unit(inner) ? 1.0 : 2.0 * vector;
      return items * (steps * (exponential + 3 * gather) + (along ? 2.0 * vector : 4.0) + 20);
    }
    const double wanted = 512.0 * traits.compute_units;
    const double meeting = along ? 12.0 * std::log2(std::max(2, lanes)) : 0.0;
    // Counts the cost of work-items that read at a distance, each of which loads a sector of
    // memory: 9 times as slow with the 16 bins of YOLOv8 on an H200.
    const double spread = (along ? unit || lanes == 1 : is_unit(inner)) ? 1.0 : 8.0;
    return items * (steps * spread * (8.0 + vector) + meeting + 20) *
           (items < wanted ? wanted / items : 1.0) * (lanes * point["ROWS"] == 128 ? 1.0 : 1.02);
  };
  return cheapest(space(desc, traits), cost);
}

// Returns whether all vectors along the axis lie at multiples of their size in the input.
bool reads_aligned(const OpDesc& desc, const Rows& rows, int64_t vector) {
  const auto fits = [&](int64_t elements) { return elements % vector == 0; };
  return rows.axis.from == 1 && fits(rows.axis.size) && fits(desc.inputs[0].offset) &&
         std::all_of(rows.loops.begin(), rows.loops.end(),
                     [&](const CopyDim& loop) { return fits(loop.from); });
}

struct Args {
#include "kernels/reduction/softmax_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  Rows rows = rows_of(desc);
  const bool along = point["ALONG"];
  const int vector = point["VECTOR"], lanes = point["LANES"], group_rows = point["ROWS"];
  const bool aligned = along && !traits.is_cpu && reads_aligned(desc, rows, vector);
  CopyDim inner;
  if (!rows.loops.empty()) {
    const size_t at = along ? rows.loops.size() - 1 : inner_loop(rows.loops);
    inner = rows.loops[at];
    rows.loops.erase(rows.loops.begin() + static_cast<std::ptrdiff_t>(at));
  }
  const bool unit = along || vector == 1 || is_unit(inner);
  const int64_t vectors = along ? inner.size : ceil_div(inner.size, vector),
                items = rows.count / inner.size * vectors;
  const ElementType from = desc.inputs[0].type, to = desc.outputs[0].type;
  // Overlapping vectors across the axis would scale stored exponentials twice.
  const bool mean = desc.type == "SoftMaxMean";
  const bool keep = !mean && traits.is_cpu && from == ElementType::f32 && to == ElementType::f32 &&
                    (along || inner.size % vector == 0);
  const double work = 60.0 * static_cast<double>(rows.axis.size) * (along ? 1 : vector);
  const int64_t per_group = traits.is_cpu ? tiles_per_item(items, 1, work, traits) : group_rows;

  std::reverse(rows.loops.begin(), rows.loops.end());
  rows.loops.resize(kMostLoops - 1);
  Args args{};
  args.axis = to_int(rows.axis.size);
  args.in_axis = to_int(rows.axis.from), args.out_axis = to_int(rows.axis.to);
  args.inner = to_int(inner.size);
  args.in_inner = to_int(inner.from), args.out_inner = to_int(inner.to);
  args.vectors = to_int(vectors);
  set_each(args.size, rows.loops, &CopyDim::size);
  set_each(args.in, rows.loops, &CopyDim::from);
  set_each(args.out, rows.loops, &CopyDim::to);
  args.items = to_int(items), args.items_per_group = to_int(per_group);

  KernelSpec spec;
  spec.source = "softmax.cl";
  const auto define = [&](const char* name, int value) {
    spec.defines.emplace_back(name, std::to_string(value));
  };
  spec.defines.emplace_back("IN_T", storage_name(from));
  spec.defines.emplace_back("OUT_T", storage_name(to));
  define("LOGARITHM", desc.type == "LogSoftmax");
  define("MEAN", mean);
  define("KEEP", keep);
  define("ALONG", along);
  define("VECTOR", vector);
  define("LANES", lanes);
  define("ROWS", group_rows);
  define("UNIT", unit);
  spec.defines.emplace_back("LOAD", aligned ? "LOADV_ALIGNED" : "LOADV");
  KernelPlan result;
  spec.arguments = {Argument::input(0, size_of(from))};
  if (mean) {
    result.packed.push_back(
        [numbers = desc.constants[1]] { return to_bytes(numbers.to_floats(), ElementType::f32); });
    spec.arguments.push_back(Argument::packed(0, sizeof(float)));
  }
  spec.arguments.push_back(Argument::output(0, size_of(to)));
  spec.arguments.push_back(Argument::value(args));
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(group_rows), 1};
  if (along && lanes > 1) spec.shared = sizeof(float) * static_cast<size_t>(lanes * group_rows);
  spec.global = {spec.local[0] * static_cast<size_t>(ceil_div(items, per_group)), spec.local[1], 1};
  result.launches.push_back(std::move(spec));
  return result;
}

const KernelFamily kSoftmax{"softmax", 1, reject, space, heuristic, plan};

}  // namespace

std::vector<OpDef> softmax_ops() {
  OpDef softmax;
  softmax.type = "SoftMax";
  softmax.opsets = opset_range(1);
  softmax.infer_shapes = infer_shapes;
  softmax.evaluate = evaluate;
  softmax.families = {&kSoftmax};
  softmax.layout = LayoutRule::follow;
  softmax.converts = true;
  OpDef logarithm = softmax;
  logarithm.type = "LogSoftmax";
  OpDef mean = softmax;
  mean.type = "SoftMaxMean";
  mean.opsets = {1};
  mean.infer_shapes = infer_mean_shapes;
  return {std::move(softmax), std::move(logarithm), std::move(mean)};
}

}  // namespace clinfer
