// DepthToSpace, SpaceToDepth, BatchToSpace, SpaceToBatch and ShuffleChannels split the coordinates
// of elements and join the parts in another order. Each is a strided copy with a loop for every
// part of a coordinate; ShuffleChannels is written as a Transpose.
#include <algorithm>
#include <numeric>

#include "kernels/expand.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// The copy for any of these operations between two layouts. `blocks` and `begin` are the constant
// inputs of BatchToSpace and SpaceToBatch.
struct Memory {
  const TensorDesc &in, &out;
  std::vector<int64_t> blocks, begin;
};

// ---- DepthToSpace, SpaceToDepth ----------------------------------------------------------------

struct Blocks {
  int64_t size, all;  // along one dimension, and of all spatial dimensions
  bool depth_first;
};

Blocks read_blocks(const Attributes& a, const Shape& in) {
  check_rank(in, 3, 5, "the input");
  Blocks b{a.get_int("block_size", 1), 1, false};
  if (b.size < 1 || b.size > 1 << 10)
    fail_model("block_size " + std::to_string(b.size) + " is out of range");
  for (size_t d = 2; d < in.size(); ++d) b.all *= b.size;
  const std::string mode = a.get_string("mode");
  if (mode != "blocks_first" && mode != "depth_first") fail_model("mode \"" + mode + "\"");
  b.depth_first = mode == "depth_first";
  return b;
}

std::vector<ValueInfo> infer_to_space(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  ValueInfo out{context.inputs[0].type, context.inputs[0].shape};
  const Blocks b = read_blocks(context.attributes, out.shape);
  if (out.shape[1] % b.all != 0)
    fail_model("channels of " + to_string(out.shape) + " are no multiple of " +
               std::to_string(b.all));
  out.shape[1] /= b.all;
  for (size_t d = 2; d < out.shape.size(); ++d)
    out.shape[d] = checked_product(out.shape[d], b.size);
  checked_count(out.shape);
  return {out};
}

std::vector<ValueInfo> infer_to_depth(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  ValueInfo out{context.inputs[0].type, context.inputs[0].shape};
  const Blocks b = read_blocks(context.attributes, out.shape);
  for (size_t d = 2; d < out.shape.size(); ++d) {
    if (out.shape[d] % b.size != 0)
      fail_model("block_size " + std::to_string(b.size) + " does not divide " +
                 to_string(context.inputs[0].shape));
    out.shape[d] /= b.size;
  }
  out.shape[1] = checked_product(out.shape[1], b.all);
  checked_count(out.shape);
  return {out};
}

// Copies from `deep`, which has the blocks in its channels, to `wide`, which has them in its
// spatial dimensions.
std::vector<CopyDim> block_loops(const Blocks& b, const TensorDesc& deep, const TensorDesc& wide) {
  const int64_t channels = wide.shape[1];
  std::vector<CopyDim> loops{
      {wide.shape[0], deep.strides[0], wide.strides[0]},
      {channels, deep.strides[1] * (b.depth_first ? b.all : 1), wide.strides[1]}};
  int64_t step = deep.strides[1] * (b.depth_first ? 1 : channels);  // of the last block coordinate
  for (size_t d = wide.shape.size(); d-- > 2;) {
    loops.push_back({b.size, step, wide.strides[d]});
    loops.push_back({deep.shape[d], deep.strides[d], wide.strides[d] * b.size});
    step *= b.size;
  }
  return loops;
}

StridedCopy to_space(const OpDesc& desc, const Memory& m) {
  StridedCopy copy;
  copy.dims = block_loops(read_blocks(desc.attributes, m.in.shape), m.in, m.out);
  return copy;
}

StridedCopy to_depth(const OpDesc& desc, const Memory& m) {
  StridedCopy copy;
  copy.dims = block_loops(read_blocks(desc.attributes, m.in.shape), m.out, m.in);
  for (CopyDim& d : copy.dims) std::swap(d.from, d.to);
  return copy;
}

// ---- BatchToSpace, SpaceToBatch ----------------------------------------------------------------

struct BatchBlocks {
  std::vector<int64_t> blocks, begin, end;
  int64_t all = 1;
};

BatchBlocks read_batch_blocks(const ShapeContext& context, const char* margins) {
  check_inputs(context, 4, 4);
  const Shape& in = context.inputs[0].shape;
  check_rank(in, 2, 5, "the input");
  BatchBlocks b{constant_ints(context, 1, "block_shape"), constant_ints(context, 2, margins),
                constant_ints(context, 3, margins)};
  if (b.blocks.size() != in.size() || b.begin.size() != in.size() || b.end.size() != in.size())
    fail_model("block_shape and " + std::string(margins) +
               " must have an entry for each dimension");
  for (size_t d = 0; d < in.size(); ++d) {
    if (b.blocks[d] < 1 || (d == 0 && b.blocks[d] != 1))
      fail_model("block_shape " + to_string(b.blocks));
    if (b.begin[d] < 0 || b.end[d] < 0 || (d == 0 && (b.begin[d] != 0 || b.end[d] != 0)))
      fail_model(std::string(margins) + " " + to_string(b.begin) + ", " + to_string(b.end));
    b.all = checked_product(b.all, b.blocks[d]);
  }
  return b;
}

std::vector<ValueInfo> infer_batch_to_space(const ShapeContext& context) {
  const BatchBlocks b = read_batch_blocks(context, "crops");
  ValueInfo out{context.inputs[0].type, context.inputs[0].shape};
  if (out.shape[0] % b.all != 0)
    fail_model("batch of " + to_string(out.shape) + " is no multiple of " + std::to_string(b.all));
  out.shape[0] /= b.all;
  for (size_t d = 1; d < out.shape.size(); ++d) {
    const int64_t size = checked_product(out.shape[d], b.blocks[d]);
    if (b.begin[d] > size || b.end[d] > size - b.begin[d])
      fail_model("crops take more than there is");
    out.shape[d] = size - b.begin[d] - b.end[d];
  }
  checked_count(out.shape);
  return {out};
}

std::vector<ValueInfo> infer_space_to_batch(const ShapeContext& context) {
  const BatchBlocks b = read_batch_blocks(context, "pads");
  ValueInfo out{context.inputs[0].type, context.inputs[0].shape};
  for (size_t d = 1; d < out.shape.size(); ++d) {
    int64_t size = out.shape[d];
    if (__builtin_add_overflow(size, b.begin[d], &size) ||
        __builtin_add_overflow(size, b.end[d], &size) || size % b.blocks[d] != 0)
      fail_model("block_shape does not divide the padded dimension " + std::to_string(d));
    out.shape[d] = size / b.blocks[d];
  }
  out.shape[0] = checked_product(out.shape[0], b.all);
  checked_count(out.shape);
  return {out};
}

// `deep` has the blocks in its batch; `wide` has them in its other dimensions, without the first
// `begin` elements (and without the cropped ones at the end).
std::vector<CopyDim> batch_loops(const Memory& m, const TensorDesc& deep, const TensorDesc& wide,
                                 StridedCopy& copy, bool wide_is_input) {
  std::vector<CopyDim> loops{{wide.shape[0], deep.strides[0], wide.strides[0]}};
  int64_t step = deep.strides[0] * wide.shape[0];
  for (size_t d = wide.shape.size(); d-- > 1;) {
    CopyDim block{m.blocks[d], step, wide.strides[d]};
    CopyDim cell{deep.shape[d], deep.strides[d], wide.strides[d] * m.blocks[d]};
    (wide_is_input ? copy.from : copy.to) -= m.begin[d] * wide.strides[d];
    if (deep.shape[d] * m.blocks[d] != wide.shape[d]) {
      copy.start[copy.axes] = -m.begin[d];
      copy.limit[copy.axes] = wide.shape[d];
      block.along[copy.axes] = 1;
      cell.along[copy.axes] = m.blocks[d];
      ++copy.axes;
    }
    loops.push_back(block);
    loops.push_back(cell);
    step *= m.blocks[d];
  }
  return loops;
}

StridedCopy batch_to_space(const OpDesc&, const Memory& m) {
  StridedCopy copy;
  copy.dims = batch_loops(m, m.in, m.out, copy, false);
  return copy;
}

StridedCopy space_to_batch(const OpDesc&, const Memory& m) {
  StridedCopy copy;
  copy.dims = batch_loops(m, m.out, m.in, copy, true);
  for (CopyDim& d : copy.dims) std::swap(d.from, d.to);
  copy.fill = true;
  return copy;
}

// ---- ShuffleChannels ---------------------------------------------------------------------------

void shuffle(Expansion& x) {
  check_inputs(x.context(), 1, 1);
  const Shape in = x.shape(0);
  const Attributes& attributes = x.context().attributes;
  const size_t axis = checked_axis(attributes.get_int("axis", 1), in.size(), "axis");
  const int64_t groups = attributes.get_int("group", 1);
  if (groups < 1 || in[axis] % groups != 0)
    fail_model(std::to_string(groups) + " groups do not divide dimension " + std::to_string(axis) +
               " of " + to_string(in));
  Shape apart = in;
  apart[axis] /= groups;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), groups);
  std::vector<int64_t> order(apart.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[axis], order[axis + 1]);
  x.outputs = {x.reshape(x.transpose(x.reshape(0, apart), order), in)};
}

// ---- shared ------------------------------------------------------------------------------------

using Describe = StridedCopy (*)(const OpDesc&, const Memory&);

template <Describe describe>
StridedCopy on_device(const OpDesc& desc) {
  const auto ints = [&](size_t i) {
    return i < desc.own_inputs ? desc.constants[i].to_ints() : std::vector<int64_t>();
  };
  return describe(desc, {desc.inputs[0], desc.outputs[0], ints(1), ints(2)});
}

template <Describe describe>
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const auto ints = [&](size_t i) {
    return i < inputs.size() ? inputs[i].to_ints() : std::vector<int64_t>();
  };
  const TensorDesc in = TensorDesc::row_major(inputs[0].type(), inputs[0].shape());
  const TensorDesc out = TensorDesc::row_major(outputs[0].type(), outputs[0].shape());
  copy_on_host(describe(desc, {in, out, ints(1), ints(2)}), inputs[0], outputs[0]);
}

const KernelFamily kToSpace = copy_family<on_device<to_space>>("depth_to_space");
const KernelFamily kToDepth = copy_family<on_device<to_depth>>("space_to_depth");
const KernelFamily kBatchToSpace = copy_family<on_device<batch_to_space>>("batch_to_space");
const KernelFamily kSpaceToBatch = copy_family<on_device<space_to_batch>>("space_to_batch");

}  // namespace

std::vector<OpDef> depth_space_ops() {
  return {{.type = "DepthToSpace",
           .opsets = opset_range(1),
           .infer_shapes = infer_to_space,
           .evaluate = evaluate<to_space>,
           .families = {&kToSpace},
           .layout = LayoutRule::image},
          {.type = "SpaceToDepth",
           .opsets = opset_range(1),
           .infer_shapes = infer_to_depth,
           .evaluate = evaluate<to_depth>,
           .families = {&kToDepth},
           .layout = LayoutRule::image},
          {.type = "BatchToSpace",
           .opsets = opset_range(2),
           .infer_shapes = infer_batch_to_space,
           .evaluate = evaluate<batch_to_space>,
           .families = {&kBatchToSpace},
           .layout = LayoutRule::image},
          {.type = "SpaceToBatch",
           .opsets = opset_range(2),
           .infer_shapes = infer_space_to_batch,
           .evaluate = evaluate<space_to_batch>,
           .families = {&kSpaceToBatch},
           .layout = LayoutRule::image},
          expanded_op("ShuffleChannels", opset_range(1), shuffle)};
}

}  // namespace clinfer
