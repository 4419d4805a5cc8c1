// BinaryConvolution: data above 0 is +1, else -1; weights are bits, 1 for +1 and 0 for -1.
#include <algorithm>

#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/item_kernel.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

ConvShape resolve(const OpDesc& desc) {
  return resolve_convolution("Convolution", desc.attributes, desc.inputs[0].shape,
                             desc.inputs[1].shape);
}

// Returns the value of pixels outside of the image: -1, 0 or +1.
int64_t pad_sign(const Attributes& a) {
  const double value = a.get_float("pad_value", 0);
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  if (context.attributes.get_string("mode", "xnor-popcount") != "xnor-popcount")
    fail_unsupported("mode \"" + context.attributes.get_string("mode") + "\"");
  const Shape& data = context.inputs[0].shape;
  check_rank(data, 4, 4, "the data");
  if (is_float(context.inputs[1].type)) fail_model("the weights are not bits");
  const ConvShape s =
      resolve_convolution("Convolution", context.attributes, data, context.inputs[1].shape);
  return {{context.inputs[0].type, {s.batch, s.out_channels, s.out[1], s.out[2]}, {}}};
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const ConvShape s =
      resolve_convolution("Convolution", desc.attributes, inputs[0].shape(), inputs[1].shape());
  const std::vector<float> data = inputs[0].to_floats();
  const std::vector<int64_t> bits = inputs[1].to_ints();
  const int64_t pad = pad_sign(desc.attributes);
  float* out = outputs[0].mutable_data<float>();
  Shape at(4, 0);
  if (outputs[0].elements() == 0) return;
  do {
    int64_t sum = 0;
    auto bit = static_cast<size_t>(at[1] * s.in_channels * s.taps());
    for (int64_t i = 0; i < s.in_channels; ++i)
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        const int64_t y = at[2] * s.stride[1] - s.pad[1] + tap / s.kernel[2] * s.dilation[1],
                      x = at[3] * s.stride[2] - s.pad[2] + tap % s.kernel[2] * s.dilation[2];
        int64_t value = pad;
        if (y >= 0 && y < s.in[1] && x >= 0 && x < s.in[2])
          value =
              data[static_cast<size_t>(((at[0] * s.in_channels + i) * s.in[1] + y) * s.in[2] + x)] >
                      0
                  ? 1
                  : -1;
        sum += bits[bit++] ? value : -value;
      }
    *out++ = static_cast<float>(sum);
  } while (next_index(at, outputs[0].shape()));
}

// ---- kernel ------------------------------------------------------------------------------------

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  if (std::string why = reject_storage(desc, 1); !why.empty()) return why;
  return reject_tail(desc, 1, spatial_axes(4));
}

struct Args {
#include "kernels/convolution/binary_convolution_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const ConvShape s = resolve(desc);
  const PixelStrides in = pixel_strides(desc.inputs[0]), out = pixel_strides(desc.outputs[0]);
  const ElementType type = desc.inputs[0].type;
  const size_t size = size_of(type);
  const int64_t words = (s.in_channels + 31) / 32, packed = s.batch * s.in[1] * s.in[2] * words;
  const auto args = [&](int64_t items) {
    Args a{};
    set_strides(a, in, out);
    set_geometry(a, s);
    a.in_channels = to_int(s.in_channels);
    a.out_channels = to_int(s.out_channels);
    a.words = to_int(words);
    a.pad = to_int(pad_sign(desc.attributes));
    a.items = to_int(items);
    return Argument::value(a);
  };
  KernelPlan plan;
  plan.workspace = static_cast<size_t>(packed) * sizeof(uint32_t);
  plan.packed.push_back([weights = desc.constants[1], s, words] {
    const std::vector<int64_t> bits = weights.to_ints();
    std::vector<uint32_t> to(static_cast<size_t>(s.out_channels * s.taps() * words), 0);
    auto bit = bits.begin();
    for (int64_t o = 0; o < s.out_channels; ++o)
      for (int64_t i = 0; i < s.in_channels; ++i)
        for (int64_t t = 0; t < s.taps(); ++t)
          to[static_cast<size_t>((o * s.taps() + t) * words + i / 32)] |=
              static_cast<uint32_t>(*bit++ != 0) << i % 32;
    std::vector<std::byte> bytes(to.size() * sizeof(uint32_t));
    std::memcpy(bytes.data(), to.data(), bytes.size());
    return bytes;
  });
  KernelSpec pack;
  pack.source = "binary_convolution.cl";
  pack.defines = {{"T", storage_name(type)}, {"STEP", "0"}};
  pack.arguments = {Argument::input(0, size), Argument::workspace(sizeof(uint32_t)), args(packed)};
  set_items(pack, packed, point);

  KernelSpec count = pack;
  count.defines = {{"T", storage_name(type)}, {"STEP", "1"}};
  count.arguments = {Argument::workspace(sizeof(uint32_t)), Argument::packed(0, sizeof(uint32_t)),
                     Argument::output(0, size), args(desc.outputs[0].elements())};
  add_tail(desc, 1, spatial_axes(4), count, plan);
  set_items(count, desc.outputs[0].elements(), point);
  plan.launches = {std::move(pack), std::move(count)};
  return plan;
}

const KernelFamily kBinary{"binary_conv", 1, reject, item_space, item_heuristic, plan};

}  // namespace

std::vector<OpDef> binary_convolution_ops() {
  return {{.type = "BinaryConvolution",
           .opsets = {1},
           .infer_shapes = infer_shapes,
           .evaluate = evaluate,
           .families = {&kBinary},
           .layout = LayoutRule::image}};
}

}  // namespace clinfer
