// ReduceMean, Max, Min, Sum, Prod, L1, L2, LogicalAnd and LogicalOr over constant axes.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/expand.h"
#include "kernels/kernel.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

// A reduction as OpenCL expressions of acc, x (float, floatN or int) and, at the end, scale = 1 /
// number of elements.
struct Reduction {
  const char* type;
  int first_opset;
  bool boolean;
  const char *first, *first_int;  // the neutral element
  const char *take, *join, *finish;
};

constexpr Reduction kReductions[] = {
    {"ReduceMean", 1, false, "0.0f", "0", "((a) + (x))", "((a) + (x))", "((a) * scale)"},
    {"ReduceSum", 1, false, "0.0f", "0", "((a) + (x))", "((a) + (x))", "(a)"},
    {"ReduceMax", 1, false, "-INFINITY", "INT_MIN", "larger(a, x)", "larger(a, x)", "(a)"},
    {"ReduceMin", 1, false, "INFINITY", "INT_MAX", "smaller(a, x)", "smaller(a, x)", "(a)"},
    {"ReduceProd", 1, false, "1.0f", "1", "((a) * (x))", "((a) * (x))", "(a)"},
    {"ReduceL1", 4, false, "0.0f", "0", "((a) + fabs(x))", "((a) + (x))", "(a)"},
    {"ReduceL2", 4, false, "0.0f", "0", "fma(x, x, a)", "((a) + (x))", "sqrt(a)"},
    {"ReduceLogicalAnd", 1, true, "1", "1", "((a) && (x))", "((a) && (x))", "(a)"},
    {"ReduceLogicalOr", 1, true, "0", "0", "((a) || (x))", "((a) || (x))", "(a)"},
};

const Reduction& reduction_of(const std::string& type) {
  for (const Reduction& r : kReductions)
    if (type == r.type) return r;
  fail_unsupported(type + " is not a reduction");
}

std::vector<bool> reduced_dims(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : axes) reduced[checked_axis(axis, rank, "axis")] = true;
  return reduced;
}

std::vector<ValueInfo> infer_reduce(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& x = context.inputs[0];
  if (reduction_of(context.type).boolean && x.type != ElementType::boolean &&
      x.type != ElementType::u8)
    fail_model("takes booleans, not " + std::string(name_of(x.type)));
  const std::vector<bool> reduced = reduced_dims(constant_ints(context, 1, "axes"), x.shape.size());
  const bool keep = context.attributes.get_bool("keep_dims", false);
  Shape shape;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (!reduced[d])
      shape.push_back(x.shape[d]);
    else if (keep)
      shape.push_back(1);
  }
  return {{x.type, shape}};
}

// Returns the strides of the output by the input's dimensions; 0 along reduced dimensions.
Shape output_steps(const TensorDesc& out, const std::vector<bool>& reduced) {
  const bool keep = out.shape.size() == reduced.size();
  Shape steps;
  size_t at = 0;
  for (bool r : reduced) {
    steps.push_back(r ? 0 : out.strides[at]);
    at += keep || !r;
  }
  return steps;
}

double combine(const std::string& type, double acc, double x) {
  if (type == "ReduceMax") return acc < x || std::isnan(x) ? x : acc;
  if (type == "ReduceMin") return acc > x || std::isnan(x) ? x : acc;
  if (type == "ReduceProd") return acc * x;
  if (type == "ReduceL1") return acc + std::fabs(x);
  if (type == "ReduceL2") return acc + x * x;
  if (type == "ReduceLogicalAnd") return acc != 0 && x != 0;
  if (type == "ReduceLogicalOr") return acc != 0 || x != 0;
  return acc + x;
}

double neutral(const std::string& type) {
  if (type == "ReduceMax") return -std::numeric_limits<double>::infinity();
  if (type == "ReduceMin") return std::numeric_limits<double>::infinity();
  return type == "ReduceProd" || type == "ReduceLogicalAnd" ? 1 : 0;
}

// Sums in double, which is exact for integers up to 2^53.
void evaluate_reduce(const OpDesc& desc, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const std::vector<bool> reduced = reduced_dims(inputs[1].to_ints(), shape.size());
  const Shape steps =
      output_steps(TensorDesc::row_major(outputs[0].type(), outputs[0].shape()), reduced);
  std::vector<double> acc(static_cast<size_t>(outputs[0].elements()), neutral(desc.type));
  if (inputs[0].elements() > 0)
    with_number(inputs[0].type(), [&](auto zero) {
      const auto* in = inputs[0].data<decltype(zero)>();
      Shape index(shape.size(), 0);
      do {
        int64_t at = 0;
        for (size_t d = 0; d < shape.size(); ++d) at += index[d] * steps[d];
        acc[at] = combine(desc.type, acc[at], static_cast<double>(*in++));
      } while (next_index(index, shape));
    });
  const double share = static_cast<double>(outputs[0].elements()) /
                       static_cast<double>(std::max<int64_t>(inputs[0].elements(), 1));
  for (double& value : acc) {
    if (desc.type == "ReduceMean") value *= share;
    if (desc.type == "ReduceL2") value = std::sqrt(value);
  }
  outputs[0] = Tensor::of(ElementType::f64, outputs[0].shape(), acc).convert(outputs[0].type());
}

// ---- the kernel --------------------------------------------------------------------------------

constexpr size_t kKept = 4, kReduced = 3;

struct Walk {
  std::vector<CopyDim> kept, reduced;  // innermost last
  TailAxes axes;                       // dimensions of the output that the kept loops index
  bool tail_fits = true;               // true if each kept loop is a single dimension
};

Walk walk_of(const OpDesc& desc) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const std::vector<bool> reduced = reduced_dims(desc.constants[1].to_ints(), in.shape.size());
  const Shape steps = output_steps(out, reduced);
  const bool keep = out.shape.size() == in.shape.size();
  Walk walk;
  std::vector<std::pair<CopyDim, int>> kept;
  int out_dim = 0;
  for (size_t d = 0; d < in.shape.size(); ++d) {
    const CopyDim loop{in.shape[d], in.strides[d], steps[d], {}};
    if (reduced[d])
      walk.reduced.push_back({in.shape[d], in.strides[d], in.strides[d], {}});
    else if (in.shape[d] != 1)
      kept.push_back({loop, out_dim});
    out_dim += keep || !reduced[d];
  }
  walk.reduced = merged(std::move(walk.reduced));
  std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return std::abs(a.first.to) > std::abs(b.first.to);
  });
  for (const auto& [loop, dim] : kept) walk.kept.push_back(loop);
  walk.tail_fits = kept.size() <= kKept;
  if (!walk.tail_fits) {
    walk.kept = merged(std::move(walk.kept));
    return walk;
  }
  const auto dim_at = [&](size_t from_inner) {
    return from_inner < kept.size() ? kept[kept.size() - 1 - from_inner].second : -1;
  };
  walk.axes = {dim_at(3), dim_at(2), dim_at(1), dim_at(0)};
  return walk;
}

struct Storage {
  std::string type, load, store;
};

Storage storage_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return {"float", "*(p)", "*(p) = (v)"};
    case ElementType::f16:
      return {"half", "vload_half(0, p)", "vstore_half_rte(v, 0, p)"};
    case ElementType::i32:
      return {"int", "*(p)", "*(p) = (v)"};
    case ElementType::i8:
      return {"char", "((int)*(p))", "*(p) = convert_char(v)"};
    case ElementType::u8:
    case ElementType::boolean:
      return {"uchar", "((int)*(p))", "*(p) = convert_uchar(v)"};
    default:
      return {};
  }
}

std::string reject_reduce(const OpDesc& desc, const DeviceTraits&) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  if (desc.constants[1].empty()) return "the axes are not constant";
  if (storage_of(in.type).type.empty() || in.type != out.type)
    return "does not take " + std::string(name_of(in.type)) + " to " +
           std::string(name_of(out.type));
  if (!is_float(in.type) &&
      (desc.type == "ReduceMean" || desc.type == "ReduceL1" || desc.type == "ReduceL2"))
    return desc.type + " of integers";
  if (in.elements() == 0 || out.elements() == 0) return "a tensor is empty";
  if (in.span() > std::numeric_limits<int32_t>::max())
    return "the input spans more than an int can count";
  const Walk walk = walk_of(desc);
  if (walk.kept.size() > kKept) return "keeps more than " + std::to_string(kKept) + " loops";
  if (walk.reduced.size() > kReduced)
    return "reduces more than " + std::to_string(kReduced) + " loops";
  if (desc.tail.empty()) return "";
  if (!is_float(out.type)) return "takes a tail on floats only";
  return walk.tail_fits ? reject_tail(desc, 1, walk.axes)
                        : "takes a tail on at most " + std::to_string(kKept) + " dimensions";
}

// The widest vectors across outputs and along the reduced loop.
struct Widths {
  int across = 1, along = 1;
};

Widths widths_of(const OpDesc& desc, const DeviceTraits& traits) {
  const Walk walk = walk_of(desc);
  Widths widths;
  if (!is_float(desc.inputs[0].type)) return widths;
  // In a vector along the reduced loop each element has a sum.
  if (!traits.ordered_sums && !walk.reduced.empty() && walk.reduced.back().from == 1 &&
      walk.reduced.back().size >= 16)
    widths.along = 16;
  if (walk.kept.empty() || walk.kept.back().from != 1 || walk.kept.back().to != 1) return widths;
  widths.across = 16;
  while (widths.across > walk.kept.back().size) widths.across /= 2;
  while (widths.across > 1 && !reject_tail(desc, widths.across, walk.axes).empty())
    widths.across /= 2;
  return widths;
}

TuningPoint point_of(int vector, int along, int group) {
  return {{{"V", vector}, {"ALONG", along}, {"GROUP", group}}};
}

// Returns whether all vectors that are read are aligned to their size. CPUs load others as fast.
bool aligned(const OpDesc& desc, const DeviceTraits& traits, int vector, bool along) {
  const Walk walk = walk_of(desc);
  const auto fits = [vector](const CopyDim& dim) { return dim.from % vector == 0; };
  const auto& lanes = along ? walk.reduced : walk.kept;  // the innermost loop is the last one
  const auto& others = along ? walk.kept : walk.reduced;
  return !traits.is_cpu && desc.inputs[0].offset % vector == 0 &&
         (along || lanes.back().size % vector == 0) &&
         std::all_of(lanes.begin(), lanes.end() - 1, fits) &&
         std::all_of(others.begin(), others.end(), fits);
}

std::vector<TuningPoint> reduce_space(const OpDesc& desc, const DeviceTraits& traits) {
  const Widths widths = widths_of(desc, traits);
  std::vector<TuningPoint> points;
  for (int group : {1, 16, 64, 256}) {
    if (group > 1 && traits.ordered_sums) break;  // each work-item of the group has a sum
    if (static_cast<size_t>(group) > traits.max_work_group) continue;
    for (int vector : {1, 4, 8, 16}) {
      if (vector == 1 || vector <= widths.across) points.push_back(point_of(vector, 0, group));
      if (vector > 1 && vector <= widths.along) points.push_back(point_of(vector, 1, group));
    }
  }
  return points;
}

constexpr int64_t kShort = 128;  // reduced elements that one work-item may add up

TuningPoint reduce_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const Widths widths = widths_of(desc, traits);
  const bool wide = traits.is_cpu || traits.vector_width > 1;
  const int wanted = !wide ? 4 : traits.vector_width >= 16 ? 16 : 8;
  // On AVX2 uses two registers, which do not wait for each other: measured 1.4 times as fast as
  // one.
  const int most = traits.is_cpu ? 16 : wanted;
  int across = 1;
  for (int v : {4, 8, 16})
    if (v <= widths.across && v <= most) across = v;
  if (!wide && traits.sub_groups == 0 && widths.across >= 8 && aligned(desc, traits, 8, false))
    across = 8;
  int group = 1;
  const int64_t reduced = desc.inputs[0].elements() / desc.outputs[0].elements();
  // Many outputs keep a device busy by themselves.
  const bool many = desc.outputs[0].elements() >= int64_t{256} * traits.compute_units;
  if (!wide && !traits.ordered_sums &&
      !(many && reduced <= kShort)) {  // as many as the reduced elements keep busy
    for (int g : {16, 64, 256})
      if (g * 2 <= reduced && static_cast<size_t>(g) <= traits.max_work_group) group = g;
  }
  if (across == 1 && widths.along > 1) return point_of(wide ? wanted : 4, 1, group);
  return point_of(across, 0, group);
}

struct Args {
#include "kernels/reduction/reduce_args.cl"
};

KernelPlan plan_reduce(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const Reduction& reduction = reduction_of(desc.type);
  const int vector = point["V"], along = point["ALONG"], group = point["GROUP"];
  // A work-group of one work-item would leave most of a GPU idle.
  const int together = group > 1 || traits.is_cpu ? 1 : static_cast<int>(run_group(traits));
  Walk walk = walk_of(desc);
  KernelPlan plan;
  KernelSpec& spec = plan.launches.emplace_back();
  const Storage storage = storage_of(in.type);
  const bool floats = is_float(in.type);
  spec.source = "reduce.cl";
  spec.defines = {{"V", std::to_string(vector)},
                  {"GROUP", std::to_string(group)},
                  {"TOGETHER", std::to_string(together)},
                  {"ALONG", std::to_string(along)},
                  {"IN_T", storage.type},
                  {"OUT_T", storage.type},
                  {"ACC", floats ? "float" : "int"},
                  {"LOAD_ONE(p)", storage.load},
                  {"STORE_ONE(v, p)", storage.store},
                  {"FIRST", floats ? reduction.first : reduction.first_int},
                  {"TAKE(a, x)", reduction.take},
                  {"JOIN(a, x)", reduction.join},
                  {"FINISH(a)", reduction.finish}};
  define_access(spec, vector > 1 && aligned(desc, traits, vector, along != 0));
  const int lanes = along ? 1 : vector;
  std::reverse(walk.kept.begin(), walk.kept.end());  // the kernel numbers loops from the innermost
  std::reverse(walk.reduced.begin(), walk.reduced.end());
  walk.kept.resize(kKept);
  walk.reduced.resize(kReduced);
  int64_t groups = (walk.kept[0].size + lanes - 1) / lanes;
  for (size_t d = 1; d < kKept; ++d) groups *= walk.kept[d].size;
  spec.local[0] = static_cast<size_t>(group * together);
  spec.global[0] = static_cast<size_t>(ceil_div(groups, together)) * spec.local[0];
  if (group > 1) spec.shared = sizeof(float) * static_cast<size_t>(group * lanes);
  Args args{};
  set_each(args.kept, walk.kept, &CopyDim::size);
  set_each(args.kept_from, walk.kept, &CopyDim::from);
  set_each(args.kept_to, walk.kept, &CopyDim::to);
  set_each(args.reduced, walk.reduced, &CopyDim::size);
  set_each(args.reduced_from, walk.reduced, &CopyDim::from);
  args.items = to_int(groups);
  args.scale = static_cast<float>(out.elements()) / static_cast<float>(in.elements());
  spec.arguments = {Argument::input(0, size_of(in.type)), Argument::output(0, size_of(out.type)),
                    Argument::value(args)};
  add_tail(desc, along ? 1 : vector, walk.axes, spec, plan);
  return plan;
}

const KernelFamily kReduce{"reduce", 1, reject_reduce, reduce_space, reduce_heuristic, plan_reduce};

void expand(Expansion& x) {
  const std::string& type = x.context().type;
  if (type == "ReduceMean" || type == "ReduceL1" || type == "ReduceL2")
    compute_in_floats(x, 1, false);
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  std::vector<OpDef> ops;
  for (const Reduction& reduction : kReductions) {
    OpDef def;
    def.type = reduction.type;
    def.opsets = opset_range(reduction.first_opset);
    def.infer_shapes = infer_reduce;
    def.evaluate = evaluate_reduce;
    def.families = {&kReduce};
    def.layout = LayoutRule::follow;
    def.expand = expand;
    ops.push_back(std::move(def));
  }
  return ops;
}

}  // namespace clinfer
