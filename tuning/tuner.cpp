// Searches by successive halving over points that a cost model, relatives and neighbours suggest.
#include "tuning/tuner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "kernels/base/error.h"
#include "tuning/median.h"

namespace clinfer {

namespace {

// Number of points that start the search: the cheapest by a family's cost model, or else.
constexpr size_t kCheapest = 14;
constexpr size_t kLeading = 10;  // the first ones of its space, and
constexpr size_t kSpread = 10;   // this many more, spread over it
constexpr size_t kBatch = 8;     // number of kernels made ready at once
// Number of candidates timed between two timings of the fallback.
constexpr size_t kAnchorEvery = 4;
constexpr int kFirstSamples = 2;
// Candidates that are slower than the best by this factor in all first samples are dropped.
constexpr double kHopeless = 1.4;
constexpr double kSampleNs = 200e3;  // a sample is repeated to take about this long
constexpr unsigned kMostRepeats = 16;
// A family that is slower than the best one by this factor is no rival; see points_of_rivals().
constexpr double kNoRival = 1.25;
constexpr int kFirstRounds = 3, kMostRounds = 12;
constexpr size_t kFinalists = 3;
constexpr int kFinalRounds = 15;
constexpr size_t kLeastFinalRounds = 5;
constexpr double kWorthIt = 0.985;  // share of the fallback's time that a change must reach, and
constexpr double kWins = 0.75;      // in this share of the pairs
// The factor by which the times of two points may differ from the model's prediction. With it,
// expected_gain() equals what searches saved on an H100 and an H200, where times are known: 3.4 %
// of conv_mma's and 6 % of conv_depthwise's (tuning/db/). An error that all points share does not
// change the choice.
constexpr double kDoubt = 1.25;
constexpr double kLeastGain = 0.005;  // another family may be faster, which no cost model compares

// Formats a reason as one line that a tuning file can keep.
std::string one_line(const std::string& text) {
  constexpr size_t kLongest = 300;
  std::string line;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte >= 0x7f ? ' ' : c;
  }
  return line;
}

// Returns indices into a family's space, the cheapest first if the family has a cost model.
std::vector<size_t> cheapest_first(const KernelFamily& family,
                                   const std::vector<TuningPoint>& space, const OpDesc& desc,
                                   const DeviceTraits& traits) {
  std::vector<size_t> order(space.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!family.costs) return order;
  const std::vector<double> costs = family.costs(desc, traits);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a] < costs[b]; });
  return order;
}

struct Candidate {
  KernelChoice choice{};
  size_t number = 0;      // the runner's number of the candidate
  bool verified = false;  // true if it computes what the fallback does; only then its times count
  bool failed = false;
  std::vector<double> ratios{};  // divided by the fallback's time beside it
  double least_ns = std::numeric_limits<double>::infinity();
  double score() const {
    return ratios.empty() ? std::numeric_limits<double>::infinity() : median(ratios);
  }
};

class Search {
 public:
  Search(const OpDesc& desc, const DeviceTraits& traits,
         std::span<const KernelFamily* const> families, const KernelChoice& fallback,
         KernelRunner& runner, const SearchLimits& limits,
         const std::function<bool(const SearchProgress&)>& observe)
      : desc_(desc),
        traits_(traits),
        families_(families),
        runner_(runner),
        limits_(limits),
        observe_(observe),
        start_(limits.clock()) {
    for (const KernelFamily* family : families)
      spaces_.push_back({family, family->space(desc, traits)});
    result_.best = fallback;
    fallback_.choice = fallback;
  }

  SearchResult run(std::span<const KernelChoice> guesses) {
    const KernelPlan plan = plan_of(fallback_.choice);
    if (const std::string why = runner_.prepare({&plan, 1}, {})[0]; !why.empty()) {
      if (!go_on()) return std::move(result_);  // cancelling is no error
      throw Error(ErrorCode::device_failed, why);
    }
    next_number_ = 1;
    seen_.push_back(fallback_.choice);
    runner_.time(fallback_.number, 1);
    const double once = runner_.time(fallback_.number, 1);
    repeat_ = static_cast<unsigned>(
        std::clamp(kSampleNs / std::max(once, 1.0), 1.0, static_cast<double>(kMostRepeats)));
    try_all(first_candidates(desc_, traits_, families_, guesses));
    if (limits_.exhaustive)
      try_all(points_of_rivals());
    else
      climb();
    choose();
    return std::move(result_);
  }

 private:
  struct Space {
    const KernelFamily* family;
    std::vector<TuningPoint> points;
  };

  KernelPlan plan_of(const KernelChoice& choice) const {
    return choice.family->plan(desc_, traits_, choice.point);
  }

  bool go_on() {
    if (ended_) return false;
    if (!observe_({result_.tried, default_ns_, best_ns_})) result_.stopped = ended_ = true;
    // Lets candidates that were built be tried after the budget is spent, since otherwise there
    // would be nothing to choose from.
    if (!in_batch_ && !has_time()) ended_ = true;
    return !ended_;
  }

  bool has_time() const {
    return limits_.seconds == 0 || limits_.clock() - start_ < limits_.seconds;
  }

  // Returns all points of the families that can win. If the first candidates of a family, which its
  // cost model considers cheapest, are slower than those of another family by kNoRival, its other
  // points are slower, too.
  std::vector<KernelChoice> points_of_rivals() const {
    std::map<const KernelFamily*, double> best{{fallback_.choice.family, 1.0}};
    for (const Candidate& candidate : candidates_) {
      if (candidate.failed) continue;
      double& score = best.try_emplace(candidate.choice.family, candidate.score()).first->second;
      score = std::min(score, candidate.score());
    }
    const double least =
        std::min_element(best.begin(), best.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second;
    std::vector<KernelChoice> rest;
    for (const Space& space : spaces_) {
      const auto found = best.find(space.family);
      if (found == best.end() || found->second > kNoRival * least) continue;
      for (const size_t i : cheapest_first(*space.family, space.points, desc_, traits_))
        rest.push_back({space.family, space.points[i]});
    }
    return rest;
  }

  // Moves from the best point to better neighbours.
  void climb() {
    for (size_t before = SIZE_MAX; go_on() && result_.tried != before;) {
      before = result_.tried;
      const size_t best = best_candidate();
      try_all(best == SIZE_MAX ? neighbours(fallback_.choice)
                               : neighbours(candidates_[best].choice));
      if (best_candidate() == best) break;
    }
  }

  // Returns points that differ from this one in a single parameter, by the next smaller or larger
  // value.
  std::vector<KernelChoice> neighbours(const KernelChoice& choice) const {
    std::vector<KernelChoice> found;
    for (const Space& space : spaces_) {
      if (space.family != choice.family) continue;
      for (size_t d = 0; d < choice.point.values.size(); ++d) {
        const int here = choice.point.values[d].second;
        const TuningPoint *below = nullptr, *above = nullptr;
        for (const TuningPoint& point : space.points) {
          if (!differs_only_in(point, choice.point, d)) continue;
          const int value = point.values[d].second;
          if (value < here && (!below || value > below->values[d].second)) below = &point;
          if (value > here && (!above || value < above->values[d].second)) above = &point;
        }
        for (const TuningPoint* point : {below, above})
          if (point) found.push_back({space.family, *point});
      }
    }
    return found;
  }

  // Keeps the size of work-groups: if two parameters of a point have a fixed product, they change
  // together.
  static bool differs_only_in(const TuningPoint& a, const TuningPoint& b, size_t dimension) {
    if (a.values[dimension].second == b.values[dimension].second) return false;
    size_t others = 0;
    for (size_t i = 0; i < a.values.size(); ++i)
      others += i != dimension && a.values[i].second != b.values[i].second;
    return others == 0 || (others == 1 && product(a) == product(b));
  }
  static int64_t product(const TuningPoint& point) {
    int64_t value = 1;
    for (const auto& [name, number] : point.values) value *= number ? number : 1;
    return value;
  }

  // Builds the new ones among `choices`, verifies them, and lets them compete. Samples are taken
  // batch by batch, so that there is something to choose from whenever the time is over.
  void try_all(std::vector<KernelChoice> choices) {
    std::erase_if(choices, [&](const KernelChoice& choice) {
      if (std::find(seen_.begin(), seen_.end(), choice) != seen_.end()) return true;
      seen_.push_back(choice);
      return false;
    });
    std::vector<KernelPlan> all;
    for (const KernelChoice& choice : choices) all.push_back(plan_of(choice));
    runner_.expect(all);
    std::vector<size_t> fresh;
    for (size_t from = 0; from < choices.size() && go_on(); from += kBatch) {
      const std::span<const KernelChoice> batch(choices.data() + from,
                                                std::min(kBatch, choices.size() - from));
      in_batch_ = true;
      std::function<bool()> in_time;
      if (limits_.seconds > 0) in_time = [this] { return has_time(); };
      const std::vector<std::string> errors =
          runner_.prepare(std::span(all).subspan(from, batch.size()), in_time);
      std::vector<size_t> ready;
      for (size_t i = 0; i < errors.size() && go_on(); ++i) {
        candidates_.push_back({batch[i], next_number_ + i});
        ready.push_back(candidates_.size() - 1);
        if (!errors[i].empty()) fail(ready.back(), errors[i]);
      }
      next_number_ += errors.size();
      for (int i = 0; i < kFirstSamples; ++i) sample(ready);
      // Verifies only candidates that can win, because verifying takes far longer than running.
      drop_hopeless(ready);
      for (const size_t i : ready) {
        if (!go_on()) break;
        if (const std::string why = runner_.verify(candidates_[i].number); !why.empty())
          fail(i, why);
        else
          candidates_[i].verified = true;
      }
      in_batch_ = false;
      note_best();
      std::copy_if(ready.begin(), ready.end(), std::back_inserter(fresh),
                   [&](size_t i) { return candidates_[i].verified; });
    }
    halve(std::move(fresh));
  }

  // Takes one sample of each, with the fallback timed in between.
  void sample(const std::vector<size_t>& who) {
    double anchor = 0;
    size_t since = kAnchorEvery;
    for (const size_t i : who) {
      if (!go_on()) return;
      if (since++ >= kAnchorEvery) {
        anchor = runner_.time(fallback_.number, repeat_);
        since = 1;
        note_default(anchor);
      }
      Candidate& candidate = candidates_[i];
      if (candidate.failed) continue;
      double ns = 0;
      try {
        ns = runner_.time(candidate.number, repeat_);
      } catch (const Error& error) {
        if (candidate.verified) throw;  // it ran before, so the device itself has failed
        fail(i, error.what());
        continue;
      }
      result_.tried += candidate.ratios.empty();
      candidate.ratios.push_back(ns / anchor);
      candidate.least_ns = std::min(candidate.least_ns, ns);
    }
    note_best();
  }

  void fail(size_t i, const std::string& why) {
    candidates_[i].failed = true;
    result_.failed.emplace_back(to_string(candidates_[i].choice), one_line(why));
  }

  void note_best() {
    if (const size_t best = best_candidate(); best != SIZE_MAX)
      best_ns_ = std::min(1.0, candidates_[best].score()) * default_ns_;
  }

  void note_default(double ns) {
    default_samples_.push_back(ns);
    default_ns_ = median(default_samples_);
    if (best_ns_ == 0) best_ns_ = default_ns_;
  }

  // Drops hopeless candidates after their first samples, then the worse half after each of ever
  // longer rounds. The best candidate so far stays in the race.
  void halve(std::vector<size_t> alive) {
    if (alive.empty()) return;
    if (const size_t best = best_candidate(); best != SIZE_MAX) alive.push_back(best);
    drop_hopeless(alive);
    for (int rounds = kFirstRounds; alive.size() > 1 && rounds <= kMostRounds && !ended_;
         rounds *= 2) {
      for (int i = 0; i < rounds && !ended_; ++i) sample(alive);
      std::sort(alive.begin(), alive.end(), [&](size_t a, size_t b) {
        return candidates_[a].score() < candidates_[b].score();
      });
      alive.resize((alive.size() + 1) / 2);
    }
  }

  // Judges by the shortest of the first samples, because one that was disturbed must not decide.
  void drop_hopeless(std::vector<size_t>& alive) const {
    double best = default_ns_;
    for (const Candidate& candidate : candidates_)
      if (candidate.verified) best = std::min(best, candidate.least_ns);
    std::erase_if(alive, [&](size_t i) {
      return candidates_[i].failed || candidates_[i].least_ns > best * kHopeless;
    });
  }

  size_t best_candidate() const {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < candidates_.size(); ++i)
      if (candidates_[i].verified &&
          (best == SIZE_MAX || candidates_[i].score() < candidates_[best].score()))
        best = i;
    return best;
  }

  // Compares the finalists with the fallback, alternately; a change must win clearly.
  void choose() {
    std::vector<size_t> finalists;
    for (size_t i = 0; i < candidates_.size(); ++i)
      if (candidates_[i].verified) finalists.push_back(i);
    std::sort(finalists.begin(), finalists.end(),
              [&](size_t a, size_t b) { return candidates_[a].score() < candidates_[b].score(); });
    finalists.resize(std::min(finalists.size(), has_time() ? kFinalists : 1));
    std::vector<std::vector<double>> ratios(finalists.size());
    // Completes the first rounds even without budget, because few samples decide nothing.
    ended_ = result_.stopped;
    for (int round = 0; !finalists.empty() && !ended_ && round < kFinalRounds; ++round) {
      in_batch_ = ratios.front().size() < kLeastFinalRounds;
      for (size_t f = 0; f < finalists.size() && go_on(); ++f) {
        const bool after = (round + static_cast<int>(f)) % 2 == 0;
        double ours = 0;
        if (!after) ours = runner_.time(candidates_[finalists[f]].number, repeat_);
        const double anchor = runner_.time(fallback_.number, repeat_);
        if (after) ours = runner_.time(candidates_[finalists[f]].number, repeat_);
        note_default(anchor);
        ratios[f].push_back(ours / anchor);
      }
    }
    double best = 1;
    for (size_t f = 0; f < finalists.size(); ++f) {
      const std::vector<double>& samples =
          ratios[f].size() >= kLeastFinalRounds ? ratios[f] : candidates_[finalists[f]].ratios;
      const auto wins = static_cast<size_t>(
          std::count_if(samples.begin(), samples.end(), [](double r) { return r < 1; }));
      const double ratio = median(samples);
      if (ratio < kWorthIt && ratio < best &&
          static_cast<double>(wins) >= kWins * static_cast<double>(samples.size())) {
        best = ratio;
        result_.best = candidates_[finalists[f]].choice;
      }
    }
    result_.default_ns = default_ns_;
    result_.best_ns = best * default_ns_;
  }

  const OpDesc& desc_;
  const DeviceTraits& traits_;
  const std::span<const KernelFamily* const> families_;
  KernelRunner& runner_;
  const SearchLimits& limits_;
  const std::function<bool(const SearchProgress&)>& observe_;
  const double start_;
  std::vector<Space> spaces_;
  std::vector<KernelChoice> seen_;
  std::vector<Candidate> candidates_;
  Candidate fallback_;
  size_t next_number_ = 0;
  unsigned repeat_ = 1;
  bool ended_ = false;
  // True while kernels are built that were not tried; the budget then does not count.
  bool in_batch_ = true;
  std::vector<double> default_samples_;
  double default_ns_ = 0, best_ns_ = 0;
  SearchResult result_;
};

}  // namespace

std::string to_string(const KernelChoice& choice) {
  std::string text = choice.family->name;
  for (const auto& [name, value] : choice.point.values)
    text += " " + name + "=" + std::to_string(value);
  return text;
}

int index_in_space(const KernelChoice& choice, const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<TuningPoint> space = choice.family->space(desc, traits);
  const auto found = std::find(space.begin(), space.end(), choice.point);
  return found == space.end() ? -1 : static_cast<int>(found - space.begin());
}

std::vector<KernelChoice> first_candidates(const OpDesc& desc, const DeviceTraits& traits,
                                           std::span<const KernelFamily* const> families,
                                           std::span<const KernelChoice> guesses) {
  std::vector<KernelChoice> first(guesses.begin(), guesses.end());
  for (const KernelFamily* family : families)
    first.push_back({family, family->heuristic(desc, traits)});
  for (const KernelFamily* family : families) {
    const std::vector<TuningPoint> space = family->space(desc, traits);
    const std::vector<size_t> order = cheapest_first(*family, space, desc, traits);
    const size_t leading = family->costs ? kCheapest : kLeading;
    for (size_t i = 0; i < std::min(leading, order.size()); ++i)
      first.push_back({family, space[order[i]]});
    if (family->costs) continue;
    const double step = std::max(1.0, static_cast<double>(space.size()) / kSpread);
    for (double at = 0; at < static_cast<double>(space.size()); at += step)
      first.push_back({family, space[static_cast<size_t>(at)]});
  }
  return first;
}

std::vector<KernelChoice> untuned_candidates(const OpDesc& desc, const DeviceTraits& traits,
                                             const KernelFamily& family) {
  constexpr size_t kMost = 8;
  const KernelFamily* const families[] = {&family};
  std::vector<KernelChoice> candidates;
  for (KernelChoice& choice : first_candidates(desc, traits, families, {}))
    if (candidates.size() < kMost && std::ranges::find(candidates, choice) == candidates.end())
      candidates.push_back(std::move(choice));
  return candidates;
}

double expected_gain(const KernelChoice& choice, const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<TuningPoint> space = choice.family->space(desc, traits);
  std::vector<double> rivals(space.size(), 1.0);
  if (choice.family->costs) rivals = choice.family->costs(desc, traits);
  const auto own =
      rivals.begin() + (std::find(space.begin(), space.end(), choice.point) - space.begin());
  const double chosen = *own;
  rivals.erase(own);
  std::sort(rivals.begin(), rivals.end());
  rivals.resize(std::min(kCheapest, rivals.size()));
  // Integrates the probability that a kernel takes longer than a multiple of the chosen kernel's
  // prediction. This gives the mean of the chosen kernel's time, and of the time that the fastest
  // of all kernels would save.
  constexpr int kSteps = 300;
  double mean = 0, saved = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double time = kDoubt * (i + 0.5) / kSteps * chosen;
    const auto takes_longer = [&](double predicted) {
      return 1 - std::clamp(std::log(time / predicted) / std::log(kDoubt), 0.0, 1.0);
    };
    double all = 1;
    for (const double rival : rivals) all *= takes_longer(rival);
    mean += takes_longer(chosen);
    saved += takes_longer(chosen) * (1 - all);
  }
  return std::max(saved / mean, kLeastGain);
}

SearchResult search(const OpDesc& desc, const DeviceTraits& traits,
                    std::span<const KernelFamily* const> families, const KernelChoice& fallback,
                    std::span<const KernelChoice> guesses, KernelRunner& runner,
                    const SearchLimits& limits,
                    const std::function<bool(const SearchProgress&)>& observe) {
  return Search(desc, traits, families, fallback, runner, limits, observe).run(guesses);
}

}  // namespace clinfer
