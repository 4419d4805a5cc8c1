// The order in which launches of a plan may run, by the memory that they use.
#pragma once

#include <cstddef>
#include <vector>

namespace clinfer {

// Bytes of one memory that a launch reads or writes.
struct Access {
  int memory = 0;
  size_t begin = 0, end = 0;
  bool writes = false;
};

// Returns for launches in a valid order the fewest earlier ones that each has to wait for: those
// that write what it reads or writes, or read what it writes, unless it waits for them by way of
// others.
std::vector<std::vector<size_t>> find_order(const std::vector<std::vector<Access>>& launches);

}  // namespace clinfer
