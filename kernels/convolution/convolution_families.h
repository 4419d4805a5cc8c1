// Families of convolution beside the tile kernels: depthwise, and the one that takes everything.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "kernels/convolution/convolution_tile.h"

namespace clinfer {

// Depthwise convolution of floats and of bytes (convolution_depthwise.cl).
const KernelFamily& depthwise_family();
const KernelFamily& depthwise_int8_family();

// Convolution of halves by warpgroup matrix instructions (convolution_wgmma.cl).
const KernelFamily& wgmma_family();

// Weights as the general kernel (convolution_general.cl) finds them.
struct GeneralWeights {
  std::array<int64_t, 6> strides{};  // group, output channel, input channel, depth, height, width
  std::function<std::vector<float>()> constants;  // none: input 1 as it is
};
// Strides of a filter [groups where grouped][output, input; input, output where
// transposed][kernel].
std::array<int64_t, 6> filter_strides(const TensorDesc& filter, bool grouped, bool transposed);

// One work-item an output, plain or transposed; points are those of item_kernel.h.
std::string reject_general_convolution(const OpDesc& desc, const DeviceTraits& traits);
KernelPlan general_convolution(const OpDesc& desc, const ConvShape& shape, bool transposed,
                               const GeneralWeights& weights, const TuningPoint& point);

}  // namespace clinfer
