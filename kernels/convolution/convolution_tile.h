// What the kinds of convolution share, and the tile kernel (convolution.cl) with its points, for
// Convolution, GroupConvolution and MatMul with constant weights.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/tail.h"

namespace clinfer {

// Strides of an activation by the roles of its dimensions, in elements; 0 for a dimension that is
// not there.
struct PixelStrides {
  int64_t n = 0, c = 0, d = 0, h = 0, w = 0;
};

// A convolution with everything resolved. Spatial arrays are depth, height, width; dimensions that
// are not there have size 1.
struct ConvShape {
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  // of one group
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      dilation{1, 1, 1}, pad{0, 0, 0};

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t pixels() const { return batch * out[0] * out[1] * out[2]; }
};

// Strides, dilations and pads: far above sense, far below overflow.
inline constexpr int64_t kMaxStep = 1 << 24;
// An attribute with one number per spatial dimension in low..kMaxStep; 1 where it is missing and
// `low` is 1, else 0. Throws Error{bad_model}.
std::vector<int64_t> spatial_steps(const Attributes& attributes, const char* name, size_t spatial,
                                   int64_t low);
// What all kinds of convolution check and read alike. Throws Error{bad_model}.
struct ConvAttributes {
  ConvShape shape;  // all but the output's sizes and the pads
  std::string auto_pad;
  std::vector<int64_t> begin, end;  // pads for each spatial dimension; 0 unless stated
  bool same() const { return auto_pad == "same_upper" || auto_pad == "same_lower"; }
};
// The filter is [groups where grouped][output, input; input, output where transposed][kernel].
ConvAttributes read_convolution(bool grouped, bool transposed, const Attributes& attributes,
                                const Shape& data, const Shape& filter);
// Everything about a (Group)Convolution that follows from its attributes and the shapes of its two
// inputs. Throws Error{bad_model}.
ConvShape resolve_convolution(const std::string& type, const Attributes& attributes,
                              const Shape& data, const Shape& filter);
PixelStrides pixel_strides(const TensorDesc& desc);  // of rank 3, 4 or 5
// Whether all channels of a pixel come in whole vectors of so many elements at multiples of their
// size, in the first input and the output; to a CPU f32 is all the same.
bool vectors_aligned(const OpDesc& desc, const DeviceTraits& traits, int64_t elements);
// LOAD and SAVE: how a kernel moves vectors of channels.
void define_access(KernelSpec& spec, bool aligned);
TailAxes spatial_axes(size_t rank);  // for outputs [N, C, spatial...]
// Sizes, strides, dilations and pads as GEOMETRY in common/convolution.cl lists them.
std::vector<int64_t> geometry(const ConvShape& s);

// The convolution as the tile kernel gets it.
struct TileProblem {
  ConvShape shape;
  PixelStrides in, out;
  size_t data = 0;  // input number of the activation
  TailAxes axes;    // of the output, for the tail
  // Weights as f32 in the order [group][output channel][tap][input channel]; called once at load.
  std::function<std::vector<float>()> weights;
};

// The problem of a Convolution or GroupConvolution.
TileProblem convolution_problem(const OpDesc& desc);

// How a launch walks the pixels: where a 1x1 meets one long row of them in input and output, along
// that row, w apart.
struct PixelWalk {
  bool row = false;
  PixelStrides in, out;
  TailAxes axes;           // of the output, for the tail
  bool flat_tail = false;  // its operands lie as long rows, too
};
PixelWalk walk_pixels(const OpDesc& desc, const TileProblem& problem);
// Whether each pixel's channels of a group start at a multiple of so many elements (memory itself
// is aligned far better).
bool input_aligned(const OpDesc& desc, const TileProblem& problem, int64_t elements);
bool output_aligned(const OpDesc& desc, const TileProblem& problem, int64_t elements);
// Whether channels may come in vectors of this size: a tail wants whole vectors, so those of a
// group must not straddle two.
bool fits_groups(const OpDesc& desc, const ConvShape& s, int vector);

// A work-item's share of the outputs, and the work-group: lanes along channels x rows of tiles x
// slices of the input channels.
struct TileShape {
  int vector, vectors, tile_p, lanes, rows, slices;
  int64_t block() const { return int64_t{vector} * vectors * lanes; }  // output channels
  int64_t blocks(const ConvShape& s) const {                           // of a group
    return (s.out_channels + block() - 1) / block();
  }
};

// What the tile kernels refuse alike. `weights`: packed elements of one output channel.
std::string reject_tiling(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits, int64_t weights);
// The launch of a tile kernel but for its own defines; goes behind the packed weights, since the
// tail's constants follow them. depth: packed rows of weights of one output channel; merged: a row
// of the kernel meets adjacent memory; constants: the arguments between input and output; shares:
// see tiles_per_item().
KernelSpec tile_launch(const char* source, const OpDesc& desc, const TileProblem& problem,
                       const DeviceTraits& traits, const TileShape& shape, int64_t depth,
                       bool merged, const std::vector<Argument>& constants, KernelPlan& plan,
                       int shares = 8);

std::string reject_tile(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> tile_space(const OpDesc& desc, const TileProblem& problem,
                                    const DeviceTraits& traits);
TuningPoint tile_heuristic(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits);
std::vector<double> tile_costs(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits);
KernelPlan tile_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                     const TuningPoint& point);

// Floats as elements of `type` (f32 or f16), for packed constants.
std::vector<std::byte> to_bytes(const std::vector<float>& values, ElementType type);
// "float", "half" or "uchar": what kernels call the storage type.
std::string storage_name(ElementType type);
// Reason why the tensors cannot be addressed with 32-bit element indices or are not all of one
// storage type, or "".
std::string reject_storage(const OpDesc& desc, size_t data_inputs);
// The same for floats that become floats or, by the tail, bytes.
std::string reject_float_data(const OpDesc& desc);
// Reason why channels are not adjacent in memory, or "".
std::string reject_channels(const ConvShape& s, const PixelStrides& in, const PixelStrides& out);
// As reject_storage for bytes that stay bytes.
std::string reject_bytes(const OpDesc& desc);
// The same for products of bytes that become floats or, by the tail, bytes.
std::string reject_byte_storage(const OpDesc& desc);
// How many work-items of a CPU device, each walking tiles, share `tiles` x `blocks` tiles of
// `flops` each: enough to balance the cores, not so many that starting them shows.
int64_t tiles_per_item(int64_t tiles, int64_t blocks, double flops, const DeviceTraits& traits,
                       int shares_a_core = 8);

}  // namespace clinfer
