// Results in GstAnalytics: what is written for readers of other elements, and what is read of
// theirs.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#ifdef CLINFER_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>
#endif

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <vector>

#include "gst/meta/analytics.h"
#include "gst/meta/meta.h"
#include "gst/meta/run_lengths.h"
#include "tests/gst/result_frames.h"

namespace clinfer {
namespace {

#ifdef CLINFER_HAVE_ANALYTICS

class Analytics : public testing::Test {
 protected:
  void SetUp() override { register_result_meta(); }
};

FrameResult result_with(const std::vector<Detection>& objects, bool roi_meta) {
  FrameResult result;
  result.outcome = Outcome::run;
  result.model = "net";
  result.visible = {0, 0, kFrameWidth, kFrameHeight};
  result.roi_meta = roi_meta;
  result.parts.emplace_back().results.detections = objects;
  return result;
}

Handle<GstBuffer> frame_of(const FrameResult& result) {
  Handle<GstBuffer> buffer = frame_of_size(0);
  attach_result(buffer.get(), result, {"person", "car"});
  return buffer;
}

size_t count_rois(GstBuffer* buffer) {
  return gst_buffer_get_n_meta(buffer, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE);
}

std::vector<GstAnalyticsMtd> all_of(GstBuffer* buffer, GstAnalyticsMtdType type) {
  std::vector<GstAnalyticsMtd> list;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  GstAnalyticsMtd mtd;
  gpointer state = nullptr;
  while (meta != nullptr && gst_analytics_relation_meta_iterate(meta, &state, type, &mtd))
    list.push_back(mtd);
  return list;
}

FrameView view_of(GstBuffer* buffer) { return read_frame(buffer, kFrameWidth, kFrameHeight); }

TEST_F(Analytics, StandsAloneWithoutRegionsOfInterest) {
  const Handle<GstBuffer> buffer =
      frame_of(result_with({box(20, 30, 60, 90), box(100, 30, 160, 90, 0.5f, 1)}, false));
  EXPECT_EQ(count_rois(buffer.get()), 0u);
  const FrameView view = view_of(buffer.get());
  ASSERT_EQ(view.regions.size(), 2u);
  EXPECT_EQ(view.regions[0].label_id, 0);
  EXPECT_EQ(view.regions[1].label, "car");
  EXPECT_EQ(view.regions[1].model, "net");
  EXPECT_NE(view.regions[0].id, view.regions[1].id);
  EXPECT_FALSE(view.has_roi_only);
  // A second network, a tracker and zones add to these objects and make no others.
  FrameResult second = result_with({}, false);
  second.parts[0].region = 1;
  second.parts[0].results.classifications = {{"color", 2, "red", 0.75f}};
  attach_result(buffer.get(), second, {});
  {
    FrameResults results(buffer.get(), {0, 0, kFrameWidth, kFrameHeight});
    results.attach(std::vector<TrackedObject>{{7, 1, {}, 10, 20}});
  }
  {
    FrameResults results(buffer.get(), {0, 0, kFrameWidth, kFrameHeight});
    ZoneResult zones;
    zones.objects[1] = {"door"};
    results.attach(zones);
  }
  EXPECT_EQ(count_rois(buffer.get()), 0u);
  for (const Handle<GstBuffer>& copy : {Handle<GstBuffer>(gst_buffer_ref(buffer.get())),
                                        Handle<GstBuffer>(gst_buffer_copy(buffer.get()))}) {
    const FrameView all = view_of(copy.get());
    ASSERT_EQ(all.regions.size(), 2u);
    const RegionView& car = all.regions[1];
    ASSERT_EQ(car.classifications.size(), 1u);
    EXPECT_EQ(car.classifications[0].attribute, "color");
    EXPECT_EQ(car.track_id, 7u);
    EXPECT_EQ(car.zones, std::vector<std::string>{"door"});
  }
}

// The part of the pipeline that wants regions of interest gets them.
TEST_F(Analytics, AnElementAddsRegionsOfInterestToObjectsThatItSaysSomethingOf) {
  const Handle<GstBuffer> buffer = frame_of(result_with({box(20, 30, 60, 90)}, false));
  FrameResult second = result_with({}, true);
  second.parts[0].region = 0;
  second.parts[0].results.classifications = {{"color", 2, "red", 0.75f}};
  attach_result(buffer.get(), second, {});
  EXPECT_EQ(count_rois(buffer.get()), 1u);
  const FrameView view = view_of(buffer.get());
  ASSERT_EQ(view.regions.size(), 1u);
  EXPECT_EQ(view.regions[0].classifications.size(), 1u);
}

TEST_F(Analytics, AnObjectThatLeavesGstAnalyticsIsGone) {
  const Handle<GstBuffer> buffer = frame_of(result_with({box(20, 30, 60, 90)}, false));
  gst_buffer_remove_meta(buffer.get(), reinterpret_cast<GstMeta*>(
                                           gst_buffer_get_analytics_relation_meta(buffer.get())));
  EXPECT_TRUE(view_of(buffer.get()).regions.empty());
}

TEST_F(Analytics, ObjectsOfASecondNetworkArePartsOfTheirs) {
  for (const bool roi_meta : {true, false}) {
    const Handle<GstBuffer> buffer = frame_of(result_with({box(20, 30, 120, 190)}, roi_meta));
    FrameResult second = result_with({box(40, 40, 60, 60, 0.5f, 1)}, roi_meta);
    second.parts[0].region = 0;
    attach_result(buffer.get(), second, {"person", "face"});
    const auto objects = all_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
    ASSERT_EQ(objects.size(), 2u);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer.get());
    EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, objects[0].id, objects[1].id),
              GST_ANALYTICS_REL_TYPE_CONTAIN);
    EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, objects[1].id, objects[0].id),
              GST_ANALYTICS_REL_TYPE_IS_PART_OF);
    // An application that has GstAnalytics only reads the same.
    gst_buffer_remove_meta(buffer.get(), reinterpret_cast<GstMeta*>(gst_buffer_get_custom_meta(
                                             buffer.get(), kResultMeta)));
    if (roi_meta) continue;
    const FrameView view = view_of(buffer.get());
    ASSERT_EQ(view.regions.size(), 2u);
    EXPECT_EQ(view.regions[1].roi_type, "face");
    EXPECT_EQ(view.regions[1].parent_id, view.regions[0].id);
  }
}

TEST_F(Analytics, ABetterBoxReplacesTheObjects) {
  for (const bool roi_meta : {true, false}) {
    const Handle<GstBuffer> buffer =
        frame_of(result_with({box(20, 30, 60, 90), box(100, 30, 160, 90)}, roi_meta));
    FrameResult second = result_with({box(110, 40, 150, 80, 0.75f)}, roi_meta);
    second.parts[0].results.detections[0].subject = Subject::refined;
    second.parts[0].region = 1;
    attach_result(buffer.get(), second, {});
    const auto objects = all_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
    ASSERT_EQ(objects.size(), 2u);
    gint x = 0, y = 0, w = 0, h = 0;
    gfloat confidence = 0;
    ASSERT_TRUE(gst_analytics_od_mtd_get_location(&objects[1], &x, &y, &w, &h, &confidence));
    EXPECT_EQ(x, 110);
    EXPECT_EQ(w, 40);
    const FrameView view = view_of(buffer.get());
    ASSERT_EQ(view.regions.size(), 2u);
    EXPECT_EQ(view.regions[1].x, 110);
    EXPECT_EQ(view.regions[1].label, "person");
  }
}

TEST_F(Analytics, TracksOfRegionsOfInterestOfOthersAreThere) {
  const Handle<GstBuffer> buffer = frame_of_size(0);
  gst_buffer_add_video_region_of_interest_meta(buffer.get(), "car", 20, 30, 40, 50);
  EXPECT_TRUE(view_of(buffer.get()).has_roi_only);
  FrameResults results(buffer.get(), {0, 0, kFrameWidth, kFrameHeight});
  results.attach(std::vector<TrackedObject>{{7, 0, {}, 10, 20}});
  const FrameView view = view_of(buffer.get());
  EXPECT_FALSE(view.has_roi_only);
  ASSERT_EQ(view.regions.size(), 1u);
  EXPECT_EQ(view.regions[0].track_id, 7u);
  EXPECT_EQ(all_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type()).size(), 1u);
  EXPECT_EQ(all_of(buffer.get(), gst_analytics_tracking_mtd_get_mtd_type()).size(), 1u);
}

TEST_F(Analytics, TheNoticeIsNotForOurOwnRegions) {
  const Handle<GstBuffer> buffer = frame_of(result_with({box(20, 30, 60, 90)}, true));
  EXPECT_FALSE(view_of(buffer.get()).has_roi_only);
}

#if GST_CHECK_VERSION(1, 26, 0)

TEST_F(Analytics, AnObjectWithAnAngleIsTurned) {
  Detection ship = box(60, 60, 140, 140);
  constexpr float kAngle = -std::numbers::pi_v<float> / 6;
  ship.oriented_box = OrientedBox{100, 100, 60, 30, kAngle};
  const Handle<GstBuffer> buffer = frame_of(result_with({ship}, false));
  const auto objects = all_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
  ASSERT_EQ(objects.size(), 1u);
  gint x = 0, y = 0, w = 0, h = 0;
  gfloat rotation = 0, confidence = 0;
  ASSERT_TRUE(gst_analytics_od_mtd_get_oriented_location(&objects[0], &x, &y, &w, &h, &rotation,
                                                         &confidence));
  EXPECT_EQ(x, 70);
  EXPECT_EQ(y, 85);
  EXPECT_EQ(w, 60);
  EXPECT_EQ(h, 30);
  EXPECT_NEAR(rotation, 2 * std::numbers::pi_v<float> + kAngle, 1e-5);  // GStreamer's range
  // Read back without our own meta.
  gst_buffer_remove_meta(buffer.get(), reinterpret_cast<GstMeta*>(
                                           gst_buffer_get_custom_meta(buffer.get(), kResultMeta)));
  const FrameView view = view_of(buffer.get());
  ASSERT_EQ(view.regions.size(), 1u);
  ASSERT_TRUE(view.regions[0].corners);
  const OrientedBox back = oriented_box(*view.regions[0].corners, kFrameWidth, kFrameHeight);
  EXPECT_NEAR(back.x_center, 100, 0.01);
  EXPECT_NEAR(back.width, 60, 0.01);
  EXPECT_NEAR(back.rotation, kAngle, 1e-4);
}

// The object is the left half of its box.
Detection half() {
  Detection person = box(40, 40, 80, 80);
  auto mask = std::make_shared<ObjectMask>();
  *mask = {2, 1, 40, 40, 80, 80, 0.5f, {1, 0}};
  person.mask = mask;
  return person;
}

TEST_F(Analytics, AMaskIsASegmentationOfItsObject) {
  const Handle<GstBuffer> buffer =
      frame_of(result_with({box(0, 0, 20, 20, 0.9f, 1), half()}, false));
  const auto objects = all_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
  const auto masks = all_of(buffer.get(), gst_analytics_segmentation_mtd_get_mtd_type());
  ASSERT_EQ(objects.size(), 2u);
  ASSERT_EQ(masks.size(), 1u);
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer.get());
  EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, objects[1].id, masks[0].id),
            GST_ANALYTICS_REL_TYPE_RELATE_TO);
  EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, objects[0].id, masks[0].id),
            GST_ANALYTICS_REL_TYPE_NONE);
  gint x = 0, y = 0;
  guint w = 0, h = 0;
  const Handle<GstBuffer> image(gst_analytics_segmentation_mtd_get_mask(&masks[0], &x, &y, &w, &h));
  EXPECT_EQ(x, 40);
  EXPECT_EQ(y, 40);
  EXPECT_EQ(w, 40u);
  EXPECT_EQ(h, 40u);
  const guint id = gst_analytics_segmentation_mtd_get_region_id(&masks[0], 0);
  ASSERT_NE(id, 0u);
  uint8_t pixels[2] = {};
  gst_buffer_extract(image.get(), 40 * 20 + 5, pixels, 1);
  gst_buffer_extract(image.get(), 40 * 20 + 35, pixels + 1, 1);
  EXPECT_EQ(pixels[0], id);
  EXPECT_EQ(pixels[1], 0);
  // Read back without our own meta.
  gst_buffer_remove_meta(buffer.get(), reinterpret_cast<GstMeta*>(
                                           gst_buffer_get_custom_meta(buffer.get(), kResultMeta)));
  const FrameView view = view_of(buffer.get());
  ASSERT_EQ(view.regions.size(), 2u);
  EXPECT_FALSE(view.regions[0].mask);
  ASSERT_TRUE(view.regions[1].mask);
  const Raster raster =
      raster_of(*view.regions[1].mask, view.regions[1].box, kFrameWidth, kFrameHeight);
  ASSERT_EQ(raster.rect.width, 40);
  EXPECT_NE(raster.pixels[20 * 40 + 5], 0);
  EXPECT_EQ(raster.pixels[20 * 40 + 35], 0);
}

// Returns the rectangle in which objectdetectionoverlay changes a grey picture; nothing if it
// changes none.
std::optional<Rect> drawn_by_overlay(const FrameResult& result) {
  GstHarness* harness = gst_harness_new_parse("objectdetectionoverlay draw-labels=false");
  gst_harness_set_src_caps_str(harness,
                               "video/x-raw,format=RGBA,width=320,height=240,framerate=25/1");
  constexpr size_t kRow = kFrameWidth * 4;
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, kRow * kFrameHeight, nullptr);
  gst_buffer_memset(buffer, 0, 90, kRow * kFrameHeight);
  GST_BUFFER_PTS(buffer) = 0;
  attach_result(buffer, result, {"person"});
  const Handle<GstBuffer> out(gst_harness_push_and_pull(harness, buffer));
  std::vector<uint8_t> pixels(kRow * kFrameHeight);
  gst_buffer_extract(out.get(), 0, pixels.data(), pixels.size());
  gst_harness_teardown(harness);
  int left = kFrameWidth, top = kFrameHeight, right = -1, bottom = -1;
  for (int y = 0; y < kFrameHeight; ++y)
    for (int x = 0; x < kFrameWidth; ++x) {
      const uint8_t* pixel =
          pixels.data() + static_cast<size_t>(y) * kRow + static_cast<size_t>(x) * 4;
      if (pixel[0] == 90 && pixel[1] == 90 && pixel[2] == 90) continue;
      left = std::min(left, x), right = std::max(right, x);
      top = std::min(top, y), bottom = std::max(bottom, y);
    }
  if (right < 0) return std::nullopt;
  return Rect{left, top, right - left + 1, bottom - top + 1};
}

// GStreamer's own overlay finds upright and turned objects where they are, with and without
// regions of interest.
TEST_F(Analytics, GStreamersOverlayDrawsTheObjects) {
  const Handle<GstObject> factory(GST_OBJECT(gst_element_factory_find("objectdetectionoverlay")));
  if (factory == nullptr)
    GTEST_SKIP() << "there is no objectdetectionoverlay: gstreamer1.0-plugins-bad has it";
  constexpr int kLine = 4;
  for (const bool roi_meta : {true, false}) {
    const auto upright = drawn_by_overlay(result_with({box(60, 40, 140, 100)}, roi_meta));
    ASSERT_TRUE(upright);
    EXPECT_NEAR(upright->x, 60, kLine);
    EXPECT_NEAR(upright->y, 40, kLine);
    EXPECT_NEAR(upright->width, 80, 2 * kLine);
    EXPECT_NEAR(upright->height, 60, 2 * kLine);
    // Wide as it lies, it is high when it is turned by a right angle.
    Detection ship = box(90, 60, 110, 140);
    ship.oriented_box = OrientedBox{100, 100, 80, 20, std::numbers::pi_v<float> / 2};
    const auto turned = drawn_by_overlay(result_with({ship}, roi_meta));
    ASSERT_TRUE(turned);
    EXPECT_NEAR(turned->x, 90, kLine);
    EXPECT_NEAR(turned->y, 60, kLine);
    EXPECT_NEAR(turned->width, 20, 2 * kLine);
    EXPECT_NEAR(turned->height, 80, 2 * kLine);
  }
}

// As a decoder of tensors writes it: coarser than the picture, over a part of it, in 16 bits.
TEST_F(Analytics, ASegmentationOfAnotherElementIsAMap) {
  const Handle<GstBuffer> buffer = frame_of_size(0);
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer.get());
  const uint16_t values[] = {12, 7, 300, 9};
  GstBuffer* mask = gst_buffer_new_memdup(values, sizeof values);
  gst_buffer_add_video_meta(mask, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY16_LE, 2, 2);
  // The default stride of a row is rounded up to four bytes, which two such pixels take.
  guint ids[] = {12, 7, 300};
  GstAnalyticsSegmentationMtd segments;
  ASSERT_TRUE(gst_analytics_relation_meta_add_segmentation_mtd(
      meta, mask, GST_SEGMENTATION_TYPE_SEMANTIC, 3, ids, 160, 0, 160, 240, &segments));
  GQuark names[] = {g_quark_from_static_string("sky"), g_quark_from_static_string("wall"),
                    g_quark_from_static_string("road")};
  gfloat levels[] = {-1, -1, -1};
  GstAnalyticsClsMtd classes;
  ASSERT_TRUE(gst_analytics_relation_meta_add_cls_mtd(meta, 3, levels, names, &classes));
  ASSERT_TRUE(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                       segments.id, classes.id));
  const FrameView view = view_of(buffer.get());
  ASSERT_EQ(view.results.size(), 1u);
  EXPECT_TRUE(view.results[0].classifications.empty());  // they name the map's classes
  ASSERT_EQ(view.results[0].maps.size(), 1u);
  const MapView& map = view.results[0].maps[0];
  EXPECT_EQ(map.labels.at(300), "road");
  const std::vector<int32_t> pixels = class_of_pixels(map, kFrameWidth, kFrameHeight);
  const auto at = [&](int x, int y) { return pixels[static_cast<size_t>(y * kFrameWidth + x)]; };
  EXPECT_EQ(at(10, 10), -1);
  EXPECT_EQ(at(200, 60), 12);
  EXPECT_EQ(at(280, 60), 7);
  EXPECT_EQ(at(200, 180), 300);
  EXPECT_EQ(at(280, 180), -1);  // no region has this number
}

TEST_F(Analytics, AMaskThatIsSmallerThanItSaysIsLeftOut) {
  const Handle<GstBuffer> buffer = frame_of_size(0);
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer.get());
  GstBuffer* mask = gst_buffer_new_allocate(nullptr, 64, nullptr);
  gst_buffer_add_video_meta(mask, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, 64, 64);
  guint ids[] = {1};
  GstAnalyticsSegmentationMtd segments;
  ASSERT_TRUE(gst_analytics_relation_meta_add_segmentation_mtd(
      meta, mask, GST_SEGMENTATION_TYPE_SEMANTIC, 1, ids, 0, 0, 320, 240, &segments));
  EXPECT_TRUE(view_of(buffer.get()).results.empty());
}

#endif
#else

TEST(Analytics, IsWrittenAndRead) {
  GTEST_SKIP() << "built with GStreamer 1.22; GstAnalytics came with 1.24";
}

#endif

}  // namespace
}  // namespace clinfer
