// All kinds of results: attached, read back, moved by converters, written as JSON.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <set>

#include "gst/base/handle.h"
#include "gst/meta/analytics.h"
#include "gst/meta/meta.h"
#include "gst/meta/run_lengths.h"
#include "gst/publish/result_line.h"

namespace clinfer {
namespace {

constexpr int kWidth = 320, kHeight = 240;

// A 320x240 frame letterboxed into 160x160: 160x120, 20 from the top.
Placement letterbox() {
  Placement placement;
  placement.top = 20;
  placement.x_scale = placement.y_scale = 2;
  return placement;
}

// One object of every kind of field, at network (40, 50)..(80, 80): frame (80, 60)..(160, 120).
FrameResult all_kinds() {
  FrameResult result;
  result.outcome = Outcome::run;
  result.model = "net";
  result.visible = {0, 0, kWidth, kHeight};
  PartResult& part = result.parts.emplace_back();
  part.placement = letterbox();
  Detection person{40, 50, 80, 80, 0.75f, 1};
  person.skeleton = Skeleton::coco17;
  for (int i = 0; i < 17; ++i)
    person.keypoints.push_back({40.0f + static_cast<float>(i), 60, 0.5f});
  person.landmarks = {{50, 60}, {70, 60}};
  // The object is the left half of its box.
  auto mask = std::make_shared<ObjectMask>();
  *mask = {4, 4, 0, 0, 160, 160, 0, {}};
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) mask->values.push_back(x < 1 ? 1.0f : x < 2 ? -1.0f / 3 : -1.0f);
  person.mask = mask;
  Detection ship{90, 60, 130, 100, 0.5f, 9};
  ship.oriented_box = OrientedBox{110, 80, 40, 20, std::numbers::pi_v<float> / 6};
  part.results.detections = {person, ship};
  part.results.classifications = {{"scene", 2, "street", 0.25f}, {"scene", 3, "", 0.125f}};
  part.results.texts = {{"ocr", "Grüße \"x\"", 0.875f}};
  part.results.embeddings = {{"reid", {0.5f, -1.0f}}};
  part.results.tensors = {{"Result 1", Tensor::of<float>(ElementType::f32, {1, 2}, {3.0f, 4.0f})}};
  PictureMap map;
  map.name = "road";
  map.columns = 2;
  map.rows = 1;
  map.x_max = map.y_max = 160;
  map.classes = {0, 7};
  map.labels = {"ground"};
  part.results.maps = {map};
  return result;
}

std::string line_of(GstBuffer* buffer, int width, int height) {
  FrameFacts facts;
  facts.width = width;
  facts.height = height;
  return result_line(facts, read_frame(buffer, width, height));
}

void expect_all_kinds(const FrameView& frame, int width, int height) {
  ASSERT_EQ(frame.regions.size(), 2u);
  const RegionView& person = frame.regions[0];
  EXPECT_EQ(person.label, "person");
  EXPECT_EQ(person.label_id, 1);
  EXPECT_EQ(person.model, "net");
  EXPECT_DOUBLE_EQ(person.confidence, 0.75);
  EXPECT_NEAR(person.box.x_min, 0.25, 1e-6);
  EXPECT_NEAR(person.box.y_max, 0.5, 1e-6);
  EXPECT_EQ(person.x, width / 4);
  EXPECT_EQ(person.y, height / 4);
  EXPECT_EQ(person.width, width / 4);
  EXPECT_EQ(person.height, height / 4);
  ASSERT_EQ(person.keypoints.size(), 17u);
  EXPECT_EQ(person.skeleton, Skeleton::coco17);
  EXPECT_NEAR(person.keypoints[4].x, 88.0 / kWidth, 1e-6);
  EXPECT_NEAR(person.keypoints[4].y, 80.0 / kHeight, 1e-6);
  EXPECT_FLOAT_EQ(person.keypoints[4].confidence, 0.5f);
  ASSERT_EQ(person.landmarks.size(), 2u);
  EXPECT_NEAR(person.landmarks[1].x, 140.0 / kWidth, 1e-6);
  ASSERT_TRUE(person.mask);
  const Raster raster = raster_of(*person.mask, person.box, width, height);
  EXPECT_EQ(raster.rect.width, width / 4);
  // Values fall from 1 at x = 40 of the frame to -1/3 at 120: zero at 100.
  for (int x = 0; x < raster.rect.width; ++x)
    EXPECT_EQ(raster.pixels[static_cast<size_t>(x)] != 0,
              (raster.rect.x + x + 0.5) * kWidth / width < 100)
        << x;
  const RegionView& ship = frame.regions[1];
  EXPECT_EQ(ship.label, "");
  ASSERT_TRUE(ship.corners);
  const OrientedBox box = oriented_box(*ship.corners, kWidth, kHeight);
  EXPECT_NEAR(box.x_center, 220, 1e-3);
  EXPECT_NEAR(box.y_center, 120, 1e-3);
  EXPECT_NEAR(box.width, 80, 1e-3);
  EXPECT_NEAR(box.height, 40, 1e-3);
  EXPECT_NEAR(box.rotation, std::numbers::pi / 6, 1e-5);
  ASSERT_EQ(frame.results.size(), 1u);
  const ResultView& whole = frame.results[0];
  EXPECT_EQ(whole.outcome, Outcome::run);
  ASSERT_EQ(whole.classifications.size(), 2u);
  EXPECT_EQ(whole.classifications[0].label, "street");
  EXPECT_EQ(whole.classifications[0].model, "net");
  EXPECT_EQ(whole.classifications[1].label, "");
  EXPECT_EQ(whole.classifications[1].label_id, 3);
  ASSERT_EQ(whole.texts.size(), 1u);
  EXPECT_EQ(whole.texts[0].text, "Grüße \"x\"");
  ASSERT_EQ(whole.embeddings.size(), 1u);
  ASSERT_EQ(count_of<float>(whole.embeddings[0].data), 2u);
  EXPECT_EQ(values_of<float>(whole.embeddings[0].data)[1], -1.0f);
  ASSERT_EQ(whole.tensors.size(), 1u);
  EXPECT_EQ(whole.tensors[0].name, "Result 1");
  EXPECT_EQ(whole.tensors[0].dims, (std::vector<int>{1, 2}));
  ASSERT_EQ(count_of<float>(whole.tensors[0].data), 2u);
  EXPECT_EQ(values_of<float>(whole.tensors[0].data)[0], 3.0f);
  ASSERT_EQ(whole.maps.size(), 1u);
  const std::vector<ClassShare> shares = class_shares(whole.maps[0], width, height);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[1].label_id, 7);
  EXPECT_NEAR(shares[1].share, 0.5, 0.01);
}

GstBuffer* frame_with(const FrameResult& result, int width = kWidth, int height = kHeight) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_RGB, static_cast<guint>(width),
                            static_cast<guint>(height));
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  attach_result(buffer, result, {"background", "person"});
  return buffer;
}

class ResultsOnBuffers : public testing::Test {
 protected:
  void SetUp() override { register_result_meta(); }

  // The frame after these elements; null: it did not come out.
  Handle<GstBuffer> through(const std::string& elements, GstBuffer* buffer) {
    GstHarness* harness = gst_harness_new_parse((elements + " ! identity").c_str());
    gst_harness_set_src_caps_str(
        harness,
        "video/x-raw,format=RGB,width=320,height=240,framerate=25/1,pixel-aspect-ratio=1/1");
    GST_BUFFER_PTS(buffer) = 0;
    Handle<GstBuffer> out(gst_harness_push_and_pull(harness, buffer));
    gst_harness_teardown(harness);
    return out;
  }
};

TEST_F(ResultsOnBuffers, OfAllKindsComeBack) {
  const Handle<GstBuffer> buffer(frame_with(all_kinds()));
  expect_all_kinds(read_frame(buffer.get(), kWidth, kHeight), kWidth, kHeight);
  const Handle<GstBuffer> copy(gst_buffer_copy(buffer.get()));
  expect_all_kinds(read_frame(copy.get(), kWidth, kHeight), kWidth, kHeight);
}

// Objects that stand in GstAnalytics only have all kinds of results, too, and keep them through
// converters and borders.
TEST_F(ResultsOnBuffers, OfAllKindsComeBackWithoutRegionsOfInterest) {
  if (!has_analytics()) GTEST_SKIP() << "built with GStreamer 1.22; GstAnalytics came with 1.24";
  FrameResult result = all_kinds();
  result.roi_meta = false;
  const Handle<GstBuffer> buffer(frame_with(result));
  expect_all_kinds(read_frame(buffer.get(), kWidth, kHeight), kWidth, kHeight);
  for (const auto& [elements, width, height] : std::vector<std::tuple<std::string, int, int>>{
           {"videoconvert ! video/x-raw,format=NV12", 320, 240},
           {"videoscale ! video/x-raw,width=640,height=480", 640, 480},
           {"videoscale ! video/x-raw,width=160,height=120", 160, 120}}) {
    SCOPED_TRACE(elements);
    const Handle<GstBuffer> out = through(elements, frame_with(result));
    ASSERT_TRUE(out);
    expect_all_kinds(read_frame(out.get(), width, height), width, height);
    EXPECT_EQ(gst_buffer_get_n_meta(out.get(), GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), 0u);
  }
  const Handle<GstBuffer> out = through(
      "videoscale ! video/x-raw,width=400,height=240,pixel-aspect-ratio=1/1", frame_with(result));
  ASSERT_TRUE(out);
  EXPECT_EQ(read_regions(out.get(), 400, 240).at(0).x, 120);
}

TEST_F(ResultsOnBuffers, SurviveConversionsAndScaling) {
  for (const auto& [elements, width, height] : std::vector<std::tuple<std::string, int, int>>{
           {"videoconvert ! video/x-raw,format=NV12", 320, 240},
           {"videoscale ! video/x-raw,width=640,height=480", 640, 480},
           {"videoscale ! video/x-raw,width=160,height=120 ! videoconvert ! "
            "video/x-raw,format=GRAY8 ! videoscale ! video/x-raw,width=320,height=240",
            320, 240},
           {"queue ! identity ! videoconvertscale ! video/x-raw,width=400,height=300,format=BGRx",
            400, 300}}) {
    SCOPED_TRACE(elements);
    const Handle<GstBuffer> out = through(elements, frame_with(all_kinds()));
    ASSERT_TRUE(out);
    expect_all_kinds(read_frame(out.get(), width, height), width, height);
    // Readers of regions of interest that do not know our meta find the same there.
    GstVideoRegionOfInterestMeta* roi =
        gst_buffer_get_video_region_of_interest_meta_id(out.get(), 1);
    ASSERT_NE(roi, nullptr);
    EXPECT_EQ(roi->x, static_cast<guint>(width / 4));
    GstStructure* detection = gst_video_region_of_interest_meta_get_param(roi, "detection");
    ASSERT_NE(detection, nullptr);
    gdouble confidence = 0;
    EXPECT_TRUE(gst_structure_get_double(detection, "confidence", &confidence));
    EXPECT_EQ(confidence, 0.75);
    EXPECT_NE(gst_video_region_of_interest_meta_get_param(roi, "keypoints"), nullptr);
  }
}

TEST_F(ResultsOnBuffers, FollowThePictureIntoBorders) {
  // 320x240 in 400x240 with square pixels: 40 black columns on each side.
  const Handle<GstBuffer> out =
      through("videoscale ! video/x-raw,width=400,height=240,pixel-aspect-ratio=1/1",
              frame_with(all_kinds()));
  ASSERT_TRUE(out);
  const FrameView frame = read_frame(out.get(), 400, 240);
  ASSERT_EQ(frame.regions.size(), 2u);
  EXPECT_EQ(frame.regions[0].x, 120);
  EXPECT_EQ(frame.regions[0].width, 80);
  EXPECT_NEAR(frame.regions[0].keypoints[0].x, 120.0 / 400, 1e-6);
  EXPECT_EQ(gst_buffer_get_video_region_of_interest_meta_id(out.get(), 1)->x, 120u);
  // Squeezed instead: the object's share of the picture stays.
  const Handle<GstBuffer> squeezed =
      through("videoscale ! video/x-raw,width=160,height=240", frame_with(all_kinds()));
  EXPECT_EQ(read_regions(squeezed.get(), 160, 240).at(0).x, 40);
}

TEST_F(ResultsOnBuffers, FollowACropInPlace) {
  const Handle<GstBuffer> buffer(frame_with(all_kinds()));
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer.get());
  crop->x = 100, crop->y = 60, crop->width = 160, crop->height = 120;
  const FrameView frame = read_frame(buffer.get(), 160, 120);
  ASSERT_EQ(frame.regions.size(), 2u);
  EXPECT_EQ(frame.regions[0].x, 0);
  EXPECT_EQ(frame.regions[0].width, 60);
  EXPECT_EQ(frame.regions[0].height, 60);
  EXPECT_NEAR(frame.regions[0].keypoints[10].x, 0, 1e-6);
  EXPECT_EQ(frame.regions[1].x, 80);
  crop->x = 0, crop->width = 60;  // the objects are outside
  EXPECT_EQ(read_frame(buffer.get(), 60, 120).regions.size(), 0u);
}

TEST_F(ResultsOnBuffers, AreWrittenAsJson) {
  const Handle<GstBuffer> buffer(frame_with(all_kinds()));
  const std::string line = line_of(buffer.get(), kWidth, kHeight);
  for (
      const char* part :
      {R"("keypoints":[{"x":0.25,"y":0.33333334,"confidence":0.5,"name":"nose"},)",
       R"("landmarks":[{"x":0.3125,"y":0.33333334})",
       // 80x60 pixels from (80, 60); of them 20 columns are the object.
       R"("mask":{"size":[240,320],"counts":[19260,60,180,60,)",
       R"("oriented_box":{"x_center":220,"y_center":120,)",
       R"({"x":0,"y":0,"w":320,"h":240,"scene":{"label_id":2,"label":"street","confidence":0.25,)"
       R"("model":{"name":"net"}},"scene_2":{"label_id":3,"confidence":0.125,)",
       R"("text":{"label":"Grüße \"x\"","confidence":0.875,)",
       R"("embedding":{"name":"reid","model":{"name":"net"},"dims":[2],"data":[0.5,-1]})",
       R"("segmentation":{"name":"road","model":{"name":"net"},"size":[240,320],"classes":[{"label_id":0,"label":"ground","share":0.5,"counts":[0,38400,38400]},{"label_id":7,"share":0.5,"counts":[38400,38400]}])",
       R"("tensors":[{"name":"Result 1")"})
    EXPECT_NE(line.find(part), std::string::npos) << part << "\n" << line;
  EXPECT_EQ(line.find("\"data\":[3,4]"), std::string::npos);
  FrameFacts facts;
  facts.width = kWidth;
  facts.height = kHeight;
  facts.tensor_data = true;
  facts.source = "cam";
  facts.tags = R"({"a":1})";
  facts.sender_ntp_unix_ns = 5;
  facts.system_timestamp = "2026-01-02T03:04:05.678Z";
  const std::string full = result_line(facts, read_frame(buffer.get(), kWidth, kHeight));
  for (const char* part : {R"("dims":[1,2],"data":[3,4])", R"("source":"cam")", R"("tags":{"a":1})",
                           R"("rtp":{"sender_ntp_unix_timestamp_ns":5})",
                           R"("system_timestamp":"2026-01-02T03:04:05.678Z")"})
    EXPECT_NE(full.find(part), std::string::npos) << part << "\n" << full;
}

TEST_F(ResultsOnBuffers, NamesThatCollideAreKeptApart) {
  FrameResult result = all_kinds();
  for (const char* name : {"detection", "x", "keypoints", "text", "mask"})
    result.parts[0].results.classifications.push_back({name, 1, name, 0.5f});
  const Handle<GstBuffer> buffer(gst_buffer_new());
  gst_buffer_add_video_region_of_interest_meta(buffer.get(), "car", 0, 0, 320, 240);
  result.parts[0].region = 0;
  attach_result(buffer.get(), result, {});
  const FrameView frame = read_frame(buffer.get(), kWidth, kHeight);
  ASSERT_EQ(frame.regions.size(), 3u);
  EXPECT_EQ(frame.regions[0].classifications.size(), 7u);
  EXPECT_TRUE(frame.regions[0].keypoints.empty());
  EXPECT_FALSE(frame.regions[0].has_detection);
  const std::string line = line_of(buffer.get(), kWidth, kHeight);
  for (const char* key : {"\"detection_2\":{\"label_id\"", "\"x_2\":{\"label_id\"", "\"text_2\":{"})
    EXPECT_NE(line.find(key), std::string::npos) << key << "\n" << line;
}

TEST_F(ResultsOnBuffers, IdsNeverCollide) {
  const Handle<GstBuffer> buffer(gst_buffer_new());
  const auto add = [&](int id) {
    gst_buffer_add_video_region_of_interest_meta(buffer.get(), "car", 0, 0, 320, 240)->id = id;
  };
  for (const int id : {0, 0, 3, 3}) add(id);
  FrameResult result = all_kinds();
  result.parts[0].results.detections.resize(1);
  for (size_t region = 1; region < 4; ++region) {
    result.parts.push_back(result.parts[0]);
    result.parts.back().region = region;
  }
  result.parts[0].region = 0;
  attach_result(buffer.get(), result, {});
  attach_result(buffer.get(), all_kinds(), {});
  std::set<int> ids;
  for (const RegionView& region : read_regions(buffer.get(), kWidth, kHeight)) {
    EXPECT_GT(region.id, 0);
    EXPECT_TRUE(ids.insert(region.id).second) << region.id;
    EXPECT_NE(region.id, region.parent_id);
  }
  EXPECT_EQ(ids.size(), 10u);
  // Each child hangs on its own region.
  std::set<int> parents;
  for (const RegionView& region : read_regions(buffer.get(), kWidth, kHeight))
    if (region.parent_id != 0) parents.insert(region.parent_id);
  EXPECT_EQ(parents.size(), 4u);
}

TEST_F(ResultsOnBuffers, ADetectionUnderAPixelIsAPixel) {
  FrameResult result;
  result.visible = {0, 0, 320, 240};
  result.parts.emplace_back().results.detections = {{319.9f, 239.9f, 319.95f, 239.95f, 1, 0},
                                                    {10.1f, 10.1f, 10.2f, 10.2f, 1, 0}};
  const Handle<GstBuffer> buffer(gst_buffer_new());
  attach_result(buffer.get(), result, {});
  const auto regions = read_regions(buffer.get(), 320, 240);
  ASSERT_EQ(regions.size(), 2u);
  for (const RegionView& region : regions) {
    EXPECT_EQ(region.width, 1);
    EXPECT_EQ(region.height, 1);
    EXPECT_LE(region.x + region.width, 320);
    EXPECT_LE(region.y + region.height, 240);
  }
}

TEST_F(ResultsOnBuffers, ParametersOfOthersAreReadBesideOurs) {
  const Handle<GstBuffer> buffer(frame_with(all_kinds()));
  GstVideoRegionOfInterestMeta* roi =
      gst_buffer_get_video_region_of_interest_meta_id(buffer.get(), 1);
  // As DL Streamer's gvaclassify and gvatrack leave them.
  gst_video_region_of_interest_meta_add_param(
      roi, gst_structure_new("classification_layer_name:prob", "label", G_TYPE_STRING, "male",
                             "model_name", G_TYPE_STRING, "gender", "confidence", G_TYPE_DOUBLE,
                             0.5, "label_id", G_TYPE_INT, 1, "attribute_name", G_TYPE_STRING,
                             "gender", nullptr));
  gst_video_region_of_interest_meta_add_param(
      roi, gst_structure_new("object_id", "id", G_TYPE_INT, 12, nullptr));
  const auto regions = read_regions(buffer.get(), kWidth, kHeight);
  ASSERT_EQ(regions[0].classifications.size(), 1u);
  EXPECT_EQ(regions[0].classifications[0].attribute, "gender");
  EXPECT_EQ(regions[0].classifications[0].label, "male");
  EXPECT_EQ(regions[0].track_id, 12u);
  EXPECT_NE(line_of(buffer.get(), kWidth, kHeight).find("\"id\":12"), std::string::npos);
}

TEST_F(ResultsOnBuffers, RegionsThatWereMovedOrTakenAwayAreBelieved) {
  const Handle<GstBuffer> buffer(frame_with(all_kinds()));
  GstVideoRegionOfInterestMeta* roi =
      gst_buffer_get_video_region_of_interest_meta_id(buffer.get(), 1);
  roi->x = 200;
  gst_buffer_remove_meta(buffer.get(),
                         &gst_buffer_get_video_region_of_interest_meta_id(buffer.get(), 2)->meta);
  const auto regions = read_regions(buffer.get(), kWidth, kHeight);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].x, 200);
  EXPECT_NEAR(regions[0].box.x_min, 200.0 / 320, 1e-6);
}

TEST(RunLengths, AddUpWhateverTheMask) {
  for (const auto& [columns, rows] : std::vector<std::pair<int, int>>{{1, 1}, {3, 5}, {0, 0}}) {
    std::vector<float> values(static_cast<size_t>(columns * rows), 1.0f);
    auto kept = std::make_shared<std::vector<float>>(values);
    MaskView mask;
    mask.columns = columns;
    mask.rows = rows;
    mask.area = {0, 0, 1, 1};
    mask.values = bytes_of(*kept, kept);
    for (const PictureBox& box : std::vector<PictureBox>{
             {0, 0, 1, 1}, {0.5f, 0.5f, 1, 1}, {0.99f, 0.99f, 1, 1}, {0, 0, 0.01f, 1}}) {
      const auto counts = run_lengths(raster_of(mask, box, 17, 13), 17, 13);
      uint64_t sum = 0;
      for (const uint32_t count : counts) sum += count;
      EXPECT_EQ(sum, 17u * 13u);
      EXPECT_EQ(counts.size() % 2 == 0 || counts.back() > 0, true);
    }
  }
  // Data that is shorter than the grid is no mask.
  MaskView lying;
  lying.columns = lying.rows = 1000;
  lying.area = {0, 0, 1, 1};
  auto one = std::make_shared<std::vector<float>>(1, 1.0f);
  lying.values = bytes_of(*one, one);
  EXPECT_EQ(run_lengths(raster_of(lying, {0, 0, 1, 1}, 4, 4), 4, 4), (std::vector<uint32_t>{16}));
}

// A network of 40x40 pixels sees a square of 80x80 around (160, 120), turned by 30 degrees.
TEST(Results, OfTurnedRegionsLieOnTheFrame) {
  const double angle = std::numbers::pi / 6;
  FrameResult result;
  result.outcome = Outcome::run;
  result.model = "net";
  result.visible = {0, 0, kWidth, kHeight};
  PartResult& part = result.parts.emplace_back();
  Placement& placement = part.placement;
  placement.x_scale = placement.y_scale = 2;
  placement.origin_x = 120;
  placement.origin_y = 80;
  placement.angle = static_cast<float>(angle);
  placement.pivot_x = 160;
  placement.pivot_y = 120;
  Detection found{10, 15, 30, 25, 0.75f, 1};
  found.landmarks = {{20, 20}, {30, 20}};
  auto mask = std::make_shared<ObjectMask>();
  *mask = {20, 10, 10, 15, 30, 25, 0.5f, {}};
  for (int i = 0; i < 200; ++i) mask->values.push_back(i % 20 < 10 ? 1.0f : 0.0f);  // the left half
  found.mask = mask;
  part.results.detections = {found};
  PictureMap classes;
  classes.name = "classes";
  classes.columns = 2;
  classes.rows = 1;
  classes.x_max = classes.y_max = 40;
  classes.classes = {3, 7};
  PictureMap depth = classes;
  depth.name = "depth";
  depth.kind = MapKind::depth;
  depth.classes.clear();
  depth.values = {1, 1};
  part.results.maps = {classes, depth};
  const Handle<GstBuffer> buffer(gst_buffer_new());
  attach_result(buffer.get(), result, {});
  const FrameView frame = read_frame(buffer.get(), kWidth, kHeight);
  ASSERT_EQ(frame.regions.size(), 1u);
  const RegionView& region = frame.regions[0];
  // Where a place of the network is in the frame.
  const auto place = [&](double x, double y) {
    const double dx = 2 * (x - 20), dy = 2 * (y - 20);
    return std::pair(160 + std::cos(angle) * dx - std::sin(angle) * dy,
                     120 + std::sin(angle) * dx + std::cos(angle) * dy);
  };
  const auto expect_at = [&](const Point& point, double x, double y) {
    const auto [to_x, to_y] = place(x, y);
    EXPECT_NEAR(static_cast<double>(point.x) * kWidth, to_x, 0.01);
    EXPECT_NEAR(static_cast<double>(point.y) * kHeight, to_y, 0.01);
  };
  ASSERT_TRUE(region.corners);
  expect_at((*region.corners)[0], 10, 15);
  expect_at((*region.corners)[1], 30, 15);
  expect_at((*region.corners)[2], 30, 25);
  expect_at((*region.corners)[3], 10, 25);
  const OrientedBox box = oriented_box(*region.corners, kWidth, kHeight);
  EXPECT_NEAR(box.width, 40, 0.01);
  EXPECT_NEAR(box.height, 20, 0.01);
  EXPECT_NEAR(box.rotation, angle, 1e-3);
  EXPECT_NEAR(static_cast<double>(region.box.x_min) * kWidth, place(10, 25).first, 0.01);
  EXPECT_NEAR(static_cast<double>(region.box.y_max) * kHeight, place(30, 25).second, 0.01);
  ASSERT_EQ(region.landmarks.size(), 2u);
  expect_at(region.landmarks[0], 20, 20);
  expect_at(region.landmarks[1], 30, 20);
  // The mask has its half of the turned box, half of 800 pixels.
  ASSERT_TRUE(region.mask);
  const Raster raster = raster_of(*region.mask, region.box, kWidth, kHeight);
  const auto inside = [&](double x, double y) {
    const auto [to_x, to_y] = place(x, y);
    const int column = static_cast<int>(to_x) - raster.rect.x,
              row = static_cast<int>(to_y) - raster.rect.y;
    return raster.pixels.at(static_cast<size_t>(row * raster.rect.width + column)) != 0;
  };
  EXPECT_TRUE(inside(12, 20));
  EXPECT_TRUE(inside(18, 23));
  EXPECT_FALSE(inside(22, 17));
  EXPECT_FALSE(inside(28, 20));
  EXPECT_NEAR(static_cast<double>(std::count(raster.pixels.begin(), raster.pixels.end(), 255)), 400,
              40);
  // Maps end at the region's edges.
  ASSERT_EQ(frame.results.size(), 1u);
  ASSERT_EQ(frame.results[0].maps.size(), 2u);
  const auto labels = class_of_pixels(frame.results[0].maps[0], kWidth, kHeight);
  const auto depths = value_of_pixels(frame.results[0].maps[1], kWidth, kHeight);
  const auto pixel = [&](double x, double y) {
    const auto [to_x, to_y] = place(x, y);
    return static_cast<size_t>(static_cast<int>(to_y) * kWidth + static_cast<int>(to_x));
  };
  EXPECT_EQ(labels[pixel(5, 5)], 3);
  EXPECT_EQ(labels[pixel(5, 35)], 3);
  EXPECT_EQ(labels[pixel(35, 5)], 7);
  EXPECT_EQ(labels[0], -1);
  EXPECT_FLOAT_EQ(depths[pixel(20, 20)], 1);
  EXPECT_TRUE(std::isnan(depths[0]));
  EXPECT_EQ(line_of(buffer.get(), kWidth, kHeight).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace clinfer
