// The tracker's core on generated motions whose ids are known.
#include "gst/track/tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

namespace clinfer {
namespace {

Box at(double x, double y, double width = 40, double height = 80) {
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

struct Tracked {
  explicit Tracked(TrackerSettings settings = {}) : tracker(settings, [this] { return ++last; }) {}
  std::vector<uint64_t> update(double seconds, const std::vector<Observation>& objects) {
    return tracker.update(seconds, objects);
  }
  uint64_t last = 0;
  Tracker tracker;
};

TEST(Motion, LearnsTheSpeedAndForetells) {
  Motion motion(at(100, 100));
  for (int frame = 1; frame <= 20; ++frame) {
    motion.advance(1);
    motion.correct(at(100 + 5 * frame, 100 - 2 * frame));
  }
  motion.advance(3);
  const Box box = motion.box();
  EXPECT_NEAR((box.x_min + box.x_max) / 2, 100 + 5 * 23, 1);
  EXPECT_NEAR((box.y_min + box.y_max) / 2, 100 - 2 * 23, 1);
  EXPECT_NEAR(box.width(), 40, 0.5);
}

TEST(Motion, OneLongStepIsAsManyShortOnes) {
  Motion a(at(0, 0)), b(at(0, 0));
  for (Motion* motion : {&a, &b}) {
    motion->advance(1);
    motion->correct(at(10, 5));
  }
  a.advance(6);
  for (int i = 0; i < 6; ++i) b.advance(1);
  EXPECT_NEAR(a.box().x_min, b.box().x_min, 1e-9);
}

// The camera pans while one object is hidden: it comes back where the others say that it should be.
TEST(Tracker, HiddenObjectsMoveWithTheCamera) {
  Tracked tracked;
  std::vector<uint64_t> first;
  for (int frame = 0; frame <= 50; ++frame) {
    const double pan = 12.0 * std::clamp(frame - 10, 0, 30);
    std::vector<Observation> objects;
    for (int i = 0; i < 6; ++i) objects.push_back({at(200.0 * i + pan, 300), 0.9, {}});
    if (frame < 10 || frame > 40) objects.push_back({at(100 + pan, 600), 0.9, {}});
    const auto ids = tracked.update(1.0 / 30, objects);
    if (frame == 0) first = ids;
    ASSERT_EQ(ids, std::vector<uint64_t>(
                       first.begin(), first.begin() + static_cast<std::ptrdiff_t>(objects.size())))
        << "frame " << frame;
  }
}

// Half hidden, with a low confidence, near an object that left: not the same one.
TEST(Tracker, AnUnsureBoxThatOverlapsLittleContinuesNoTrack) {
  Tracked tracked;
  for (int frame = 0; frame < 20; ++frame) tracked.update(1.0 / 30, {{at(100, 100), 0.9, {}}});
  EXPECT_EQ(tracked.update(1.0 / 30, {{at(120, 100), 0.3, {}}}), std::vector<uint64_t>{0});
  EXPECT_EQ(tracked.update(1.0 / 30, {{at(103, 100), 0.3, {}}})[0], 0u) << "missed before";
}

TEST(Tracker, ObjectsThatCrossKeepTheirIds) {
  Tracked tracked;
  std::vector<uint64_t> first;
  for (int frame = 0; frame <= 100; ++frame) {
    const double x = 6.0 * frame;
    const auto ids = tracked.update(1.0 / 30, {{at(x, 300), 0.9, {}}, {at(600 - x, 330), 0.9, {}}});
    if (frame == 0) first = ids;
    ASSERT_EQ(ids, first) << "frame " << frame;
  }
  EXPECT_EQ(first, (std::vector<uint64_t>{1, 2}));
}

TEST(Tracker, KeepsAnIdOverAGapThatIsShortEnough) {
  for (const auto& [hidden, same] : {std::pair(1.5, true), std::pair(2.5, false)}) {
    Tracked tracked;
    double x = 0;
    const auto go = [&](double seconds, bool visible) {
      uint64_t id = 0;
      for (int frame = 0; frame < seconds * 30; ++frame) {
        x += 2;
        const auto ids =
            tracked.update(1.0 / 30, visible ? std::vector<Observation>{{at(x, 100), 0.9, {}}}
                                             : std::vector<Observation>{});
        if (visible) id = ids[0];
      }
      return id;
    };
    EXPECT_EQ(go(1, true), 1u);
    go(hidden, false);
    EXPECT_EQ(go(1, true), same ? 1u : 2u) << hidden << " s out of sight";
    EXPECT_EQ(tracked.tracker.tracks().size(), 1u) << "ended tracks are forgotten";
  }
}

TEST(Tracker, LowConfidenceContinuesATrackButStartsNone) {
  Tracked tracked;
  for (int frame = 0; frame < 60; ++frame) {
    const double low = frame >= 20 && frame < 40 ? 0.2 : 0.9;
    const auto ids = tracked.update(1.0 / 30, {{at(100 + frame, 100), low, {}},
                                               {at(800 + frame, 100), 0.2, {}},
                                               {at(100 + frame, 600), 0.05, {}}});
    EXPECT_EQ(ids, (std::vector<uint64_t>{1, 0, 0})) << frame;
  }
}

TEST(Tracker, AnObjectSeenOnceGetsNoId) {
  Tracked tracked;
  tracked.update(1.0 / 30, {{at(100, 100), 0.9, {}}});
  EXPECT_EQ(tracked.update(1.0 / 30, {{at(101, 100), 0.9, {}}, {at(500, 500), 0.9, {}}}),
            (std::vector<uint64_t>{1, 0}));
  EXPECT_EQ(tracked.update(1.0 / 30, {{at(102, 100), 0.9, {}}}), (std::vector<uint64_t>{1}));
  EXPECT_EQ(tracked.update(1.0 / 30, {{at(103, 100), 0.9, {}}, {at(500, 500), 0.9, {}}}),
            (std::vector<uint64_t>{1, 0}))
      << "it was away in between";
  EXPECT_EQ(tracked.update(1.0 / 30, {{at(104, 100), 0.9, {}}, {at(501, 500), 0.9, {}}}),
            (std::vector<uint64_t>{1, 2}));
}

// Any frame rate gives the same ids: the same walk, seen more or less often.
TEST(Tracker, IsAwareOfTheFrameRate) {
  for (const double fps : {3.0, 8.0, 15.0, 30.0, 60.0, 120.0}) {
    Tracked tracked;
    std::set<uint64_t> ids;
    for (int frame = 0; frame < 6 * fps; ++frame) {
      const double seconds = frame / fps;
      for (const uint64_t id : tracked.update(1 / fps, {{at(100 + 80 * seconds, 200), 0.9, {}},
                                                        {at(900 - 80 * seconds, 240), 0.9, {}}}))
        ids.insert(id);
    }
    EXPECT_EQ(ids, (std::set<uint64_t>{1, 2})) << fps << " frames/s";
  }
}

TEST(Tracker, ForetellsBoxesOfFramesWithoutInference) {
  Tracked tracked;
  double least = 1;
  for (int frame = 0; frame < 90; ++frame) {
    const Box truth = at(100 + 6 * frame, 200 + 3 * frame);
    if (frame % 3 == 0) {
      const auto ids = tracked.update(1.0 / 30, {{truth, 0.9, {}}});
      EXPECT_EQ(ids[0], 1u) << frame;
    } else {
      tracked.tracker.skip(1.0 / 30);
      ASSERT_EQ(tracked.tracker.tracks().size(), 1u);
      if (frame > 12)
        least = std::min(least, overlap(tracked.tracker.tracks()[0].motion.box(), truth));
    }
  }
  EXPECT_GT(least, 0.9);
}

// Two people go behind a wall and come back on the other's side.
TEST(Tracker, TellsObjectsApartByTheirLook) {
  const std::vector<float> red{1, 0, 0.1f}, blue{0, 1, 0.1f};
  for (const bool looks : {true, false}) {
    TrackerSettings settings;
    if (!looks) settings.appearance_threshold = 0;
    Tracked tracked(settings);
    std::vector<uint64_t> ids;
    for (int frame = 0; frame < 30; ++frame)
      ids = tracked.update(1.0 / 30, {{at(100, 100), 0.9, red}, {at(220, 100), 0.9, blue}});
    for (int frame = 0; frame < 30; ++frame) tracked.update(1.0 / 30, {});
    for (int frame = 0; frame < 5; ++frame) {
      const auto now =
          tracked.update(1.0 / 30, {{at(100, 100), 0.9, blue}, {at(220, 100), 0.9, red}});
      if (looks)
        EXPECT_EQ(now, (std::vector<uint64_t>{ids[1], ids[0]}));
      else
        EXPECT_EQ(now, ids);
    }
  }
}

TEST(Tracker, TakesNoBoxesThatAreNone) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<float> odd{std::numeric_limits<float>::quiet_NaN(), 1}, zero(2, 0),
      longer(3, 1);
  Tracked tracked;
  for (int frame = 0; frame < 20; ++frame) {
    const auto ids =
        tracked.update(frame % 5 == 0 ? 1e9 : 0.04, {{{nan, 0, 10, 10}, 0.9, {}},
                                                     {{0, 0, infinity, 10}, 0.9, {}},
                                                     {{10, 10, 10, 20}, 0.9, {}},
                                                     {{20, 10, 10, 20}, 0.9, {}},
                                                     {at(50, 50), nan, {}},
                                                     {at(500, 500), 0.9, odd},
                                                     {at(700, 500), 0.9, zero},
                                                     {at(900, 500), 0.9, frame % 2 ? longer : zero},
                                                     {at(1e30, 1e30), 0.9, {}}});
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(ids[i], 0u);
    for (const Track& track : tracked.tracker.tracks())
      EXPECT_TRUE(std::isfinite(track.motion.box().x_min));
  }
  EXPECT_LE(tracked.tracker.tracks().size(), 4u);
}

// A crowd with misses, false alarms and shaking boxes: how often an object's id changes.
TEST(Tracker, FollowsACrowd) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937 random(seed);
    std::normal_distribution<double> shake(0, 1.5);
    std::uniform_real_distribution<double> share(0, 1);
    Tracked tracked;
    constexpr int kObjects = 20, kFrames = 300;
    std::map<int, uint64_t> id_of;
    int changes = 0, found = 0, named = 0;
    for (int frame = 0; frame < kFrames; ++frame) {
      std::vector<Observation> objects;
      std::vector<int> who;
      for (int i = 0; i < kObjects; ++i) {
        if (share(random) < 0.05) continue;
        const double angle = i * 0.7 + frame * 0.01 * (i % 2 ? 1 : -1);
        const double x = 900 + (100 + 40 * i) * std::cos(angle),
                     y = 500 + (50 + 20 * i) * std::sin(angle);
        objects.push_back(
            {at(x + shake(random), y + shake(random)), 0.6 + 0.3 * share(random), {}});
        who.push_back(i);
      }
      if (share(random) < 0.2)
        objects.push_back({at(1800 * share(random), 1000 * share(random)), 0.5, {}});
      const auto ids = tracked.update(1.0 / 30, objects);
      for (size_t i = 0; i < who.size(); ++i) {
        ++found;
        if (ids[i] == 0) continue;
        ++named;
        uint64_t& known = id_of[who[i]];
        if (known != 0 && known != ids[i]) ++changes;
        known = ids[i];
      }
    }
    EXPECT_GT(named, found * 0.97) << seed;
    EXPECT_LE(changes, 12) << seed;
    EXPECT_LE(tracked.last, 35u) << seed;
  }
}

}  // namespace
}  // namespace clinfer
