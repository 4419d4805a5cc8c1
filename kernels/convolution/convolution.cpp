// Convolution and GroupConvolution: shapes, plain reference, and the families.
#include <algorithm>

#include "kernels/convolution/intel/convolution_subgroup.h"
#include "kernels/convolution/intel/convolution_xmx16.h"
#include "kernels/convolution/intel/convolution_xmx8.h"
#include "kernels/convolution/nvidia/convolution_mma.h"
#include "kernels/convolution/nvidia/convolution_wgmma.h"
#include "kernels/convolution/processors/convolution_amx.h"
#include "kernels/convolution/processors/convolution_bf16.h"
#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/convolution/tiles/tile_family.h"
#include "kernels/expand.h"
#include "kernels/item_kernel.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const Shape& data = context.inputs[0].shape;
  const ConvShape s =
      resolve_convolution(context.type, context.attributes, data, context.inputs[1].shape);
  const ElementType type = context.inputs[0].type;  // sums of quantised values are floats
  return {{is_quantized(type) ? ElementType::f32 : type, s.output(data.size()), {}}};
}

// Sums in double, one row of outputs at a time.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const ConvShape s =
      resolve_convolution(desc.type, desc.attributes, inputs[0].shape(), inputs[1].shape());
  const std::vector<float> data = data_values(desc, inputs[0]), filter = inputs[1].to_floats();
  Tensor result = Tensor::allocate(ElementType::f32, outputs[0].shape());
  float* out = result.mutable_data<float>();
  const int64_t plane = s.in[0] * s.in[1] * s.in[2];
  std::vector<double> sums(static_cast<size_t>(s.out[2]));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.groups * s.out_channels; ++c) {
      const int64_t group = c / s.out_channels;
      for (int64_t z = 0; z < s.out[0]; ++z)
        for (int64_t y = 0; y < s.out[1]; ++y) {
          std::fill(sums.begin(), sums.end(), 0.0);
          const float* w = filter.data() + c * s.in_channels * s.taps();
          for (int64_t i = 0; i < s.in_channels; ++i) {
            const float* channel =
                data.data() + (n * s.groups * s.in_channels + group * s.in_channels + i) * plane;
            for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
              for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
                for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
                  const double weight = *w++;
                  const int64_t iz = z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
                  const int64_t iy = y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
                  if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) continue;
                  const float* row = channel + (iz * s.in[1] + iy) * s.in[2];
                  // Finds the outputs whose input column ix = x * stride + shift lies inside the
                  // input.
                  const int64_t shift = kx * s.dilation[2] - s.pad[2], step = s.stride[2];
                  const int64_t low = shift < 0 ? ceil_div(-shift, step) : 0;
                  const int64_t high =
                      s.in[2] > shift ? std::min(s.out[2], ceil_div(s.in[2] - shift, step)) : 0;
                  for (int64_t x = low; x < high; ++x) sums[x] += weight * row[x * step + shift];
                }
          }
          for (double sum : sums) *out++ = static_cast<float>(sum);
        }
    }
  outputs[0] = result.convert(outputs[0].type());
}

ConvShape resolve(const OpDesc& desc) {
  return resolve_convolution(desc.type, desc.attributes, desc.inputs[0].shape,
                             desc.inputs[1].shape);
}

// ---- tile --------------------------------------------------------------------------------------

std::string reject_conv_tile(const OpDesc& desc, const DeviceTraits& traits) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  return reject_tile(desc, convolution_problem(desc), traits);
}

const KernelFamily kTile =
    tile_family<convolution_problem, tile_space, tile_heuristic, tile_plan, tile_costs>(
        "conv_tile", 3, reject_conv_tile);

// ---- sub-groups --------------------------------------------------------------------------------

const KernelFamily kSubgroup = tile_family<convolution_problem, subgroup_space, subgroup_heuristic,
                                           subgroup_plan, subgroup_costs>(
    "conv_subgroup", 2, [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
      if (desc.constants[1].empty()) return "the weights are not constant";
      return reject_subgroup(desc, convolution_problem(desc), traits);
    });

const KernelFamily kXmx8 =
    tile_family<convolution_problem, xmx8_space, xmx8_heuristic, xmx8_plan, xmx8_costs>(
        "conv_xmx8", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (desc.constants[1].empty()) return "the weights are not constant";
          return reject_xmx8(desc, convolution_problem(desc), traits);
        },
        kMatrixOrder);

const KernelFamily kXmx16 =
    tile_family<convolution_problem, xmx16_space, xmx16_heuristic, xmx16_plan, xmx16_costs>(
        "conv_xmx16", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (desc.constants[1].empty()) return "the weights are not constant";
          return reject_xmx16(desc, convolution_problem(desc), traits);
        },
        kMatrixOrder);

// ---- general -----------------------------------------------------------------------------------

KernelPlan general_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const ConvShape s = resolve(desc);
  GeneralWeights weights;
  if (desc.constants[1].empty()) {
    weights.strides = filter_strides(desc.inputs[1], desc.type == "GroupConvolution", false);
  } else {  // [group][output channel][tap][input channel]
    const int64_t w = s.in_channels, h = s.kernel[2] * w, d = s.kernel[1] * h,
                  out = s.kernel[0] * d;
    weights.strides = {s.out_channels * out, out, 1, d, h, w};
    weights.constants = convolution_problem(desc).weights;
  }
  return general_convolution(desc, s, false, weights, point);
}

const KernelFamily kGeneral{"conv_general", 1,           reject_general_convolution, item_space,
                            item_heuristic, general_plan};

// ---- bytes -------------------------------------------------------------------------------------

const KernelFamily kInt8 =
    tile_family<convolution_problem, int8_space, int8_heuristic, int8_plan, int8_costs>(
        "conv_int8", 1, [](const OpDesc& desc, const DeviceTraits& traits) {
          return reject_int8(desc, convolution_problem(desc), traits);
        });

// ---- AMX ---------------------------------------------------------------------------------------

const KernelFamily kAmx =
    tile_family<convolution_problem, amx_space, amx_heuristic, amx_plan, amx_costs>(
        "conv_amx", 1, [](const OpDesc& desc, const DeviceTraits& traits) {
          return reject_amx(desc, convolution_problem(desc), traits);
        });

// ---- bf16 --------------------------------------------------------------------------------------

const KernelFamily kBf16 =
    tile_family<convolution_problem, bf16_space, bf16_heuristic, bf16_plan, bf16_costs>(
        "conv_bf16", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (desc.constants[1].empty()) return "the weights are not constant";
          return reject_bf16(desc, convolution_problem(desc), traits);
        },
        kMatrixOrder);

// ---- matrix instructions -----------------------------------------------------------------------

const KernelFamily kMma =
    tile_family<convolution_problem, mma_space, mma_heuristic, mma_plan, mma_costs>(
        "conv_mma", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) {
          return reject_mma(desc, convolution_problem(desc), traits);
        },
        kMatrixOrder);

const KernelFamily kWgmma =
    tile_family<convolution_problem, wgmma_space, wgmma_heuristic, wgmma_plan, wgmma_costs>(
        "conv_wgmma", 4,
        [](const OpDesc& desc, const DeviceTraits& traits) {
          return reject_wgmma(desc, convolution_problem(desc), traits);
        },
        kMatrixOrder);

}  // namespace

TileProblem convolution_problem(const OpDesc& desc) {
  TileProblem problem;
  problem.shape = resolve(desc);
  problem.in = pixel_strides(desc.inputs[0]);
  problem.out = pixel_strides(desc.outputs[0]);
  problem.axes = spatial_axes(desc.outputs[0].shape.size());
  problem.weights = [filter = desc.constants[1], s = problem.shape] {
    const std::vector<float> from = filter.to_floats();
    std::vector<float> to(from.size());
    for (int64_t o = 0; o < s.groups * s.out_channels; ++o)
      for (int64_t i = 0; i < s.in_channels; ++i)
        for (int64_t t = 0; t < s.taps(); ++t)
          to[(o * s.taps() + t) * s.in_channels + i] = from[(o * s.in_channels + i) * s.taps() + t];
    return to;
  };
  return problem;
}

std::vector<OpDef> convolution_ops() {
  OpDef convolution;
  convolution.type = "Convolution";
  convolution.opsets = {1};
  convolution.infer_shapes = infer_shapes;
  convolution.evaluate = evaluate;
  convolution.families = {&squares_family(),
                          &kWgmma,
                          &kMma,
                          &windows_family(),
                          &rows_family(),
                          &kXmx8,
                          &kXmx16,
                          &kSubgroup,
                          &winograd_family(),
                          &kBf16,
                          &kTile,
                          &kAmx,
                          &kInt8,
                          &kGeneral};
  convolution.layout = LayoutRule::image;
  // Computes integer sums in floats, as models with dynamic quantisation need them (ConvInteger).
  convolution.expand = [](Expansion& x) {
    if (!is_quantized(x.info(0).type)) compute_in_floats(x, 2, true);
  };
  OpDef grouped = convolution;
  grouped.type = "GroupConvolution";
  grouped.families = {&depthwise_family(),
                      &depthwise_dot_family(),
                      &depthwise_int8_family(),
                      &kMma,
                      &kXmx8,
                      &kXmx16,
                      &kSubgroup,
                      &kBf16,
                      &kTile,
                      &kAmx,
                      &kInt8,
                      &kGeneral};
  return {std::move(convolution), std::move(grouped)};
}

}  // namespace clinfer
