// Sets the arguments of the general convolution (convolution_general.cl).
#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/item_kernel.h"

namespace clinfer {

namespace {

struct Args {
#include "kernels/convolution/convolution_general_args.cl"
};

}  // namespace

std::array<int64_t, 6> filter_strides(const TensorDesc& filter, bool grouped, bool transposed) {
  const Shape& strides = filter.strides;
  const size_t rank = strides.size(), spatial = rank - 2 - grouped;
  return {grouped ? strides[0] : 0,
          strides[grouped + transposed],
          strides[grouped + !transposed],
          spatial == 3 ? strides[rank - 3] : 0,
          spatial >= 2 ? strides[rank - 2] : 0,
          strides[rank - 1]};
}

std::string reject_general_convolution(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_storage(desc, 2); !why.empty()) return why;
  if (!is_float(desc.inputs[1].type)) return "the weights are not of a float type";
  return reject_tail(desc, 1, spatial_axes(desc.outputs[0].shape.size()));
}

KernelPlan general_convolution(const OpDesc& desc, const ConvShape& s, bool transposed,
                               const GeneralWeights& weights, const TuningPoint& point) {
  const PixelStrides in = pixel_strides(desc.inputs[0]), out = pixel_strides(desc.outputs[0]);
  const ElementType type = desc.inputs[0].type,
                    weight_type = weights.constants ? type : desc.inputs[1].type;
  const size_t size = size_of(type), weight_size = size_of(weight_type);
  const int64_t elements = desc.outputs[0].elements();
  Args args{};
  set_strides(args, in, out);
  args.w_group = to_int(weights.strides[0]);
  args.w_out = to_int(weights.strides[1]), args.w_in = to_int(weights.strides[2]);
  args.w_d = to_int(weights.strides[3]);
  args.w_h = to_int(weights.strides[4]), args.w_w = to_int(weights.strides[5]);
  set_geometry(args, s);
  args.in_channels = to_int(s.in_channels);
  args.out_channels = to_int(s.out_channels);
  args.all_channels = to_int(s.groups * s.out_channels);
  args.elements = to_int(elements);

  KernelPlan plan;
  KernelSpec spec;
  spec.source = "convolution_general.cl";
  spec.arguments = {
      Argument::input(0, size),
      weights.constants ? Argument::packed(0, weight_size) : Argument::input(1, weight_size),
      Argument::output(0, size), Argument::value(args)};
  if (weights.constants)
    plan.packed.push_back(
        [constants = weights.constants, type] { return to_bytes(constants(), type); });
  const bool channels_inner = transposed || out.c == 1 || s.pixels() == 1;
  spec.defines = {{"T", storage_name(type)},
                  {"WT", storage_name(weight_type)},
                  {"TRANSPOSED", transposed ? "1" : "0"},
                  {"CHANNELS_INNER", channels_inner ? "1" : "0"}};
  add_tail(desc, 1, spatial_axes(desc.outputs[0].shape.size()), spec, plan);
  set_items(spec, elements, point);
  plan.launches.push_back(std::move(spec));
  return plan;
}

}  // namespace clinfer
