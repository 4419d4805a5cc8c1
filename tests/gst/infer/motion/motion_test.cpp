// inference-when=motion: what is held, what is inferred again, and when. The frames have one colour, or a box of
// another one; the network names the colour that prevails.
#include <algorithm>
#include <vector>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

constexpr int kSide = 256;

// The frames through one clinfer with inference-when=motion.
class Stream {
 public:
  explicit Stream(const std::string& properties = "", const char* format = "NV12")
      : harness_(Harness::clinfer_launch("inference-when=motion motion-hold=0 " + properties)) {
    harness_.set_caps(format, kSide, kSide);
  }
  // Pushes a frame of this colour and gives the colour where it was inferred, or "held". `box`: where its colour is
  // another.
  std::string push(Rgb color, const Rect& box = {}, Rgb box_color = kBlue) {
    return answer_of(send(color, box, box_color).get());
  }
  Handle<GstBuffer> send(Rgb color, const Rect& box = {}, Rgb box_color = kBlue,
                         const std::vector<Rect>& regions = {}) {
    GstBuffer* buffer =
        frame_of(harness_.info(), color, static_cast<GstClockTime>(count_++) * 40 * GST_MSECOND);
    if (box.width != 0) {
      GstVideoFrame frame;
      EXPECT_TRUE(gst_video_frame_map(&frame, &harness_.info(), buffer, GST_MAP_READWRITE));
      Canvas(&frame, 0, 0, kSide, kSide).fill(box.x, box.y, box.width, box.height, box_color);
      gst_video_frame_unmap(&frame);
    }
    for (const Rect& region : regions)
      gst_buffer_add_video_region_of_interest_meta(
          buffer, "thing", static_cast<guint>(region.x), static_cast<guint>(region.y),
          static_cast<guint>(region.width), static_cast<guint>(region.height));
    EXPECT_EQ(gst_harness_push(harness_.get(), buffer), GST_FLOW_OK);
    return harness_.pull();
  }
  GstElement* clinfer() { return harness_.clinfer(); }
  Harness& harness() { return harness_; }
  uint64_t statistic(const char* name) {
    const Handle<GstStructure> stats = stats_of(clinfer());
    guint64 value = 0;
    EXPECT_TRUE(gst_structure_get_uint64(stats.get(), name, &value)) << name;
    return value;
  }

 private:
  Harness harness_;
  int count_ = 0;
};

TEST(Motion, FramesWithoutChangeRepeatTheResult) {
  for (const char* format :
       {"NV12", "RGB", "BGRx", "xRGB", "YUY2", "UYVY", "GRAY8", "P010_10LE", "I420_10LE"}) {
    Stream stream("", format);
    const std::string first = stream.push(kRed);
    for (int i = 0; i < 5; ++i) {
      const auto buffer = stream.send(kRed);
      EXPECT_EQ(answer_of(buffer.get()), "held") << format;
      const auto results = read_results(buffer.get());
      ASSERT_EQ(results[0].classifications.size(), 1u) << format;
      EXPECT_EQ(results[0].classifications[0].label, first) << format;
    }
    EXPECT_NE(stream.push(kGreen), "held") << format;
    EXPECT_EQ(stream.statistic("inferred"), 2u) << format;
    EXPECT_EQ(stream.statistic("still"), 5u) << format;
  }
}

// A small one is inferred on its second frame at the latest, and held when it stands still.
TEST(Motion, AnObjectIsInferredWhileItMoves) {
  Stream stream;
  for (int i = 0; i < 5; ++i) stream.push(kGreen);
  std::vector<std::string> outcomes;
  for (int i = 0; i < 8; ++i) outcomes.push_back(stream.push(kGreen, {40 + 4 * i, 100, 16, 16}));
  EXPECT_TRUE(outcomes[0] == "green" || outcomes[1] == "green");
  EXPECT_GE(std::count(outcomes.begin(), outcomes.end(), "green"), 5);
  outcomes.clear();
  for (int i = 0; i < 8; ++i) outcomes.push_back(stream.push(kGreen, {68, 100, 16, 16}));
  EXPECT_GE(std::count(outcomes.begin(), outcomes.end(), "held"), 6);
}

TEST(Motion, FramesAfterTheLastChangeAreInferredToo) {
  Stream stream;
  g_object_set(stream.clinfer(), "motion-hold", 3, nullptr);
  stream.push(kRed);
  std::vector<std::string> outcomes;
  for (int i = 0; i < 5; ++i) outcomes.push_back(stream.push(kRed));
  EXPECT_EQ(outcomes, (std::vector<std::string>{"red", "red", "red", "held", "held"}));
}

TEST(Motion, OnlyMotionRegionsCount) {
  Stream stream("motion-regions=0.0,0.0,0.5,1.0");
  for (int i = 0; i < 4; ++i) stream.push(kGreen);
  EXPECT_EQ(stream.push(kGreen, {180, 20, 60, 60}), "held");
  EXPECT_EQ(stream.push(kGreen, {180, 20, 60, 60}), "held");
  EXPECT_EQ(stream.push(kGreen, {20, 20, 60, 60}), "green");
  g_object_set(stream.clinfer(), "motion-regions", "", nullptr);
  stream.push(kGreen), stream.push(kGreen);
  EXPECT_EQ(stream.push(kGreen, {180, 20, 60, 60}), "green");
}

// A change between two frames that the interval takes is not forgotten.
TEST(Motion, ComposesWithTheInterval) {
  Stream stream("inference-interval=4");
  std::vector<std::string> outcomes;
  for (int i = 0; i < 12; ++i) outcomes.push_back(stream.push(i < 6 ? kRed : kBlue));
  EXPECT_EQ(outcomes,
            (std::vector<std::string>{"red", "held", "held", "held", "held", "held", "skipped",
                                      "skipped", "blue", "held", "held", "held"}));
}

TEST(Motion, ComposesWithBatches) {
  Stream stream("batch-size=3 batch-timeout=0");
  EXPECT_EQ(stream.push(kRed), "red");
  EXPECT_EQ(stream.push(kRed), "held");
  EXPECT_EQ(stream.push(kBlue), "blue");
}

// Results are inferred anew where they may no longer hold.
TEST(Motion, AFlushNewCapsAndNewPropertiesStartAfresh) {
  Stream stream;
  EXPECT_EQ(stream.push(kRed), "red");
  EXPECT_EQ(stream.push(kRed), "held");
  g_object_set(stream.clinfer(), "threshold", 0.25, nullptr);
  EXPECT_EQ(stream.push(kRed), "red");
  g_object_set(stream.clinfer(), "threshold", 0.25, nullptr);
  EXPECT_EQ(stream.push(kRed), "held");
  ASSERT_TRUE(gst_harness_push_event(stream.harness().get(), gst_event_new_flush_start()));
  ASSERT_TRUE(gst_harness_push_event(stream.harness().get(), gst_event_new_flush_stop(FALSE)));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  ASSERT_TRUE(gst_harness_push_event(stream.harness().get(), gst_event_new_segment(&segment)));
  EXPECT_EQ(stream.push(kRed), "red");
  EXPECT_EQ(stream.push(kRed), "held");
  stream.harness().set_caps("I420", kSide, kSide);
  EXPECT_EQ(stream.push(kRed), "red");
}

// The labels of the regions on a frame.
std::vector<std::string> labels_on(GstBuffer* buffer) {
  std::vector<std::string> labels;
  for (const RegionView& region : read_regions(buffer, kSide, kSide))
    for (const ClassificationView& answer : region.classifications) labels.push_back(answer.label);
  return labels;
}

TEST(Motion, FixedRegionsKeepTheirResults) {
  Stream stream("regions=\"0.0,0.0,0.5,1.0;0.5,0.0,0.5,1.0\"");
  const Rect right{128, 0, 128, 256};
  const std::vector<std::string> expected{"green", "blue"};
  for (const char* outcome : {"run", "held", "held"}) {
    const auto buffer = stream.send(kGreen, right);
    EXPECT_EQ(name_of(read_results(buffer.get())[0].outcome), outcome);
    EXPECT_EQ(labels_on(buffer.get()), expected);
  }
}

// Of a list of regions: in another order they keep their results, a new one is inferred.
TEST(Motion, ListedRegionsKeepTheirResults) {
  Stream stream("inference-region=roi-list");
  const Rect right{128, 0, 128, 256}, a{10, 10, 100, 100}, b{140, 10, 100, 100},
      c{140, 150, 90, 90};
  using Labels = std::vector<std::string>;
  const auto look = [&](const std::vector<Rect>& regions, const char* outcome,
                        const Labels& labels) {
    const auto buffer = stream.send(kGreen, right, kBlue, regions);
    EXPECT_EQ(name_of(read_results(buffer.get())[0].outcome), outcome);
    EXPECT_EQ(labels_on(buffer.get()), labels);
  };
  look({a, b}, "run", {"green", "blue"});
  look({a, b}, "held", {"green", "blue"});
  look({b, a}, "held", {"blue", "green"});
  look({a}, "held", {"green"});
  look({a, c}, "run", {"green", "blue"});
  look({a, c}, "held", {"green", "blue"});
}

TEST(Motion, BadRegionsAreRefused) {
  Pipeline pipeline("videotestsrc num-buffers=1 ! " +
                    Harness::clinfer_launch("inference-when=motion motion-regions=1,2,3") +
                    " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  const std::string error = error_on(pipeline.element);
  EXPECT_NE(error.find("motion-regions=1,2,3: takes X,Y,WIDTH,HEIGHT"), std::string::npos) << error;
}

}  // namespace
}  // namespace clinfer
