// Measures processor time and sleeps.
#include "gst/infer/model/pace.h"

#include <algorithm>
#include <ctime>

#include "kernels/base/error.h"

namespace clinfer {
namespace {

Pace::Seconds used_by_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Pace::Pace(double share, Seconds ahead)
    : share_(share), ahead_(ahead), left_(ahead), earned_at_(Clock::now()) {}

void Pace::begin() { used_ = used_by_thread(); }

void Pace::wait(const std::stop_token& stop) {
  const auto cancelled = [&] {
    if (stop.stop_requested())
      throw Error{ErrorCode::cancelled, "the results are not verified any more"};
  };
  cancelled();
  const Seconds used = used_by_thread();
  const Clock::time_point now = Clock::now();
  left_ = std::min(ahead_, left_ + share_ * Seconds(now - earned_at_)) - (used - used_);
  used_ = used;
  earned_at_ = now;
  if (left_ > Seconds(0)) return;
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(-left_ / share_);
  std::unique_lock lock(mutex_);
  never_.wait_for(lock, stop, pause, [] { return false; });
  cancelled();
}

}  // namespace clinfer
