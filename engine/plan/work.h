// Estimates roughly how much an operation computes.
#pragma once

#include "kernels/op.h"

namespace clinfer {

// Multiply-adds of a convolution, product or attention; 0 for others, and where the description was dropped.
double multiply_adds(const OpDesc& desc);

}  // namespace clinfer
