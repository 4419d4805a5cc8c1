// Drawing into every format at awkward sizes: the right pixels change, no others, and nothing
// outside the frame is touched.
#include "gst/overlay/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gst/frames/mapped_frame.h"
#include "gst/overlay/canvas.h"

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
      sample = GST_VIDEO_INFO_IS_YUV(&info_) && component > 0 ? 128
               : GST_VIDEO_INFO_IS_YUV(&info_)                ? 16
                                                              : 0;
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
    return data[y * GST_VIDEO_FRAME_COMP_STRIDE(&frame_, c) +
                x * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame_, c)];
  }
  // Component c at a pixel of the picture.
  uint8_t at(guint c, int x, int y) {
    return sample(c, x >> GST_VIDEO_FORMAT_INFO_W_SUB(info_.finfo, c),
                  y >> GST_VIDEO_FORMAT_INFO_H_SUB(info_.finfo, c));
  }
  size_t guards_changed() {
    std::vector<uint8_t> owned(bytes_.size(), 0);
    for_each_sample([&](uint8_t& s, guint) { owned[static_cast<size_t>(&s - bytes_.data())] = 1; });
    size_t changed = 0;
    // The unused byte of RGBx and the like is nobody's.
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
  draw_results(canvas, {region(0.25f, 0.25f, 0.75f, 0.75f, 1, "person")}, {}, {}, text, palette);
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
      draw_results(canvas, regions, {answers}, {}, text, palette);
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

}  // namespace
}  // namespace clinfer
