// Integers of fewer than 8 bits in bytes.
#pragma once

#include <cstdint>

namespace clinfer {

// Returns integer `index` of those that lie one after another in `bytes`, the first ones in a byte's
// lowest bits. `bits` must be 1, 2, 4 or 8, so that none crosses a byte.
template <typename Byte>
unsigned bits_at(const Byte* bytes, int64_t index, int64_t bits) {
  const int64_t bit = index * bits;
  return static_cast<unsigned>(bytes[bit / 8]) >> (bit % 8) & ((1U << bits) - 1);
}

}  // namespace clinfer
