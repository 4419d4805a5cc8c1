// Families of convolution besides the tile kernels: depthwise and others for special cases, and the
// general one for all other convolutions.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// Compute depthwise convolutions of floats and of bytes (convolution_depthwise.cl).
const KernelFamily& depthwise_family();
const KernelFamily& depthwise_int8_family();
// Depthwise convolution of bytes by dot products (convolution_depthwise_dot.cl).
const KernelFamily& depthwise_dot_family();
// Return why these families do not take the shape, or these zero points of bytes; "" if they do.
std::string reject_depthwise_shape(const ConvShape& shape);
std::string reject_depthwise_zeros(const OpDesc& desc, const ConvShape& shape);

// Computes, by matrix instructions, convolutions of pixels whose channels are no whole words
// (convolution_rows.cl).
const KernelFamily& rows_family();

// Computes, by warpgroup matrix instructions, convolutions of pixels with up to four channels, and maxima
// of them (convolution_windows.cl).
const KernelFamily& windows_family();

// Computes, by warpgroup matrix instructions, convolutions of pixels whose channels are 64 or 128 bytes
// (convolution_squares.cl).
const KernelFamily& squares_family();

// Computes 3x3 convolutions on CPUs with a quarter of the multiplications
// (convolution_winograd.cl).
const KernelFamily& winograd_family();

// Returns the geometry of a (Group)ConvolutionBackpropData whose outputs have their shapes; `pad`
// is the part cut off before the output. Throws Error{bad_model}.
ConvShape resolve_deconvolution(const OpDesc& desc);

// Weights in the layout that the general kernel (convolution_general.cl) reads.
struct GeneralWeights {
  std::array<int64_t, 6> strides{};  // group, output channel, input channel, depth, height, width
  // Packs the weights; unset: the kernel reads input 1 in place.
  std::function<std::vector<float>()> constants;
};
// Returns the strides of a filter [groups if grouped][output, input; or input, output if
// transposed][kernel].
std::array<int64_t, 6> filter_strides(const TensorDesc& filter, bool grouped, bool transposed);

// Compute one output in each work-item, plain or transposed. Points are those of item_kernel.h.
std::string reject_general_convolution(const OpDesc& desc, const DeviceTraits& traits);
KernelPlan general_convolution(const OpDesc& desc, const ConvShape& shape, bool transposed,
                               const GeneralWeights& weights, const TuningPoint& point);

}  // namespace clinfer
