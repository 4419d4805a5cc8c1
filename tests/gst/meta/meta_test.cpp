// Results on buffers and as JSON; frames seen through GstVideoMeta and crop; labels; statistics.
#include "gst/meta/meta.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <utility>

#include "engine/heads/files/labels.h"
#include "gst/base/handle.h"
#include "gst/base/transforms.h"
#include "gst/frames/mapped_frame.h"
#include "gst/infer/stream/statistics.h"
#include "gst/publish/result_line.h"

namespace clinfer {
namespace {

GstVideoInfo video_info(const char* caps_text) {
  GstVideoInfo info;
  const Handle<GstCaps> caps(gst_caps_from_string(caps_text));
  EXPECT_TRUE(gst_video_info_from_caps(&info, caps.get())) << caps_text;
  return info;
}

// Metadata needs no more of a format than the size of its pictures.
TEST(Size, IsReadOfFormatsThatOnlyAMemoryFeatureKnows) {
  const auto size_of = [](const char* caps_text) -> std::pair<int, int> {
    GstVideoInfo info;
    const Handle<GstCaps> caps(gst_caps_from_string(caps_text));
    if (!read_size(caps.get(), info)) return {};
    return {info.width, info.height};
  };
  EXPECT_EQ(size_of("video/x-raw, format=(string)NV12, width=320, height=240"),
            std::pair(320, 240));
  EXPECT_EQ(size_of("video/x-raw(memory:DMABuf), format=(string)DMA_DRM, "
                    "drm-format=(string)NV12:0x0100000000000002, width=320, height=240"),
            std::pair(320, 240));
  EXPECT_EQ(size_of("video/x-raw(memory:DMABuf), format=(string)DMA_DRM, width=320"),
            std::pair(0, 0));
}

TEST(Placement, MapsBoxesBackAndClips) {
  // A 640x480 frame letterboxed into 300x300: 300x225, 37.5 from the top.
  Placement placement;
  placement.top = 37.5f;
  placement.x_scale = placement.y_scale = 640.0f / 300;
  const Rect all{0, 0, 640, 480};
  const auto box = to_picture({0, 37.5f, 150, 150, 1, 0}, placement, all);
  ASSERT_TRUE(box);
  EXPECT_FLOAT_EQ(box->x_min, 0);
  EXPECT_FLOAT_EQ(box->y_min, 0);
  EXPECT_FLOAT_EQ(box->x_max, 0.5f);
  EXPECT_FLOAT_EQ(box->y_max, 0.5f);
  const auto clipped = to_picture({-50, 0, 400, 300, 1, 0}, placement, all);
  ASSERT_TRUE(clipped);
  EXPECT_FLOAT_EQ(clipped->x_min, 0);
  EXPECT_FLOAT_EQ(clipped->y_max, 1);
  EXPECT_FALSE(to_picture({0, 0, 300, 37, 1, 0}, placement, all));  // in the padding only
  // Results are relative to the crop.
  placement = {};
  placement.origin_x = 100;
  placement.origin_y = 50;
  const auto inside = to_picture({0, 0, 50, 50, 1, 0}, placement, {100, 50, 200, 100});
  ASSERT_TRUE(inside);
  EXPECT_FLOAT_EQ(inside->x_min, 0);
  EXPECT_FLOAT_EQ(inside->x_max, 0.25f);
  EXPECT_FLOAT_EQ(inside->y_max, 0.5f);
}

// All facts about an object follow a quarter turn, and a mirror.
TEST(Placement, TurnsWhatIsKnownOfAnObject) {
  RegionView view;
  view.box = {0.25f, 0.5f, 0.5f, 1};
  view.corners = {{{0.25f, 0.5f}, {0.5f, 0.5f}, {0.5f, 1}, {0.25f, 1}}};
  view.keypoints = {{0.25f, 0.75f, 1}};
  view.mask.emplace();
  view.mask->columns = 3;
  view.mask->rows = 2;
  view.mask->area = view.box;
  const std::vector<float> cells = {1, 2, 3, 4, 5, 6};
  view.mask->values = Bytes(g_bytes_new(cells.data(), cells.size() * sizeof(float)), g_bytes_unref);
  const auto cells_of = [](const RegionView& of) {
    const float* values = values_of<float>(of.mask->values);
    return std::vector<float>(values, values + count_of<float>(of.mask->values));
  };
  // Clockwise: what was on the left is at the top, what was at the bottom is on the left.
  RegionView clockwise = view;
  ASSERT_TRUE(move_region(clockwise, {0, -1, 1, 1, 0, 0}, 100, 200));
  EXPECT_EQ((std::array{clockwise.x, clockwise.y, clockwise.width, clockwise.height}),
            (std::array{0, 50, 50, 50}));
  EXPECT_FLOAT_EQ(clockwise.keypoints[0].x, 0.25f);
  EXPECT_FLOAT_EQ(clockwise.keypoints[0].y, 0.25f);
  EXPECT_EQ(cells_of(clockwise), (std::vector<float>{4, 1, 5, 2, 6, 3}));
  EXPECT_EQ(clockwise.mask->columns, 2);
  EXPECT_FLOAT_EQ((*clockwise.corners)[0].x, 0.5f);  // the object's own top left corner
  EXPECT_FLOAT_EQ((*clockwise.corners)[0].y, 0.25f);
  // In a mirror corners are clockwise again.
  RegionView mirrored = view;
  ASSERT_TRUE(move_region(mirrored, {-1, 0, 1, 0, 1, 0}, 100, 100));
  EXPECT_EQ(cells_of(mirrored), (std::vector<float>{3, 2, 1, 6, 5, 4}));
  EXPECT_FLOAT_EQ((*mirrored.corners)[0].x, 0.5f);
  EXPECT_FLOAT_EQ((*mirrored.corners)[1].x, 0.75f);
  EXPECT_FLOAT_EQ((*mirrored.corners)[1].y, 0.5f);
  EXPECT_FLOAT_EQ((*mirrored.corners)[2].y, 1);
}

FrameResult sample_result() {
  FrameResult result;
  result.outcome = Outcome::run;
  result.model = "net";
  result.visible = {0, 0, 200, 100};
  Results& results = result.parts.emplace_back().results;
  results.detections = {{20, 10, 60, 50, 0.75f, 1}, {0, 0, 10, 10, 0.5f, 9}};
  results.classifications = {{"color", 2, "red", 0.25f}};
  results.tensors = {{"t", Tensor::of<float>(ElementType::f32, {1, 2}, {3.0f, 4.0f})}};
  return result;
}

TEST(Meta, ComesBackAsItWasAttached) {
  register_result_meta();
  const Handle<GstBuffer> buffer(gst_buffer_new());
  attach_result(buffer.get(), sample_result(), {"background", "face"});
  const auto regions = read_regions(buffer.get(), 200, 100);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].x, 20);
  EXPECT_EQ(regions[0].width, 40);
  EXPECT_EQ(regions[0].label, "face");
  EXPECT_EQ(regions[0].label_id, 1);
  EXPECT_DOUBLE_EQ(regions[0].confidence, 0.75);
  EXPECT_FLOAT_EQ(regions[0].box.x_max, 0.3f);
  EXPECT_EQ(regions[1].label, "");  // id 9 has no name
  EXPECT_EQ(regions[1].label_id, 9);
  const auto results = read_results(buffer.get());
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, Outcome::run);
  EXPECT_EQ(results[0].model, "net");
  ASSERT_EQ(results[0].classifications.size(), 1u);
  EXPECT_EQ(results[0].classifications[0].label, "red");
  ASSERT_EQ(results[0].tensors.size(), 1u);
  EXPECT_EQ(results[0].tensors[0].dims, (std::vector<int>{1, 2}));
  // Copies of the buffer keep all of it.
  const Handle<GstBuffer> copy(gst_buffer_copy(buffer.get()));
  EXPECT_EQ(read_regions(copy.get(), 200, 100).size(), 2u);
  EXPECT_EQ(read_results(copy.get()).size(), 1u);
}

// A second stage that finds points of a region: they are the region's, in place of those that it had.
TEST(Meta, PointsOfARegionBelongToIt) {
  register_result_meta();
  const Handle<GstBuffer> buffer(gst_buffer_new());
  FrameResult detector = sample_result();
  detector.parts[0].results.detections.resize(1);
  detector.parts[0].results.detections[0].skeleton = Skeleton::face5;
  detector.parts[0].results.detections[0].landmarks.assign(5, {30, 30});
  attach_result(buffer.get(), detector, {"background", "face"});
  FrameResult points;
  points.visible = detector.visible;
  PartResult& part = points.parts.emplace_back();
  part.region = 0;
  part.placement = {0, 0, 4, 4, 20, 10};  // a network of 10x10 on the region of 40x40
  Detection& whole = part.results.detections.emplace_back();
  whole.x_max = whole.y_max = 10;
  whole.confidence = 0.9f;
  whole.subject = Subject::whole;
  whole.skeleton = Skeleton::other;
  whole.landmarks = {{5, 5}, {0, 10}};
  attach_result(buffer.get(), points, {});
  const auto check = [](GstBuffer* from) {
    const auto regions = read_regions(from, 200, 100);
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_EQ(regions[0].label, "face");
    EXPECT_DOUBLE_EQ(regions[0].confidence, 0.75);
    ASSERT_EQ(regions[0].landmarks.size(), 2u);
    EXPECT_FLOAT_EQ(regions[0].landmarks[0].x, 0.2f);
    EXPECT_FLOAT_EQ(regions[0].landmarks[1].y, 0.5f);
  };
  check(buffer.get());
  // The region of interest says the same by itself.
  GstMeta* meta = nullptr;
  while (GstCustomMeta* custom = gst_buffer_get_custom_meta(buffer.get(), kResultMeta))
    gst_buffer_remove_meta(buffer.get(), meta = &custom->meta);
  ASSERT_NE(meta, nullptr);
  check(buffer.get());
}

// O-Net moves the box of the region that it looked at.
TEST(Meta, ABetterBoxIsTheRegionsOwn) {
  register_result_meta();
  const Handle<GstBuffer> buffer(gst_buffer_new());
  FrameResult detector = sample_result();
  detector.parts[0].results.detections.resize(1);
  attach_result(buffer.get(), detector, {"background", "face"});
  FrameResult better;
  better.visible = detector.visible;
  PartResult& part = better.parts.emplace_back();
  part.region = 0;
  part.placement = {0, 0, 4, 4, 20, 10};
  Detection& face = part.results.detections.emplace_back();
  face.x_min = 1, face.y_min = 2, face.x_max = 9, face.y_max = 10;
  face.confidence = 0.99f;
  face.subject = Subject::refined;
  attach_result(buffer.get(), better, {});
  const auto regions = read_regions(buffer.get(), 200, 100);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].x, 24);
  EXPECT_EQ(regions[0].width, 32);
  EXPECT_EQ(regions[0].label, "face");
  EXPECT_FLOAT_EQ(static_cast<float>(regions[0].confidence), 0.99f);
}

// Classes may be called by numbers, their own included.
TEST(Meta, NamesMayBeNumbers) {
  register_result_meta();
  const Handle<GstBuffer> buffer(gst_buffer_new());
  FrameResult result;
  result.visible = {0, 0, 200, 100};
  result.parts.emplace_back().results.classifications = {{"digit", 7, "7", 0.9f},
                                                         {"kind", 3, "", 0.8f}};
  attach_result(buffer.get(), result, {});
  const auto results = read_results(buffer.get());
  ASSERT_EQ(results.size(), 1u);
  ASSERT_EQ(results[0].classifications.size(), 2u);
  EXPECT_EQ(results[0].classifications[0].label, "7");
  EXPECT_EQ(results[0].classifications[1].label, "");
}

TEST(Meta, ReadsRegionsOfOthers) {
  const Handle<GstBuffer> buffer(gst_buffer_new());
  gst_buffer_add_video_region_of_interest_meta(buffer.get(), "car", 50, 25, 100, 50);
  const auto regions = read_regions(buffer.get(), 200, 100);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_FALSE(regions[0].has_detection);
  EXPECT_EQ(regions[0].label, "car");
  EXPECT_FLOAT_EQ(regions[0].box.x_min, 0.25f);
  EXPECT_FLOAT_EQ(regions[0].box.y_max, 0.75f);
}

TEST(ResultLine, HasTheKeysOfTheDesign) {
  register_result_meta();
  const Handle<GstBuffer> buffer(gst_buffer_new());
  attach_result(buffer.get(), sample_result(), {"background", "f\"ace"});
  const std::string line = result_line({7, 200, 100, 40000000}, read_frame(buffer.get(), 200, 100));
  EXPECT_EQ(
      line,
      R"({"frame":7,"objects":[{"detection":{"bounding_box":{"x_min":0.1,"y_min":0.1,"x_max":0.3,"y_max":0.5},)"
      R"("confidence":0.75,"label_id":1,"label":"f\"ace"},"x":20,"y":10,"w":40,"h":40,"region_id":1,"roi_type":"f\"ace"},)"
      R"({"detection":{"bounding_box":{"x_min":0,"y_min":0,"x_max":0.05,"y_max":0.1},"confidence":0.5,"label_id":9},)"
      R"("x":0,"y":0,"w":10,"h":10,"region_id":2,"roi_type":"9"},)"
      R"({"x":0,"y":0,"w":200,"h":100,"color":{"label_id":2,"label":"red","confidence":0.25,"model":{"name":"net"}}}],)"
      R"("tensors":[{"name":"t","layer_name":"t","model_name":"net","precision":"FP32","layout":"ANY","dims":[1,2]}],)"
      R"("resolution":{"width":200,"height":100},"timestamp":40000000,"inference":"run"})");
}

TEST(ResultLine, IsThereWithoutObjects) {
  register_result_meta();
  EXPECT_EQ(result_line({0, 8, 6, std::nullopt}, {}),
            R"({"frame":0,"objects":[],"resolution":{"width":8,"height":6}})");
  const Handle<GstBuffer> buffer(gst_buffer_new());
  attach_result(buffer.get(), FrameResult{}, {});
  EXPECT_EQ(
      result_line({1, 8, 6, 5}, read_frame(buffer.get(), 8, 6)),
      R"({"frame":1,"objects":[],"resolution":{"width":8,"height":6},"timestamp":5,"inference":"skipped"})");
}

TEST(MappedFrame, FollowsMetaAndCrop) {
  const GstVideoInfo info =
      video_info("video/x-raw,format=NV12,width=6,height=4,colorimetry=bt709");
  const Handle<GstBuffer> buffer(gst_buffer_new_allocate(nullptr, 16 * 10 + 100, nullptr));
  gsize offsets[] = {7, 100};
  gint strides[] = {16, 24};
  gst_buffer_add_video_meta_full(buffer.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12, 6,
                                 4, 2, offsets, strides);
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer.get());
  crop->x = 2, crop->y = 1, crop->width = 3, crop->height = 2;
  {
    const MappedFrame mapped(buffer.get(), info);
    EXPECT_EQ(mapped.frame().strides[0], 16);
    EXPECT_EQ(mapped.frame().strides[1], 24);
    EXPECT_EQ(mapped.frame().planes[1] - mapped.frame().planes[0], 93);
    EXPECT_EQ(mapped.frame().region.x, 2);
    EXPECT_EQ(mapped.visible().height, 2);
    EXPECT_EQ(mapped.frame().matrix, YuvMatrix::bt709);
    EXPECT_FALSE(mapped.frame().full_range);
  }
  EXPECT_DOUBLE_EQ(
      frame_of_info(video_info("video/x-raw,format=NV12,width=6,height=4,pixel-aspect-ratio=12/11"))
          .pixel_aspect,
      12.0 / 11);
  crop->width = 5;  // 2 + 5 > 6
  EXPECT_THROW(MappedFrame(buffer.get(), info), Error);
}

TEST(MappedFrame, RefusesMetaThatReachesBeyondTheMemory) {
  const GstVideoInfo info = video_info("video/x-raw,format=I420,width=64,height=64");
  const Handle<GstBuffer> buffer(gst_buffer_new_allocate(nullptr, info.size, nullptr));
  gsize offsets[] = {0, 4096, 5120};
  for (const gint stride : {65, 1000, 16}) {
    gint strides[] = {stride, 32, 32};
    const Handle<GstBuffer> copy(gst_buffer_copy(buffer.get()));
    gst_buffer_add_video_meta_full(copy.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, 64,
                                   64, 3, offsets, strides);
    if (stride == 65)
      // Rows overlap the next plane, inside the memory.
      EXPECT_NO_THROW(MappedFrame(copy.get(), info));
    else
      EXPECT_THROW(MappedFrame(copy.get(), info), Error) << stride;
  }
  const Handle<GstBuffer> small(gst_buffer_new_allocate(nullptr, 100, nullptr));
  EXPECT_THROW(MappedFrame(small.get(), info), Error);
}

TEST(MappedFrame, RefusesFramesThatLackOneByte) {
  for (const char* format : {"NV12", "I420", "BGR", "Y444", "P010_10LE", "I420_10LE"}) {
    const std::string caps = std::string("video/x-raw,width=64,height=64,format=") + format;
    const GstVideoInfo info = video_info(caps.c_str());
    for (const gsize missing : {gsize{0}, gsize{1}}) {
      const Handle<GstBuffer> buffer(
          gst_buffer_new_allocate(nullptr, info.size - missing, nullptr));
      gsize offsets[4];
      gint strides[4];
      std::copy_n(info.offset, 4, offsets);
      std::copy_n(info.stride, 4, strides);
      gst_buffer_add_video_meta_full(buffer.get(), GST_VIDEO_FRAME_FLAG_NONE,
                                     GST_VIDEO_INFO_FORMAT(&info), 64, 64,
                                     GST_VIDEO_INFO_N_PLANES(&info), offsets, strides);
      if (missing == 0)
        EXPECT_NO_THROW(MappedFrame(buffer.get(), info)) << format;
      else
        EXPECT_THROW(MappedFrame(buffer.get(), info), Error) << format;
    }
  }
}

class LabelsFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "labels" + std::to_string(getpid()) + ".txt";
  }
  void TearDown() override { std::remove(path_.c_str()); }
  std::vector<std::string> read(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return read_labels(path_);
  }
  std::string path_;
};

TEST_F(LabelsFile, ReadsWhatEditorsWrite) {
  EXPECT_EQ(read("\xef\xbb\xbfsmall car\r\n\r\nbüs\n\n\n"),
            (std::vector<std::string>{"small car", "", "büs"}));
}

TEST_F(LabelsFile, RefusesWhatIsNoText) {
  EXPECT_THROW(read(""), Error);
  EXPECT_THROW(read("good\n\xff\xfe\n"), Error);
  EXPECT_THROW(read_labels("/nowhere/labels.txt"), Error);
  EXPECT_THROW(read_labels(testing::TempDir()), Error);
}

TEST(Labels, ParsesPropertyAndModel) {
  EXPECT_EQ(parse_labels("<a, b c,d>"), (std::vector<std::string>{"a", "b c", "d"}));
  EXPECT_EQ(parse_labels("a"), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(parse_labels(" ").empty());
  EXPECT_EQ(parse_model_labels(" person traffic_light\ncar "),
            (std::vector<std::string>{"person", "traffic_light", "car"}));
}

TEST(ServiceTime, ReportsWithHysteresis) {
  ServiceTime time;
  EXPECT_TRUE(time.add(10));
  const uint64_t first = time.reported_ns();
  EXPECT_NEAR(static_cast<double>(first), 11e6, 1e5);
  int changes = 0;
  for (int i = 0; i < 200; ++i) changes += time.add(10 + i % 3);
  EXPECT_EQ(changes, 0);
  for (int i = 0; i < 600; ++i) changes += time.add(30);
  EXPECT_GE(changes, 1);
  EXPECT_NEAR(static_cast<double>(time.reported_ns()), 33e6, 1e6);
  for (int i = 0; i < 1200; ++i) changes += time.add(5);
  EXPECT_NEAR(static_cast<double>(time.reported_ns()), 5.5e6, 1e6);
}

TEST(SampleWindow, GivesPercentilesOfTheLatest) {
  SampleWindow window;
  EXPECT_EQ(window.percentiles().p99, 0);
  for (int i = 1; i <= 100; ++i) window.add(i);
  EXPECT_EQ(window.percentiles().p50, 50);
  EXPECT_EQ(window.percentiles().p95, 95);
  EXPECT_EQ(window.percentiles().p99, 99);
  for (int i = 0; i < 600; ++i) window.add(7);
  EXPECT_EQ(window.percentiles().p99, 7);
}

}  // namespace
}  // namespace clinfer
