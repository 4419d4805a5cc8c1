// Implements the control of latency and power.
#include "gst/infer/targets/target_controller.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace clinfer {
namespace {

// From this share of a target on, the limit is not raised.
constexpr double kNearTarget = 0.9;
// Shares of the allowed inferences that the device refuses. Below the least, the limit may rise;
// above the most, it falls.
constexpr double kFewRefused = 0.03, kManyRefused = 0.13;
// A device that is busy for less than this share of the time has time left.
constexpr double kFull = 0.9;
// Where the device is busy for less than this share of the time, waiting for it is not why frames
// are late.
constexpr double kHardlyBusy = 0.4;
// The change of demand that begins a new search.
constexpr double kOtherDemand = 0.25;
// How many times as many streams as before make others wait when they start, and for how many
// periods.
constexpr double kManyMore = 1.25;
constexpr int kStarting = 5;
// The most by which the limit rises at once.
constexpr double kLargestRise = 4;
// The fewest and the most calm periods before the limit rises.
constexpr int kShortPatience = 2, kLongPatience = 64;
// Periods after a rise within which a fall takes it back.
constexpr int kTakenBack = 10;
// Periods at the least limit after which a target counts as missed.
constexpr int kGivesUp = 5;
// Inferences per second that each stream keeps.
constexpr double kLeast = 1;
// The power of a device follows its load by a second or two.
constexpr int kPowerLag = 3;

double wanted_by(const TargetController::Stream& stream, double seconds) {
  return stream.wanted / seconds;
}

// Returns the inferences per second that a limit allows.
double allowed(const TargetController::Period& period, double limit) {
  double sum = 0;
  for (const TargetController::Stream& stream : period.streams)
    sum += std::min(wanted_by(stream, period.seconds), limit * stream.share);
  return sum;
}

}  // namespace

bool StartingStreams::next(size_t streams) {
  if (static_cast<double>(streams) > kManyMore * static_cast<double>(known_)) left_ = kStarting;
  known_ = streams;
  if (left_ == 0) return false;
  --left_;
  return true;
}

// Divides what the limit allows among the present streams.
void TargetController::share_among(const Period& period) {
  double shares = 0, most = 0;
  for (const Stream& stream : period.streams) {
    shares += stream.share;
    most = std::max(most, wanted_by(stream, period.seconds) / stream.share);
  }
  const double before = std::exchange(shares_, shares);
  if (!decision_.limit || shares <= 0 || shares == before) return;
  const double least = kLeast * static_cast<double>(period.streams.size()) / shares;
  decision_.limit = std::max(*decision_.limit * before / shares, least);
  if (shares < before && *decision_.limit >= most) decision_.limit.reset();
  decision_.reason = "streams came or left";
  ++decision_.changes;
  forget_periods();
}

void TargetController::note_demand(const Totals& totals) {
  const auto differs = [](double a, double b) {
    return std::abs(a - b) > kOtherDemand * std::max(a, b);
  };
  if (totals.streams == demand_.streams && !differs(totals.wanted, demand_.wanted)) return;
  if (totals.streams != demand_.streams) allowed_ = inferred_ = 0;
  demand_ = totals;
  patience_ = kShortPatience;
  since_raise_ = kTakenBack;
  missed_ = 0;
}

// Smooths what scatters where only some dozens of frames are inferred in a period.
void TargetController::note_period(const Period& period, const Totals& totals) {
  constexpr double kKept = 0.9;
  allowed_ = allowed_ * kKept + totals.allowed * period.seconds;
  inferred_ = inferred_ * kKept + totals.inferred * period.seconds;
  late_ = period.latency && *period.latency > 1 ? late_ + 1 : 0;
  if (!period.latency) return;
  // One bad second is no reason.
  const double latency = std::min(*period.latency, 1.5);
  latency_ = latency_ == 0 ? std::min(latency, 1.0) : latency_ * 0.75 + latency * 0.25;
}

// Sets the limit that allows `total` inferences per second.
void TargetController::set(const Period& period, double total, const char* reason) {
  double most = 0, shares = 0;
  for (const Stream& stream : period.streams) {
    most = std::max(most, wanted_by(stream, period.seconds) / stream.share);
    shares += stream.share;
  }
  if (total >= allowed(period, most)) {
    decision_.limit.reset();
  } else {
    // Bisection: what a limit allows grows with it.
    double low = 0, high = most;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (allowed(period, middle) < total ? low : high) = middle;
    }
    decision_.limit = std::max(high, kLeast * static_cast<double>(period.streams.size()) / shares);
  }
  decision_.reason = reason;
  ++decision_.changes;
  forget_periods();
}

void TargetController::forget_periods() {
  latency_ = allowed_ = inferred_ = 0;
  late_ = powerful_ = calm_ = since_change_ = 0;
}

void TargetController::lift(const char* reason) {
  forget_periods();
  patience_ = kShortPatience;
  since_raise_ = kTakenBack;
  missed_ = 0;
  if (!decision_.limit) return;
  decision_.limit.reset();
  decision_.reason = reason;
  ++decision_.changes;
}

bool TargetController::lower(const Period& period, const Totals& totals) {
  const bool is_powerful = period.power && *period.power > 1;
  powerful_ = is_powerful ? powerful_ + 1 : 0;
  double total = 0;
  const char* reason = nullptr;
  if ((latency_ > 1 || late_ > 1) && period.busy > kHardlyBusy) {
    total = totals.inferred * std::clamp(1 / period.latency.value_or(1), 0.7, 0.9);
    reason = "frames came later than target-latency";
  } else if (powerful_ >= kPowerLag && since_change_ >= kPowerLag) {
    total = totals.inferred * std::clamp(1 / *period.power, 0.7, 0.95);
    reason = "the device took more than target-power";
  } else if (since_change_ > 2 &&
             inferred_ + std::sqrt(inferred_) < (1 - kManyRefused) * allowed_) {  // surely
    // A few are refused still, so that the device does not wait for frames.
    total = totals.allowed * inferred_ / allowed_ * 1.05;
    reason = "more frames came than the device can infer";
  }
  if (reason == nullptr) return false;
  const double least = kLeast * static_cast<double>(totals.streams);
  if (totals.allowed <= least * 1.01) return false;
  if (since_raise_ < kTakenBack) patience_ = std::min(patience_ * 2, kLongPatience);
  set(period, std::max(total, least), reason);
  return true;
}

bool TargetController::raise(const Period& period, const Totals& totals) {
  const bool is_near = latency_ > kNearTarget || period.power.value_or(0) > kNearTarget;
  const bool may_rise = decision_.limit && totals.allowed < totals.wanted && !is_near &&
                        period.load < kFull && inferred_ >= (1 - kFewRefused) * allowed_;
  calm_ = may_rise ? calm_ + 1 : 0;
  if (calm_ < (period.power ? std::max(patience_, kPowerLag) : patience_)) return false;
  double factor = std::clamp(0.95 / std::max(period.load, 0.01), 1.05, kLargestRise);
  // The power grows by less than the load, because an idle device takes some.
  if (period.power) factor = std::min(factor, std::max(0.97 / *period.power, 1.02));
  set(period, totals.inferred * factor, "the device had time left");
  since_raise_ = 0;
  return true;
}

const TargetController::Decision& TargetController::next(const Period& period) {
  share_among(period);
  Totals totals;
  for (const Stream& stream : period.streams) {
    totals.wanted += stream.wanted / period.seconds;
    totals.inferred += stream.inferred / period.seconds;
  }
  totals.allowed = decision_.limit ? allowed(period, *decision_.limit) : totals.wanted;
  totals.streams = period.streams.size();
  note_demand(totals);
  if (period.starts) {
    forget_periods();
    return decision_;
  }
  ++since_change_;
  ++since_raise_;
  if (totals.wanted <= 0) return decision_;
  // Frames of before a change leave in the period after it.
  if (since_change_ > 1) {
    note_period(period, totals);
    if (!lower(period, totals)) raise(period, totals);
  }
  const bool misses_latency = period.latency && *period.latency > 1;
  const bool misses_power = period.power && *period.power > 1;
  missed_ = (misses_latency || misses_power) && since_change_ > 1 ? missed_ + 1 : 0;
  decision_.missed.reset();
  if (missed_ >= kGivesUp) decision_.missed = misses_latency ? Target::latency : Target::power;
  return decision_;
}

// The share of a latency target that is planned for.
constexpr double kPlanned = 0.7;

double batch_time_for(double target) { return target * kPlanned / 2; }
double wait_time_for(double target, double batch) {
  return std::max(target * kPlanned - batch, 0.0);
}

// ---- batches ------------------------------------------------------------------------------------

double BatchController::milliseconds(size_t images) const {
  for (size_t known = images; known > 0; --known)
    if (const double time = times_[known].milliseconds; time > 0)
      return time * static_cast<double>(images) / static_cast<double>(known);
  for (size_t known = images; known <= most_; ++known)
    if (const double time = times_[known].milliseconds; time > 0) return time;
  return 0;
}

size_t BatchController::next(const std::vector<Batches>& by_images, std::optional<double> longest) {
  // How much faster another size must be, and the least share of the work that measures a size.
  constexpr double kFaster = 1.05, kMeasures = 0.05;
  double work = 0;
  for (const Batches& batches : by_images) work += batches.milliseconds;
  for (size_t images = 1; images <= most_ && images < by_images.size(); ++images) {
    Time& time = times_[images];
    const Batches& batches = by_images[images];
    if (batches.count > 0 && batches.milliseconds >= kMeasures * work) {
      const double now = batches.milliseconds / batches.count;
      time.milliseconds = time.milliseconds > 0 ? time.milliseconds * 0.7 + now * 0.3 : now;
      time.age = 0;
    } else if (time.milliseconds > 0 && ++time.age > time.lasts) {
      time.milliseconds = 0;
      time.lasts = std::min(2 * time.lasts, kLongestLast);
    }
  }
  const auto fits = [&](size_t images, double factor) {
    return !longest || this->milliseconds(images) <= *longest * factor;
  };
  const auto rate = [&](size_t images) {
    const double time = this->milliseconds(images);
    return time > 0 ? static_cast<double>(images) / time : 0;
  };
  size_t best = 1;
  for (size_t images = 2; images <= most_; ++images)
    if (fits(images, 1) && rate(images) >= rate(best) * 0.999) best = images;
  // Keeps the present limit unless it is too large, or another one is clearly faster or larger and
  // not known to be slower.
  if (!fits(limit_, 1.1) || rate(best) > rate(limit_) * kFaster ||
      (best > limit_ && fits(best, 0.9)))
    limit_ = best;
  return limit_;
}

}  // namespace clinfer
