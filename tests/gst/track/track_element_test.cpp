// cltrack in a pipeline: which regions get which ids, and where they can be read.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>
#ifdef CLINFER_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>
#endif

#include "gst/publish/result_line.h"
#include "tests/gst/harness.h"
#include "tests/gst/result_frames.h"

namespace clinfer {
namespace {

using Ids = std::vector<uint64_t>;

Ids ids_on(GstBuffer* buffer) {
  Ids ids;
  for (const RegionView& region : read_regions(buffer, kFrameWidth, kFrameHeight))
    ids.push_back(region.track_id.value_or(0));
  return ids;
}

class Track : public ::testing::Test {
 protected:
  void begin(const std::string& properties = "") {
    register_result_meta();
    harness_ = std::make_unique<Harness>("cltrack " + properties);
    harness_->set_caps("GRAY8", kFrameWidth, kFrameHeight);
  }
  Handle<GstBuffer> push(Handle<GstBuffer> buffer) {
    EXPECT_EQ(gst_harness_push(harness_->get(), buffer.release()), GST_FLOW_OK);
    return harness_->pull();
  }
  std::unique_ptr<Harness> harness_;
};

TEST_F(Track, GivesIdsThatStay) {
  begin();
  for (int frame = 0; frame < 30; ++frame) {
    const auto out =
        push(frame_with(frame, {box(10 + 2.0f * frame, 20, 40 + 2.0f * frame, 60, 0.9f, 0),
                                box(200 - 2.0f * frame, 60, 230 - 2.0f * frame, 100, 0.8f, 0),
                                box(100, 150, 120, 170, 0.8f, 1)}));
    const Ids ids = ids_on(out.get());
    ASSERT_EQ(ids, (Ids{2, 3, 1})) << frame;
  }
}

// An object that was there before a hole longer than lost-time is another one after it.
TEST_F(Track, AHoleEndsTracksAndAWrongStampDoesNot) {
  begin("lost-time=2000");
  for (int frame = 0; frame < 40; ++frame) {
    Handle<GstBuffer> buffer = frame_with(frame, {box(100, 50, 140, 120)});
    if (frame == 10) GST_BUFFER_PTS(buffer.get()) += 36'000 * GST_SECOND;
    if (frame >= 20) GST_BUFFER_PTS(buffer.get()) += 60 * GST_SECOND;
    const uint64_t wanted = frame <= 20 ? 1 : 2;
    ASSERT_EQ(ids_on(push(std::move(buffer)).get()), Ids{wanted}) << frame;
  }
}

TEST_F(Track, ReadsRegionsOfOtherElements) {
  begin("min-hits=1");
  for (int frame = 0; frame < 5; ++frame) {
    Handle<GstBuffer> buffer = frame_of_size(frame);
    gst_buffer_add_video_region_of_interest_meta(buffer.get(), "car",
                                                 static_cast<guint>(50 + frame), 25, 100, 50);
    // Parts of the picture that the user chose, as clinfer's regions make them.
    gst_buffer_add_video_region_of_interest_meta(buffer.get(), "region", 0, 0, 320, 240);
    const auto out = push(std::move(buffer));
    EXPECT_EQ(ids_on(out.get()), (Ids{1, 0}));
    // Where DL Streamer's applications look for it.
    gpointer state = nullptr;
    auto* roi = reinterpret_cast<GstVideoRegionOfInterestMeta*>(gst_buffer_iterate_meta_filtered(
        out.get(), &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
    ASSERT_NE(roi, nullptr);
    const GstStructure* parameter = gst_video_region_of_interest_meta_get_param(roi, "object_id");
    ASSERT_NE(parameter, nullptr);
    gint id = 0;
    EXPECT_TRUE(gst_structure_get_int(parameter, "id", &id));
    EXPECT_EQ(id, 1);
  }
}

TEST_F(Track, PredictsWhereNothingWasLookedFor) {
  begin();
  int predicted = 0;
  for (int frame = 0; frame < 30; ++frame) {
    const float x = 10 + 4.0f * frame;
    const bool run = frame % 3 == 0;
    const auto out = push(run ? frame_with(frame, {box(x, 20, x + 30, 60, 0.9f, 0)})
                              : frame_with(frame, {}, Outcome::skipped));
    const auto regions = read_regions(out.get(), kFrameWidth, kFrameHeight);
    ASSERT_EQ(regions.size(), 1u) << frame;
    const RegionView& region = regions[0];
    EXPECT_EQ(region.track_id, 1u);
    EXPECT_EQ(region.predicted, !run);
    EXPECT_EQ(region.label, "person");
    EXPECT_NEAR(region.confidence, 0.9, 1e-6);
    if (frame > 6) {
      EXPECT_NEAR(region.x, x, 3) << frame;
    }
    predicted += region.predicted;
    const std::string line = result_line({}, read_frame(out.get(), kFrameWidth, kFrameHeight));
    EXPECT_NE(line.find("\"id\":1"), std::string::npos) << line;
    EXPECT_EQ(line.find("\"predicted\":true") != std::string::npos, !run) << line;
  }
  EXPECT_EQ(predicted, 20);
  const Handle<GstElement> element(gst_harness_find_element(harness_->get(), "cltrack"));
  const Handle<GstStructure> stats = stats_of(element.get());
  guint64 ids = 0, boxes = 0;
  EXPECT_TRUE(gst_structure_get(stats.get(), "ids", G_TYPE_UINT64, &ids, "predicted", G_TYPE_UINT64,
                                &boxes, nullptr));
  EXPECT_EQ(ids, 1u);
  EXPECT_EQ(boxes, 20u);
}

TEST_F(Track, PredictsNothingWhereItShallNot) {
  begin("predict=false");
  push(frame_with(0, {box(10, 20, 40, 60, 0.9f, 0)}));
  EXPECT_TRUE(ids_on(push(frame_with(1, {}, Outcome::skipped)).get()).empty());
  EXPECT_EQ(ids_on(push(frame_with(2, {box(11, 20, 41, 60, 0.9f, 0)})).get()), (Ids{1}));
}

TEST_F(Track, HeldResultsKeepTheirIdsAndBoxes) {
  begin();
  const std::vector<Detection> objects = {box(10, 20, 40, 60, 0.9f, 0),
                                          box(100, 20, 140, 60, 0.9f, 0)};
  EXPECT_EQ(ids_on(push(frame_with(0, objects)).get()), (Ids{1, 2}));
  EXPECT_EQ(ids_on(push(frame_with(1, objects, Outcome::held)).get()), (Ids{1, 2}));
  EXPECT_EQ(ids_on(push(frame_with(2, objects)).get()), (Ids{1, 2}));
}

TEST_F(Track, LabelsAreApartUnlessToldOtherwise) {
  for (const bool apart : {true, false}) {
    begin(apart ? "" : "per-class=false");
    Ids all;
    for (int frame = 0; frame < 8; ++frame)
      for (const uint64_t id :
           ids_on(push(frame_with(frame, {box(10, 20, 40, 60, 0.9f, frame / 4)})).get()))
        all.push_back(id);
    EXPECT_EQ(all, apart ? (Ids{1, 1, 1, 1, 0, 2, 2, 2}) : (Ids{1, 1, 1, 1, 1, 1, 1, 1}));
  }
}

TEST_F(Track, ChosenLabelsOnlyAndNothingThatIsTracked) {
  begin("object-class=person");
  EXPECT_EQ(
      ids_on(
          push(frame_with(0, {box(10, 20, 40, 60, 0.9f, 0), box(90, 20, 140, 60, 0.9f, 1)})).get()),
      (Ids{1, 0}));
  begin();
  Harness twice("cltrack ! cltrack");
  twice.set_caps("GRAY8", kFrameWidth, kFrameHeight);
  gst_harness_push(twice.get(), frame_with(0, {box(10, 20, 40, 60, 0.9f, 0)}).release());
  EXPECT_EQ(ids_on(twice.pull().get()), (Ids{1}));
}

TEST_F(Track, AFlushEndsTracksAndIdsGoOn) {
  begin();
  EXPECT_EQ(ids_on(push(frame_with(0, {box(10, 20, 40, 60, 0.9f, 0)})).get()), (Ids{1}));
  gst_harness_push_event(harness_->get(), gst_event_new_flush_start());
  gst_harness_push_event(harness_->get(), gst_event_new_flush_stop(TRUE));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness_->get(), gst_event_new_segment(&segment));
  EXPECT_EQ(ids_on(push(frame_with(0, {box(10, 20, 40, 60, 0.9f, 0)})).get()), (Ids{2}));
}

TEST_F(Track, IdsStayWhenTheStreamChangesItsSize) {
  register_result_meta();
  Harness scaled("videoscale add-borders=false ! cltrack");
  scaled.set_caps("GRAY8", kFrameWidth, kFrameHeight);
  Ids all;
  for (int frame = 0; frame < 20; ++frame) {
    if (frame == 10)
      gst_harness_set_sink_caps_str(scaled.get(), "video/x-raw,width=640,height=480");
    const float x = 10 + 4.0f * static_cast<float>(frame);
    ASSERT_EQ(gst_harness_push(
                  scaled.get(),
                  frame_with(frame, {box(x, 20, x + 30, 60), box(x, 120, x + 30, 160)}).release()),
              GST_FLOW_OK);
    const auto out = scaled.pull();
    const int factor = frame < 10 ? 1 : 2;
    for (const RegionView& region :
         read_regions(out.get(), kFrameWidth * factor, kFrameHeight * factor)) {
      all.push_back(region.track_id.value_or(0));
      EXPECT_NEAR(region.width, 30 * factor, 2);
    }
  }
  Ids right;
  for (int frame = 0; frame < 20; ++frame) right.insert(right.end(), {1, 2});
  EXPECT_EQ(all, right);
}

TEST_F(Track, AddsToWhatIsThereAndLeavesTheRestAsItWas) {
  begin();
  Handle<GstBuffer> buffer =
      frame_with(0, {box(10, 20, 40, 60, 0.9f, 0), box(90, 20, 140, 60, 0.9f, 1)});
  FrameResult second;  // of another network, about the first object
  second.outcome = Outcome::run;
  second.model = "colour";
  second.visible = {0, 0, kFrameWidth, kFrameHeight};
  PartResult& part = second.parts.emplace_back();
  part.region = 0;
  part.results.classifications.resize(2);
  part.results.classifications[0].attribute = part.results.classifications[1].attribute = "colour";
  part.results.classifications[0].label = "red";
  part.results.classifications[1].label = "blue";
  attach_result(buffer.get(), second, {});
  const auto out = push(std::move(buffer));
  // Through a converter, which leaves nothing but the record.
  Harness convert("videoscale ! capsfilter caps=video/x-raw,width=160,height=120");
  convert.set_caps("GRAY8", kFrameWidth, kFrameHeight);
  gst_harness_push(convert.get(), gst_buffer_ref(out.get()));
  const auto half = convert.pull();
  for (GstBuffer* one : {out.get(), half.get()}) {
    const int by = one == out.get() ? 1 : 2;
    const FrameView view = read_frame(one, kFrameWidth / by, kFrameHeight / by);
    ASSERT_EQ(view.results.size(), 2u);
    EXPECT_EQ(view.results[1].model, "colour");
    ASSERT_EQ(view.regions.size(), 2u);
    const RegionView& person = view.regions[0];
    EXPECT_EQ(person.label, "person");
    EXPECT_EQ(person.track_id, 2u) << "cars come first";
    EXPECT_NEAR(person.box.x_max, 40.0 / kFrameWidth, 1e-5);
    ASSERT_EQ(person.classifications.size(), 2u);
    EXPECT_EQ(person.classifications[1].label, "blue");
    EXPECT_EQ(view.regions[1].track_id, 1u);
    EXPECT_EQ(view.regions[1].label, "car");
    EXPECT_TRUE(view.regions[1].classifications.empty());
  }
}

TEST_F(Track, LeavesSharedBuffersAlone) {
  begin();
  Handle<GstBuffer> buffer = frame_with(0, {box(10, 20, 40, 60, 0.9f, 0)});
  const Handle<GstBuffer> other(gst_buffer_ref(buffer.get()));
  const auto out = push(std::move(buffer));
  EXPECT_EQ(ids_on(out.get()), (Ids{1}));
  EXPECT_EQ(ids_on(other.get()), (Ids{0}));
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), gst_buffer_peek_memory(other.get(), 0));
}

TEST_F(Track, SaysOnceThatAllIsBelowTheThreshold) {
  Pipeline pipeline("cltrack name=t ! fakesink");
  const Handle<GstElement> element = pipeline.find("t");
  GstHarness* harness = gst_harness_new_with_element(element.get(), "sink", nullptr);
  gst_harness_set_src_caps_str(harness,
                               "video/x-raw,format=GRAY8,width=320,height=240,framerate=25/1");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  for (int frame = 0; frame < 120; ++frame)
    gst_harness_push(harness, frame_with(frame, {box(10, 20, 40, 60, 0.3f, 0)}).release());
  GstBus* bus = gst_element_get_bus(pipeline.element);
  int warnings = 0;
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_WARNING)) {
    ++warnings;
    gst_message_unref(message);
  }
  EXPECT_EQ(warnings, 1);
  gst_object_unref(bus);
  gst_harness_teardown(harness);
}

#ifdef CLINFER_HAVE_ANALYTICS
TEST_F(Track, IsInGstAnalytics) {
  begin();
  for (int frame = 0; frame < 3; ++frame) {
    const auto out = push(frame % 2 == 0 ? frame_with(frame, {box(10, 20, 40, 60, 0.9f, 0)})
                                         : frame_with(frame, {}, Outcome::skipped));
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out.get());
    ASSERT_NE(meta, nullptr);
    gpointer state = nullptr;
    GstAnalyticsMtd track;
    ASSERT_TRUE(gst_analytics_relation_meta_iterate(
        meta, &state, gst_analytics_tracking_mtd_get_mtd_type(), &track));
    guint64 id = 0;
    GstClockTime first = 1, last = 1;
    gboolean lost = TRUE;
    ASSERT_TRUE(gst_analytics_tracking_mtd_get_info(&track, &id, &first, &last, &lost));
    EXPECT_EQ(id, 1u);
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(last, static_cast<GstClockTime>(frame) * 40 * GST_MSECOND);
    EXPECT_FALSE(lost);
    EXPECT_FALSE(gst_analytics_relation_meta_iterate(
        meta, &state, gst_analytics_tracking_mtd_get_mtd_type(), &track));
  }
}
#endif

}  // namespace
}  // namespace clinfer
