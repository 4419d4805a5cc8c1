// Finds which launches of a plan have to wait for each other, from the memory that they use.
#pragma once

#include <cstddef>
#include <vector>

namespace clinfer {

// A range of bytes of one memory that a launch reads or writes.
struct Access {
  int memory = 0;
  size_t begin = 0, end = 0;
  bool writes = false;
};

// For launches in a valid order, returns the fewest earlier ones that each has to wait for: those
// that write what it reads or writes, or read what it writes, without those that it waits for by
// way of others.
std::vector<std::vector<size_t>> find_order(const std::vector<std::vector<Access>>& launches);

}  // namespace clinfer
