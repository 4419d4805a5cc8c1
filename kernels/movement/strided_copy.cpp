// Plans the strided copy kernel.
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/arguments.h"

namespace clinfer {

std::vector<CopyDim> merged(std::vector<CopyDim> dims) {
  std::erase_if(dims, [](const CopyDim& d) { return d.size == 1; });
  std::stable_sort(dims.begin(), dims.end(), [](const CopyDim& a, const CopyDim& b) {
    return std::abs(a.to) > std::abs(b.to);
  });
  std::vector<CopyDim> result;
  for (const CopyDim& inner : dims) {
    const auto is_run = [&](const CopyDim& outer) {
      bool run = outer.from == inner.from * inner.size && outer.to == inner.to * inner.size;
      for (size_t a = 0; a < inner.along.size(); ++a)
        run &= outer.along[a] == inner.along[a] * inner.size;
      return run;
    };
    if (!result.empty() && is_run(result.back())) {
      const int64_t size = result.back().size;
      result.back() = inner;
      result.back().size *= size;
    } else {
      result.push_back(inner);
    }
  }
  return result;
}

// Names the type as value_type() does, except for booleans, for which every byte other than 0 is
// true.
static std::string converted_type(ElementType type) {
  return type == ElementType::boolean ? "" : value_type(type);
}

std::string reject_copy(const OpDesc& desc, const StridedCopy& copy) {
  if (!desc.tail.empty()) return "moves elements without computing, takes no tail";
  const ElementType from = desc.inputs[0].type, to = desc.outputs[0].type;
  if (from != to && (converted_type(from).empty() || converted_type(to).empty()))
    return "does not convert " + std::string(name_of(from)) + " to " + std::string(name_of(to));
  if (desc.outputs[0].elements() == 0) return "the output is empty";
  if (merged(copy.dims).size() > kMostCopyDims)
    return "needs more than " + std::to_string(kMostCopyDims) + " loops";
  return "";
}

std::vector<TuningPoint> run_space() {
  std::vector<TuningPoint> points;
  for (int run : {1, 4, 16, 64}) points.push_back({{{"RUN", run}}});
  return points;
}

TuningPoint run_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  // A work-item computes its position once per run; a GPU needs as many work-items as it runs at a
  // time.
  const bool many = desc.outputs[0].elements() >= int64_t{4} * 2048 * traits.compute_units;
  return {{{"RUN", traits.is_cpu ? 64 : many ? 4 : 1}}};
}
size_t run_group(const DeviceTraits& traits) { return traits.is_cpu ? 16 : 64; }

size_t run_items(const std::vector<CopyDim>& dims, int64_t run, size_t group) {
  size_t items = 1;
  for (size_t d = 0; d < dims.size(); ++d)
    items *=
        static_cast<size_t>(d + 1 == dims.size() ? (dims[d].size + run - 1) / run : dims[d].size);
  return (items + group - 1) / group * group;
}

void copy_on_host(const StridedCopy& copy, const Tensor& in, Tensor& out) {
  if (out.elements() == 0 || in.elements() == 0) return;
  Shape shape, from, to;
  for (const CopyDim& d : copy.dims) {
    shape.push_back(d.size);
    from.push_back(d.from);
    to.push_back(d.to);
  }
  const size_t size = size_of(in.type());
  if (copy.axes == 0) return copy_strided(size, shape, in.raw(), from, out.raw_mutable(), to);
  const auto* source = static_cast<const std::byte*>(in.raw());
  auto* target = static_cast<std::byte*>(out.raw_mutable());
  Shape index(shape.size(), 0);
  do {
    int64_t a = copy.from, b = copy.to;
    std::array<int64_t, 4> position = copy.start;
    for (size_t d = 0; d < shape.size(); ++d) {
      a += index[d] * from[d];
      b += index[d] * to[d];
      for (size_t k = 0; k < copy.axes; ++k) position[k] += index[d] * copy.dims[d].along[k];
    }
    bool inside = true;
    for (size_t k = 0; k < copy.axes; ++k)
      inside = inside && position[k] >= 0 && position[k] < copy.limit[k];
    if (inside)
      std::memcpy(target + b * static_cast<int64_t>(size), source + a * static_cast<int64_t>(size),
                  size);
    else if (copy.fill)
      std::memset(target + b * static_cast<int64_t>(size), 0, size);
  } while (next_index(index, shape));
}

std::vector<TuningPoint> copy_space(const OpDesc&, const DeviceTraits&) { return run_space(); }
TuningPoint copy_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return run_heuristic(desc, traits);
}

namespace {

template <size_t DIMS, size_t AXES>
struct Args {
#include "kernels/movement/strided_copy_args.cl"
};

template <size_t DIMS, size_t AXES>
Argument copy_arguments(const StridedCopy& copy, const std::vector<CopyDim>& dims, int64_t run) {
  Args<DIMS, AXES> args{};
  set_loops(args, dims);
  args.from_start = to_int(copy.from), args.to_start = to_int(copy.to), args.run = to_int(run);
  for (size_t a = 0; a < AXES; ++a) {
    args.axis[a].start = to_int(copy.start[a]), args.axis[a].limit = to_int(copy.limit[a]);
    set_each(args.axis[a].along, dims, [a](const CopyDim& d) { return d.along[a]; });
  }
  return Argument::value(args);
}

}  // namespace

KernelPlan plan_copy(const OpDesc& desc, const StridedCopy& copy, const DeviceTraits& traits,
                     const TuningPoint& point) {
  std::vector<CopyDim> dims = merged(copy.dims);
  const size_t loops = dims.size() <= 4 ? 4 : kMostCopyDims;  // makes two programs instead of eight
  const int64_t run = point["RUN"];
  const size_t group = run_group(traits);
  KernelSpec spec;
  spec.source = "strided_copy.cl";
  const ElementType from = desc.inputs[0].type, to = desc.outputs[0].type;
  const bool convert = from != to;
  spec.defines = {{"FROM", convert ? converted_type(from) : moved_type(from)},
                  {"TO", convert ? converted_type(to) : moved_type(to)},
                  {"CONVERT", convert ? "1" : "0"},
                  {"DIMS", std::to_string(loops)},
                  {"AXES", std::to_string(copy.axes)},
                  {"FILL", copy.fill ? "1" : "0"},
                  {"GROUP", std::to_string(group)}};
  spec.global[0] = run_items(dims, run, group);
  spec.local[0] = group;

  std::reverse(dims.begin(), dims.end());  // the kernel numbers loops from the innermost
  dims.resize(loops);
  const Argument args = with_count<4, kMostCopyDims>(loops, [&](auto dim_count) {
    return with_count<0, 1, 2, 3, 4>(copy.axes, [&](auto axis_count) {
      return copy_arguments<dim_count, axis_count>(copy, dims, run);
    });
  });
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)),
                    Argument::output(0, size_of(desc.outputs[0].type)), args};
  return {{spec}, {}, 0};
}

}  // namespace clinfer
