// Tells which element types the host computes in.
#pragma once

#include "kernels/base/tensor.h"

namespace clinfer {

// Returns f32 for floats of any size, and other types unchanged.
inline ElementType host_type(ElementType type) { return is_float(type) ? ElementType::f32 : type; }

}  // namespace clinfer
