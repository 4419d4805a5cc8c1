// Implements the assignment. Rows are added one at a time; potentials keep the reduced costs of all
// pairs at or above zero, so that Dijkstra's algorithm finds the shortest path from the new row to
// a free column.
#include "gst/track/assignment.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace clinfer {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr size_t kNone = std::numeric_limits<size_t>::max();

class Solver {
 public:
  Solver(const std::vector<float>& costs, size_t rows, size_t columns, float most)
      : costs_(costs),
        columns_(columns),
        most_(static_cast<double>(most)),
        // Adds a column for each row, which means that the row stays alone.
        all_(columns + rows),
        row_price_(rows, 0),
        column_price_(all_, 0),
        row_of_(all_, kNone),
        column_of_(rows, kNone),
        before_(all_, kNone),
        distance_(all_),
        done_(all_) {}

  std::vector<int> run() {
    const size_t rows = row_price_.size();
    for (size_t row = 0; row < rows; ++row) add(row);
    std::vector<int> columns(rows, -1);
    for (size_t row = 0; row < rows; ++row)
      if (column_of_[row] < columns_) columns[row] = static_cast<int>(column_of_[row]);
    return columns;
  }

 private:
  double cost(size_t row, size_t column) const {
    if (column >= columns_) return column - columns_ == row ? most_ : kFar;
    const auto value = static_cast<double>(costs_[row * columns_ + column]);
    return value < most_ ? value : kFar;
  }

  void add(size_t start) {
    std::fill(distance_.begin(), distance_.end(), kFar);
    std::fill(done_.begin(), done_.end(), false);
    std::fill(before_.begin(), before_.end(), kNone);
    std::vector<size_t> visited;  // columns whose distance is final
    size_t row = start;
    double length = 0;
    size_t end = kNone;  // a free column, which always exists: the row's own
    while (end == kNone) {
      size_t nearest = kNone;
      const auto look_at = [&](size_t column) {
        if (done_[column]) return;
        const double value = cost(row, column);
        if (value < kFar) {
          const double to = length + value - row_price_[row] - column_price_[column];
          if (to < distance_[column]) {
            distance_[column] = to;
            before_[column] = row;
          }
        }
        if (distance_[column] < kFar &&
            (nearest == kNone || distance_[column] < distance_[nearest]))
          nearest = column;
      };
      for (size_t column = 0; column < all_; ++column) look_at(column);
      length = distance_[nearest];
      done_[nearest] = true;
      if (row_of_[nearest] == kNone)
        end = nearest;
      else
        row = row_of_[nearest];
      visited.push_back(nearest);
    }
    row_price_[start] += length;
    for (const size_t column : visited) {
      const double nearer = length - distance_[column];
      column_price_[column] -= nearer;
      if (row_of_[column] != kNone) row_price_[row_of_[column]] += nearer;
    }
    // Each row on the path passes its column to the row before it.
    for (size_t column = end; column != kNone;) {
      const size_t to = before_[column];
      row_of_[column] = to;
      column = std::exchange(column_of_[to], column);
    }
  }

  const std::vector<float>& costs_;
  size_t columns_;
  double most_;
  size_t all_;
  std::vector<double> row_price_, column_price_;
  std::vector<size_t> row_of_;     // by column; kNone: the column is free
  std::vector<size_t> column_of_;  // by row
  std::vector<size_t> before_;     // the row from which a column was reached
  std::vector<double> distance_;
  std::vector<bool> done_;
};

}  // namespace

std::vector<int> assign(const std::vector<float>& costs, size_t rows, size_t columns, float most) {
  return Solver(costs, rows, columns, most).run();
}

}  // namespace clinfer
