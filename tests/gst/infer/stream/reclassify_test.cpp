// reclassify-interval: how often a second network runs on tracked objects, and what is attached
// meanwhile.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include "gst/infer/stream/track_results.h"
#include "gst/publish/result_line.h"
#include "tests/gst/harness.h"

namespace clinfer {
namespace {

constexpr int kSide = 64;

struct Answer {
  std::string label;
  bool held = false;
};

// The results of the colour network about the object of a frame.
class Reclassify : public ::testing::Test {
 protected:
  void begin(const std::string& properties) {
    harness_ = std::make_unique<Harness>(
        Harness::clinfer_launch("inference-region=roi-list " + properties));
    harness_->set_caps("RGB", kSide, kSide);
  }
  // A frame of one colour with an object on all of it; id 0: not tracked.
  Handle<GstBuffer> frame(Rgb color, int number, int id) {
    Handle<GstBuffer> buffer(frame_of(harness_->info(), color, number * 40 * GST_MSECOND));
    GstVideoRegionOfInterestMeta* roi =
        gst_buffer_add_video_region_of_interest_meta(buffer.get(), "car", 0, 0, kSide, kSide);
    roi->id = 1;
    if (id != 0)
      gst_video_region_of_interest_meta_add_param(
          roi, gst_structure_new("object_id", "id", G_TYPE_INT, id, nullptr));
    return buffer;
  }
  Answer ask(Rgb color, int number, int id) {
    EXPECT_EQ(gst_harness_push(harness_->get(), frame(color, number, id).release()), GST_FLOW_OK);
    const auto out = harness_->pull();
    const auto regions = read_regions(out.get(), kSide, kSide);
    if (regions.size() != 1 || regions[0].classifications.empty()) return {"nothing"};
    line_ = result_line({}, read_frame(out.get(), kSide, kSide));
    return {regions[0].classifications[0].label, regions[0].classifications[0].held};
  }
  std::unique_ptr<Harness> harness_;
  std::string line_;
};

TEST_F(Reclassify, OnceATrack) {
  begin("reclassify-interval=0");
  const Answer first = ask(kRed, 0, 7);
  EXPECT_EQ(first.label, "red");
  EXPECT_FALSE(first.held);
  EXPECT_EQ(line_.find("held"), std::string::npos);
  for (int number = 1; number < 20; ++number) {
    const Answer again = ask(kBlue, number, 7);
    EXPECT_EQ(again.label, "red") << number;
    EXPECT_TRUE(again.held);
    EXPECT_NE(line_.find("\"held\":true"), std::string::npos) << line_;
  }
  EXPECT_EQ(ask(kGreen, 20, 8).label, "green") << "another object";
  EXPECT_EQ(ask(kBlue, 21, 0).label, "blue") << "without an id";
}

TEST_F(Reclassify, EveryThirdFrame) {
  begin("reclassify-interval=3");
  for (int number = 0; number < 12; ++number) {
    const Answer answer = ask(number < 4 ? kRed : kBlue, number, 7);
    EXPECT_EQ(answer.held, number % 3 != 0) << number;
    EXPECT_EQ(answer.label, number < 6 ? "red" : "blue") << number;
  }
}

TEST_F(Reclassify, EveryFrameByDefault) {
  begin("");
  EXPECT_EQ(ask(kRed, 0, 7).label, "red");
  EXPECT_EQ(ask(kBlue, 1, 7).label, "blue");
  EXPECT_FALSE(ask(kBlue, 2, 7).held);
}

TEST(TrackResults, ForgetsWhatIsNotSeenAndStaysBounded) {
  TrackResults results;
  for (uint64_t track = 0; track < 3 * TrackResults::kMost; ++track) {
    results.next_frame();
    EXPECT_TRUE(results.is_due(track, 0));
    EXPECT_LE(results.size(), TrackResults::kForget + 1);
  }
  for (uint64_t track = 0; track < 2 * TrackResults::kMost; ++track) results.is_due(track, 0);
  EXPECT_LE(results.size(), TrackResults::kMost);
  for (uint64_t frame = 0; frame <= TrackResults::kForget; ++frame) results.next_frame();
  EXPECT_EQ(results.size(), 0u);
}

TEST(TrackResults, AsksAgainWhenTheFirstResultWasLost) {
  TrackResults results;
  results.next_frame();
  EXPECT_TRUE(results.is_due(1, 0));
  results.next_frame();
  EXPECT_FALSE(results.is_due(1, 0));
  EXPECT_FALSE(results.last(1, RegionPlace({0, 0, 10, 10}, 0)));
  results.next_frame();
  EXPECT_TRUE(results.is_due(1, 0));
}

TEST(TrackResults, MovesResultsWithTheObject) {
  TrackResults results;
  results.next_frame();
  results.is_due(1, 0);
  PartResult part;
  part.placement.x_scale = part.placement.y_scale = 0.5f;
  part.placement.origin_x = 100;
  part.placement.origin_y = 50;
  results.store(1, part, RegionPlace({100, 50, 40, 20}, 0));
  const auto moved = results.last(1, RegionPlace({200, 80, 80, 20}, 0));
  ASSERT_TRUE(moved);
  EXPECT_TRUE(moved->held);
  EXPECT_FLOAT_EQ(moved->placement.origin_x, 200);
  EXPECT_FLOAT_EQ(moved->placement.x_scale, 1);
  EXPECT_FLOAT_EQ(moved->placement.origin_y, 80);
  EXPECT_FLOAT_EQ(moved->placement.y_scale, 0.5f);
}

TEST(TrackResults, TurnsResultsWithTheObject) {
  Placement placement;
  placement.origin_x = 100;
  placement.origin_y = 50;
  placement.pivot_x = 120;
  placement.pivot_y = 60;
  placement.angle = 0.25f;
  const Placement now =
      moved(placement, RegionPlace({100, 50, 40, 20}, 0.25f), RegionPlace({200, 80, 40, 20}, 1));
  EXPECT_FLOAT_EQ(now.angle, 1);
  EXPECT_FLOAT_EQ(now.pivot_x, 220);
  EXPECT_FLOAT_EQ(now.pivot_y, 90);
  // The middle of the region stays its middle.
  const PointMap map = to_frame(now);
  EXPECT_NEAR(map.xx * 20 + map.xy * 10 + map.x0, 220, 1e-4);
  EXPECT_NEAR(map.yx * 20 + map.yy * 10 + map.y0, 90, 1e-4);
}

}  // namespace
}  // namespace clinfer
