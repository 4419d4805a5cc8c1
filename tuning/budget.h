// The time of a tuning run: a budget that operations share in proportion to their time in one
// inference.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

namespace clinfer {

// Returns seconds since a fixed moment. Thread-safe; a test may pass its own.
using SecondsClock = std::function<double()>;

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class TuningBudget {
 public:
  // Starts the clock. `seconds`: 0 for no limit.
  TuningBudget(double seconds, SecondsClock clock)
      : seconds_(seconds), clock_(std::move(clock)), start_(clock_()) {}

  const SecondsClock& clock() const { return clock_; }
  double seconds() const { return seconds_; }
  double passed() const { return clock_() - start_; }
  bool is_over() const { return seconds_ > 0 && passed() >= seconds_; }

  // Adds an operation that waits for its turn; `weight` is its time in one inference, in seconds.
  void add(double weight) { waiting_ += weight; }
  // Removes an operation that does not wait any more.
  void remove(double weight) { waiting_ -= weight; }
  // Returns the next operation's share of what is left: the seconds that its search may take, or 0
  // for no limit.
  double take(double weight) {
    constexpr double kLeast = 1e-3;
    const double share =
        seconds_ > 0 ? std::max(kLeast, (seconds_ - passed()) *
                                            std::min(1.0, weight / std::max(waiting_, 1e-12)))
                     : 0;
    remove(weight);
    return share;
  }

 private:
  double seconds_;
  SecondsClock clock_;
  double start_, waiting_ = 0;
};

}  // namespace clinfer
