// Finds the part of a dimension that a slice selects.
#pragma once

#include <cstdint>
#include <optional>

namespace clinfer {

// `count` elements from `first` on, `step` apart; step is 1 if there are fewer than two.
struct SliceRange {
  int64_t first, count, step;
};

// Returns the selected range. Negative bounds count from the end; parts outside are cut off. With a
// negative step, `begin` is clamped to at least the first element (NumPy then selects none).
// `begin` or `end` may be unset. Throws Error{bad_model} if the step is 0.
SliceRange slice_range(int64_t size, std::optional<int64_t> begin, std::optional<int64_t> end,
                       int64_t step);

}  // namespace clinfer
