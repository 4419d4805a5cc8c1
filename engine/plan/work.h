// Estimates roughly how much an operation computes.
#pragma once

#include "kernels/op.h"

namespace clinfer {

// Returns the multiply-adds of a convolution, product or attention; 0 for other operations, and if
// the description was dropped.
double multiply_adds(const OpDesc& desc);

}  // namespace clinfer
