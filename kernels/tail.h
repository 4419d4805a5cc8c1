// The post-op tail: turns OpDesc::tail into OpenCL C that a kernel calls on each output vector
// before the store.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

// Which logical dimensions of the output the kernel's loop variables n, h, w, c walk; -1: none (the
// kernel passes 0). Convolution on [N,C,H,W]: {0, 2, 3, 1}. Fully connected on [M,N]: {0, -1, -1,
// 1}.
struct TailAxes {
  int n = 0, h = 2, w = 3, c = 1;
};

// A tail as source and arguments. The kernel source uses three macros, defined by `prologue` and
// empty without a tail:
//   TAIL_PARAMS            at the end of the kernel's parameter list (starts with a comma)
//   TAIL_ARGS              to pass them on to helper functions (starts with a comma); TAIL_PARAMS
//   declares them there too TAIL(v, n, h, w, c, left)  v: floatV (V = vector, float when V is 1) of
//   channels c .. c+V-1 of position n, h, w;
//                          left: how many of these exist (>= V: all); returns floatV. Where the
//                          channels are a multiple of V, c must be one: operands are read so.
struct Tail {
  std::string prologue;
  std::vector<Argument> arguments;  // to append to KernelSpec::arguments, in order
};

// `vector` is V: 1, 2, 4, 8 or 16. Constant operands are packed as f32 (appended to plan.packed),
// padded for whole vectors.
Tail make_tail(const OpDesc& desc, int vector, const TailAxes& axes, KernelPlan& plan);

// Reason why make_tail cannot express this tail with these axes, or "": an operand that varies
// along a dimension that no loop variable walks, a channel stride other than 0 or 1 with vector >
// 1, an unknown function.
std::string reject_tail(const OpDesc& desc, int vector, const TailAxes& axes);

// Whether the tail ends in bytes ("to_byte"): then output 0 is of type u8, and what is computed
// before the tail is floats.
bool quantizes(const std::vector<PostOp>& tail);

// Whether the tail has a "keep": the last output is the tail's, not the operation's.
bool keeps(const std::vector<PostOp>& tail);

// Reference: applies desc.tail to outputs[0], a row-major f32 tensor, in place unless it becomes
// one of bytes; what is kept becomes outputs[1]. Inputs as for evaluate() plus the tail's operands.
void apply_tail(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs);

}  // namespace clinfer
