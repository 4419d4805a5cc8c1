// The element types that the host computes in.
#pragma once

#include "kernels/base/tensor.h"

namespace clinfer {

// Floats of any size are f32 on the host; other types stay.
inline ElementType host_type(ElementType type) { return is_float(type) ? ElementType::f32 : type; }

}  // namespace clinfer
