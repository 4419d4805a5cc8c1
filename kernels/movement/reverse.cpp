// Reverse: a view with negative strides. ReverseSequence: reverses the first elements along an
// axis; an input states their number for each batch item.
#include <algorithm>

#include "kernels/expand.h"
#include "kernels/movement/index_range.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// ---- Reverse -----------------------------------------------------------------------------------

std::vector<bool> reversed_axes(const Attributes& attributes, const std::vector<int64_t>& values,
                                size_t rank) {
  const std::string mode = attributes.get_string("mode");
  std::vector<bool> reversed(rank, false);
  if (mode == "mask") {
    if (values.size() != rank)
      fail_model("the mask has " + std::to_string(values.size()) + " entries for " +
                 std::to_string(rank) + " dimensions");
    for (size_t d = 0; d < rank; ++d) reversed[d] = values[d] != 0;
  } else if (mode == "index") {
    for (int64_t axis : values) reversed[checked_axis(axis, rank, "axis")] = true;
  } else {
    fail_model("mode \"" + mode + "\"");
  }
  return reversed;
}

std::vector<ValueInfo> infer_reverse(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  reversed_axes(context.attributes, constant_ints(context, 1, "the axes"), in.shape.size());
  return {{in.type, in.shape}};
}

TensorDesc reversed(const OpDesc& desc, TensorDesc view, const Tensor& axes) {
  const std::vector<bool> chosen =
      reversed_axes(desc.attributes, axes.to_ints(), view.shape.size());
  if (view.elements() == 0) return view;
  for (size_t d = 0; d < chosen.size(); ++d) {
    if (!chosen[d] || view.shape[d] == 1) continue;
    view.offset += (view.shape[d] - 1) * view.strides[d];
    view.strides[d] = -view.strides[d];
  }
  return view;
}

void evaluate_reverse(const OpDesc& desc, std::span<const Tensor> inputs,
                      std::span<Tensor> outputs) {
  copy_view(inputs[0],
            reversed(desc, TensorDesc::row_major(inputs[0].type(), inputs[0].shape()), inputs[1]),
            outputs[0]);
}

std::optional<std::vector<TensorDesc>> view_reverse(const OpDesc& desc) {
  return {{reversed(desc, desc.inputs[0], desc.constants[1])}};
}

// ---- ReverseSequence ---------------------------------------------------------------------------

struct SequenceAxes {
  size_t batch, sequence;
};

SequenceAxes sequence_axes(const Attributes& a, const Shape& in) {
  const SequenceAxes axes{checked_axis(a.get_int("batch_axis", 0), in.size(), "batch_axis"),
                          checked_axis(a.get_int("seq_axis", 1), in.size(), "seq_axis")};
  if (axes.batch == axes.sequence) fail_model("batch_axis and seq_axis are the same");
  return axes;
}

std::vector<ValueInfo> infer_sequence(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  const SequenceAxes axes = sequence_axes(context.attributes, in.shape);
  if (context.inputs[1].shape != Shape{in.shape[axes.batch]})
    fail_model("the lengths have the shape " + to_string(context.inputs[1].shape) + " for " +
               to_string(in.shape));
  check_range(context.inputs[1], 0, in.shape[axes.sequence], "a length");
  return {{in.type, in.shape}};
}

void evaluate_sequence(const OpDesc& desc, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const auto [batch, sequence] = sequence_axes(desc.attributes, shape);
  if (inputs[0].elements() == 0) return;
  const std::vector<int64_t> lengths = inputs[1].to_ints();
  const Shape strides = row_major_strides(shape);
  const size_t size = size_of(inputs[0].type());
  copy_all(inputs[0], outputs[0]);
  Shape part = shape, from = strides;
  part[batch] = 1;
  from[sequence] = -strides[sequence];
  for (int64_t b = 0; b < shape[batch]; ++b) {
    const int64_t length = std::clamp<int64_t>(lengths[static_cast<size_t>(b)], 0, shape[sequence]);
    if (length == 0) continue;
    part[sequence] = length;
    const int64_t first = b * strides[batch], last = first + (length - 1) * strides[sequence];
    copy_strided(
        size, part,
        static_cast<const std::byte*>(inputs[0].raw()) + last * static_cast<int64_t>(size), from,
        static_cast<std::byte*>(outputs[0].raw_mutable()) + first * static_cast<int64_t>(size),
        strides);
  }
}

// If constants state equal lengths for all items, it is a Reverse of that part.
void expand_sequence(Expansion& x) {
  if (!x.is_constant(1) || count(x.shape(0)) == 0) return;
  const std::vector<int64_t> lengths = x.info(1).value.to_ints();
  if (std::count(lengths.begin(), lengths.end(), lengths[0]) != x.shape(1)[0]) return;
  const size_t axis = sequence_axes(x.context().attributes, x.shape(0)).sequence;
  const int64_t size = x.shape(0)[axis], length = std::clamp<int64_t>(lengths[0], 0, size);
  if (length == 0) return;
  const std::string along = std::to_string(axis);
  x.outputs = {x.step("Reverse", 1,
                      {x.slice(0, axis, 0, length), x.ints({static_cast<int64_t>(axis)})},
                      {{"mode", "index"}})};
  if (length < size)
    x.outputs = {
        x.step("Concat", 1, {x.outputs[0], x.slice(0, axis, length, size)}, {{"axis", along}})};
}

}  // namespace

std::vector<OpDef> reverse_ops() {
  return {{.type = "Reverse",
           .opsets = opset_range(1),
           .infer_shapes = infer_reverse,
           .evaluate = evaluate_reverse,
           .layout = LayoutRule::follow,
           .view = view_reverse},
          {.type = "ReverseSequence",
           .opsets = opset_range(1),
           .infer_shapes = infer_sequence,
           .evaluate = evaluate_sequence,
           .expand = expand_sequence,
           .host_reason =
               "short sequences, moved once per inference; equal constant lengths are a Reverse"}};
}

}  // namespace clinfer
