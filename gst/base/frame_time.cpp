// Decides which time stamps to trust.
#include "gst/base/frame_time.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace clinfer {
namespace {

constexpr double kUnknownInterval = 1.0 / 25;
// Frames are far apart if the time between them exceeds kLeastJump and kJump usual intervals.
constexpr double kLeastJump = 1;  // seconds
constexpr double kJump = 5;
constexpr double kIntervalMemory = 0.875;  // weight of the usual interval so far

double seconds_between(uint64_t from, uint64_t to) {
  return to >= from ? static_cast<double>(to - from) * 1e-9
                    : -static_cast<double>(from - to) * 1e-9;
}

}  // namespace

FrameTime::Step FrameTime::bridge(double seconds) {
  bridged_ += seconds;
  return {seconds, false, ""};
}

FrameTime::Step FrameTime::accept(uint64_t stamp, double seconds, bool is_hole) {
  last_ = stamp;
  doubtful_.reset();
  bridged_ = std::max(-seconds, 0.0);  // the time that was counted too much so far
  confirmed_ = true;
  return {std::max(seconds, 0.0), is_hole, ""};
}

FrameTime::Step FrameTime::advance(std::optional<uint64_t> stamp, double interval) {
  const double usual = usual_ > 0 ? usual_ : interval > 0 ? interval : kUnknownInterval;
  if (!stamp) return bridge(usual);
  if (!last_) {
    last_ = stamp;
    return {};
  }
  const double far = std::max(kLeastJump, kJump * usual);
  const double since_last = seconds_between(*last_, *stamp);
  if (since_last >= 0 && since_last <= far + bridged_) {
    if (bridged_ == 0 && since_last > 0)
      usual_ =
          usual_ > 0 ? kIntervalMemory * usual_ + (1 - kIntervalMemory) * since_last : since_last;
    return accept(*stamp, since_last - bridged_);
  }
  if (doubtful_ && *stamp >= *doubtful_) {
    const double since_doubtful = seconds_between(*doubtful_, *stamp);
    const bool slow = since_doubtful > far;
    // The jump was real, unless the very first stamp was the wrong one.
    const bool ahead = *doubtful_ > *last_ && (confirmed_ || slow);
    if (slow && ahead) usual_ = since_doubtful;  // its frames are that far apart
    if (ahead) return accept(*stamp, since_last - bridged_, !slow);
    return accept(*stamp, slow ? usual : since_doubtful);
  }
  doubtful_ = stamp;
  Step step = bridge(usual);
  if (std::abs(since_last) > far && !std::exchange(told_, true)) {
    char text[192];
    std::snprintf(text, sizeof text,
                  "the time of a frame is %.1f s %s that of the frame before: the frame interval "
                  "counts until the next frame shows whether frames were missing",
                  std::abs(since_last), since_last < 0 ? "before" : "after");
    step.problem = text;
  }
  return step;
}

}  // namespace clinfer
