// Objects that are kept, regions and tiles that a frame is cut into, and objects across seams that
// become one.
#include "gst/infer/settings/object_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace clinfer {
namespace {

const Rect kPicture{0, 0, 1000, 500};
// A network of 100x50 pixels over the whole picture.
const Placement kWhole{0, 0, 10, 10, 0, 0};

Settings with(const std::function<void(Settings&)>& change) {
  Settings settings;
  change(settings);
  return settings;
}

Detection object(float x, float y, float width, float height, float confidence, int label) {
  Detection d;
  d.x_min = x, d.y_min = y, d.x_max = x + width, d.y_max = y + height;
  d.confidence = confidence, d.label_id = label;
  return d;
}

// Label ids of what is kept of some objects in the whole picture.
std::vector<int> kept(const std::function<void(Settings&)>& change, DecodeSettings decode = {}) {
  const ObjectRules rules(with(change));
  std::vector<PartResult> parts(1);
  parts[0].placement = kWhole;
  // Sizes in the picture: 20x40, 200x100, 500x400, 60x60.
  for (const Detection& d : {object(10, 10, 2, 4, 0.95f, 0), object(30, 10, 20, 10, 0.8f, 1),
                             object(50, 0, 50, 40, 0.6f, 2), object(80, 40, 6, 6, 0.4f, 3)})
    if (d.confidence >= rules.decoding(decode).threshold) parts[0].results.detections.push_back(d);
  rules.keep_wanted(parts, {kPicture}, kPicture, {"person", "car", "bus", "dog"}, decode);
  std::vector<int> ids;
  for (const Detection& d : parts[0].results.detections) ids.push_back(d.label_id);
  return ids;
}

TEST(ObjectRules, ClassesAndThresholds) {
  using Ids = std::vector<int>;
  EXPECT_EQ(kept([](Settings&) {}), (Ids{0, 1, 2}));
  EXPECT_EQ(kept([](Settings& s) { s.classes = "bus, person"; }), (Ids{0, 2}));
  EXPECT_EQ(kept([](Settings& s) { s.classes = "1,dog"; }), (Ids{1}));
  // A lower threshold of one class lets no others through, and the names may be numbers.
  EXPECT_EQ(kept([](Settings& s) { s.thresholds = "dog=0.3,car=0.9"; }), (Ids{0, 2, 3}));
  EXPECT_EQ(kept([](Settings& s) { s.thresholds = "3=0.3, 0=0.99"; }), (Ids{1, 2, 3}));
  // The limit counts wanted objects.
  DecodeSettings one;
  one.max_detections = 1;
  EXPECT_EQ(kept([](Settings& s) { s.classes = "bus"; }, one), (Ids{2}));
}

TEST(ObjectRules, Sizes) {
  using Ids = std::vector<int>;
  EXPECT_EQ(kept([](Settings& s) { s.min_size = "21x40"; }), (Ids{1, 2}));
  EXPECT_EQ(kept([](Settings& s) { s.min_size = "20x40"; }), (Ids{0, 1, 2}));
  EXPECT_EQ(kept([](Settings& s) { s.min_size = "0.2"; }), (Ids{1, 2}));
  EXPECT_EQ(kept([](Settings& s) { s.max_size = "0.3x0.5"; }), (Ids{0, 1}));
  EXPECT_EQ(kept([](Settings& s) { s.min_size = "50", s.max_size = "300"; }), (Ids{1}));
}

TEST(ObjectRules, WhatCannotBeReadIsRefused) {
  const auto error = [](const std::function<void(Settings&)>& change) {
    try {
      ObjectRules rules(with(change));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  for (const char* text : {"person", "person=2", "=0.5", "person=x", "a=0.5,,b=0.5"})
    EXPECT_NE(error([&](Settings& s) { s.thresholds = text; }).find("NAME=VALUE"),
              std::string::npos)
        << text;
  for (const char* text : {"x", "20x", "1.5", "-3", "1x2x3", "nan", "1e999"})
    EXPECT_NE(error([&](Settings& s) { s.min_size = text; }).find("min-size="), std::string::npos)
        << text;
  for (const char* text : {"1,2,3", "0,0,0,5", "1,2,3,x", "1,2,3,4,5", "0.0,0.0,1.5,1.0"})
    EXPECT_NE(error([&](Settings& s) { s.regions = text; }).find("X,Y,WIDTH,HEIGHT"),
              std::string::npos)
        << text;
  for (const char* text : {"3", "0x2", "3x33", "2x2,1", "2x2,", "x", "2x2x2", "1.5x2", "2x2,0.1,3"})
    EXPECT_NE(error([&](Settings& s) { s.tiles = text; }).find("COLUMNSxROWS"), std::string::npos)
        << text;
  const auto of_sizes = [&](const char* least, const char* most) {
    return error([&](Settings& s) { s.min_size = least, s.max_size = most; });
  };
  for (const auto& [least, most] : {std::pair("60", "50"), std::pair("10x60", "50"),
                                    std::pair("0.6", "0.5x0.9"), std::pair("1", "0")})
    EXPECT_NE(of_sizes(least, most).find("above max-size"), std::string::npos)
        << least << " " << most;
  EXPECT_EQ(of_sizes("50", "50"), "");
  EXPECT_EQ(of_sizes("60", "0.5"), "");
  EXPECT_NE(error([](Settings& s) { s.tiles = "2x2", s.regions = "0,0,9,9"; }).find("exclude"),
            std::string::npos);
}

TEST(ObjectRules, NamesThatNoLabelHasAreTold) {
  const ObjectRules rules(with([](Settings& s) {
    s.classes = "person,perso,7";
    s.thresholds = "cat=0.4";
  }));
  EXPECT_EQ(rules.unknown_names({"person", "car"}), (std::vector<std::string>{"perso", "cat"}));
  EXPECT_TRUE(rules.unknown_names({}).empty());
}

void expect_rect(const Rect& rect, int x, int y, int width, int height) {
  EXPECT_EQ(rect.x, x);
  EXPECT_EQ(rect.y, y);
  EXPECT_EQ(rect.width, width);
  EXPECT_EQ(rect.height, height);
}

TEST(ObjectRules, RegionsInPixelsAndShares) {
  const ObjectRules rules(
      with([](Settings& s) { s.regions = "10,20,30,40; 0.5,0.0,0.5,1.0;900,400,500,500"; }));
  // The visible part begins at 100, 50.
  const std::vector<Rect> parts = rules.parts({100, 50, 1000, 500});
  ASSERT_EQ(parts.size(), 3u);
  expect_rect(parts[0], 110, 70, 30, 40);
  expect_rect(parts[1], 600, 50, 500, 500);
  expect_rect(parts[2], 1000, 450, 100, 100);  // clipped
  EXPECT_TRUE(rules.regions_outside({100, 50, 1000, 500}).empty());
  EXPECT_EQ(rules.regions_outside({100, 50, 900, 500}),
            std::vector<std::string>{"900,400,500,500"});
}

InferenceRegion placed(const ObjectRules& rules, const Rect& region, const Rect& visible,
                       double pixel_aspect, const std::vector<Point>& landmarks,
                       const Orientation& orientation) {
  InferenceRegion found{0, region, std::nullopt, landmarks};
  rules.place(found, visible, pixel_aspect, orientation);
  return found;
}

Rect around(const ObjectRules& rules, const Rect& region, const Rect& visible, double pixel_aspect,
            const std::vector<Point>& landmarks = {}) {
  return placed(rules, region, visible, pixel_aspect, landmarks, {}).rect;
}

Orientation turn_of(const ObjectRules& rules, const std::vector<Point>& landmarks,
                    const Rect& visible, const Orientation& orientation) {
  return placed(rules, visible, visible, 1, landmarks, orientation).turn;
}

TEST(ObjectRules, RegionsGrowByTheirMarginAndBecomeSquare) {
  const Rect visible{100, 50, 1000, 500}, region{300, 200, 100, 50};
  expect_rect(around(ObjectRules(with([](Settings&) {})), region, visible, 1), 300, 200, 100, 50);
  expect_rect(
      around(ObjectRules(with([](Settings& s) { s.region_margin = "0.8"; })), region, visible, 1),
      220, 160, 260, 130);
  expect_rect(around(ObjectRules(with([](Settings& s) { s.region_margin = "0.1,0.2"; })), region,
                     visible, 1),
              290, 190, 120, 70);
  const ObjectRules square(with([](Settings& s) { s.region_shape = RegionShape::square; }));
  expect_rect(around(square, region, visible, 1), 300, 175, 100, 100);
  // Pixels twice as wide as high.
  expect_rect(around(square, region, visible, 2), 300, 125, 100, 200);
  EXPECT_FALSE(placed(square, region, visible, 1, {}, {}).angle);
  for (const char* text : {"x", "-0.1", "0.1,0.2,0.3", "11"})
    EXPECT_THROW(ObjectRules(with([&](Settings& s) { s.region_margin = text; })), Error) << text;
}

TEST(ObjectRules, RegionsMove) {
  const Rect visible{100, 50, 1000, 500}, region{300, 200, 100, 50};
  expect_rect(around(ObjectRules(with([](Settings& s) { s.region_shift = "0.1,-0.5"; })), region,
                     visible, 1),
              310, 175, 100, 50);
  // From the first landmark towards the third, by half of the longer side: 3, 4, 5.
  const ObjectRules towards(with([](Settings& s) { s.region_shift = "0>2,0.5"; }));
  const std::vector<Point> landmarks = {{0.3f, 0.4f}, {0, 0}, {0.33f, 0.48f}};
  expect_rect(around(towards, region, visible, 1, landmarks), 330, 240, 100, 50);
  expect_rect(around(towards, region, visible, 1), 300, 200, 100, 50);  // it has no landmarks
  // A palm becomes a hand: moved, then 2.6 times as large and square.
  const ObjectRules hand(with([](Settings& s) {
    s.region_shift = "0>2,0.5";
    s.region_margin = "0.8";
    s.region_shape = RegionShape::square;
  }));
  expect_rect(around(hand, {500, 250, 50, 50}, visible, 1, landmarks), 475, 230, 130, 130);
  for (const char* text : {"1", "0,11", "0>0,1", "0>x,1", "1.5>2,1", "0>1>2,1", "0>1", "0,0,0"})
    EXPECT_THROW(ObjectRules(with([&](Settings& s) { s.region_shift = text; })), Error) << text;
}

TEST(ObjectRules, RegionsTurnUpright) {
  const Rect visible{0, 0, 1000, 500};
  const ObjectRules rules(with([](Settings& s) { s.region_turn = "0>2,quarter"; }));
  // The direction after the turn, by the points that it moves.
  const auto turned_to = [&](float x, float y, const Orientation& orientation) {
    const std::vector<Point> landmarks = {{0.5f, 0.5f}, {0, 0}, {0.5f + x, 0.5f + y}};
    const Orientation turn = turned(orientation, turn_of(rules, landmarks, visible, orientation));
    float to_x = x * 1000, to_y = y * 500;
    if (turn.transpose) std::swap(to_x, to_y);
    return std::pair(turn.mirror_x ? -to_x : to_x, turn.mirror_y ? -to_y : to_y);
  };
  for (const Orientation& orientation :
       {Orientation{}, Orientation{true, true, false}, Orientation{false, true, true}})
    for (const auto& [x, y] :
         {std::pair(0.01f, 0.3f), {0.02f, -0.3f}, {0.2f, 0.1f}, {-0.2f, -0.1f}}) {
      const auto [to_x, to_y] = turned_to(x, y, orientation);
      EXPECT_LT(to_y, 0) << x << ", " << y;
      EXPECT_LE(std::fabs(to_x), -to_y) << x << ", " << y;
    }
  // A turn mirrors nothing.
  const std::vector<Point> right = {{0, 0}, {0, 0}, {1, 0}};
  EXPECT_EQ(turn_of(rules, right, visible, {}), (Orientation{true, false, true}));
  EXPECT_EQ(turn_of(rules, {}, visible, {}), Orientation{});
  EXPECT_EQ(turn_of(ObjectRules(), right, visible, {}), Orientation{});
  for (const char* text :
       {"0", "0>0", "0>x", "0>1>2", "-1>2", "0>1,1", "0>1,quarter,up", "0>1,up,right", "0>1,"})
    EXPECT_THROW(ObjectRules(with([&](Settings& s) { s.region_turn = text; })), Error) << text;
}

// The way between the landmarks has the direction in the upright picture, for any angle.
TEST(ObjectRules, RegionsTurnByAnyAngle) {
  const Rect visible{100, 50, 1000, 500};
  const std::pair<const char*, std::pair<double, double>> directions[] = {{"0>2", {0, -1}},
                                                                          {"0>2,up", {0, -1}},
                                                                          {"0>2,right", {1, 0}},
                                                                          {"0>2,down", {0, 1}},
                                                                          {"0>2,left", {-1, 0}}};
  for (const auto& [text, direction] : directions)
    for (const Orientation& orientation :
         {Orientation{}, Orientation{true, true, false}, Orientation{false, true, false}})
      for (const double aspect : {1.0, 2.0})
        for (const auto& [x, y] :
             {std::pair(0.01f, 0.3f), {0.02f, -0.3f}, {0.2f, 0.1f}, {-0.2f, -0.1f}}) {
          const ObjectRules rules(with([&, text = text](Settings& s) { s.region_turn = text; }));
          const InferenceRegion found =
              placed(rules, {300, 200, 100, 50}, visible, aspect,
                     {{0.5f, 0.5f}, {0, 0}, {0.5f + x, 0.5f + y}}, orientation);
          ASSERT_TRUE(found.angle);
          EXPECT_EQ(found.turn, Orientation{});
          expect_rect(found.rect, 300, 200, 100, 50);
          // The direction of the way before the region was turned, made upright.
          const double way_x = static_cast<double>(x) * 1000 * aspect,
                       way_y = static_cast<double>(y) * 500;
          const double c = std::cos(static_cast<double>(*found.angle)),
                       s = std::sin(static_cast<double>(*found.angle));
          double to_x = c * way_x + s * way_y, to_y = c * way_y - s * way_x;
          if (orientation.transpose) std::swap(to_x, to_y);
          if (orientation.mirror_x) to_x = -to_x;
          if (orientation.mirror_y) to_y = -to_y;
          const double length = std::hypot(way_x, way_y);
          EXPECT_NEAR(to_x / length, direction.first, 1e-6) << text;
          EXPECT_NEAR(to_y / length, direction.second, 1e-6) << text;
        }
  const ObjectRules rules(with([](Settings& s) { s.region_turn = "0>2"; }));
  EXPECT_FALSE(placed(rules, {300, 200, 100, 50}, visible, 1, {{0, 0}, {1, 1}}, {}).angle);
  EXPECT_FALSE(placed(rules, {300, 200, 100, 50}, visible, 1, {{0, 0}, {1, 1}, {0, 0}}, {}).angle);
}

// A region that is cut at the edge would be stretched, and its contents with it.
TEST(ObjectRules, RegionsBeyondThePictureKeepTheirProportions) {
  const Rect visible{100, 50, 1000, 500};
  const auto expect_beyond = [&](const char* what, void (*change)(Settings&), const Rect& region,
                                 const Rect& wanted) {
    const InferenceRegion found =
        placed(ObjectRules(with(change)), region, visible, 1, {{0, 0.1f}, {0.02f, 0.1f}}, {});
    SCOPED_TRACE(what);
    expect_rect(found.rect, wanted.x, wanted.y, wanted.width, wanted.height);
    ASSERT_TRUE(found.angle);
    EXPECT_EQ(*found.angle, 0);
  };
  expect_beyond("square", [](Settings& s) { s.region_shape = RegionShape::square; },
                {100, 55, 40, 20}, {100, 45, 40, 40});
  expect_beyond("margin", [](Settings& s) { s.region_margin = "0.5"; }, {1040, 500, 60, 50},
                {1010, 475, 120, 100});
  expect_beyond("shift", [](Settings& s) { s.region_shift = "-0.5,0"; }, {110, 200, 40, 30},
                {90, 200, 40, 30});
  expect_beyond("reach", [](Settings& s) { s.region_reach = "0>1"; }, {100, 90, 10, 10},
                {80, 80, 40, 40});
  // Nor does a quarter turn cut a region.
  const ObjectRules quarter(with([](Settings& s) {
    s.region_turn = "0>1,up,quarter";
    s.region_margin = "1";
  }));
  const InferenceRegion found =
      placed(quarter, {100, 90, 40, 20}, visible, 1, {{0, 0.1f}, {0.02f, 0.1f}}, {});
  EXPECT_TRUE(found.turn.transpose);
  ASSERT_TRUE(found.angle);
  expect_rect(found.rect, 60, 70, 120, 60);
  // A region that ends at the edge is inside.
  const ObjectRules margin(with([](Settings& s) { s.region_margin = "0.5"; }));
  EXPECT_FALSE(placed(margin, {150, 100, 100, 100}, visible, 1, {}, {}).angle);
  // A region without a change is cut, as the box of an object is.
  EXPECT_FALSE(
      placed(ObjectRules(with([](Settings&) {})), {90, 40, 50, 50}, visible, 1, {}, {}).angle);
}

TEST(ObjectRules, TurnedRegionsReachBeyondThePicture) {
  const Rect visible{0, 0, 1000, 500};
  const std::vector<Point> landmarks = {{0.05f, 0.1f}, {0, 0}, {0.05f, 0.05f}};
  const auto change = [](const char* shift) {
    return ObjectRules(with([&](Settings& s) {
      s.region_turn = "0>2";
      s.region_shift = shift;
      s.region_margin = "0.8";
      s.region_shape = RegionShape::square;
    }));
  };
  expect_rect(around(change("0>2,0.5"), {10, 20, 100, 50}, visible, 1, landmarks), -70, -135, 260,
              260);
  // One that would lie outside stays where the object is.
  expect_rect(around(change("-5,0"), {10, 20, 100, 50}, visible, 1, landmarks), 10, 20, 100, 50);
}

TEST(ObjectRules, RegionsReachFromOneLandmarkToAnother) {
  const Rect visible{100, 50, 1000, 500};
  const std::vector<Point> landmarks = {{0.5f, 0.5f}, {0.53f, 0.58f}};  // 30 and 40 pixels apart
  const ObjectRules rules(with([](Settings& s) { s.region_reach = "0>1"; }));
  expect_rect(around(rules, {0, 0, 10, 10}, visible, 1, landmarks), 550, 250, 100, 100);
  expect_rect(around(rules, {300, 200, 10, 10}, visible, 1, {{0, 0}}), 300, 200, 10, 10);
  const ObjectRules pose(with([](Settings& s) {
    s.region_reach = "0>1";
    s.region_turn = "0>1";
    s.region_margin = "0.12";
  }));
  const InferenceRegion found = placed(pose, {0, 0, 10, 10}, visible, 1, landmarks, {});
  ASSERT_TRUE(found.angle);
  expect_rect(found.rect, 538, 238, 124, 124);
  for (const char* text : {"0", "0>0", "0>1,up", "x"})
    EXPECT_THROW(ObjectRules(with([&](Settings& s) { s.region_reach = text; })), Error) << text;
}

TEST(ObjectRules, TilesCoverThePictureAndOverlap) {
  for (const char* text : {"1x1", "2x1", "3x2", "4x4,0.5", "5x3,0", "32x32,0.9"}) {
    const ObjectRules rules(with([&](Settings& s) { s.tiles = text; }));
    for (const Rect& picture : {Rect{0, 0, 1000, 500}, {7, 3, 641, 359}, {0, 0, 33, 31}}) {
      std::vector<bool> covered(static_cast<size_t>(picture.width) * picture.height);
      for (const Rect& tile : rules.parts(picture))
        for (int y = tile.y; y < tile.y + tile.height; ++y)
          for (int x = tile.x; x < tile.x + tile.width; ++x)
            covered.at(static_cast<size_t>(y - picture.y) * picture.width + x - picture.x) = true;
      EXPECT_EQ(std::count(covered.begin(), covered.end(), false), 0) << text;
    }
  }
  const ObjectRules rules(with([](Settings& s) { s.tiles = "2x1,0.25"; }));
  const std::vector<Rect> two = rules.parts({0, 0, 700, 100});
  ASSERT_EQ(two.size(), 2u);
  expect_rect(two[0], 0, 0, 400, 100);
  expect_rect(two[1], 300, 0, 400, 100);
}

// Boxes [x, y, width, height] of the picture after merging what each tile sees of objects.
std::vector<Rect> merged(const char* tiles, const std::vector<Rect>& objects) {
  const ObjectRules rules(with([&](Settings& s) { s.tiles = tiles; }));
  const std::vector<Rect> rects = rules.parts(kPicture);
  std::vector<PartResult> parts(rects.size());
  for (size_t p = 0; p < rects.size(); ++p) {
    const Rect& tile = rects[p];
    // A network of half the tile's size.
    parts[p].placement = {0, 0, 2, 2, static_cast<float>(tile.x), static_cast<float>(tile.y)};
    for (const Rect& o : objects) {
      const int left = std::max(o.x, tile.x), right = std::min(o.x + o.width, tile.x + tile.width);
      const int top = std::max(o.y, tile.y),
                bottom = std::min(o.y + o.height, tile.y + tile.height);
      // A detector does not see slivers.
      if (right - left < o.width / 5 || bottom - top < o.height / 5) continue;
      parts[p].results.detections.push_back(
          object(static_cast<float>(left - tile.x) / 2, static_cast<float>(top - tile.y) / 2,
                 static_cast<float>(right - left) / 2, static_cast<float>(bottom - top) / 2,
                 0.6f + 0.01f * static_cast<float>(p), 1));
    }
  }
  rules.keep_wanted(parts, rects, kPicture, {}, {});
  std::vector<Rect> boxes;
  for (const PartResult& part : parts)
    for (const Detection& d : part.results.detections) {
      const auto box = to_picture(d, part.placement, kPicture);
      boxes.push_back({static_cast<int>(std::lround(box->x_min * 1000)),
                       static_cast<int>(std::lround(box->y_min * 500)),
                       static_cast<int>(std::lround((box->x_max - box->x_min) * 1000)),
                       static_cast<int>(std::lround((box->y_max - box->y_min) * 500))});
    }
  std::sort(boxes.begin(), boxes.end(),
            [](const Rect& a, const Rect& b) { return std::pair(a.x, a.y) < std::pair(b.x, b.y); });
  return boxes;
}

TEST(ObjectRules, ObjectsAcrossSeamsBecomeOne) {
  for (const std::vector<Rect>& objects :
       {std::vector<Rect>{{20, 20, 50, 50}},        // inside of one tile
        {{480, 100, 40, 60}},                       // in the overlap: both see it whole
        {{350, 100, 300, 80}},                      // cut by the seam
        {{100, 200, 60, 120}},                      // between two rows
        {{420, 200, 160, 100}},                     // where four tiles meet
        {{350, 60, 300, 80}, {350, 160, 300, 80}},  // two, one above the other
        {{300, 20, 90, 90}, {610, 20, 90, 90}},     // beside the seam, both whole
        {{10, 10, 980, 40}}}) {                     // through all columns
    const std::vector<Rect> found = merged("2x2", objects);
    ASSERT_EQ(found.size(), objects.size()) << objects[0].x;
    for (size_t i = 0; i < found.size(); ++i)
      expect_rect(found[i], objects[i].x, objects[i].y, objects[i].width, objects[i].height);
  }
  const std::vector<Rect> through = merged("3x1", {{10, 100, 980, 90}});
  ASSERT_EQ(through.size(), 1u);
  expect_rect(through[0], 10, 100, 980, 90);
}

}  // namespace
}  // namespace clinfer
