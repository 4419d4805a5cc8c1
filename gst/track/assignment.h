// Finds the pairs of rows and columns with the lowest total cost, by shortest augmenting paths (R.
// Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear
// assignment problems", 1987).
#pragma once

#include <cstddef>
#include <vector>

namespace clinfer {

// `costs` has rows * columns values, row by row, each at least 0. Pairs that cost `most` or more
// are never made: the row stays alone instead, at a cost of `most`. Returns the column of each row,
// -1 for rows that stay alone.
std::vector<int> assign(const std::vector<float>& costs, size_t rows, size_t columns, float most);

}  // namespace clinfer
