// Estimates how long a thread may sleep before it waits for something that takes about as long
// every time.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

namespace clinfer {

// Drivers of GPUs may spin in their wait: a whole core for each thread that waits. A thread that
// sleeps through most of it first costs nothing, and is there in time when it goes by the shortest
// of late. Not thread-safe.
class WaitEstimator {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Something of the kind `kind` begins at `now`.
  void begin(size_t kind, Time now) {
    kind_ = kind;
    begun_ = now;
  }
  // Until when to sleep; in the past where it is not worth it.
  Time until() const {
    const auto usual = usual_.find(kind_);
    return usual == usual_.end() ? Time::min() : begun_ + usual->second.time - kSpare;
  }
  // It was over at `now`, and waited for until then.
  void end(Time now) {
    const Duration taken = now - begun_;
    const auto [place, first] = usual_.try_emplace(kind_, Usual{taken, kSpare});
    if (first) return;
    Usual& usual = place->second;
    if (taken < usual.time - kSpare / 2) {
      // Over when the thread woke, nobody knows for how long: the next ones sleep less, by steps that
      // double until one sees the end, so that a first inference of many times the usual length is soon
      // forgotten.
      usual.time = std::max(taken - usual.step, taken / 2);
      usual.step *= 2;
    } else {
      // A longer time raises the estimate slowly: among requests that share a device some take long.
      usual.time = usual.step > kSpare ? taken : std::min(taken, usual.time + usual.time / 256);
      usual.step = kSpare;
    }
  }

 private:
  using Duration = std::chrono::steady_clock::duration;
  // A sleeping thread may be woken 50 us late (timer slack), and later on a busy machine.
  static constexpr Duration kSpare = std::chrono::microseconds(150);
  struct Usual {
    Duration time, step;
  };
  size_t kind_ = 0;
  Time begun_{};
  std::map<size_t, Usual> usual_;
};

}  // namespace clinfer
