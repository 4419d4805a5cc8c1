// clcrop: the pixels of regions in every format, sizes, times, and what is said of them.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <random>

#include "gst/crop/cutter.h"
#include "gst/frames/mapped_frame.h"
#include "tests/gst/harness.h"
#include "tests/gst/result_frames.h"

namespace clinfer {
namespace {

std::vector<std::string> formats() {
  std::vector<std::string> names;
  const Handle<GstCaps> caps(gst_caps_from_string(GST_VIDEO_CAPS_MAKE(CLINFER_VIDEO_FORMATS)));
  const GValue* list = gst_structure_get_value(gst_caps_get_structure(caps.get(), 0), "format");
  for (guint i = 0; i < gst_value_list_get_size(list); ++i)
    names.emplace_back(g_value_get_string(gst_value_list_get_value(list, i)));
  return names;
}

struct Picture {
  explicit Picture(const GstVideoInfo& picture_info) : info(picture_info) {
    buffer.reset(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
    map(GST_MAP_READWRITE);
  }
  Picture(Handle<GstBuffer> given, const GstVideoInfo& picture_info)
      : info(picture_info), buffer(std::move(given)) {
    map(GST_MAP_READ);
  }
  ~Picture() { gst_video_frame_unmap(&frame); }
  void map(GstMapFlags flags) {
    EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer.get(), flags));
  }
  // The sample of a component at a pixel.
  int at(guint c, int x, int y) const {
    const GstVideoFormatInfo* format = info.finfo;
    const auto* data =
        static_cast<const uint8_t*>(GST_VIDEO_FRAME_COMP_DATA(&frame, c)) +
        (y >> GST_VIDEO_FORMAT_INFO_H_SUB(format, c)) * GST_VIDEO_FRAME_COMP_STRIDE(&frame, c) +
        (x >> GST_VIDEO_FORMAT_INFO_W_SUB(format, c)) * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c);
    return GST_VIDEO_FRAME_COMP_DEPTH(&frame, c) > 8 ? data[0] | data[1] << 8 : data[0];
  }
  GstVideoInfo info;
  Handle<GstBuffer> buffer;
  GstVideoFrame frame;
};

TEST(Cutter, CopiesEverySampleOfEveryFormat) {
  std::mt19937 random(5);
  for (const std::string& name : formats()) {
    GstVideoInfo info;
    ASSERT_TRUE(
        gst_video_info_set_format(&info, gst_video_format_from_string(name.c_str()), 61, 47));
    Picture whole(info);
    GstMapInfo bytes;
    gst_video_frame_unmap(&whole.frame);
    ASSERT_TRUE(gst_buffer_map(whole.buffer.get(), &bytes, GST_MAP_WRITE));
    for (gsize i = 0; i < bytes.size; ++i) bytes.data[i] = static_cast<guint8>(random());
    gst_buffer_unmap(whole.buffer.get(), &bytes);
    whole.map(GST_MAP_READ);
    for (const Rect& wanted : {Rect{3, 5, 17, 9}, Rect{0, 0, 61, 47}, Rect{60, 46, 1, 1},
                               Rect{-5, -5, 20, 20}, Rect{50, 40, 100, 100}}) {
      const Rect rect = whole_samples(wanted, {0, 0, 61, 47}, info);
      ASSERT_TRUE(rect.x >= 0 && rect.y >= 0 && rect.width >= 1 && rect.height >= 1 &&
                  rect.x + rect.width <= 61 && rect.y + rect.height <= 47)
          << name;
      GstVideoInfo cut_info;
      Handle<GstBuffer> buffer = cut(whole.frame, rect, 0, 0, cut_info);
      const Picture part(std::move(buffer), cut_info);
      ASSERT_EQ(GST_VIDEO_INFO_WIDTH(&cut_info), rect.width);
      for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); ++c)
        for (int y = 0; y < rect.height; ++y)
          for (int x = 0; x < rect.width; ++x)
            ASSERT_EQ(part.at(c, x, y), whole.at(c, rect.x + x, rect.y + y))
                << name << " component " << c << " at " << x << "," << y << " of " << rect.width
                << "x" << rect.height << " at " << rect.x << "," << rect.y;
    }
  }
}

class Crop : public ::testing::Test {
 protected:
  void begin(const std::string& properties, const char* format = "GRAY8") {
    register_result_meta();
    harness_ = std::make_unique<Harness>("clcrop " + properties);
    harness_->set_caps(format, kFrameWidth, kFrameHeight);
  }
  // Width and height that the caps say.
  std::pair<int, int> size() {
    const Handle<GstCaps> caps(gst_pad_get_current_caps(harness_->get()->sinkpad));
    GstVideoInfo info;
    EXPECT_TRUE(gst_video_info_from_caps(&info, caps.get()));
    return {GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info)};
  }
  std::unique_ptr<Harness> harness_;
};

TEST_F(Crop, GivesABufferForEachRegion) {
  begin("");
  Handle<GstBuffer> frame = frame_with(3, {box(10, 20, 40, 60), box(100, 50, 150, 75, 0.8f, 1)});
  gst_buffer_memset(frame.get(), 50 * kFrameWidth + 100, 200, 50);  // the first row of the car
  ASSERT_EQ(gst_harness_push(harness_->get(), frame.release()), GST_FLOW_OK);
  ASSERT_EQ(gst_harness_buffers_in_queue(harness_->get()), 2u);
  const auto person = harness_->pull(), car = harness_->pull();
  EXPECT_EQ(size(), std::pair(50, 25)) << "of the last one";
  for (const auto& buffer : {person.get(), car.get()})
    EXPECT_EQ(GST_BUFFER_PTS(buffer), 3 * 40 * GST_MSECOND);
  guint8 pixels[50];
  EXPECT_EQ(gst_buffer_extract(car.get(), 0, pixels, 50), 50u);
  for (const guint8 pixel : pixels) EXPECT_EQ(pixel, 200);
  GstCustomMeta* meta = gst_buffer_get_custom_meta(car.get(), "ClinferCrop");
  ASSERT_NE(meta, nullptr);
  const GstStructure* s = gst_custom_meta_get_structure(meta);
  gint x = 0, y = 0, frame_width = 0;
  ASSERT_TRUE(gst_structure_get(s, "x", G_TYPE_INT, &x, "y", G_TYPE_INT, &y, "frame-width",
                                G_TYPE_INT, &frame_width, nullptr));
  EXPECT_EQ(x, 100);
  EXPECT_EQ(y, 50);
  EXPECT_EQ(frame_width, kFrameWidth);
  EXPECT_STREQ(gst_structure_get_string(s, "label"), "car");
  // The object is on its buffer, all over it.
  const auto regions = read_regions(car.get(), 50, 25);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].label, "car");
  EXPECT_EQ(regions[0].width, 50);
}

TEST_F(Crop, KeepsTheIdOfATrack) {
  register_result_meta();
  Harness harness("cltrack ! clcrop object-class=person");
  harness.set_caps("GRAY8", kFrameWidth, kFrameHeight);
  for (int number = 0; number < 2; ++number)
    gst_harness_push(
        harness.get(),
        frame_with(number, {box(10, 20, 40, 60), box(100, 50, 150, 75, 0.8f, 1)}).release());
  ASSERT_EQ(gst_harness_buffers_in_queue(harness.get()), 2u) << "the car is not wanted";
  harness.pull();
  const auto buffer = harness.pull();
  const auto regions = read_regions(buffer.get(), 30, 40);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].track_id, 2u);
  guint64 id = 0;
  const GstStructure* s =
      gst_custom_meta_get_structure(gst_buffer_get_custom_meta(buffer.get(), "ClinferCrop"));
  EXPECT_TRUE(gst_structure_get_uint64(s, "id", &id));
  EXPECT_EQ(id, 2u);
}

TEST_F(Crop, ScalesAndAddsAMargin) {
  begin("width=64 height=48 margin=0.5", "NV12");
  GstVideoInfo info;
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, kFrameWidth, kFrameHeight);
  Handle<GstBuffer> frame(frame_of(info, kRed, 0));
  gst_buffer_add_video_region_of_interest_meta(frame.get(), "car", 100, 100, 40, 40);
  gst_buffer_add_video_region_of_interest_meta(frame.get(), "car", 0, 0, 40, 40);
  ASSERT_EQ(gst_harness_push(harness_->get(), frame.release()), GST_FLOW_OK);
  EXPECT_EQ(size(), std::pair(64, 48));
  for (const int width : {80, 60}) {  // the second one at the edge of the picture
    const auto buffer = harness_->pull();
    EXPECT_EQ(gst_buffer_get_size(buffer.get()), 64u * 48 * 3 / 2);
    gint given = 0;
    gst_structure_get_int(
        gst_custom_meta_get_structure(gst_buffer_get_custom_meta(buffer.get(), "ClinferCrop")),
        "width", &given);
    EXPECT_EQ(given, width);
  }
}

TEST_F(Crop, AFrameWithoutRegionsIsAGap) {
  begin("");
  while (GstEvent* event = gst_harness_try_pull_event(harness_->get())) gst_event_unref(event);
  ASSERT_EQ(gst_harness_push(harness_->get(), frame_with(5, {}).release()), GST_FLOW_OK);
  EXPECT_EQ(gst_harness_buffers_in_queue(harness_->get()), 0u);
  GstEvent* event = gst_harness_try_pull_event(harness_->get());
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(GST_EVENT_TYPE(event), GST_EVENT_GAP);
  gst_event_unref(event);
}

TEST_F(Crop, RunsIntoAnEncoder) {
  Pipeline pipeline(
      "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=320,height=240 ! clcrop name=c ! "
      "videoconvert ! pngenc ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(pipeline.element), "");
}

}  // namespace
}  // namespace clinfer
