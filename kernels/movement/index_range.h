// Checks the range of indices and of lengths of sequences, by one rule for all operations:
// constants out of range are refused when a model is loaded. Values that are computed from the
// network's inputs cannot be refused in a kernel: reading at an index out of range gives 0, writing
// there does nothing, and a length is limited to the actual one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/op.h"
#include "kernels/shape_util.h"

namespace clinfer {

// Throws Error{bad_model} if the value is constant and has a number outside of least..most.
inline void check_range(const ValueInfo& numbers, int64_t least, int64_t most, const char* what) {
  if (numbers.value.empty()) return;
  for (const int64_t number : numbers.value.to_ints())
    if (number < least || number > most)
      fail_model(std::string(what) + " is " + std::to_string(number) +
                 ", which is out of range; it may be " + std::to_string(least) + " to " +
                 std::to_string(most));
}

// Checks as check_range() does, for lists of indices along the last dimension of `indices`, with
// one index for each size. Indices below 0 count from the end.
inline void check_index_lists(const ValueInfo& indices, std::span<const int64_t> sizes) {
  if (indices.value.empty()) return;
  size_t k = 0;
  for (const int64_t index : indices.value.to_ints()) {
    const int64_t size = sizes[k++ % sizes.size()];
    if (index < -size || index >= size)
      fail_model("index " + std::to_string(index) + " is out of range for a dimension of " +
                 std::to_string(size));
  }
}

// Checks as check_index_lists() does, for indices of one dimension.
inline void check_indices(const ValueInfo& indices, int64_t size) {
  check_index_lists(indices, {&size, 1});
}

}  // namespace clinfer
