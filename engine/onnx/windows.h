// Windows that move over pictures, as convolutions and poolings have them.
#pragma once

#include <string>
#include <vector>

#include "engine/onnx/onnx_node.h"

namespace clinfer {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, begin, end;
  std::string auto_pad;  // NOTSET, SAME_UPPER, SAME_LOWER, VALID

  AttributePairs attributes() const;  // all but the kernel
};

// The attributes of a node with this input and this kernel, defaults filled in. Throws
// Error{bad_model} where they do not fit the input's dimensions.
Window window_of(const OnnxNode& n, const Edge& x, std::vector<int64_t> kernel);
// kernel_shape, else the last dimensions of the weights.
std::vector<int64_t> kernel_of(const OnnxNode& n, const Edge& weights, size_t spatial);
// Weights [O, ...] as [group, O / group, ...].
Edge grouped(OnnxNode& n, const Edge& weights, int64_t group);
// The node as a convolution; bias: no node where there is none.
Edge convolved(OnnxNode& n, const Edge& x, const Edge& weights, const Edge& bias);

// A picture [N, ..., C] as [N, C, ...], and back.
Edge turned_to_channels_first(OnnxNode& n, const Edge& x);
Edge turned_to_channels_last(OnnxNode& n, const Edge& x);

}  // namespace clinfer
