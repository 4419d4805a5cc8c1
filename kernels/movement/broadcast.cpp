// Broadcast: a view whose repeated dimensions have stride 0. Tile: needs a copy, except for repeats
// of a single element.
#include <algorithm>

#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// ---- Broadcast ---------------------------------------------------------------------------------

enum class Mode { numpy, bidirectional, explicit_axes };

Mode mode_of(const Attributes& attributes, int opset) {
  std::string mode = attributes.get_string("mode", "numpy");
  std::transform(mode.begin(), mode.end(), mode.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (mode == "numpy") return Mode::numpy;
  if (mode == "explicit" || mode == "none") return Mode::explicit_axes;  // an IR may contain either
  if (mode == "bidirectional" && opset >= 3) return Mode::bidirectional;
  fail_unsupported("mode \"" + mode + "\" of opset" + std::to_string(opset));
}

// Returns the output dimension of each input dimension.
std::vector<size_t> aligned(const Shape& in, const Shape& out) {
  std::vector<size_t> axes;
  for (size_t d = 0; d < in.size(); ++d) axes.push_back(out.size() - in.size() + d);
  return axes;
}

std::vector<size_t> mapped(const std::vector<int64_t>& mapping, const Shape& in, const Shape& out) {
  // The axis is optional for a scalar or one-element input.
  if (mapping.size() != in.size() && !(in.empty() && mapping.size() == 1))
    fail_model("axes_mapping has " + std::to_string(mapping.size()) + " entries for " +
               std::to_string(in.size()) + " dimensions");
  std::vector<size_t> axes;
  for (size_t d = 0; d < in.size(); ++d) {
    if (mapping[d] < 0 || mapping[d] >= static_cast<int64_t>(out.size()) ||
        (d > 0 && mapping[d] <= mapping[d - 1]))
      fail_model("axes_mapping " + to_string(mapping) + " must rise and name dimensions of " +
                 to_string(out));
    axes.push_back(static_cast<size_t>(mapping[d]));
  }
  return axes;
}

std::vector<ValueInfo> infer_broadcast(const ShapeContext& context) {
  check_inputs(context, 2, 3);
  const ValueInfo& in = context.inputs[0];
  Shape target = constant_ints(context, 1, "the target shape");
  checked_count(target);
  const Mode mode = mode_of(context.attributes, context.opset);
  const auto impossible = [&] {
    fail_model("cannot broadcast " + to_string(in.shape) + " to " + to_string(target));
  };
  if (mode == Mode::bidirectional) {
    Shape out(std::max(in.shape.size(), target.size()), 1);
    for (size_t i = 0; i < out.size(); ++i) {
      const auto dim = [&](const Shape& shape) {
        return i < out.size() - shape.size() ? 1 : shape[i - (out.size() - shape.size())];
      };
      if (dim(in.shape) != dim(target) && dim(in.shape) != 1 && dim(target) != 1) impossible();
      out[i] = dim(in.shape) == 1 ? dim(target) : dim(in.shape);
    }
    checked_count(out);
    return {{in.type, out}};
  }
  if (target.size() < in.shape.size()) impossible();
  const std::vector<size_t> axes =
      mode == Mode::explicit_axes
          ? mapped(constant_ints(context, 2, "axes_mapping"), in.shape, target)
          : aligned(in.shape, target);
  for (size_t d = 0; d < axes.size(); ++d)
    if (in.shape[d] != 1 && in.shape[d] != target[axes[d]]) impossible();
  return {{in.type, target}};
}

TensorDesc broadcast(const TensorDesc& in, const Shape& out, const std::vector<size_t>& axes) {
  TensorDesc view{in.type, out, Shape(out.size(), 0), in.offset};
  for (size_t d = 0; d < axes.size(); ++d)
    if (in.shape[d] != 1) view.strides[axes[d]] = in.strides[d];
  return view;
}

std::vector<size_t> axes_of(const OpDesc& desc, const Shape& in, const Shape& out,
                            std::span<const Tensor> inputs) {
  if (mode_of(desc.attributes, desc.opset) == Mode::explicit_axes)
    return mapped(inputs[2].to_ints(), in, out);
  return aligned(in, out);
}

void evaluate_broadcast(const OpDesc& desc, std::span<const Tensor> inputs,
                        std::span<Tensor> outputs) {
  const TensorDesc in = TensorDesc::row_major(inputs[0].type(), inputs[0].shape());
  const Shape& out = outputs[0].shape();
  copy_view(inputs[0], broadcast(in, out, axes_of(desc, in.shape, out, inputs)), outputs[0]);
}

std::optional<std::vector<TensorDesc>> view_broadcast(const OpDesc& desc) {
  const TensorDesc& in = desc.inputs[0];
  const Shape& out = desc.outputs[0].shape;
  return {{broadcast(in, out, axes_of(desc, in.shape, out, desc.constants))}};
}

// ---- Tile --------------------------------------------------------------------------------------

std::vector<ValueInfo> infer_tile(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const ValueInfo& in = context.inputs[0];
  const std::vector<int64_t> repeats = constant_ints(context, 1, "the repeats");
  Shape out(std::max(in.shape.size(), repeats.size()), 1);
  for (size_t i = 0; i < in.shape.size(); ++i) out[out.size() - in.shape.size() + i] = in.shape[i];
  for (size_t i = 0; i < repeats.size(); ++i) {
    int64_t& dim = out[out.size() - repeats.size() + i];
    dim = checked_product(dim, repeats[i]);
  }
  checked_count(out);
  return {{in.type, out}};
}

// Makes two loops for each dimension: through the input, and through its repetitions.
StridedCopy describe_tile(const TensorDesc& in, const TensorDesc& out) {
  StridedCopy copy;
  for (size_t d = 0; d < out.shape.size(); ++d) {
    const size_t missing = out.shape.size() - in.shape.size();
    const int64_t size = d < missing ? 1 : in.shape[d - missing];
    if (size == 0) return copy;
    const int64_t stride = d < missing ? 0 : in.strides[d - missing];
    copy.dims.push_back({out.shape[d] / size, 0, out.strides[d] * size});
    copy.dims.push_back({size, stride, out.strides[d]});
  }
  return copy;
}

StridedCopy describe_tile_op(const OpDesc& desc) {
  return describe_tile(desc.inputs[0], desc.outputs[0]);
}

void evaluate_tile(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_on_host(describe_tile(TensorDesc::row_major(inputs[0].type(), inputs[0].shape()),
                             TensorDesc::row_major(outputs[0].type(), outputs[0].shape())),
               inputs[0], outputs[0]);
}

const KernelFamily kTile = copy_family<describe_tile_op>("tile");

}  // namespace

std::vector<OpDef> broadcast_ops() {
  return {{.type = "Broadcast",
           .opsets = opset_range(1),
           .infer_shapes = infer_broadcast,
           .evaluate = evaluate_broadcast,
           .layout = LayoutRule::follow,
           .view = view_broadcast},
          {.type = "Tile",
           .opsets = opset_range(1),
           .infer_shapes = infer_tile,
           .evaluate = evaluate_tile,
           .families = {&kTile},
           .layout = LayoutRule::follow}};
}

}  // namespace clinfer
