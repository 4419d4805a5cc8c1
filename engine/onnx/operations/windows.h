// Describes windows that move over pictures, as in convolutions and poolings.
#pragma once

#include <string>
#include <vector>

#include "engine/onnx/onnx_node.h"

namespace clinfer {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, begin, end;
  std::string auto_pad;  // NOTSET, SAME_UPPER, SAME_LOWER, VALID

  AttributePairs attributes() const;  // all attributes but the kernel
};

// Returns the window of a node with this input and kernel, with defaults filled in. Throws
// Error{bad_model} if attributes do not fit the input's dimensions.
Window window_of(const OnnxNode& n, const Edge& x, std::vector<int64_t> kernel);
// Returns kernel_shape, or the last dimensions of the weights if the attribute is missing.
std::vector<int64_t> kernel_of(const OnnxNode& n, const Edge& weights, size_t spatial);
// Returns weights [O, ...] as [group, O / group, ...].
Edge grouped(OnnxNode& n, const Edge& weights, int64_t group);
// Translates the node as a convolution; `bias` has no node if there is none.
Edge convolved(OnnxNode& n, const Edge& x, const Edge& weights, const Edge& bias);

// Transpose pictures between [N, ..., C] and [N, C, ...].
Edge turned_to_channels_first(OnnxNode& n, const Edge& x);
Edge turned_to_channels_last(OnnxNode& n, const Edge& x);

}  // namespace clinfer
