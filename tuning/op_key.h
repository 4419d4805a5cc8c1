// The name of a tuning problem: everything about an operation that decides which kernel is best for
// it.
#pragma once

#include <string>

#include "kernels/op.h"

namespace clinfer {

// One line of readable text: type, tensors (logical shape, element type, layout where it is not the
// usual one), attributes and tail. Names of layers and values of constants are not in it: layers of
// equal keys share one tuning record. Shapes are printed as they lie in memory where the tensor is
// dense: a rank-4 image as NxHxWxC.
std::string op_key(const OpDesc& desc);

// 16 hex digits: the member name of a record in a tuning file.
std::string record_hash(const std::string& op, const std::string& device);

}  // namespace clinfer
