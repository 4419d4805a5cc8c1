// Limits the work that operations do on the host: when it has to end, and how many threads may do
// it. Operations with long loops check now and then.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "kernels/base/system/processors.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

class WorkLimit {
 public:
  // While it lives, may_go_on() on this thread calls `ask`, which throws to end the work.
  // for_ranges() uses up to `threads` threads (0: one for each core), on which may_go_on() calls
  // `ask` as well.
  explicit WorkLimit(std::function<void()> ask, unsigned threads = 1)
      : ask_(std::move(ask)),
        threads_(threads != 0 ? threads : available_processors()),
        outer_(current_) {
    current_ = this;
  }
  ~WorkLimit() { current_ = outer_; }
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  // Returns, or throws as the innermost limit of this thread demands.
  static void may_go_on() {
    if (current_ != nullptr) current_->ask_();
  }

  // Calls f(begin, end) for ranges that together are 0 to n, in any order, on several threads if
  // the work is worth it: an item takes about `each` multiplications. Items must not depend on each
  // other. Rethrows the first exception.
  template <typename F>
  static void for_ranges(int64_t n, double each, const F& f) {
    const unsigned threads = current_ ? current_->threads_for(n, each) : 1;
    if (threads == 1) {
      if (n > 0) f(int64_t{0}, n);
      return;
    }
    const int64_t ranges = std::min<int64_t>(n, kRanges * threads);
    const std::function<void()>& ask = current_->ask_;
    parallel_for(static_cast<size_t>(ranges), threads, [&](size_t i) {
      const WorkLimit limit(ask);
      const auto r = static_cast<int64_t>(i);
      f(r * n / ranges, (r + 1) * n / ranges);
    });
  }

  // Returns the largest number of threads that for_ranges() has asked for.
  unsigned threads_used() const { return used_; }

 private:
  // In multiplications; starting a thread takes some 20 us.
  static constexpr double kWorthAThread = 1e5;
  static constexpr int64_t kRanges = 4;  // of each thread, because ranges take unequal time

  unsigned threads_for(int64_t n, double each) {
    const double most =
        std::min(static_cast<double>(n), static_cast<double>(n) * each / kWorthAThread);
    const auto threads =
        static_cast<unsigned>(std::clamp(most, 1.0, static_cast<double>(threads_)));
    used_ = std::max(used_, threads);
    return threads;
  }

  const std::function<void()> ask_;
  const unsigned threads_;
  unsigned used_ = 1;
  WorkLimit* const outer_;
  static inline thread_local WorkLimit* current_ = nullptr;
};

}  // namespace clinfer
