// Names a tuning problem by everything about an operation that decides which kernel is best for it.
#pragma once

#include <string>

#include "kernels/op.h"

namespace clinfer {

// Returns one line of readable text: type, tensors (logical shape, element type, layout if
// unusual), attributes and tail. It contains no names of layers and no values of constants, so that
// layers with equal keys share one tuning record. Shapes of dense tensors are in the order of
// memory: a rank-4 image is NxHxWxC.
std::string op_key(const OpDesc& desc);

// Returns 16 hexadecimal digits: the name of a record in a tuning file.
std::string record_hash(const std::string& op, const std::string& device);

}  // namespace clinfer
