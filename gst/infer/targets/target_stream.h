// Counts the frames of one live stream, and lets as many of them be inferred as its group allows.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace clinfer {

// Thread-safe. Plain C++ without threads of its own.
class TargetStream {
 public:
  using Clock = std::chrono::steady_clock;

  // The orders of the group, which hold until the next ones.
  struct Orders {
    std::optional<double> limit;  // inferences per second
    // How long a frame may wait for the device, and for others to fill its batch; nothing: as
    // without targets.
    std::optional<Clock::duration> longest_wait, batch_wait;
  };
  // Counts since the last call of take().
  struct Counts {
    size_t wanted = 0;              // frames
    std::vector<double> latencies;  // of inferred frames, in milliseconds
  };

  // Returns whether a frame that is wanted may be inferred under the limit. Frames that may are
  // spread evenly over time, whatever the limit's ratio to the frame rate.
  bool admit(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    ++counts_.wanted;
    if (!orders_.limit) return true;
    const double passed = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    // A frame that comes early must not lose its turn, so some credit is kept beyond one frame.
    constexpr double kMost = 2;
    credit_ = std::min(credit_ + *orders_.limit * std::max(passed, 0.0), kMost);
    if (credit_ < 1) return false;
    credit_ -= 1;
    return true;
  }
  // Gives back the turn of an admitted frame that was not inferred, because the device was busy:
  // the next frame has it.
  void give_back() {
    const std::lock_guard lock(mutex_);
    credit_ += 1;
  }
  void finish(double milliseconds) {
    const std::lock_guard lock(mutex_);
    if (counts_.latencies.size() < kMostSamples) counts_.latencies.push_back(milliseconds);
  }

  Orders orders() const {
    const std::lock_guard lock(mutex_);
    return orders_;
  }
  void give(const Orders& orders) {
    const std::lock_guard lock(mutex_);
    orders_ = orders;
  }
  Counts take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(counts_, {});
  }

 private:
  static constexpr size_t kMostSamples = 1 << 14;  // where nobody takes them

  mutable std::mutex mutex_;
  Orders orders_;
  Counts counts_;
  double credit_ = 1;  // frames that may be inferred now
  Clock::time_point last_;
};

}  // namespace clinfer
