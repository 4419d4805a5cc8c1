// Sharing a device that is too slow for all live streams: cameras and inferences are simulated, so
// that the figures are exact. Also in the batcher, with real threads.
#include "gst/infer/model/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace clinfer {
namespace {

using Duration = FairShare::Duration;

Duration milliseconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(value));
}

struct Camera {
  double phase = 0, interval = 1000.0 / 30;  // milliseconds
  unsigned share = 1;
  int regions = 1;  // images per frame
};

struct Outcomes {
  std::vector<int> inferred;
  double used = 0;    // share of the time that the device computed
  double latest = 0;  // longest from arrival to the end of the inference, in milliseconds
  double least_over_most() const {
    const auto [least, most] = std::minmax_element(inferred.begin(), inferred.end());
    return static_cast<double>(*least) / std::max(*most, 1);
  }
};

// `inference` milliseconds per image, one at a time; frames are up to `jitter` late.
Outcomes simulate(const std::vector<Camera>& cameras, double inference, double jitter = 0) {
  constexpr double kEnd = 20000;
  struct Arrival {
    double time;
    size_t camera;
  };
  std::mt19937 random(11);
  std::uniform_real_distribution<double> late(0, 1);
  std::vector<Arrival> arrivals;
  for (size_t c = 0; c < cameras.size(); ++c)
    for (double time = cameras[c].phase; time < kEnd; time += cameras[c].interval)
      arrivals.push_back({time + late(random) * jitter, c});
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.time < b.time; });
  FairShare fair;
  Outcomes outcomes;
  outcomes.inferred.assign(cameras.size(), 0);
  double free_at = 0;
  for (const auto& [time, c] : arrivals) {
    const Camera& camera = cameras[c];
    const FairShare::Clock::time_point now(milliseconds(1e6 + time));
    const FairShare::Load load{milliseconds(std::max(free_at - time, 0.0)),
                               milliseconds(inference)};
    if (!fair.admit(&camera, camera.share, milliseconds(camera.interval), load, now)) continue;
    for (int i = 1; i < camera.regions; ++i) fair.charge(&camera, camera.share);
    free_at = std::max(free_at, time) + inference * camera.regions;
    outcomes.used += inference * camera.regions / kEnd;
    outcomes.latest = std::max(outcomes.latest, free_at - time);
    ++outcomes.inferred[c];
  }
  return outcomes;
}

std::vector<Camera> cameras(size_t count, const std::string& phases, int regions = 1) {
  std::vector<Camera> list(count);
  std::mt19937 random(7);
  for (size_t c = 0; c < count; ++c) {
    list[c].regions = regions;
    const double share = static_cast<double>(c) / static_cast<double>(count);
    list[c].phase = phases == "same"     ? 0.05 * static_cast<double>(c)
                    : phases == "spread" ? share * list[c].interval
                                         : static_cast<double>(random() % 33);
  }
  return list;
}

TEST(FairShare, EqualCamerasGetEqualSharesWhateverThePhase) {
  for (size_t count : {2, 8, 16})
    for (const char* phases : {"same", "spread", "random"})
      for (double inference : {5., 10., 20., 50., 100.})
        for (double jitter : {0., 6.}) {
          const Outcomes outcomes = simulate(cameras(count, phases), inference, jitter);
          const std::string what = std::to_string(count) + " cameras, phases " + phases + ", " +
                                   std::to_string(inference) + " ms, jitter " +
                                   std::to_string(jitter);
          // Beside this a difference of two frames, which counts where there are few.
          const auto [least, most] =
              std::minmax_element(outcomes.inferred.begin(), outcomes.inferred.end());
          EXPECT_GE(*least, 0.95 * *most - 2) << what;
          // The device is never idle while frames are skipped.
          const double wanted = static_cast<double>(count) * 30 * inference / 1000;
          EXPECT_GT(outcomes.used, std::min(wanted, 1.0) * 0.95) << what;
          EXPECT_LE(outcomes.latest, inference + 1000.0 / 30 + 0.01) << what;
        }
}

// Where the host computes, the threads of some cameras get no time for a while, and their frames come in
// bursts after that. They are owed what the others got.
TEST(FairShare, CamerasWhoseThreadsStarveGetTheirShare) {
  constexpr size_t kCameras = 8;
  for (const double inference : {30.0, 60.0, 150.0, 400.0}) {
    std::mt19937 random(3);
    std::exponential_distribution<double> starved(1);
    std::vector<std::pair<double, size_t>> arrivals;
    for (size_t c = 0; c < kCameras; ++c) {
      double time = 4 * static_cast<double>(c);
      for (double due = time; due < 20'000; due += 1000.0 / 30) {
        time = std::max(time + 0.3, due);
        if (random() % 8 == 0) time += (75 + 22 * static_cast<double>(c)) * starved(random);
        arrivals.emplace_back(time, c);
      }
    }
    std::sort(arrivals.begin(), arrivals.end());
    FairShare fair;
    std::vector<int> inferred(kCameras, 0);
    const std::vector<char> streams(kCameras);
    double free_at = 0;
    for (const auto& [time, c] : arrivals) {
      const FairShare::Load load{milliseconds(std::max(free_at - time, 0.0)),
                                 milliseconds(inference)};
      if (!fair.admit(&streams[c], 1, milliseconds(33), load,
                      FairShare::Clock::time_point(milliseconds(1e6 + time))))
        continue;
      free_at = std::max(free_at, time) + inference;
      ++inferred[c];
    }
    const auto [least, most] = std::minmax_element(inferred.begin(), inferred.end());
    EXPECT_GE(*least, 0.8 * *most - 2) << inference << " ms";
  }
}

TEST(FairShare, FramesWithSeveralRegionsShareImages) {
  for (const char* phases : {"same", "spread", "random"}) {
    EXPECT_GE(simulate(cameras(8, phases, 3), 10).least_over_most(), 0.9) << phases;
    // One with more regions than the others gets fewer frames.
    std::vector<Camera> list = cameras(4, phases);
    list[0].regions = 4;
    const Outcomes outcomes = simulate(list, 30);
    EXPECT_NEAR(outcomes.inferred[0] * 4, outcomes.inferred[1], outcomes.inferred[1] * 0.2)
        << phases;
  }
}

TEST(FairShare, SharesWeigh) {
  for (const char* phases : {"same", "spread", "random"}) {
    std::vector<Camera> list = cameras(4, phases);
    list[2].share = 2;
    list[3].share = 4;
    const std::vector<int> inferred = simulate(list, 25, 3).inferred;
    EXPECT_NEAR(inferred[1], inferred[0], inferred[0] * 0.1) << phases;
    EXPECT_NEAR(inferred[2], 2 * inferred[0], inferred[0] * 0.2) << phases;
    EXPECT_NEAR(inferred[3], 4 * inferred[0], inferred[0] * 0.4) << phases;
  }
}

TEST(FairShare, ASlowCameraGetsAllItAsksForAndLeavesTheRestToOthers) {
  std::vector<Camera> list = cameras(4, "random");
  list[0].interval = 200;  // 5 frames a second, below its share of 50 / 4
  const Outcomes outcomes = simulate(list, 20, 3);
  EXPECT_GE(outcomes.inferred[0], 95);
  EXPECT_GT(outcomes.used, 0.95);
  EXPECT_NEAR(outcomes.inferred[1], outcomes.inferred[3], outcomes.inferred[1] * 0.1);
}

TEST(FairShare, WhoeverStopsHoldsNobodyUp) {
  FairShare fair;
  const int a = 0, b = 0;
  const auto at = [](double ms) { return FairShare::Clock::time_point(milliseconds(1e6 + ms)); };
  const FairShare::Load idle{{}, milliseconds(20)}, busy{milliseconds(50), milliseconds(20)};
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(fair.admit(&b, 1, milliseconds(33), busy, at(i * 33)));
    fair.admit(&a, 1, milliseconds(33), idle, at(i * 33 + 1));
  }
  // b has a claim, so a is refused; b is never seen again.
  EXPECT_FALSE(fair.admit(&a, 1, milliseconds(33), busy, at(340)));
  EXPECT_TRUE(fair.admit(&a, 1, milliseconds(33), idle, at(700)));
}

TEST(FairShare, BeforeThereIsAnEstimateOnlyAnIdleDeviceIsTaken) {
  FairShare fair;
  const int a = 0;
  const FairShare::Clock::time_point now(milliseconds(1000));
  EXPECT_FALSE(fair.admit(&a, 1, milliseconds(33), {Duration::max() / 4, {}}, now));
  EXPECT_TRUE(fair.admit(&a, 1, milliseconds(33), {}, now));
}

}  // namespace
}  // namespace clinfer
