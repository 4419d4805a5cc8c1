// Estimates how long a thread may sleep before it waits for something that usually takes the same
// time.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

namespace clinfer {

// Reduces the load of waiting. Drivers of GPUs may spin while they wait, which occupies a core for
// each waiting thread; a thread that sleeps first does not. The estimate follows the shortest
// recent duration, so that the thread wakes before the end. Not thread-safe.
class WaitEstimator {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Notes that something of the kind `kind` begins at `now`.
  void begin(size_t kind, Time now) {
    kind_ = kind;
    begun_ = now;
  }
  // Returns when the sleep should end; a time in the past if sleeping is not worth it.
  Time until() const {
    const auto usual = usual_.find(kind_);
    return usual == usual_.end() ? Time::min() : begun_ + usual->second.time - kSpare;
  }
  // Notes that it ended at `now`, as seen by a thread that waited.
  void end(Time now) {
    const Duration taken = now - begun_;
    const auto [place, first] = usual_.try_emplace(kind_, Usual{taken, kSpare});
    if (first) return;
    Usual& usual = place->second;
    if (taken < usual.time - kSpare / 2) {
      // It was over before the thread woke, at an unknown time. The next sleeps are shorter, by
      // steps that double until one ends early enough, so that an unusually long first inference is
      // soon forgotten.
      usual.time = std::max(taken - usual.step, taken / 2);
      usual.step *= 2;
    } else {
      // Raises the estimate slowly, because among requests that share a device some take long.
      usual.time = usual.step > kSpare ? taken : std::min(taken, usual.time + usual.time / 256);
      usual.step = kSpare;
    }
  }

 private:
  using Duration = std::chrono::steady_clock::duration;
  // A sleeping thread may wake 50 us late (timer slack), or later on a busy machine.
  static constexpr Duration kSpare = std::chrono::microseconds(150);
  struct Usual {
    Duration time, step;
  };
  size_t kind_ = 0;
  Time begun_{};
  std::map<size_t, Usual> usual_;
};

}  // namespace clinfer
