// Drawing into every format at awkward sizes: the right pixels change, no others, and nothing
// outside the frame is touched.
#include "gst/overlay/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gst/frames/mapped_frame.h"
#include "gst/overlay/canvas.h"
#include "gst/overlay/privacy.h"

namespace clinfer {
namespace {

// A frame with padding round its planes that must stay as it is.
class Picture {
 public:
  static constexpr uint8_t kGuard = 0xa5;
  static constexpr int kPad = 5;

  Picture(GstVideoFormat format, int width, int height) {
    gst_video_info_set_format(&info_, format, static_cast<guint>(width),
                              static_cast<guint>(height));
    gsize offset = 0;
    for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info_); ++p) {
      GST_VIDEO_INFO_PLANE_STRIDE(&info_, p) += 2 * kPad;
      GST_VIDEO_INFO_PLANE_OFFSET(&info_, p) = offset + 64;
      int rows = 0;
      for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info_); ++c)
        if (GST_VIDEO_INFO_COMP_PLANE(&info_, c) == p)
          rows = std::max(rows, GST_VIDEO_INFO_COMP_HEIGHT(&info_, c));
      offset += 64 + static_cast<gsize>(GST_VIDEO_INFO_PLANE_STRIDE(&info_, p)) *
                         static_cast<gsize>(rows);
    }
    bytes_.assign(offset + 64, kGuard);
    frame_ = {};
    frame_.info = info_;
    for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info_); ++p)
      frame_.data[p] = bytes_.data() + GST_VIDEO_INFO_PLANE_OFFSET(&info_, p);
    // Black, in the middle of the chroma range.
    for_each_sample([&](uint8_t& sample, guint component) {
      const int black = !GST_VIDEO_INFO_IS_YUV(&info_) ? 0 : component > 0 ? 128 : 16;
      if (!is_deep()) {
        sample = static_cast<uint8_t>(black);
      } else {
        const int stored = black << (2 + GST_VIDEO_FORMAT_INFO_SHIFT(info_.finfo, component));
        (&sample)[0] = static_cast<uint8_t>(stored);
        (&sample)[1] = static_cast<uint8_t>(stored >> 8);
      }
    });
  }

  template <typename Visit>
  void for_each_sample(Visit&& visit) {
    for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info_); ++c)
      for (int y = 0; y < GST_VIDEO_INFO_COMP_HEIGHT(&info_, c); ++y)
        for (int x = 0; x < GST_VIDEO_INFO_COMP_WIDTH(&info_, c); ++x) visit(sample(c, x, y), c);
  }
  uint8_t& sample(guint c, int x, int y) {
    auto* data = static_cast<uint8_t*>(GST_VIDEO_FRAME_COMP_DATA(&frame_, c));
    if (info_.finfo->format == GST_VIDEO_FORMAT_P010_10LE && c == 2)  // 1 in GStreamer 1.22
      data = static_cast<uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, 1)) + 2;
    return data[y * GST_VIDEO_FRAME_COMP_STRIDE(&frame_, c) +
                x * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame_, c)];
  }
  bool is_deep() const { return GST_VIDEO_FORMAT_INFO_DEPTH(info_.finfo, 0) > 8; }
  // Component c at a pixel of the picture, in the depth of the format.
  int whole(guint c, int x, int y) {
    const uint8_t* at = &sample(c, x >> GST_VIDEO_FORMAT_INFO_W_SUB(info_.finfo, c),
                                y >> GST_VIDEO_FORMAT_INFO_H_SUB(info_.finfo, c));
    if (!is_deep()) return at[0];
    return (at[0] | at[1] << 8) >> GST_VIDEO_FORMAT_INFO_SHIFT(info_.finfo, c);
  }
  // As 8 bits.
  uint8_t at(guint c, int x, int y) {
    return static_cast<uint8_t>(whole(c, x, y) >> (is_deep() ? 2 : 0));
  }
  size_t guards_changed() {
    std::vector<uint8_t> owned(bytes_.size(), 0);
    for_each_sample([&](uint8_t& s, guint) {
      for (int i = 0; i <= int{is_deep()}; ++i)
        owned[static_cast<size_t>(&s - bytes_.data()) + static_cast<size_t>(i)] = 1;
    });
    size_t changed = 0;
    // The unused byte of RGBx and similar formats belongs to no channel.
    const bool filler = GST_VIDEO_INFO_IS_RGB(&info_) && GST_VIDEO_INFO_N_COMPONENTS(&info_) == 3 &&
                        GST_VIDEO_INFO_COMP_PSTRIDE(&info_, 0) == 4;
    for (size_t i = 0; i < bytes_.size(); ++i)
      if (!owned[i] && !filler && bytes_[i] != kGuard) ++changed;
    return changed;
  }
  GstVideoFrame* frame() { return &frame_; }
  const GstVideoInfo& info() const { return info_; }

 private:
  GstVideoInfo info_;
  GstVideoFrame frame_;
  std::vector<uint8_t> bytes_;
};

std::vector<GstVideoFormat> formats() {
  std::vector<GstVideoFormat> list;
  GstCaps* caps = gst_caps_from_string("video/x-raw, format=(string)" CLINFER_VIDEO_FORMATS);
  const GValue* values = gst_structure_get_value(gst_caps_get_structure(caps, 0), "format");
  for (guint i = 0; i < gst_value_list_get_size(values); ++i)
    list.push_back(
        gst_video_format_from_string(g_value_get_string(gst_value_list_get_value(values, i))));
  gst_caps_unref(caps);
  return list;
}

RegionView region(float x0, float y0, float x1, float y1, int id, std::string label) {
  RegionView view;
  view.has_detection = true;
  view.box = {x0, y0, x1, y1};
  view.confidence = 0.87;
  view.label_id = id;
  view.label = std::move(label);
  return view;
}

TEST(Canvas, FillsExactlyWhatItIsTold) {
  for (GstVideoFormat format : formats()) {
    for (const auto& [width, height] :
         std::vector<std::pair<int, int>>{{16, 12}, {17, 13}, {1, 1}, {2, 3}}) {
      Picture picture(format, width, height);
      Canvas canvas(picture.frame(), 0, 0, width, height);
      const int x0 = 4, y0 = 4, w = 8, h = 4;  // on the chroma grid
      canvas.fill(x0, y0, w, h, {255, 255, 255});
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          const bool inside = x >= x0 && x < x0 + w && y >= y0 && y < y0 + h;
          const bool yuv = GST_VIDEO_INFO_IS_YUV(&picture.info());
          EXPECT_EQ(picture.at(0, x, y), inside ? (yuv ? 235 : 255) : (yuv ? 16 : 0))
              << gst_video_format_to_string(format) << " " << width << "x" << height << " at " << x
              << "," << y;
        }
      }
      EXPECT_EQ(picture.guards_changed(), 0u) << gst_video_format_to_string(format);
    }
  }
}

TEST(Canvas, ColoursFollowTheMatrix) {
  Picture picture(GST_VIDEO_FORMAT_NV12, 8, 8);
  gst_video_colorimetry_from_string(&picture.frame()->info.colorimetry, "bt601");
  Canvas(picture.frame(), 0, 0, 8, 8).fill(0, 0, 8, 8, {255, 0, 0});
  EXPECT_EQ(picture.at(0, 3, 3), 81);
  EXPECT_EQ(picture.at(1, 3, 3), 90);
  EXPECT_EQ(picture.at(2, 3, 3), 240);
  gst_video_colorimetry_from_string(&picture.frame()->info.colorimetry, "bt709");
  Canvas(picture.frame(), 0, 0, 8, 8).fill(0, 0, 8, 8, {255, 0, 0});
  EXPECT_EQ(picture.at(0, 3, 3), 63);
  EXPECT_EQ(picture.at(1, 3, 3), 102);
}

// Samples of 10 bits are four times those of 8, but for rounding.
TEST(Canvas, TenBitsAreDrawnAsEight) {
  constexpr int kWidth = 33, kHeight = 21;
  const auto draw = [](Picture& picture) {
    Canvas canvas(picture.frame(), 0, 0, kWidth, kHeight);
    canvas.fill(3, 2, 9, 8, {250, 30, 20}, 180);
    canvas.line(1.5f, 19, 30, 3.5f, 2.5f, {20, 230, 200});
    std::vector<int32_t> places(kWidth * kHeight, -1);
    for (size_t i = 0; i < places.size(); i += 3) places[i] = static_cast<int32_t>(i % 2);
    canvas.paint(places, {{{10, 20, 240}, 90}, {{240, 240, 10}, 255}});
    canvas.blur(10, 5, 20, 12, 4);
  };
  const std::pair<GstVideoFormat, GstVideoFormat> kPairs[] = {
      {GST_VIDEO_FORMAT_P010_10LE, GST_VIDEO_FORMAT_NV12},
      {GST_VIDEO_FORMAT_I420_10LE, GST_VIDEO_FORMAT_I420}};
  for (const auto& [deep, plain] : kPairs) {
    Picture ten(deep, kWidth, kHeight), eight(plain, kWidth, kHeight);
    draw(ten);
    draw(eight);
    bool has_more_than_eight = false;
    for (guint c = 0; c < 3; ++c)
      for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) {
          EXPECT_NEAR(ten.whole(c, x, y), 4 * eight.whole(c, x, y), 8)
              << gst_video_format_to_string(deep) << " " << c << " at " << x << "," << y;
          has_more_than_eight = has_more_than_eight || ten.whole(c, x, y) % 4 != 0;
        }
    EXPECT_TRUE(has_more_than_eight);
    EXPECT_EQ(ten.guards_changed(), 0u);
  }
}

TEST(Canvas, HalfCoveredChromaIsHalfBlended) {
  Picture picture(GST_VIDEO_FORMAT_I420, 4, 4);
  Canvas(picture.frame(), 0, 0, 4, 4).fill(0, 0, 1, 4, {255, 0, 0});
  EXPECT_EQ(picture.at(0, 1, 0), 16);
  EXPECT_GT(picture.at(0, 0, 0), 60);
  const int whole = 240 - 128;
  EXPECT_NEAR(picture.at(2, 0, 0) - 128, whole / 2, 2);
}

TEST(Canvas, DrawsInsideTheVisiblePart) {
  Picture picture(GST_VIDEO_FORMAT_GRAY8, 16, 16);
  Canvas canvas(picture.frame(), 4, 6, 8, 5);
  canvas.fill(-10, -10, 100, 100, {255, 255, 255});
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x)
      EXPECT_EQ(picture.at(0, x, y), x >= 4 && x < 12 && y >= 6 && y < 11 ? 255 : 0);
}

TEST(Canvas, NeighbouringLabelsAreFarApart) {
  for (unsigned a = 0; a < 8; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      const Rgb p = color_of(a), q = color_of(b);
      EXPECT_GT(std::abs(p.r - q.r) + std::abs(p.g - q.g) + std::abs(p.b - q.b), 60)
          << a << " and " << b;
    }
  }
}

TEST(Text, HasTheSizeAskedForAndIsKept) {
  TextCache text;
  const Mask first = text.mask("face 99%", 20);
  EXPECT_GT(first.width, 60);
  EXPECT_NEAR(first.height, 24, 4);
  const long ink = std::count_if(first.coverage.begin(), first.coverage.end(),
                                 [](uint8_t c) { return c > 128; });
  EXPECT_GT(ink, 300);
  EXPECT_EQ(&text.mask("face 99%", 20), &text.mask("face 99%", 20));
  for (int i = 0; i < 1000; ++i) EXPECT_GE(text.mask("label " + std::to_string(i), 10).width, 1);
  EXPECT_GE(text.mask("", 10).width, 1);
}

TEST(Drawing, BoxesAreCrispAndTagsReadable) {
  Picture picture(GST_VIDEO_FORMAT_NV12, 320, 240);
  Canvas canvas(picture.frame(), 0, 0, 320, 240);
  TextCache text;
  Palette palette;
  Trails trails;
  draw_results(canvas, {{region(0.25f, 0.25f, 0.75f, 0.75f, 1, "person")}, {}}, {}, text, palette,
               trails);
  // The line: full colour on both rows, nothing beside it.
  const uint8_t line = picture.at(0, 240 - 80 + 70, 60);
  EXPECT_NE(line, 16);
  EXPECT_EQ(picture.at(0, 230, 61), line);
  EXPECT_EQ(picture.at(0, 230, 62), 16);
  EXPECT_EQ(picture.at(0, 238, 120), line);
  EXPECT_EQ(picture.at(0, 240, 120), 16);
  EXPECT_EQ(picture.at(0, 160, 120), 16);
  // The tag above the corner has the line's colour and text of another.
  int background = 0, ink = 0;
  for (int y = 48; y < 60; ++y)
    for (int x = 80; x < 110; ++x) (std::abs(picture.at(0, x, y) - line) < 8 ? background : ink)++;
  EXPECT_GT(background, 100);
  EXPECT_GT(ink, 40);
  EXPECT_EQ(picture.guards_changed(), 0u);
}

TEST(Drawing, SurvivesAnyBoxInAnyFormat) {
  const float wild[] = {-1e30f, -1, -0.01f, 0, 0.3f, 0.999f, 1, 1.5f, 1e30f, std::nanf("")};
  TextCache text;
  Palette palette;
  for (GstVideoFormat format : formats()) {
    for (const auto& [width, height] : std::vector<std::pair<int, int>>{{1, 1}, {33, 7}, {2, 99}}) {
      Picture picture(format, width, height);
      Canvas canvas(picture.frame(), 0, 0, width, height);
      std::vector<RegionView> regions;
      for (float a : wild)
        for (float b : wild) regions.push_back(region(a, b, b, a, 7, "label"));
      ResultView answers;
      answers.classifications.push_back({{"attribute", 3, "", 0.5f}, "net"});
      Trails trails;
      draw_results(canvas, {regions, {answers}}, {}, text, palette, trails);
      EXPECT_EQ(picture.guards_changed(), 0u)
          << gst_video_format_to_string(format) << " " << width << "x" << height;
    }
  }
}

TEST(Drawing, LabelsOfTwoNetworksHaveTheirOwnColours) {
  Palette palette;
  const auto same = [](Rgb a, Rgb b) { return a.r == b.r && a.g == b.g && a.b == b.b; };
  const Rgb first = palette.color_for(region(0, 0, 1, 1, 0, "vehicle"));
  EXPECT_TRUE(same(first, color_of(0)));
  const Rgb second = palette.color_for(region(0, 0, 1, 1, 0, "person"));
  EXPECT_FALSE(same(first, second));
  EXPECT_TRUE(same(first, palette.color_for(region(0, 0, 1, 1, 0, "vehicle"))));
  EXPECT_TRUE(same(second, palette.color_for(region(0, 0, 1, 1, 0, "person"))));
}

// A gray picture with something drawn into it; what changed is asked for by pixel.
class Scene {
 public:
  explicit Scene(GstVideoFormat format = GST_VIDEO_FORMAT_RGB, int width = 320, int height = 240)
      : picture_(format, width, height),
        before_(format, width, height),
        canvas_(picture_.frame(), 0, 0, width, height) {
    // Stripes, so that what is blurred changes as well.
    Canvas before(before_.frame(), 0, 0, width, height);
    for (Canvas* canvas : {&canvas_, &before})
      for (int x = 0; x < width; x += 8) canvas->fill(x, 0, 4, height, {90, 90, 90});
  }
  void draw(const FrameView& frame, DrawingStyle style = {}) {
    draw_results(canvas_, frame, style, text_, palette_, trails_);
  }
  bool changed(int x, int y) {
    for (guint c = 0; c < 3; ++c)
      if (picture_.at(c, x, y) != before_.at(c, x, y)) return true;
    return false;
  }
  int changed_in(int x0, int y0, int x1, int y1) {
    int count = 0;
    for (int y = y0; y < y1; ++y)
      for (int x = x0; x < x1; ++x) count += changed(x, y);
    return count;
  }
  Rgb at(int x, int y) {
    return {picture_.at(0, x, y), picture_.at(1, x, y), picture_.at(2, x, y)};
  }

 private:
  Picture picture_, before_;
  Canvas canvas_;
  TextCache text_;
  Palette palette_;
  Trails trails_;
};

DrawingStyle without_text() {
  DrawingStyle style;
  style.show_labels = style.show_scores = false;
  return style;
}

MaskView full_mask(float left, float top, float right, float bottom) {
  auto values = std::make_shared<std::vector<float>>(4, 1.0f);
  MaskView mask;
  mask.columns = mask.rows = 2;
  mask.area = {left, top, right, bottom};
  mask.values = bytes_of(*values, values);
  return mask;
}

TEST(Drawing, MasksAreTranslucentInTheColourOfTheirClass) {
  Scene scene;
  RegionView object = region(0.25f, 0.25f, 0.75f, 0.75f, 2, "car");
  object.mask = full_mask(0.25f, 0.25f, 0.5f, 0.75f);  // the left half of the box
  DrawingStyle style = without_text();
  style.show_boxes = false;
  scene.draw({{object}, {}}, style);
  EXPECT_EQ(scene.changed_in(80, 60, 160, 180), 80 * 120);
  EXPECT_EQ(scene.changed_in(160, 0, 320, 240), 0);
  const Rgb color = color_of(2), on_black = scene.at(100, 100), on_gray = scene.at(96, 100);
  EXPECT_NEAR(scene.at(101, 100).r, on_black.r, 90);
  EXPECT_NE(on_black.r, on_gray.r);  // what is below can be seen
  EXPECT_NEAR(on_black.g, color.g * 0.4, 2);
  EXPECT_NEAR(on_gray.g, color.g * 0.4 + 90 * 0.6, 2);
}

TEST(Drawing, SkeletonsJoinThePointsThatAreSure) {
  Scene scene;
  RegionView person = region(0, 0, 1, 1, 1, "person");
  person.skeleton = Skeleton::coco17;
  person.x = person.y = 0, person.width = 320, person.height = 240;
  person.keypoints.assign(17, {0.9f, 0.9f, 0.1f});
  person.keypoints[5] = {0.25f, 0.25f, 0.9f};  // the shoulders
  person.keypoints[6] = {0.75f, 0.25f, 0.9f};
  DrawingStyle style = without_text();
  style.show_boxes = false;
  scene.draw({{person}, {}}, style);
  for (const int x : {80, 120, 160, 200, 240}) EXPECT_TRUE(scene.changed(x, 60)) << x;
  EXPECT_EQ(scene.changed_in(0, 100, 320, 240), 0);  // what is not sure is not drawn
  style.show_points = false;
  Scene none;
  none.draw({{person}, {}}, style);
  EXPECT_EQ(none.changed_in(0, 0, 320, 240), 0);
}

TEST(Drawing, TurnedBoxesAreTurned) {
  Scene scene;
  RegionView ship = region(0.25f, 0.25f, 0.75f, 0.75f, 1, "ship");
  ship.corners = {{{0.5f, 0.25f}, {0.75f, 0.5f}, {0.5f, 0.75f}, {0.25f, 0.5f}}};
  scene.draw({{ship}, {}}, without_text());
  EXPECT_TRUE(scene.changed(160, 60));
  EXPECT_TRUE(scene.changed(120, 90));
  EXPECT_TRUE(scene.changed(200, 150));
  EXPECT_EQ(scene.changed_in(80, 60, 110, 80), 0);  // the hull's corner
  EXPECT_EQ(scene.changed_in(140, 110, 180, 130), 0);
}

TEST(Drawing, WhatLiesOutsideIsNotDrawn) {
  Scene scene;
  scene.draw(
      {{region(1.1f, 0.2f, 1.4f, 0.6f, 1, "right"), region(-0.5f, 0.2f, -0.1f, 0.6f, 1, "left"),
        region(0.2f, 1.0f, 0.5f, 1.5f, 1, "below")},
       {}});
  EXPECT_EQ(scene.changed_in(0, 0, 320, 240), 0);
}

TEST(Drawing, PrivacyHidesTheBoxesOfItsLabels) {
  for (const Privacy privacy : {Privacy::blur, Privacy::fill}) {
    for (const GstVideoFormat format : {GST_VIDEO_FORMAT_RGB, GST_VIDEO_FORMAT_NV12}) {
      Scene scene(format);
      DrawingStyle style = without_text();
      style.show_boxes = false;
      style.privacy = privacy;
      style.privacy_labels = "face, plate";
      scene.draw(
          {{region(0.25f, 0.25f, 0.5f, 0.5f, 1, "face"), region(0.5f, 0.5f, 1, 1, 2, "car")}, {}},
          style);
      EXPECT_EQ(scene.changed_in(160, 120, 320, 240), 0);
      EXPECT_EQ(scene.changed_in(0, 0, 80, 240), 0);
      int least = 255, most = 0;
      for (int x = 80; x < 160; ++x) {
        least = std::min<int>(least, scene.at(x, 90).r);
        most = std::max<int>(most, scene.at(x, 90).r);
      }
      // Stripes of 0 and 90 become one gray, or black.
      EXPECT_LE(most - least, 30) << gst_video_format_to_string(format);
      EXPECT_TRUE(privacy == Privacy::blur || most <= 16) << most;
    }
  }
}

// Frames that a network did not look at: where its objects were is hidden, or everything.
TEST(Privacy, HoldsOnFramesWithoutInference) {
  const auto frame = [](Outcome outcome, std::vector<RegionView> regions) {
    FrameView view;
    for (RegionView& region : regions) region.model = "faces";
    view.regions = std::move(regions);
    view.results.emplace_back();
    view.results[0].model = "faces";
    view.results[0].outcome = outcome;
    return view;
  };
  const std::vector<std::string> labels = {"face"};
  HiddenParts parts;
  const auto is_whole = [](const std::vector<PictureBox>& hidden) {
    return hidden.size() == 1 && hidden[0].x_min == 0 && hidden[0].y_min == 0 &&
           hidden[0].x_max == 1 && hidden[0].y_max == 1;
  };
  EXPECT_TRUE(is_whole(parts.update(frame(Outcome::skipped, {}), labels, 0)));
  EXPECT_TRUE(parts
                  .update(frame(Outcome::run, {region(0.4f, 0.4f, 0.6f, 0.6f, 1, "face"),
                                               region(0, 0, 0.2f, 0.2f, 2, "car")}),
                          labels, 100)
                  .empty());
  for (const Outcome outcome : {Outcome::skipped, Outcome::late, Outcome::held}) {
    const auto hidden = parts.update(frame(outcome, {}), labels, 200);
    ASSERT_EQ(hidden.size(), 1u);
    EXPECT_NEAR(hidden[0].x_min, 0.35f, 1e-5);
    EXPECT_NEAR(hidden[0].y_max, 0.65f, 1e-5);
  }
  EXPECT_TRUE(is_whole(parts.update(frame(Outcome::skipped, {}), labels, 1'200'000'000)));
  EXPECT_TRUE(is_whole(parts.update(frame(Outcome::skipped, {}), labels, 50)));  // after a seek
  EXPECT_TRUE(parts.update(frame(Outcome::run, {}), labels, 2'000'000'000).empty());
  EXPECT_TRUE(parts.update(frame(Outcome::skipped, {}), labels, 2'100'000'000).empty());
  EXPECT_TRUE(parts.update({}, labels, 2'200'000'000).empty());  // no clinfer upstream
}

TEST(Drawing, TracksHaveTrailsAndColours) {
  Scene scene;
  DrawingStyle style = without_text();
  style.show_boxes = false;
  style.trail_length = 4;
  for (int i = 0; i < 8; ++i) {
    RegionView object = region(0.1f * static_cast<float>(i), 0.2f,
                               0.1f * static_cast<float>(i) + 0.1f, 0.5f, 1, "car");
    object.track_id = 7;
    scene.draw({{object}, {}}, style);
  }
  EXPECT_TRUE(scene.changed(200, 120));
  Scene still;
  RegionView object = region(0, 0, 0.5f, 0.5f, 1, "car");
  object.track_id = 7;
  style.show_boxes = true;
  style.color_by = ColorBy::track;
  still.draw({{object}, {}}, style);
  EXPECT_EQ(still.at(80, 119).g, color_of(7).g);
}

TEST(Drawing, TrailsEndWithTheirTrack) {
  Trails trails;
  RegionView object = region(0, 0, 0.5f, 0.5f, 1, "car");
  object.track_id = 7;
  for (int i = 0; i < 10; ++i) trails.add({object}, 4);
  EXPECT_EQ(trails.of(7).size(), 4u);
  for (int i = 0; i < 3; ++i) trails.add({}, 4);
  EXPECT_EQ(trails.of(7).size(), 4u);
  trails.add({}, 4);
  EXPECT_EQ(trails.of(7).size(), 0u);
}

TEST(Drawing, MapsColourEachPixel) {
  MapView map;
  map.columns = 2;
  map.rows = 1;
  map.area = {0, 0, 1, 1};
  auto classes = std::make_shared<std::vector<uint16_t>>(std::vector<uint16_t>{0, 300});
  map.values = bytes_of(*classes, classes);
  ResultView result;
  result.maps.push_back(map);
  Scene scene;
  DrawingStyle style = without_text();
  style.mask_opacity = 1;
  scene.draw({{}, {result}}, style);
  EXPECT_EQ(scene.at(10, 200).g, color_of(0).g);
  EXPECT_EQ(scene.at(310, 200).b, color_of(300).b);
  // Depth, with places that the network left out.
  auto depth = std::make_shared<std::vector<float>>(std::vector<float>{1, std::nanf("")});
  map.kind = MapKind::depth;
  map.values = bytes_of(*depth, depth);
  result.maps = {map};
  Scene second;
  second.draw({{}, {result}}, style);
  EXPECT_TRUE(second.changed(10, 200));
  EXPECT_FALSE(second.changed(310, 200));
}

TEST(Drawing, LongLabelsAreShortenedAndStayInside) {
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{320, 240}, {60, 40}, {9, 9}}) {
    Scene scene(GST_VIDEO_FORMAT_RGB, width, height);
    std::string label;
    for (int i = 0; i < 50; ++i) label += "long ";
    scene.draw({{region(0.9f, 0.4f, 1, 0.6f, 1, label)}, {}});
    EXPECT_GT(scene.changed_in(0, 0, width, height), 0);
    EXPECT_EQ(width == 320 ? scene.changed_in(0, 0, 100, height) : 0, 0);
  }
}

TEST(Text, ShortensWhatIsTooWideAndTakesAnyWriting) {
  TextCache text;
  EXPECT_LE(text.mask(std::string(500, 'w') + " 80%", 20, 100).width, 100);
  for (const char* writing : {"\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627",
                              "\u6771\u4eac", "\u041a\u043e\u0442",
                              "a\xff\xfe"
                              "b",
                              "two\nlines"}) {
    const Mask& mask = text.mask(writing, 20);
    EXPECT_GT(std::count_if(mask.coverage.begin(), mask.coverage.end(),
                            [](uint8_t c) { return c > 128; }),
              10)
        << writing;
    EXPECT_LT(mask.height, 50);
  }
}

TEST(Drawing, ScoresFollowLabelsFromRightToLeft) {
  const auto drawn = [](const std::string& label, bool with_score) {
    Picture picture(GST_VIDEO_FORMAT_GRAY8, 320, 240);
    Canvas canvas(picture.frame(), 0, 0, 320, 240);
    TextCache text;
    Palette palette;
    Trails trails;
    DrawingStyle style;
    style.show_scores = with_score;
    draw_results(canvas, {{region(0.25f, 0.25f, 0.75f, 0.75f, 1, label)}, {}}, style, text, palette,
                 trails);
    std::vector<uint8_t> pixels;
    for (int y = 0; y < 240; ++y)
      for (int x = 0; x < 320; ++x) pixels.push_back(picture.at(0, x, y));
    return pixels;
  };
  const std::string label = "\u7403 \u0645\u0631\u062d\u0628\u0627";
  EXPECT_EQ(drawn(label, true), drawn(label + " \u200e87%", false));
  EXPECT_NE(drawn(label, true), drawn(label + " 87%", false)) << "the mark makes a difference";
}

// The brightness of all pixels of a drawn frame.
std::vector<uint8_t> pixels_of(const FrameView& view, const DrawingStyle& style = {},
                               int width = 640, int height = 360) {
  Picture picture(GST_VIDEO_FORMAT_GRAY8, width, height);
  Canvas canvas(picture.frame(), 0, 0, width, height);
  TextCache text;
  Palette palette;
  Trails trails;
  draw_results(canvas, view, style, text, palette, trails);
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) pixels.push_back(picture.at(0, x, y));
  return pixels;
}

TEST(Drawing, ABlankStandsBetweenLettersFromRightToLeftAndNumbers) {
  TextCache text;
  const std::string hebrew = "\u05d0\u05d3\u05dd";
  const auto empty_columns = [&](const std::string& writing) {
    const Mask mask = text.mask(writing, 30);
    int widest = 0, run = 0;
    bool begun = false;
    for (int x = 0; x < mask.width; ++x) {
      bool empty = true;
      for (int y = 0; y < mask.height; ++y)
        empty = empty && mask.coverage[static_cast<size_t>(y * mask.width + x)] < 40;
      begun = begun || !empty;
      run = empty && begun ? run + 1 : 0;
      if (!empty) continue;
      if (x + 1 < mask.width) widest = std::max(widest, run);
    }
    return widest;
  };
  EXPECT_GT(empty_columns(hebrew + " \u200e99%"), empty_columns(hebrew + "\u200e 99%") + 3);
}

TEST(Drawing, TagsOfACrowdLeaveTheTopsOfBoxesAlone) {
  std::minstd_rand random(8);  // no two boxes coincide
  const auto share = [&] { return static_cast<float>(random() % 1000) / 1000; };
  FrameView view;
  for (int i = 0; i < 40; ++i) {
    const float y = 0.3f + 0.5f * share(), x = 0.9f * share();
    RegionView object = region(x, y, x + 0.05f, y + 0.18f, i, "a rather long name");
    object.confidence = 0.5 + 0.01 * i;
    view.regions.push_back(object);
  }
  DrawingStyle bare;
  bare.show_labels = bare.show_scores = false;
  const std::vector<uint8_t> without = pixels_of(view, bare), with = pixels_of(view);
  EXPECT_NE(without, with);
  for (const RegionView& object : view.regions) {
    const auto top = static_cast<size_t>(std::lround(object.box.y_min * 360));
    const auto left = static_cast<size_t>(std::lround(object.box.x_min * 640));
    for (size_t x = left + 3; x < left + 29; ++x)
      EXPECT_EQ(without[top * 640 + x], with[top * 640 + x]) << object.confidence;
  }
}

TEST(Drawing, AnAttributeWithoutANameSaysNothing) {
  RegionView object = region(0.2f, 0.4f, 0.5f, 0.9f, 0, "face");
  const std::vector<uint8_t> plain = pixels_of({{object}, {}});
  ClassificationView answer;
  answer.attribute = "prob";
  answer.confidence = 0.61f;
  object.classifications.push_back(answer);
  EXPECT_EQ(pixels_of({{object}, {}}), plain);
  object.classifications[0].label = "calm";
  EXPECT_NE(pixels_of({{object}, {}}), plain);
}

TEST(Drawing, ASkeletonNamesItsObject) {
  RegionView named = region(0.2f, 0.4f, 0.5f, 0.9f, 0, "person");
  named.skeleton = Skeleton::body18;
  RegionView unnamed = named;
  unnamed.label.clear();
  EXPECT_EQ(pixels_of({{unnamed}, {}}), pixels_of({{named}, {}}));
}

TEST(Drawing, ZonesHaveColoursOfTheirOwn) {
  Scene scene;
  ZoneView zone;
  zone.is_line = true;
  zone.points = {{0, 0.5f}, {1, 0.5f}};
  FrameView view;
  view.zones = {zone};
  scene.draw(view, without_text());
  const Rgb drawn = scene.at(160, 120);
  EXPECT_GT(std::min({drawn.r, drawn.g, drawn.b}), 140) << "pale";
  for (unsigned i = 0; i < 100; ++i) {
    const Rgb lively = color_of(i);
    EXPECT_LT(std::min({lively.r, lively.g, lively.b}), 60);
  }
}

TEST(Drawing, TrailsDoNotTremble) {
  Picture picture(GST_VIDEO_FORMAT_GRAY8, 320, 240);
  Canvas canvas(picture.frame(), 0, 0, 320, 240);
  TextCache text;
  Palette palette;
  Trails trails;
  DrawingStyle style;
  style.show_boxes = style.show_labels = style.show_scores = false;
  style.trail_length = 40;
  RegionView object = region(0, 0.2f, 0.1f, 0.5f, 1, "car");
  object.track_id = 7;
  for (int i = 0; i < 40; ++i) {
    object.box.x_min = 0.02f * static_cast<float>(i);
    object.box.x_max = object.box.x_min + 0.1f;
    object.box.y_max = i % 2 == 0 ? 0.52f : 0.48f;  // 10 pixels
    if (i + 1 < 40) trails.add({object}, 40);
  }
  draw_results(canvas, {{object}, {}}, style, text, palette, trails);
  int top = 240, bottom = 0;
  for (int x = 60; x < 220; ++x)
    for (int y = 0; y < 240; ++y)
      if (picture.at(0, x, y) > 40) top = std::min(top, y), bottom = std::max(bottom, y);
  EXPECT_LT(bottom - top, 6);
  EXPECT_NEAR((top + bottom) / 2, 120, 3);
}

TEST(Drawing, SurvivesAnyResultInAnyFormat) {
  const float wild[] = {-1e30f, -0.5f, 0, 0.5f, 1, 1e30f, std::nanf("")};
  TextCache text;
  Palette palette;
  DrawingStyle style;
  style.trail_length = 3;
  style.privacy = Privacy::blur;
  for (GstVideoFormat format : formats()) {
    for (const auto& [width, height] : std::vector<std::pair<int, int>>{{1, 1}, {33, 7}}) {
      Picture picture(format, width, height);
      Canvas canvas(picture.frame(), 0, 0, width, height);
      FrameView frame;
      for (const float a : wild)
        for (const float b : wild) {
          RegionView object = region(0.2f, 0.2f, 0.9f, 0.9f, 7, "label");
          object.x = object.y = 0, object.width = width, object.height = height;
          object.skeleton = Skeleton::coco17;
          object.keypoints.assign(3, {a, b, 0.9f});
          object.landmarks = {{b, a}};
          object.corners = {{{a, b}, {b, a}, {a, a}, {b, b}}};
          object.mask = full_mask(a, b, b, a);
          object.track_id = 3;
          frame.regions.push_back(object);
        }
      Trails trails;
      for (int i = 0; i < 2; ++i) draw_results(canvas, frame, style, text, palette, trails);
      EXPECT_EQ(picture.guards_changed(), 0u)
          << gst_video_format_to_string(format) << " " << width << "x" << height;
    }
  }
}

}  // namespace
}  // namespace clinfer
