// Rounds of inferences in turn.
#include "engine/runtime/by_turns.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLeastRounds = 3, kMostRounds = 200;
constexpr double kTurnMs = 5, kMostCycles = 8;  // so that how a turn begins and ends counts little
constexpr double kAlike = 0.98;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

ByTurns summarise(std::vector<double> (&ms)[2], std::vector<double>& gains) {
  if (gains.empty()) return {};
  for (std::vector<double>* values : {&ms[0], &ms[1], &gains})
    std::sort(values->begin(), values->end());
  return {ms[0][ms[0].size() / 2], ms[1][ms[1].size() / 2],     gains[gains.size() / 2],
          gains[gains.size() / 4], gains[gains.size() * 3 / 4], gains.size()};
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

bool ByTurns::second_is_slower() const {
  const double error = 0.93 * (high - low) / std::sqrt(static_cast<double>(rounds));
  return rounds > 0 && gain + 2 * error < kAlike;
}

ByTurns compare_by_turns(Requests& first, Requests& second, double seconds,
                         const std::function<bool()>& go_on) {
  Requests* const models[] = {&first, &second};
  double longest_ms = 0;
  for (Requests* requests : models)
    longest_ms = std::max(
        longest_ms, milliseconds_of_turn(*requests, 1) * static_cast<double>(requests->size()));
  const auto cycles =
      static_cast<size_t>(std::clamp(std::ceil(kTurnMs / longest_ms), 1.0, kMostCycles));
  std::vector<double> ms[2], gains;
  const auto begin = Clock::now();
  while (gains.size() < kLeastRounds ||
         (seconds_since(begin) < seconds && gains.size() < kMostRounds)) {
    double sums[2] = {};
    for (const size_t which : {0, 1, 1, 0}) {
      if (!go_on()) return summarise(ms, gains);
      ms[which].push_back(milliseconds_of_turn(*models[which], cycles));
      sums[which] += ms[which].back();
    }
    gains.push_back(sums[0] / sums[1]);
  }
  return summarise(ms, gains);
}

}  // namespace clinfer
