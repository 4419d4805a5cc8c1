// clzones in a pipeline: events on the bus and in the results, counters in stats.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gst/publish/result_line.h"
#include "tests/gst/harness.h"
#include "tests/gst/result_frames.h"

namespace clinfer {
namespace {

class Zones : public ::testing::Test {
 protected:
  void begin(const std::string& launch) {
    register_result_meta();
    harness_ = std::make_unique<Harness>(launch);
    harness_->set_caps("GRAY8", kFrameWidth, kFrameHeight);
  }
  Handle<GstBuffer> push(Handle<GstBuffer> buffer) {
    EXPECT_EQ(gst_harness_push(harness_->get(), buffer.release()), GST_FLOW_OK);
    return harness_->pull();
  }
  // "cross door in #1 person", ...
  std::vector<std::string> messages() {
    std::vector<std::string> all;
    while (GstMessage* message = gst_bus_pop_filtered(harness_->bus(), GST_MESSAGE_ELEMENT)) {
      const GstStructure* s = gst_message_get_structure(message);
      if (gst_structure_has_name(s, "clzones")) {
        guint64 id = 0;
        gst_structure_get_uint64(s, "id", &id);
        const char* direction = gst_structure_get_string(s, "direction");
        all.push_back(std::string(gst_structure_get_string(s, "event")) + " " +
                      gst_structure_get_string(s, "zone") + " " +
                      (direction != nullptr ? std::string(direction) + " " : "") + "#" +
                      std::to_string(id) + " " + gst_structure_get_string(s, "label"));
      }
      gst_message_unref(message);
    }
    return all;
  }
  std::vector<std::string> warnings() {
    std::vector<std::string> all;
    while (GstMessage* message = gst_bus_pop_filtered(harness_->bus(), GST_MESSAGE_WARNING)) {
      GError* error = nullptr;
      gst_message_parse_warning(message, &error, nullptr);
      all.emplace_back(error->message);
      g_error_free(error);
      gst_message_unref(message);
    }
    return all;
  }
  guint64 count(const char* zone, const char* what) {
    const Handle<GstElement> element(gst_harness_find_element(harness_->get(), "clzones"));
    const Handle<GstStructure> stats = stats_of(element.get());
    GstStructure* counts = nullptr;
    guint64 value = 1000;
    if (gst_structure_get(stats.get(), zone, GST_TYPE_STRUCTURE, &counts, nullptr)) {
      gst_structure_get_uint64(counts, what, &value);
      gst_structure_free(counts);
    }
    return value;
  }
  std::unique_ptr<Harness> harness_;
};

TEST_F(Zones, CountsTrackedObjects) {
  begin("cltrack ! clzones lines=door:0.0,0.5,1.0,0.5 zones=yard:0,160,320,160,320,240,0,240");
  std::string crossing;
  for (int frame = 0; frame < 40; ++frame) {
    const float y = 40 + 4.0f * frame, up = 200 - 4.0f * frame;
    const auto out = push(
        frame % 2 == 1
            ? frame_with(frame, {}, Outcome::skipped)
            : frame_with(frame, {box(50, y - 30, 80, y), box(200, up - 30, 230, up, 0.9f, 1)}));
    const FrameView view = read_frame(out.get(), kFrameWidth, kFrameHeight);
    ASSERT_EQ(view.zones.size(), 2u);
    const std::string line = result_line({}, view);
    if (line.find("\"direction\":\"in\"") != std::string::npos) crossing = line;
    for (const RegionView& region : view.regions)
      if (region.track_id == 2u && y > 175) {
        EXPECT_EQ(region.zones, (std::vector<std::string>{"yard"})) << frame;
      }
  }
  EXPECT_EQ(messages(), (std::vector<std::string>{
                            "enter yard #1 car", "leave yard #1 car", "cross door out #1 car",
                            "cross door in #2 person", "enter yard #2 person"}));
  EXPECT_NE(crossing.find("{\"type\":\"cross\",\"zone\":\"door\",\"direction\":\"in\","
                          "\"id\":2,\"label\":\"person\"}"),
            std::string::npos)
      << crossing;
  EXPECT_NE(crossing.find("{\"name\":\"door\",\"in\":1,"), std::string::npos) << crossing;
  EXPECT_EQ(count("door", "in"), 1u);
  EXPECT_EQ(count("door", "out"), 1u);
  EXPECT_EQ(count("yard", "inside"), 1u);
  EXPECT_EQ(count("yard", "entered"), 2u);
  EXPECT_EQ(count("yard", "left"), 1u);
}

// In the time in which nothing was seen nobody was in the zone, whoever gave the ids.
TEST_F(Zones, AHoleIsNoTimeInTheZone) {
  begin("clzones zones=yard:0.0,0.0,1.0,0.0,1.0,1.0,0.0,1.0 dwell-time=5000");
  std::vector<double> stays;
  for (int frame = 0; frame < 60; ++frame) {
    Handle<GstBuffer> buffer = frame_of_size(frame);
    gst_buffer_add_video_region_of_interest_meta(buffer.get(), "car", 50, 25, 100, 50);
    FrameResults results(buffer.get(), {0, 0, kFrameWidth, kFrameHeight});
    results.attach({TrackedObject{7, 0, {}, 0, 0}});
    if (frame == 10) GST_BUFFER_PTS(buffer.get()) += 36'000 * GST_SECOND;
    if (frame >= 30) GST_BUFFER_PTS(buffer.get()) += 60 * GST_SECOND;
    const auto out = push(std::move(buffer));
    for (const EventView& event : read_frame(out.get(), kFrameWidth, kFrameHeight).events)
      if (event.seconds) stays.push_back(*event.seconds);
  }
  EXPECT_EQ(messages(), (std::vector<std::string>{"enter yard #7 car", "leave yard #7 car",
                                                  "enter yard #7 car"}));
  ASSERT_EQ(stays.size(), 1u);
  EXPECT_NEAR(stays[0], 1.2, 0.1);
}

TEST_F(Zones, CountsFollowTheFrameThroughAConverter) {
  begin(
      "cltrack ! clzones lines=door:0.0,0.5,1.0,0.5 ! videoscale ! "
      "capsfilter caps=video/x-raw,width=160,height=120");
  for (int frame = 0; frame < 30; ++frame) {
    const float y = 60 + 4.0f * frame;
    const auto out = push(frame_with(frame, {box(50, y - 30, 80, y)}));
    const FrameView view = read_frame(out.get(), 160, 120);
    ASSERT_EQ(view.zones.size(), 1u) << frame;
    EXPECT_FLOAT_EQ(view.zones[0].points[1].x, 1);
    if (frame == 29) {
      EXPECT_EQ(view.zones[0].in, 1u);
    }
  }
}

TEST_F(Zones, CountsGoOnWhenTheStreamChangesItsSize) {
  begin(
      "videoscale ! cltrack ! clzones lines=door:0,120,320,120 "
      "zones=yard:0.0,0.5,1.0,0.5,1.0,1.0,0.0,1.0");
  for (int frame = 0; frame <= 120; ++frame) {
    if (frame % 30 == 10)
      gst_harness_set_sink_caps_str(harness_->get(), frame % 60 == 10
                                                         ? "video/x-raw,width=640,height=480"
                                                         : "video/x-raw,width=160,height=120");
    // Down, up, and down again.
    const float y = 130 - 80 * std::cos(static_cast<float>(frame) * 0.0785398f);
    push(frame_with(frame, {box(50, y - 30, 80, y)}));
  }
  EXPECT_EQ(count("door", "in"), 2u);
  EXPECT_EQ(count("door", "out"), 1u);
  EXPECT_EQ(count("yard", "entered"), 2u);
  EXPECT_EQ(count("yard", "inside"), 1u);
}

TEST_F(Zones, SaysThatATrackerIsMissing) {
  begin("clzones lines=door:0.0,0.5,1.0,0.5");
  for (int frame = 0; frame < 150; ++frame) push(frame_with(frame, {box(50, 50, 80, 80)}));
  EXPECT_EQ(warnings().size(), 1u);
}

TEST_F(Zones, SaysWhatNoObjectReaches) {
  begin(
      "clzones lines=a:400,0,400,9;b:0.5,0.5,0.5,0.5;c:0.0,1.0,1.0,1.0;d:319,0,900,0 "
      "zones=e:0.1,0.1,0.2,0.1,0.3,0.1;f:0,300,9,300,9,400;g:0,0,400,0,400,400");
  for (int frame = 0; frame < 3; ++frame) push(frame_with(frame, {box(50, 50, 80, 80)}));
  const std::vector<std::string> told = warnings();
  ASSERT_EQ(told.size(), 4u);
  const char* const wanted[] = {"the line a ", "the line b ", "the zone e ", "the zone f "};
  for (size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].find(wanted[i]), 0u) << told[i];
}

TEST_F(Zones, RefusesToCountNothing) {
  const std::pair<const char*, const char*> refusals[] = {
      {"clzones", "there is nothing to count at"},
      {"clzones lines=door:1", "takes NAME:X1,Y1,X2,Y2"},
      {"clzones zones-file=/no/such/file", "/no/such/file: No such file"}};
  for (const auto& [zones, why] : refusals) {
    Pipeline pipeline(std::string("videotestsrc ! ") + zones + " ! fakesink");
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    const std::string error = error_on(pipeline.element);
    EXPECT_NE(error.find(why), std::string::npos) << zones << ": " << error;
  }
}

}  // namespace
}  // namespace clinfer
