// FusedConvolution: a convolution with what stands before or after it, so that tensors between these need
// no memory. It has the inputs and attributes of a Convolution, and
//   with attributes of a Quantize, prefix "quantize_": floats as data, and the scale and the shift of the
//                                                      Quantize as inputs 2 and 3
//   with attributes of a MaxPool, prefix "pool_":      maxima of its sums as output; the tail is applied
//                                                      to the maxima
#pragma once

#include "kernels/op.h"

namespace clinfer {

inline constexpr const char* kFusedConvolution = "FusedConvolution";
inline constexpr const char *kQuantizePrefix = "quantize_", *kPoolPrefix = "pool_";

// Returns the attributes that have the prefix, without it; or none.
Attributes without_prefix(const Attributes& attributes, const std::string& prefix);
// Adds the attributes of another operation with a prefix.
void add_with_prefix(Attributes& attributes, const std::string& prefix, const Attributes& other);

// Returns the Convolution alone, with bytes as data where a Quantize makes them, for a FusedConvolution or
// a Convolution. Its output stays as it is.
OpDesc convolution_within(const OpDesc& desc);
bool quantizes_data(const OpDesc& desc);
bool stores_maxima(const OpDesc& desc);

// Returns whether larger numbers stay the larger ones, or become equal, in each step of a tail: maxima may
// then be taken before the tail instead of after it.
bool keeps_order(const OpDesc& desc);

}  // namespace clinfer
