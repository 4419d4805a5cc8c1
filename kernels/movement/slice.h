// The part of a dimension that a slice takes.
#pragma once

#include <cstdint>
#include <optional>

namespace clinfer {

// `count` elements from `first` on, `step` apart; a step of 1 where there are fewer than two.
struct SliceRange {
  int64_t first, count, step;
};

// Negative bounds count from the end; what lies outside is cut off, where a negative step begins at
// the first element at the least (numpy has none then). `begin` or `end` may be left open. Throws
// Error{bad_model} where the step is 0.
SliceRange slice_range(int64_t size, std::optional<int64_t> begin, std::optional<int64_t> end,
                       int64_t step);

}  // namespace clinfer
