// Implements the trials of variants of a model.
#include "gst/infer/targets/trial_controller.h"

#include <algorithm>

namespace clinfer {
namespace {

// Periods in a row in which the device is short before a trial begins.
constexpr int kShortBefore = 5;
// In the first periods of a phase, elements change to the variant and frames of before leave.
constexpr int kSettling = 2, kMeasured = 3;
// How many times as many frames another variant must infer.
constexpr double kMuchMore = 1.05;
// A variant that infers a smaller share than this is given up at once, for the sake of the streams.
constexpr double kHopeless = 0.5;
// The share of the wanted frames that counts as all of them.
constexpr double kAll = 0.97;
// Periods before a variant that was not taken is tried again.
constexpr int kFirstPause = 120, kLongestPause = 3600;

// Returns a / b, at most 100: a variant may infer no frame in time.
double ratio(double a, double b) {
  constexpr double kMost = 100;
  if (a <= 0 && b <= 0) return 1;
  return a >= kMost * b ? kMost : a / b;
}

}  // namespace

TrialController::Phase TrialController::next(const Period& period, const Bounds& bounds) {
  outcome_.reset();
  was_needless_ = false;
  for (auto& [variant, tried] : tried_) tried.pause = std::max(tried.pause - 1, 0);
  if (phase_ == Phase::idle) {
    short_ = period.is_short ? short_ + 1 : 0;
    if (short_ >= kShortBefore && choose(bounds)) begin(Phase::compiling);
  } else if (is_measuring()) {
    measure(period);
  }
  return phase_;
}

// Chooses a candidate. Returns false if there is none.
bool TrialController::choose(const Bounds& bounds) {
  std::vector<Variant> all;
  for (const Precision precision : bounds.precisions) all.push_back({present_.streams, precision});
  if (present_.streams < bounds.most_streams)
    all.push_back({present_.streams + 1, present_.precision});
  if (present_.streams > 1 && bounds.most_streams != 0)
    all.push_back({present_.streams - 1, present_.precision});
  const auto may = [&](const Variant& variant) {
    if (variant == present_) return false;
    const auto known = tried_.find(variant);
    return known == tried_.end() || (known->second.pause == 0 && !known->second.refused);
  };
  const auto found = std::find_if(all.begin(), all.end(), may);
  if (found == all.end()) return false;
  candidate_ = *found;
  return true;
}

void TrialController::begin(Phase phase) {
  phase_ = phase;
  periods_ = 0;
  sum_ = wanted_ = 0;
}

void TrialController::stop() {
  phase_ = Phase::idle;
  short_ = 0;
}

void TrialController::refuse() {
  tried_[candidate_].refused = true;
  stop();
}

void TrialController::measure(const Period& period) {
  if (phase_ == Phase::before && periods_ == 0) users_ = period.users;
  if (period.users != users_) return stop();
  if (++periods_ <= kSettling) return;
  sum_ += period.inferred;
  wanted_ += period.wanted;
  const double mean = sum_ / (periods_ - kSettling);
  if (phase_ == Phase::candidate && mean < kHopeless * before_) return end(ratio(mean, before_));
  if (periods_ < kSettling + kMeasured) return;
  if (phase_ == Phase::before) {
    before_ = mean;
    was_needless_ = sum_ >= kAll * wanted_;
    if (was_needless_) return stop();
    begin(Phase::candidate);
  } else if (phase_ == Phase::candidate) {
    tried_rate_ = mean;
    if (ratio(mean, before_) < kMuchMore)
      end(ratio(mean, before_));
    else
      begin(Phase::after);
  } else {
    end(ratio(tried_rate_, std::max(before_, mean)));
  }
}

void TrialController::end(double gain) {
  outcome_ = Outcome{present_, candidate_, gain, gain >= kMuchMore};
  const Variant& loser = outcome_->taken ? present_ : candidate_;
  Tried& tried = tried_[loser];
  tried.last_pause =
      tried.last_pause == 0 ? kFirstPause : std::min(2 * tried.last_pause, kLongestPause);
  tried.pause = tried.last_pause;
  if (outcome_->taken) present_ = candidate_;
  stop();
}

}  // namespace clinfer
