// Counters and latency percentiles of an element. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0;
};

// Percentiles over the last few hundred samples. Not thread-safe.
class SampleWindow {
 public:
  void add(double sample);
  Percentiles percentiles() const;  // zeros before the first sample
  size_t size() const { return samples_.size(); }
  void clear();

 private:
  std::vector<double> samples_;
  size_t next_ = 0;
};

class Statistics {
 public:
  enum Stage { kMotion, kQueue, kInfer, kDecode, kStages };

  // The number of inferences that a device has finished since watch().
  struct Device {
    std::string id, name;
    uint64_t inferences = 0;
  };

  struct Snapshot {
    uint64_t frames_in = 0, frames_out = 0, inferred = 0, skipped = 0, late = 0, dropped = 0;
    uint64_t still = 0;      // not inferred because nothing had changed; also counted as skipped
    uint64_t zero_copy = 0;  // inferred from a surface without a copy
    uint64_t device_copies = 0;  // inferred from a copy that the device made of its own memory
    uint64_t fetched = 0;        // fetched by the device from frame memory, which saves one copy
    // Rate of outgoing frames, from the first to the last; 0 before the second.
    double frames_per_second = 0;
    std::array<Percentiles, kStages> milliseconds;
    // Milliseconds since the last frame came in or went out, or since the stream began to play.
    double in_age = 0, out_age = 0;
    std::vector<Device> devices;  // in the order of watch()
  };

  // Notes that the stream plays, so that frames should come from now on.
  void play();
  enum class Change { none, frozen, flowing };
  // Returns whether frames have just stopped coming, for longer than `bound`, or have just begun
  // again; and for how long none has come.
  std::pair<Change, std::chrono::milliseconds> look_for_frames(std::chrono::milliseconds bound);
  void count_in();
  void count_out(bool inferred);
  void count_zero_copy();
  void count_device_copy();
  void count_fetched();
  void count_late();  // not inferred because the sink was behind; also counted as skipped
  void count_still();
  void count_dropped();
  void add(Stage stage, double milliseconds);
  // Counts the inferences of these devices from now on, unless it does so already.
  void watch(const std::vector<DeviceUse>& devices);
  Snapshot snapshot() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  Snapshot counts_;
  using Clock = std::chrono::steady_clock;
  Clock::time_point first_out_, last_out_;
  // When the last frame came, or the stream began to play.
  Clock::time_point fresh_in_ = Clock::now(), fresh_out_ = fresh_in_;
  bool frozen_ = false;  // as it was last reported
  std::array<SampleWindow, kStages> windows_;
  struct Watched {
    DeviceUse use;
    uint64_t before = 0;
  };
  std::vector<Watched> watched_;
};

// Measures how long frames take from arrival to departure, for LATENCY queries: the 95th
// percentile. The reported value changes only if it has grown by a quarter or fallen by half, so
// that pipelines do not recompute their latency all the time. Thread-safe.
class ServiceTime {
 public:
  // Returns true if the value of reported_ns() has changed.
  bool add(double milliseconds);
  uint64_t reported_ns() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  SampleWindow window_;
  size_t since_check_ = 0;
  double reported_ = 0;  // in milliseconds
};

}  // namespace clinfer
