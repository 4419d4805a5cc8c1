// Generates OpenCL C from OpDesc::tail; a kernel calls it on each output vector before the store.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

// The dimension of the output that each of the kernel's loop variables n, h, w, c indexes; -1: none
// (the kernel passes 0).
//   convolution on [N,C,H,W]:  {0, 2, 3, 1}
//   fully connected on [M,N]:  {0, -1, -1, 1}
struct TailAxes {
  int n = 0, h = 2, w = 3, c = 1;
};

// Return the number of operands of an operation's tail, and the number of those that are
// activations and not constants.
int64_t count_operands(const OpDesc& desc);
int64_t count_activations(const OpDesc& desc);

// A tail as source and arguments. `prologue` defines three macros for the kernel source. Without a
// tail, the first two are empty and TAIL returns v.
//
//   macro                      use
//   -------------------------  --------------------------------------------------------------------
//   TAIL_PARAMS                ends the parameter list of the kernel, and of helper functions that
//                              use TAIL; starts with a comma
//   TAIL_ARGS                  ends the argument list of a call of such a helper function; starts
//                              with a comma
//   TAIL(v, n, h, w, c, left)  returns the results as floatV (V = `vector`; float if V is 1).
//                              v:     floatV with the channels c .. c+V-1 at position n, h, w
//                              left:  the number of these channels that exist (>= V: all)
//                              c:     a multiple of V if the number of channels is one, because
//                                     operands are then read as whole vectors
//
// `ahead` defines one more macro, which starts to bring what the tail reads of activations into the
// second-level cache of NVIDIA's GPUs. It is "" if there are none.
//
//   TAIL_AHEAD(n, h, w, c, count)  count: of channels
struct Tail {
  std::string prologue, ahead;
  std::vector<Argument> arguments;  // to append to KernelSpec::arguments, in order
};

// Generates a tail. `vector` is V: 1, 2, 4, 8 or 16. Constant operands are packed as f32 (appended
// to plan.packed) and padded to whole vectors.
Tail make_tail(const OpDesc& desc, int vector, const TailAxes& axes, KernelPlan& plan);
// Adds the tail to a launch that has all other arguments. The constants of `plan` that these refer
// to must exist already.
void add_tail(const OpDesc& desc, int vector, const TailAxes& axes, KernelSpec& spec,
              KernelPlan& plan);

// Returns the reason why make_tail cannot express this tail with these axes, or "": an operand that
// varies along a dimension that no loop variable indexes, a channel stride other than 0 or 1 with
// vector > 1, or an unknown function.
std::string reject_tail(const OpDesc& desc, int vector, const TailAxes& axes);

// Returns whether each vector of channels that the tail reads from other layers is one access.
bool operands_aligned(const OpDesc& desc, int vector, const TailAxes& axes);

// Returns OpenCL C that applies a function of one or two operands to x, of `type`. The second
// operand is y, which the text may change.
std::string step_text(const PostOp& op, const std::string& type);

// Returns true if the tail produces quantised values, and the operation itself computes floats:
// bytes ("to_byte"; output 0 then has the type u8), or floats of 8 bits ("store_f8e4m3"; f8e4m3).
bool quantizes(const std::vector<PostOp>& tail);

// Returns true if the tail has a "keep": the last output is then the tail's, not the operation's.
bool keeps(const std::vector<PostOp>& tail);

// Applies desc.tail, as a reference implementation, to outputs[0], a row-major f32 tensor, in place
// unless the result is bytes. A "keep" stores to outputs[1]. `inputs` are those of evaluate(), then
// the tail's operands.
void apply_tail(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs);

}  // namespace clinfer
