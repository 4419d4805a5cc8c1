// Keeps background work to a share of one processor core.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace clinfer {

// Used by one thread at a time, which does all of the work.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  // `share`: of a core, above 0. `ahead`: how much processor time may be used before it is earned.
  Pace(double share, Seconds ahead);

  // Begins a piece of work; the thread that does the work calls this.
  void begin();
  // Sleeps until the work so far has earned its processor time. Throws Error{cancelled} once `stop`
  // is requested.
  void wait(const std::stop_token& stop);

 private:
  const double share_;
  const Seconds ahead_;
  Seconds left_;
  Clock::time_point earned_at_;
  Seconds used_{};  // processor time of the thread at the last call
  std::mutex mutex_;
  std::condition_variable_any never_;
};

}  // namespace clinfer
