// Gather, GatherElements and GatherND: select elements of the data by a tensor of indices. They
// share one kernel, in which each output dimension steps through the data, the indices or both. An
// index below 0 counts from the end; one out of range gives 0 (index_range.h), constants included
// in Gather, as OpenVINO defines it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/movement/index_range.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// One output dimension: its steps through the output, the data and the indices.
struct Loop {
  int64_t size, to, from, at;
};

// A dimension of the data that indices address.
struct Indexed {
  int64_t size, stride;
};

// The operation as loops. The position of an output element in the data is the sum of the loops'
// `from` steps, plus the sum over k of index[k] * indexed[k].stride. index[k] is read at the sum of
// the loops' `at` steps plus k * index_step.
struct Picking {
  std::vector<Loop> loops;
  std::vector<Indexed> indexed;
  int64_t index_step = 0;
};

struct GatherAxes {
  size_t axis, batch;
};

GatherAxes gather_axes(int64_t axis, const Attributes& attributes, int opset, const Shape& data,
                       const Shape& indices) {
  GatherAxes axes{checked_axis(axis, data.size(), "the axis"), 0};
  if (opset >= 7) {
    int64_t batch = attributes.get_int("batch_dims", 0);
    if (batch < 0) batch += static_cast<int64_t>(indices.size());
    if (batch < 0 || batch > static_cast<int64_t>(std::min(indices.size(), axes.axis)))
      fail_model("batch_dims is out of range for data " + to_string(data) + ", indices " +
                 to_string(indices));
    axes.batch = static_cast<size_t>(batch);
  }
  for (size_t d = 0; d < axes.batch; ++d)
    if (data[d] != indices[d])
      fail_model("data " + to_string(data) + " and indices " + to_string(indices) +
                 " differ in a batch dimension");
  return axes;
}

void check_index_type(const ValueInfo& indices) {
  if (is_float(indices.type)) fail_model("the indices must be integers");
}

std::vector<ValueInfo> infer_gather(const ShapeContext& context) {
  check_inputs(context, 3, 3);
  const ValueInfo &data = context.inputs[0], &indices = context.inputs[1];
  check_index_type(indices);
  const auto [axis, batch] = gather_axes(constant_int(context, 2, "the axis"), context.attributes,
                                         context.opset, data.shape, indices.shape);
  Shape out(data.shape.begin(), data.shape.begin() + static_cast<int64_t>(axis));
  out.insert(out.end(), indices.shape.begin() + static_cast<int64_t>(batch), indices.shape.end());
  out.insert(out.end(), data.shape.begin() + static_cast<int64_t>(axis) + 1, data.shape.end());
  checked_count(out);
  return {{data.type, out}};
}

Picking pick_gather(const OpDesc& desc, const TensorDesc& data, const TensorDesc& indices,
                    const TensorDesc& out, const Tensor& axis_value) {
  const auto [axis, batch] = gather_axes(one_int(axis_value, "the axis"), desc.attributes,
                                         desc.opset, data.shape, indices.shape);
  Picking picking;
  size_t o = 0;
  for (size_t d = 0; d < axis; ++d, ++o)
    picking.loops.push_back(
        {out.shape[o], out.strides[o], data.strides[d], d < batch ? indices.strides[d] : 0});
  for (size_t d = batch; d < indices.shape.size(); ++d, ++o)
    picking.loops.push_back({out.shape[o], out.strides[o], 0, indices.strides[d]});
  for (size_t d = axis + 1; d < data.shape.size(); ++d, ++o)
    picking.loops.push_back({out.shape[o], out.strides[o], data.strides[d], 0});
  picking.indexed = {{data.shape[axis], data.strides[axis]}};
  return picking;
}

std::vector<ValueInfo> infer_elements(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo &data = context.inputs[0], &indices = context.inputs[1];
  check_index_type(indices);
  const size_t axis = checked_axis(context.attributes.get_int("axis"), data.shape.size(), "axis");
  bool fits = data.shape.size() == indices.shape.size();
  for (size_t d = 0; fits && d < data.shape.size(); ++d)
    fits = d == axis || data.shape[d] == indices.shape[d];
  if (!fits)
    fail_model("data " + to_string(data.shape) + " and indices " + to_string(indices.shape) +
               " may differ along the axis only");
  check_indices(indices, data.shape[axis]);
  return {{data.type, indices.shape}};
}

Picking pick_elements(const OpDesc& desc, const TensorDesc& data, const TensorDesc& indices,
                      const TensorDesc& out) {
  const size_t axis = checked_axis(desc.attributes.get_int("axis"), data.shape.size(), "axis");
  Picking picking;
  for (size_t d = 0; d < out.shape.size(); ++d)
    picking.loops.push_back(
        {out.shape[d], out.strides[d], d == axis ? 0 : data.strides[d], indices.strides[d]});
  picking.indexed = {{data.shape[axis], data.strides[axis]}};
  return picking;
}

struct NdShape {
  size_t batch, tuple;
};

NdShape nd_shape(const Attributes& attributes, const Shape& data, const Shape& indices) {
  const int64_t batch = attributes.get_int("batch_dims", 0);
  const std::string both = "data " + to_string(data) + ", indices " + to_string(indices);
  if (indices.empty() || batch < 0 ||
      batch >= static_cast<int64_t>(std::min(data.size(), indices.size())))
    fail_model("batch_dims " + std::to_string(batch) + " is out of range for " + both);
  for (int64_t d = 0; d < batch; ++d)
    if (data[d] != indices[d]) fail_model("a batch dimension differs between " + both);
  const int64_t tuple = indices.back();
  if (tuple < 1 || tuple > static_cast<int64_t>(data.size()) - batch)
    fail_model("the indices' last dimension does not fit the data: " + both);
  return {static_cast<size_t>(batch), static_cast<size_t>(tuple)};
}

std::vector<ValueInfo> infer_nd(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo &data = context.inputs[0], &indices = context.inputs[1];
  check_index_type(indices);
  const auto [batch, tuple] = nd_shape(context.attributes, data.shape, indices.shape);
  check_index_lists(indices, std::span(data.shape).subspan(batch, tuple));
  Shape out(indices.shape.begin(), indices.shape.end() - 1);
  out.insert(out.end(), data.shape.begin() + static_cast<int64_t>(batch + tuple), data.shape.end());
  checked_count(out);
  if (context.opset < 8 && batch > 1) {  // the first version joins all batch dimensions into one
    int64_t joined = 1;
    for (size_t d = 0; d < batch; ++d) joined *= out[d];
    out.erase(out.begin(), out.begin() + static_cast<int64_t>(batch));
    out.insert(out.begin(), joined);
  }
  return {{data.type, out}};
}

Picking pick_nd(const OpDesc& desc, const TensorDesc& data, const TensorDesc& indices,
                const TensorDesc& out) {
  const auto [batch, tuple] = nd_shape(desc.attributes, data.shape, indices.shape);
  Picking picking;
  const size_t joined = desc.opset < 8 && batch > 1 ? batch : 0;
  // Number of elements of the inner batch dimensions that share an output dimension.
  int64_t inner = 1;
  for (size_t d = joined; d-- > 0;) {
    picking.loops.push_back(
        {indices.shape[d], out.strides[0] * inner, data.strides[d], indices.strides[d]});
    inner *= indices.shape[d];
  }
  size_t o = joined ? 1 : 0;
  for (size_t d = joined; d + 1 < indices.shape.size(); ++d, ++o)
    picking.loops.push_back(
        {out.shape[o], out.strides[o], d < batch ? data.strides[d] : 0, indices.strides[d]});
  for (size_t d = batch + tuple; d < data.shape.size(); ++d, ++o)
    picking.loops.push_back({out.shape[o], out.strides[o], data.strides[d], 0});
  for (size_t k = 0; k < tuple; ++k)
    picking.indexed.push_back({data.shape[batch + k], data.strides[batch + k]});
  picking.index_step = indices.strides.back();
  return picking;
}

Picking pick(const OpDesc& desc, const TensorDesc& data, const TensorDesc& indices,
             const TensorDesc& out, const Tensor& axis) {
  if (desc.type == "Gather") return pick_gather(desc, data, indices, out, axis);
  return desc.type == "GatherND" ? pick_nd(desc, data, indices, out)
                                 : pick_elements(desc, data, indices, out);
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (outputs[0].elements() == 0) return;
  const auto rows = [](const Tensor& t) { return TensorDesc::row_major(t.type(), t.shape()); };
  Picking picking = pick(desc, rows(inputs[0]), rows(inputs[1]), rows(outputs[0]),
                         inputs.size() > 2 ? inputs[2] : Tensor());
  const std::vector<int64_t> indices = inputs[1].to_ints();
  // Copies the innermost loops that do not step through the indices at once.
  Shape inner, inner_from, inner_to, outer;
  while (!picking.loops.empty() && picking.loops.back().at == 0) {
    const Loop loop = picking.loops.back();
    inner.insert(inner.begin(), loop.size);
    inner_from.insert(inner_from.begin(), loop.from);
    inner_to.insert(inner_to.begin(), loop.to);
    picking.loops.pop_back();
  }
  for (const Loop& loop : picking.loops) outer.push_back(loop.size);
  const int64_t size = static_cast<int64_t>(size_of(outputs[0].type()));
  Shape index(outer.size(), 0);
  do {
    int64_t to = 0, from = 0, at = 0;
    for (size_t d = 0; d < outer.size(); ++d) {
      to += index[d] * picking.loops[d].to;
      from += index[d] * picking.loops[d].from;
      at += index[d] * picking.loops[d].at;
    }
    bool inside = true;
    for (size_t k = 0; k < picking.indexed.size(); ++k) {
      int64_t i = indices[static_cast<size_t>(at + static_cast<int64_t>(k) * picking.index_step)];
      if (i < 0) i += picking.indexed[k].size;
      inside = inside && i >= 0 && i < picking.indexed[k].size;
      from += inside ? i * picking.indexed[k].stride : 0;
    }
    if (inside)
      copy_strided(static_cast<size_t>(size), inner,
                   static_cast<const std::byte*>(inputs[0].raw()) + from * size, inner_from,
                   static_cast<std::byte*>(outputs[0].raw_mutable()) + to * size, inner_to);
  } while (next_index(index, outer));
}

// ---- kernel ------------------------------------------------------------------------------------

// Constant indices are packed row-major as i32, so the kernel reads them with other strides than
// run-time ones.
Picking pick_device(const OpDesc& desc) {
  TensorDesc indices = desc.inputs[1];
  if (!desc.constants[1].empty()) indices.strides = row_major_strides(indices.shape);
  return pick(desc, desc.inputs[0], indices, desc.outputs[0],
              desc.own_inputs > 2 ? desc.constants[2] : Tensor());
}

constexpr size_t kMostIndexed = 4;

// Merges loops in the output's order in memory. `at` is treated like the first bounded axis of a
// copy.
std::vector<CopyDim> merged_loops(const Picking& picking) {
  std::vector<CopyDim> dims;
  for (const Loop& loop : picking.loops) dims.push_back({loop.size, loop.from, loop.to, {loop.at}});
  return merged(dims);
}

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (!desc.tail.empty()) return "moves elements without computing, takes no tail";
  if (size_of(desc.inputs[0].type) != size_of(desc.outputs[0].type))
    return "data and output differ in element size";
  if (desc.outputs[0].elements() == 0) return "the output is empty";
  const Picking picking = pick_device(desc);
  if (picking.indexed.size() > kMostIndexed)
    return "indices of more than " + std::to_string(kMostIndexed) + " numbers";
  if (merged_loops(picking).size() > kMostCopyDims)
    return "needs more than " + std::to_string(kMostCopyDims) + " loops";
  return "";
}

std::vector<TuningPoint> space(const OpDesc&, const DeviceTraits&) { return run_space(); }
TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return run_heuristic(desc, traits);
}

std::string index_c_type(ElementType type) {
  switch (type) {
    case ElementType::i8:
      return "char";
    case ElementType::u8:
    case ElementType::boolean:
      return "uchar";
    case ElementType::i16:
      return "short";
    case ElementType::u16:
      return "ushort";
    case ElementType::i64:
    case ElementType::u64:
      return "long";
    default:
      return "int";
  }
}

std::vector<std::byte> packed_indices(const Tensor& indices) {
  const Tensor narrow = indices.convert(ElementType::i64);
  std::vector<std::byte> bytes(static_cast<size_t>(narrow.elements()) * sizeof(int32_t));
  for (int64_t i = 0; i < narrow.elements(); ++i) {
    // Replaces a value that exceeds an i32 by the smallest i32, because both are out of range in
    // any case.
    const int64_t wide = narrow.data<int64_t>()[i];
    const bool fits =
        wide >= std::numeric_limits<int32_t>::min() && wide <= std::numeric_limits<int32_t>::max();
    const int32_t value = fits ? static_cast<int32_t>(wide) : std::numeric_limits<int32_t>::min();
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
  }
  return bytes;
}

template <size_t DIMS, size_t INDEXED>
struct Args {
#include "kernels/indexing/gather_args.cl"
};

template <size_t DIMS, size_t INDEXED>
Argument arguments_of(const Picking& picking, const std::vector<CopyDim>& dims, int64_t run) {
  Args<DIMS, INDEXED> args{};
  set_loops(args, dims);
  set_each(args.at, dims, [](const CopyDim& d) { return d.along[0]; });
  set_each(args.indexed_size, picking.indexed, &Indexed::size);
  set_each(args.indexed_stride, picking.indexed, &Indexed::stride);
  args.index_step = to_int(picking.index_step), args.run = to_int(run);
  return Argument::value(args);
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Picking picking = pick_device(desc);
  std::vector<CopyDim> dims = merged_loops(picking);
  const size_t loops = dims.size() <= 4 ? 4 : kMostCopyDims;
  const int64_t run = point["RUN"];
  const size_t group = run_group(traits);
  const bool is_constant = !desc.constants[1].empty();
  const ElementType index_type = is_constant ? ElementType::i32 : desc.inputs[1].type;
  KernelPlan result;
  KernelSpec spec;
  spec.source = "gather.cl";
  spec.defines = {{"E", moved_type(desc.outputs[0].type)},
                  {"INDEX", index_c_type(index_type)},
                  {"DIMS", std::to_string(loops)},
                  {"INDEXED", std::to_string(picking.indexed.size())},
                  {"GROUP", std::to_string(group)}};
  spec.global[0] = run_items(dims, run, group);
  spec.local[0] = group;
  std::reverse(dims.begin(), dims.end());
  dims.resize(loops);
  const Argument args = with_count<4, kMostCopyDims>(loops, [&](auto dim_count) {
    return with_count<1, 2, 3, kMostIndexed>(picking.indexed.size(), [&](auto indexed_count) {
      return arguments_of<dim_count, indexed_count>(picking, dims, run);
    });
  });
  spec.arguments = {
      Argument::input(0, size_of(desc.inputs[0].type)),
      is_constant ? Argument::packed(0, sizeof(int32_t)) : Argument::input(1, size_of(index_type)),
      Argument::output(0, size_of(desc.outputs[0].type)), args};
  if (is_constant)
    result.packed.push_back([indices = desc.constants[1]] { return packed_indices(indices); });
  result.launches.push_back(std::move(spec));
  return result;
}

const KernelFamily kGather{"gather", 1, reject, space, heuristic, plan};

OpDef gather_op(const char* type, int first_opset,
                std::vector<ValueInfo> (*infer)(const ShapeContext&)) {
  return {.type = type,
          .opsets = opset_range(first_opset),
          .infer_shapes = infer,
          .evaluate = evaluate,
          .families = {&kGather},
          .layout = LayoutRule::follow};
}

}  // namespace

std::vector<OpDef> gather_ops() {
  return {gather_op("Gather", 1, infer_gather), gather_op("GatherElements", 6, infer_elements),
          gather_op("GatherND", 5, infer_nd)};
}

}  // namespace clinfer
