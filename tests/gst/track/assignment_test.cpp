// The cheapest assignment, against all that there are.
#include "gst/track/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace clinfer {
namespace {

double cost_of(const std::vector<int>& column_of, const std::vector<float>& costs, size_t columns,
               float most) {
  double sum = 0;
  for (size_t row = 0; row < column_of.size(); ++row)
    sum += static_cast<double>(
        column_of[row] < 0 ? most : costs[row * columns + static_cast<size_t>(column_of[row])]);
  return sum;
}

double least_cost(const std::vector<float>& costs, size_t rows, size_t columns, float most,
                  size_t row = 0, unsigned taken = 0) {
  if (row == rows) return 0;
  double best = static_cast<double>(most) + least_cost(costs, rows, columns, most, row + 1, taken);
  for (size_t column = 0; column < columns; ++column)
    if (const float cost = costs[row * columns + column]; (taken >> column & 1) == 0 && cost < most)
      best = std::min(best, static_cast<double>(cost) + least_cost(costs, rows, columns, most,
                                                                   row + 1, taken | 1u << column));
  return best;
}

TEST(Assignment, CostsAsLittleAsPossible) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const size_t rows = random() % 6, columns = random() % 6;
    std::vector<float> costs(rows * columns);
    for (float& cost : costs)
      cost = random() % 3 == 0 ? static_cast<float>(random() % 4) / 4  // with ties
                               : static_cast<float>(random() % 1000) / 800;
    const std::vector<int> chosen = assign(costs, rows, columns, 1);
    ASSERT_EQ(chosen.size(), rows);
    std::vector<int> used;
    for (size_t row = 0; row < rows; ++row)
      if (chosen[row] >= 0) {
        used.push_back(chosen[row]);
        ASSERT_LT(chosen[row], static_cast<int>(columns));
        EXPECT_LT(costs[row * columns + static_cast<size_t>(chosen[row])], 1) << "a forbidden pair";
      }
    std::sort(used.begin(), used.end());
    EXPECT_TRUE(std::adjacent_find(used.begin(), used.end()) == used.end()) << "a column twice";
    EXPECT_NEAR(cost_of(chosen, costs, columns, 1), least_cost(costs, rows, columns, 1), 1e-5)
        << rows << " x " << columns << ", round " << round;
  }
}

}  // namespace
}  // namespace clinfer
