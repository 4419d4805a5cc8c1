// Code shared by all kinds of convolution, and the tile kernel (convolution.cl) with its tuning
// points, for Convolution, GroupConvolution and MatMul with constant weights.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/arguments.h"
#include "kernels/item_kernel.h"
#include "kernels/kernel.h"
#include "kernels/storage.h"
#include "kernels/tail.h"

namespace clinfer {

// Strides of an activation by the roles of its dimensions, in elements; 0 for a missing dimension.
struct PixelStrides {
  int64_t n = 0, c = 0, d = 0, h = 0, w = 0;
};

// A convolution with all sizes resolved. Spatial arrays are in the order depth, height, width;
// missing dimensions have size 1.
struct ConvShape {
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  // of one group
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      dilation{1, 1, 1}, pad{0, 0, 0};

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t pixels() const { return batch * out[0] * out[1] * out[2]; }
  // Returns whether there are three spatial dimensions.
  bool is_deep() const { return kernel[0] > 1 || in[0] > 1 || out[0] > 1; }
  // Returns the output's shape: batch, channels of all groups, and the last `rank` - 2 of the sizes.
  Shape output(size_t rank) const {
    Shape shape{batch, groups * out_channels};
    shape.insert(shape.end(), out.end() - static_cast<std::ptrdiff_t>(rank - 2), out.end());
    return shape;
  }
};

// Upper limit of strides, dilations and pads: far above useful values, far below overflow.
inline constexpr int64_t kMaxStep = 1 << 24;
// Reads an attribute with one number for each spatial dimension, in low..kMaxStep; if it is
// missing, all are `otherwise`. Throws Error{bad_model}.
std::vector<int64_t> spatial_steps(const Attributes& attributes, const char* name, size_t spatial,
                                   int64_t low, std::optional<int64_t> otherwise);
// Checks and reads the attributes that all kinds of convolution have. Throws Error{bad_model}.
struct ConvAttributes {
  ConvShape shape;  // without the output's sizes and the pads
  std::string auto_pad;
  std::vector<int64_t> begin, end;  // pads for each spatial dimension; 0 unless stated
  bool same() const { return auto_pad == "same_upper" || auto_pad == "same_lower"; }
};
// The filter is [groups, if grouped][output, input; or input, output if transposed][kernel].
ConvAttributes read_convolution(bool grouped, bool transposed, const Attributes& attributes,
                                const Shape& data, const Shape& filter);
// Resolves a (Group)Convolution from its attributes and the shapes of its two inputs. Throws
// Error{bad_model}.
ConvShape resolve_convolution(const std::string& type, const Attributes& attributes,
                              const Shape& data, const Shape& filter);
PixelStrides pixel_strides(const TensorDesc& desc);  // for rank 3, 4 or 5
// Returns whether the channels of each pixel form whole vectors of `elements` elements, aligned to
// their size, in the first input and the output. Always true for f32 on a CPU, where alignment does
// not matter.
bool vectors_aligned(const OpDesc& desc, const DeviceTraits& traits, int64_t elements);
// Defines the macros LOAD and SAVE, with which a kernel reads and writes vectors of channels.
void define_access(KernelSpec& spec, bool aligned);
TailAxes spatial_axes(size_t rank);  // for outputs [N, C, spatial...]

// Sets members of a kernel's arguments: the strides in_n ... out_w, and those of
// common/geometry_args.cl. A kernel may have no depth, or no strides of channels (if these are
// adjacent).
template <typename Args>
void set_strides(Args& args, const PixelStrides& in, const PixelStrides& out) {
  args.in_n = to_int(in.n), args.out_n = to_int(out.n);
  args.in_h = to_int(in.h), args.out_h = to_int(out.h);
  args.in_w = to_int(in.w), args.out_w = to_int(out.w);
  if constexpr (requires { args.in_c; }) args.in_c = to_int(in.c), args.out_c = to_int(out.c);
  if constexpr (requires { args.in_d; }) args.in_d = to_int(in.d), args.out_d = to_int(out.d);
}
// Sets the lines of an image, and the pixels of a line.
template <typename Args>
void set_lines(Args& args, int64_t high, int64_t wide) {
  args.oh = to_int(high), args.ow = to_int(wide);
  if constexpr (requires { args.ow_scale; }) {
    const Quotient by_ow = quotient_by(wide), by_oh = quotient_by(high);
    args.ow_scale = by_ow.scale, args.ow_shift = by_ow.shift;
    args.oh_scale = by_oh.scale, args.oh_shift = by_oh.shift;
  }
}
template <typename Args>
void set_geometry(Args& args, const ConvShape& s) {
  args.ih = to_int(s.in[1]), args.iw = to_int(s.in[2]);
  set_lines(args, s.out[1], s.out[2]);
  args.kh = to_int(s.kernel[1]), args.kw = to_int(s.kernel[2]);
  args.sh = to_int(s.stride[1]), args.sw = to_int(s.stride[2]);
  args.dh = to_int(s.dilation[1]), args.dw = to_int(s.dilation[2]);
  args.ph = to_int(s.pad[1]), args.pw = to_int(s.pad[2]);
  if constexpr (requires { args.id; }) {
    args.id = to_int(s.in[0]), args.od = to_int(s.out[0]), args.kd = to_int(s.kernel[0]);
    args.sd = to_int(s.stride[0]), args.dd = to_int(s.dilation[0]), args.pd = to_int(s.pad[0]);
  }
}

// A convolution as the tile kernel's functions take it.
struct TileProblem {
  ConvShape shape;
  PixelStrides in, out;
  size_t data = 0;  // index of the activation among the inputs
  TailAxes axes;    // of the output, for the tail
  // Returns weights as f32 in the order [group][output channel][tap][input channel]; called once
  // when the model is loaded.
  std::function<std::vector<float>()> weights;
};

// Returns the problem of a Convolution or GroupConvolution.
TileProblem convolution_problem(const OpDesc& desc);

// The order in which a launch walks through the pixels. For a 1x1 kernel whose input and output are
// each one long row of pixels, it walks along that row, with the stride w.
struct PixelWalk {
  bool row = false;
  PixelStrides in, out;
  TailAxes axes;           // of the output, for the tail
  bool flat_tail = false;  // true if the tail's operands are long rows as well
};
PixelWalk walk_pixels(const OpDesc& desc, const TileProblem& problem);
// Returns how many numbers say where a pixel lies, in the input and for the tail.
int pixel_coordinates(const OpDesc& desc, const TileProblem& problem);
// Return whether the channels of each pixel's group start at a multiple of this many elements. The
// memory itself has a larger alignment.
bool input_aligned(const OpDesc& desc, const TileProblem& problem, int64_t elements);
bool output_aligned(const OpDesc& desc, const TileProblem& problem, int64_t elements);
// Returns whether a kernel may process channels in vectors of this size. A tail processes whole
// vectors, so a vector must not straddle two groups.
bool fits_groups(const OpDesc& desc, const ConvShape& s, int vector);

// Returns whether a row of the kernel reads adjacent memory.
bool is_merged(const TileProblem& problem);

// Divides a convolution among a CPU's work-groups. Each of its groups has `units` units of pixels
// and `blocks` blocks of output channels. A work is a unit with one of `parts` parts of the blocks
// of one group; `workers` work-groups compute all `works`.
struct UnitShares {
  int64_t units, parts, works, workers;
};
UnitShares share_units(const ConvShape& s, int64_t units, int64_t blocks,
                       const DeviceTraits& traits);

// The outputs that one work-item computes, and the work-group: lanes along channels x rows of tiles
// x slices of the input channels.
struct TileShape {
  int vector, vectors, tile_p, lanes, rows, slices;
  bool in_rows = false;  // true if a tile lies in one row of the output
  // Returns how many sums a work-item keeps, with those of another slice where it adds these.
  int sums() const { return vector * vectors * tile_p * (slices > 1 ? 2 : 1); }
  int64_t block() const { return int64_t{vector} * vectors * lanes; }  // output channels
  int64_t blocks(const ConvShape& s) const {                           // of a group
    return (s.out_channels + block() - 1) / block();
  }
  int64_t tiles(const ConvShape& s) const {
    const int64_t row = in_rows ? s.out[2] : s.pixels();
    return (row + tile_p - 1) / tile_p * (s.pixels() / row);
  }
};

// Does what add_tail() does, for a kernel that stores its output by STOREV(STORED, ...), and
// defines STORED. A CPU rounds to bytes while storing them, which takes less than a tail that
// rounds. `ahead`: the kernel uses TAIL_AHEAD where it is defined (Tail::ahead).
void add_stored_tail(const OpDesc& desc, int vector, const TailAxes& axes,
                     const DeviceTraits& traits, KernelSpec& spec, KernelPlan& plan,
                     bool ahead = false);

// Returns why no tile kernel can compute the problem, or "". `weights`: packed elements of one
// output channel.
std::string reject_tiling(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits, int64_t weights);
// Makes the launch of a tile kernel, without the kernel's own defines. Must be called after the
// packed weights are in `plan`, because the tail's constants follow them.
//   depth      packed rows of weights of one output channel
//   merged     a row of the kernel reads adjacent memory
//   constants  the arguments between input and output
//   shares     see tiles_per_item()
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

// Returns why channels are not adjacent in memory, or "".
std::string reject_channels(const ConvShape& s, const PixelStrides& in, const PixelStrides& out);

}  // namespace clinfer
