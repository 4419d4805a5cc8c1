// Finds the order of launches from the memory that they use.
#include "engine/plan/order.h"

#include <algorithm>

namespace clinfer {

namespace {

bool is_ordered(const Access& a, const Access& b) {
  return a.memory == b.memory && (a.writes || b.writes) &&
         std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

bool are_ordered(const std::vector<Access>& first, const std::vector<Access>& second) {
  return std::ranges::any_of(first, [&](const Access& a) {
    return std::ranges::any_of(second, [&](const Access& b) { return is_ordered(a, b); });
  });
}

}  // namespace

std::vector<std::vector<size_t>> find_order(const std::vector<std::vector<Access>>& launches) {
  std::vector<std::vector<size_t>> before(launches.size());
  // All launches before it, directly or by way of others.
  std::vector<std::vector<bool>> all_before;
  for (size_t i = 0; i < launches.size(); ++i) {
    std::vector<bool> known(i);
    for (size_t other = i; other-- > 0;) {
      if (known[other] || !are_ordered(launches[other], launches[i])) continue;
      before[i].push_back(other);
      known[other] = true;
      for (size_t j = 0; j < other; ++j) known[j] = known[j] || all_before[other][j];
    }
    all_before.push_back(std::move(known));
  }
  return before;
}

}  // namespace clinfer
