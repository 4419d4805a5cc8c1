// Computes counters and latency percentiles.
#include "gst/infer/stream/statistics.h"

#include <algorithm>

#include "kernels/base/nearest_rank.h"

namespace clinfer {
namespace {

constexpr size_t kWindow = 512;
constexpr size_t kCheckEvery = 16;
constexpr double kLeastChange = 1.0;  // in milliseconds

}  // namespace

void SampleWindow::add(double sample) {
  if (samples_.size() < kWindow) {
    samples_.push_back(sample);
    return;
  }
  samples_[next_] = sample;
  next_ = (next_ + 1) % kWindow;
}

Percentiles SampleWindow::percentiles() const {
  if (samples_.empty()) return {};
  std::vector<double> samples = samples_;
  auto end = samples.end();
  // Takes shares from the largest to the smallest, because samples after each place are then larger
  // than all before it.
  const auto at = [&](double share) {
    const auto place =
        samples.begin() + static_cast<std::ptrdiff_t>(nearest_rank(share, samples.size()));
    std::nth_element(samples.begin(), place, end);
    end = place + 1;
    return *place;
  };
  Percentiles result;
  result.p99 = at(0.99);
  result.p95 = at(0.95);
  result.p50 = at(0.50);
  return result;
}

void SampleWindow::clear() {
  samples_.clear();
  next_ = 0;
}

void Statistics::play() {
  const std::lock_guard lock(mutex_);
  fresh_in_ = fresh_out_ = Clock::now();
  frozen_ = false;
}

std::pair<Statistics::Change, std::chrono::milliseconds> Statistics::look_for_frames(
    std::chrono::milliseconds bound) {
  const std::lock_guard lock(mutex_);
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - fresh_in_);
  const bool frozen = age > bound;
  if (std::exchange(frozen_, frozen) == frozen) return {Change::none, age};
  return {frozen ? Change::frozen : Change::flowing, age};
}

void Statistics::count_in() {
  const std::lock_guard lock(mutex_);
  fresh_in_ = Clock::now();
  ++counts_.frames_in;
}

void Statistics::count_out(bool inferred) {
  const std::lock_guard lock(mutex_);
  last_out_ = fresh_out_ = Clock::now();
  if (counts_.frames_out++ == 0) first_out_ = last_out_;
  ++(inferred ? counts_.inferred : counts_.skipped);
}

void Statistics::count_device_copy() {
  const std::lock_guard lock(mutex_);
  ++counts_.device_copies;
}

void Statistics::count_zero_copy() {
  const std::lock_guard lock(mutex_);
  ++counts_.zero_copy;
}

void Statistics::count_fetched() {
  const std::lock_guard lock(mutex_);
  ++counts_.fetched;
}

void Statistics::count_late() {
  const std::lock_guard lock(mutex_);
  ++counts_.late;
}

void Statistics::count_still() {
  const std::lock_guard lock(mutex_);
  ++counts_.still;
}

void Statistics::count_dropped() {
  const std::lock_guard lock(mutex_);
  ++counts_.dropped;
}

void Statistics::add(Stage stage, double milliseconds) {
  const std::lock_guard lock(mutex_);
  windows_[stage].add(milliseconds);
}

void Statistics::watch(const std::vector<DeviceUse>& devices) {
  const std::lock_guard lock(mutex_);
  for (const DeviceUse& use : devices)
    if (std::none_of(watched_.begin(), watched_.end(),
                     [&](const Watched& known) { return known.use.inferences == use.inferences; }))
      watched_.push_back({use, use.inferences->load()});
}

Statistics::Snapshot Statistics::snapshot() const {
  const std::lock_guard lock(mutex_);
  Snapshot snapshot = counts_;
  const double seconds = std::chrono::duration<double>(last_out_ - first_out_).count();
  if (snapshot.frames_out > 1 && seconds > 0)
    snapshot.frames_per_second = static_cast<double>(snapshot.frames_out - 1) / seconds;
  const auto age = [now = Clock::now()](Clock::time_point since) {
    return std::chrono::duration<double, std::milli>(now - since).count();
  };
  snapshot.in_age = age(fresh_in_);
  snapshot.out_age = age(fresh_out_);
  for (size_t stage = 0; stage < kStages; ++stage)
    snapshot.milliseconds[stage] = windows_[stage].percentiles();
  for (const Watched& watched : watched_) {
    const DeviceInfo& device = watched.use.device;
    auto known = std::find_if(snapshot.devices.begin(), snapshot.devices.end(),
                              [&](const Device& other) { return other.id == device.id; });
    if (known == snapshot.devices.end())
      known = snapshot.devices.insert(known, {device.id, device.name});
    known->inferences += watched.use.inferences->load() - watched.before;
  }
  return snapshot;
}

void Statistics::clear() {
  const std::lock_guard lock(mutex_);
  counts_ = {};
  watched_.clear();
  for (SampleWindow& window : windows_) window.clear();
}

bool ServiceTime::add(double milliseconds) {
  const std::lock_guard lock(mutex_);
  window_.add(milliseconds);
  // Lets the first frames decide at once, because a live pipeline waits for this figure.
  if (++since_check_ < kCheckEvery && window_.size() > 4) return false;
  since_check_ = 0;
  const double p95 = window_.percentiles().p95;
  const bool grown = p95 > reported_ * 1.25 && p95 > reported_ + kLeastChange;
  const bool fallen = p95 < reported_ * 0.5 && p95 < reported_ - kLeastChange;
  if (!grown && !fallen) return false;
  reported_ = p95 * 1.1;
  return true;
}

uint64_t ServiceTime::reported_ns() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(reported_ * 1e6);
}

void ServiceTime::clear() {
  const std::lock_guard lock(mutex_);
  window_.clear();
  since_check_ = 0;
  reported_ = 0;
}

}  // namespace clinfer
