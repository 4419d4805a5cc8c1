// Lines crossed and zones visited on ways whose crossings are known.
#include "gst/zones/counter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gst/zones/rules.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr double kLost = 2;

Zone line(Place a, Place b) { return {"line", true, {a, b}}; }
Zone zone(std::vector<Place> points) { return {"zone", false, std::move(points)}; }

TEST(ZoneCounter, CountsBothDirectionsOfALine) {
  ZoneCounter counter({line({0, 100}, {200, 100})});
  std::vector<ZoneEvent> all;
  const auto go = [&](uint64_t id, Place from, Place to) {
    for (int i = 0; i <= 20; ++i) {
      const Place at{from.x + (to.x - from.x) * i / 20, from.y + (to.y - from.y) * i / 20};
      for (const ZoneEvent& event : counter.update(i * 0.04, {{SeenObject{id, at, 2}}}, kLost, 0))
        all.push_back(event);
    }
  };
  go(1, {50, 50}, {60, 150});    // downwards, seen from left to right: in
  go(2, {150, 150}, {140, 50});  // out
  go(3, {50, 50}, {150, 90});    // on one side
  go(4, {250, 50}, {250, 150});  // beyond the end
  go(5, {100, 99}, {100, 101});  // never surely on a side
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].event, Event::cross_in);
  EXPECT_EQ(all[0].id, 1u);
  EXPECT_EQ(all[1].event, Event::cross_out);
  EXPECT_EQ(all[1].id, 2u);
  EXPECT_EQ(counter.counts()[0].in, 1u);
  EXPECT_EQ(counter.counts()[0].out, 1u);
}

TEST(ZoneCounter, OneWhoStandsOnTheLineIsCountedOnce) {
  ZoneCounter counter({line({0, 100}, {200, 100})});
  std::mt19937 random(3);
  std::normal_distribution<double> shake(0, 1.5);
  for (int frame = 0; frame < 300; ++frame) {
    // Comes, stands for eight seconds, goes on.
    const double y = frame < 50 ? 50 + frame : frame < 250 ? 100 : 100 + (frame - 250);
    counter.update(frame / 25.0, {{SeenObject{1, {100, y + shake(random)}, 6}}}, kLost, 0);
  }
  EXPECT_EQ(counter.counts()[0].in, 1u);
  EXPECT_EQ(counter.counts()[0].out, 0u);
}

TEST(ZoneCounter, AFastObjectCannotJumpOverALine) {
  ZoneCounter counter({line({0, 100}, {200, 100})});
  counter.update(0, {{SeenObject{1, {90, 10}, 5}}}, kLost, 0);
  counter.update(0.04, {{SeenObject{1, {110, 190}, 5}}}, kLost, 0);
  EXPECT_EQ(counter.counts()[0].in, 1u);
  // Nor one that was hidden meanwhile.
  counter.update(1.5, {{SeenObject{1, {100, 10}, 5}}}, kLost, 0);
  EXPECT_EQ(counter.counts()[0].out, 1u);
}

TEST(ZoneCounter, VisitsOfAZone) {
  ZoneCounter counter({zone({{100, 100}, {200, 100}, {200, 200}, {100, 200}})});
  std::vector<ZoneEvent> all;
  for (int frame = 0; frame <= 100; ++frame)
    for (const ZoneEvent& event :
         counter.update(frame * 0.1, {{SeenObject{7, {50 + 2.0 * frame, 150}, 1}}}, kLost, 3))
      all.push_back(event);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].event, Event::enter);
  EXPECT_EQ(all[1].event, Event::dwell);
  EXPECT_NEAR(all[1].seconds, 3, 0.11);
  EXPECT_EQ(all[2].event, Event::leave);
  EXPECT_NEAR(all[2].seconds, 5, 0.11);
  EXPECT_EQ(counter.counts()[0].inside, 0u);
}

TEST(ZoneCounter, WhoVanishesInAZoneLeavesIt) {
  ZoneCounter counter({zone({{0, 0}, {100, 0}, {100, 100}, {0, 100}})});
  EXPECT_EQ(counter.update(0, {{SeenObject{1, {50, 50}, 1}}}, kLost, 0).size(), 1u);
  EXPECT_EQ(counter.zones_of(1), (std::vector<size_t>{0}));
  EXPECT_TRUE(counter.update(1.9, {}, kLost, 0).empty());
  const auto events = counter.update(2.1, {}, kLost, 0);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event, Event::leave);
  EXPECT_EQ(counter.counts()[0].inside, 0u);
  EXPECT_FALSE(counter.knows(1));
}

// A generated scene: people walk through a door and back, by known numbers.
TEST(ZoneCounter, CountsAGeneratedScene) {
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> share(0, 1);
    std::normal_distribution<double> shake(0, 1);
    ZoneCounter counter({line({300, 240}, {500, 240}),
                         zone({{100, 300}, {700, 300}, {700, 460}, {400, 350}, {100, 460}})});
    uint64_t in = 0, out = 0;
    for (uint64_t id = 1; id <= 60; ++id) {
      const bool downwards = share(random) < 0.6, through = share(random) < 0.7;
      const double x = through ? 330 + 140 * share(random) : 120 + 130 * share(random);
      (downwards ? in : out) += through;
      for (int i = 0; i <= 40; ++i) {
        const double y = downwards ? 40 + 10 * i : 440 - 10 * i;
        counter.update(static_cast<double>(id) * 10 + i * 0.04,
                       {{SeenObject{id, {x + shake(random), y + shake(random)}, 4}}}, kLost, 0);
      }
    }
    counter.update(1e6, {}, kLost, 0);
    EXPECT_EQ(counter.counts()[0].in, in) << seed;
    EXPECT_EQ(counter.counts()[0].out, out) << seed;
    EXPECT_EQ(counter.counts()[1].in, 60u) << "all of them pass the bay";
    EXPECT_EQ(counter.counts()[1].out, 60u);
  }
}

TEST(ZoneRules, ReadsLinesAndZones) {
  const ZoneRules rules("door:0.1,0.5,0.9,0.5; gate : 10,20,30,40", "yard:0.0,0.5,1.0,0.5,640,480",
                        "");
  const auto zones = rules.zones(640, 480);
  ASSERT_EQ(zones.size(), 3u);
  EXPECT_EQ(zones[0].name, "door");
  EXPECT_TRUE(zones[0].is_line);
  EXPECT_DOUBLE_EQ(zones[0].points[1].x, 576);
  EXPECT_DOUBLE_EQ(zones[1].points[1].y, 40);
  EXPECT_FALSE(zones[2].is_line);
  EXPECT_DOUBLE_EQ(zones[2].points[2].x, 640);
}

TEST(ZoneRules, ReadsAFile) {
  const std::string path = testing::TempDir() + "zones.json";
  const auto write = [&](const std::string& text) {
    FILE* file = std::fopen(path.c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  write(R"({"lines": [{"name": "door", "points": [[0.1, 0.5], [0.9, 240]]}],
           "zones": [{"name": "yard", "points": [[0, 0], [1.0, 0], [1.0, 1.0]]}]})");
  const auto zones = ZoneRules("", "", path).zones(640, 480);
  ASSERT_EQ(zones.size(), 2u);
  EXPECT_DOUBLE_EQ(zones[0].points[1].y, 240);
  EXPECT_DOUBLE_EQ(zones[1].points[1].x, 640);
  for (const char* wrong :
       {"", "[]", "{\"lines\": 1}", "{\"lines\": [1]}", "{\"lines\": [{\"name\": 1}]}",
        "{\"lines\": [{\"name\": \"a\"}]}",
        "{\"zones\": [{\"name\": \"a\", \"points\": [[0, 0], [1, 1]]}]}",
        "{\"lines\": [{\"name\": \"a\", \"points\": [[0, 0], [-1, 1]]}]}",
        "{\"lines\": [{\"name\": \"a\", \"points\": [[0, 0], [1.5, 1]]}]}",
        "{\"lines\": [{\"name\": \"a\", \"points\": [[0, 0], [\"1\", null]]}]}"}) {
    write(wrong);
    EXPECT_THROW(ZoneRules("", "", path), Error) << wrong;
  }
  EXPECT_THROW(ZoneRules("", "", path + ".not-there"), Error);
}

TEST(ZoneRules, RefusesWhatItCannotRead) {
  for (const char* wrong :
       {"door", "door:", "door:1,2,3", "door:1,2,3,4,5,6", ":1,2,3,4", "door:a,2,3,4",
        "door:1.5,0,0,0", "door:-1,0,0,0", "door:nan,0,0,0", "a:1,2,3,4;a:1,2,3,4"})
    EXPECT_THROW(ZoneRules(wrong, "", ""), Error) << wrong;
  EXPECT_THROW(ZoneRules("", "yard:1,2,3,4", ""), Error);
  EXPECT_THROW(ZoneRules("a:1,2,3,4", "a:1,2,3,4,5,6", ""), Error);
}

}  // namespace
}  // namespace clinfer
