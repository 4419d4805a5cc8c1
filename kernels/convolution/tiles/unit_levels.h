// Limits of quantised values by instructions of NVIDIA's GPUs, which clamp what they compute to 0 .. 1
// free of charge.
#pragma once

#include "kernels/op.h"

namespace clinfer {

// Rewrites a tail so that what its limits ("number_to_level", and "clamp_number" in the last step) take
// lies in 0 .. 1: the multiplications and additions before a limit include the scale, and those of one
// number are joined. The limits become "unit_to_level"; the last one goes, so that the tail ends with
// values of which those outside of 0 .. 1 stand for the limits.
void limit_units(OpDesc& desc);

}  // namespace clinfer
