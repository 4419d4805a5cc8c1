// Compares two models in rounds of alternating turns.
#include "engine/measure/ab_comparison.h"

#include <algorithm>
#include <cmath>

#include "engine/measure/clock.h"
#include "engine/runtime/requests/infer_request.h"

namespace clinfer {

namespace {

constexpr size_t kLeastRounds = 3, kMostRounds = 200;
// A turn is long enough for its beginning and end to matter little.
constexpr double kTurnMs = 5, kMostCycles = 8;
constexpr double kAlike = 0.98;

ABComparison summarise(std::vector<double> (&ms)[2], std::vector<double>& gains) {
  if (gains.empty()) return {};
  for (std::vector<double>* values : {&ms[0], &ms[1], &gains})
    std::sort(values->begin(), values->end());
  return {ms[0][ms[0].size() / 2], ms[1][ms[1].size() / 2],     gains[gains.size() / 2],
          gains[gains.size() / 4], gains[gains.size() * 3 / 4], gains.size()};
}

struct Stopped {};

// Computes one inference layer by layer. Throws Stopped between two layers.
double milliseconds_of_layers(InferRequest& request, const std::function<bool()>& go_on) {
  const auto start = Clock::now();
  if (auto* of_device = dynamic_cast<DeviceRequest*>(&request)) {
    of_device->run_step_by_step([&](size_t) {
      if (!go_on()) throw Stopped{};
    });
  } else {
    request.start();
    request.wait();
  }
  return seconds_since(start) * 1e3;
}

double milliseconds_of_turn(Requests& requests, size_t cycles) {
  const auto start = Clock::now();
  for (size_t cycle = 0; cycle < cycles; ++cycle)
    for (const auto& request : requests) {
      if (cycle > 0) request->wait();
      request->start();
    }
  for (const auto& request : requests) request->wait();
  return seconds_since(start) * 1e3 / static_cast<double>(cycles * requests.size());
}

}  // namespace

bool ABComparison::second_is_slower() const {
  const double error = 0.93 * (high - low) / std::sqrt(static_cast<double>(rounds));
  return rounds > 0 && gain + 2 * error < kAlike;
}

ABComparison compare_alternately(Requests& first, Requests& second, double seconds,
                                 const std::function<bool()>& go_on, double slow_ms) {
  Requests* const models[] = {&first, &second};
  std::vector<double> ms[2], gains;
  try {
    double longest_ms = 0;
    for (Requests* requests : models)
      for (const auto& request : *requests)
        longest_ms = std::max(longest_ms, milliseconds_of_layers(*request, go_on));
    const bool slow = longest_ms > slow_ms;
    const double turn_ms = longest_ms * static_cast<double>(std::max(first.size(), second.size()));
    const auto cycles =
        static_cast<size_t>(std::clamp(std::ceil(kTurnMs / turn_ms), 1.0, kMostCycles));
    const auto begin = Clock::now();
    while (gains.size() < kLeastRounds ||
           (seconds_since(begin) < seconds && gains.size() < kMostRounds)) {
      double sums[2] = {};
      for (const size_t which : {0, 1, 1, 0}) {
        if (!go_on()) throw Stopped{};
        ms[which].push_back(slow ? milliseconds_of_layers(*models[which]->front(), go_on)
                                 : milliseconds_of_turn(*models[which], cycles));
        sums[which] += ms[which].back();
      }
      gains.push_back(sums[0] / sums[1]);
    }
  } catch (Stopped) {
    // Keeps the rounds measured so far.
  }
  return summarise(ms, gains);
}

}  // namespace clinfer
