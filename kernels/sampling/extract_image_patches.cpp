// ExtractImagePatches: the elements of a sliding window as channels. It is a strided copy; elements
// outside the picture are 0.
#include <algorithm>

#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// The windows' values along height and width.
struct Window {
  std::array<int64_t, 2> size, stride, rate, out, before;  // before: padding at the start
};

Window read_window(const Attributes& a, const Shape& in) {
  check_rank(in, 4, 4, "the input");
  const std::string pad = a.get_string("auto_pad", "valid");
  if (pad != "valid" && pad != "same_upper" && pad != "same_lower")
    fail_model("auto_pad \"" + pad + "\"");
  const auto two = [&](const char* name) -> std::array<int64_t, 2> {
    const std::vector<int64_t> v = a.get_ints(name);
    if (v.size() != 2 || std::min(v[0], v[1]) < 1 || std::max(v[0], v[1]) > 1 << 20)
      fail_model("attribute " + std::string(name) + " must be two positive numbers");
    return {v[0], v[1]};
  };
  Window w{two("sizes"), two("strides"), two("rates"), {}, {}};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = in[i + 2], reach = (w.size[i] - 1) * w.rate[i] + 1;
    if (pad == "valid") {
      w.out[i] = size < reach ? 0 : (size - reach) / w.stride[i] + 1;
    } else {
      w.out[i] = (size + w.stride[i] - 1) / w.stride[i];
      const int64_t padding = std::max<int64_t>((w.out[i] - 1) * w.stride[i] + reach - size, 0);
      w.before[i] = pad == "same_upper" ? padding / 2 : padding - padding / 2;
    }
  }
  return w;
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const ValueInfo& in = context.inputs[0];
  const Window w = read_window(context.attributes, in.shape);
  const Shape out{in.shape[0], checked_product(checked_product(in.shape[1], w.size[0]), w.size[1]),
                  w.out[0], w.out[1]};
  checked_count(out);
  return {{in.type, out}};
}

StridedCopy patches(const Attributes& attributes, const TensorDesc& in, const TensorDesc& out) {
  const Window w = read_window(attributes, in.shape);
  StridedCopy copy;
  copy.axes = 2;
  copy.fill = true;
  copy.dims = {{in.shape[0], in.strides[0], out.strides[0]},
               {in.shape[1], in.strides[1], out.strides[1]}};
  int64_t channel = in.shape[1] * out.strides[1];  // of the next window element
  for (size_t i = 2; i-- > 0;) {
    CopyDim cell{w.out[i], in.strides[i + 2] * w.stride[i], out.strides[i + 2]};
    CopyDim element{w.size[i], in.strides[i + 2] * w.rate[i], channel};
    cell.along[i] = w.stride[i];
    element.along[i] = w.rate[i];
    copy.start[i] = -w.before[i];
    copy.limit[i] = in.shape[i + 2];
    copy.from -= w.before[i] * in.strides[i + 2];
    copy.dims.push_back(cell);
    copy.dims.push_back(element);
    channel *= w.size[i];
  }
  return copy;
}

StridedCopy describe(const OpDesc& desc) {
  return patches(desc.attributes, desc.inputs[0], desc.outputs[0]);
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_on_host(patches(desc.attributes, TensorDesc::row_major(inputs[0].type(), inputs[0].shape()),
                       TensorDesc::row_major(outputs[0].type(), outputs[0].shape())),
               inputs[0], outputs[0]);
}

const KernelFamily kPatches = copy_family<describe>("image_patches");

}  // namespace

std::vector<OpDef> extract_image_patches_ops() {
  return {{.type = "ExtractImagePatches",
           .opsets = opset_range(3),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .families = {&kPatches},
           .layout = LayoutRule::image}};
}

}  // namespace clinfer
