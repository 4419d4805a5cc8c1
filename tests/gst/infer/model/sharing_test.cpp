// Batches over frames and streams, one model for several elements, and inference on regions.
#include <future>
#include <thread>
#include <vector>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

uint64_t stat(GstElement* clinfer, const char* name) {
  const Handle<GstStructure> stats = stats_of(clinfer);
  guint64 value = 0;
  guint small = 0;
  if (gst_structure_get_uint64(stats.get(), name, &value)) return value;
  EXPECT_TRUE(gst_structure_get_uint(stats.get(), name, &small)) << name;
  return small;
}

// ---- batches ------------------------------------------------------------------------------------

TEST(Batches, EachFrameGetsItsOwnAnswerInOrder) {
  Harness harness(Harness::clinfer_launch("batch-size=4 nireq=2"));
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 22; ++i) ASSERT_EQ(harness.push(kColors[i % 3].first, i), GST_FLOW_OK);
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  for (int i = 0; i < 22; ++i) {
    const auto out = harness.pull();
    EXPECT_EQ(GST_BUFFER_PTS(out.get()), static_cast<GstClockTime>(i) * 40 * GST_MSECOND);
    EXPECT_EQ(answer_of(out.get()), kColors[i % 3].second) << i;
  }
  EXPECT_EQ(stat(harness.clinfer(), "images"), 22u);
  EXPECT_EQ(stat(harness.clinfer(), "batches"), 6u);  // the last one of two frames
}

TEST(Batches, APartialOneGoesAtTheTimeOut) {
  Harness harness(Harness::clinfer_launch("batch-size=8 batch-timeout=30"));
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  ASSERT_EQ(harness.push(kBlue, 1), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
  EXPECT_EQ(answer_of(harness.pull().get()), "blue");
}

TEST(Batches, APartialOneGoesAtEventsCapsAndQueries) {
  Harness harness(Harness::clinfer_launch("batch-size=8 batch-timeout=3600000"));
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  gst_harness_push_event(harness.get(), gst_event_new_tag(gst_tag_list_new_empty()));
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
  ASSERT_EQ(harness.push(kBlue, 1), GST_FLOW_OK);
  harness.set_caps("RGB", 33, 21);
  EXPECT_EQ(answer_of(harness.pull().get()), "blue");
  ASSERT_EQ(harness.push(kGreen, 2), GST_FLOW_OK);
  gst_harness_push_event(harness.get(), gst_event_new_gap(120 * GST_MSECOND, 40 * GST_MSECOND));
  EXPECT_EQ(answer_of(harness.pull().get()), "green");
  ASSERT_EQ(harness.push(kGreen, 3), GST_FLOW_OK);
  GstQuery* query = gst_query_new_drain();
  gst_pad_peer_query(harness.get()->srcpad, query);
  gst_query_unref(query);
  EXPECT_EQ(answer_of(harness.pull().get()), "green");
}

TEST(Batches, AFlushDoesNotWaitForTheTimeOut) {
  Harness harness(Harness::clinfer_launch("batch-size=8 batch-timeout=3600000"));
  harness.set_caps("NV12", 64, 48);
  const auto flush = [&] {
    gst_harness_push_event(harness.get(), gst_event_new_flush_start());
    gst_harness_push_event(harness.get(), gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  };
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  flush();
  ASSERT_EQ(harness.push(kBlue, 1), GST_FLOW_OK);
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  EXPECT_EQ(answer_of(harness.pull().get()), "blue");
}

TEST(Batches, OfDetectionsAreDividedByImage) {
  // The ball moves through the frames; the batch changes nothing.
  const auto boxes = [](const std::string& properties) {
    Harness harness(
        "videotestsrc num-buffers=9 pattern=ball ! "
        "video/x-raw,format=NV12,width=320,height=240 ! clinfer name=net first-tier=false model=" +
        std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml " + properties);
    gst_harness_play(harness.get());
    std::vector<std::string> seen;
    for (int i = 0; i < 9; ++i) {
      const auto out = harness.pull();
      std::string text;
      for (const RegionView& region : read_regions(out.get(), 320, 240))
        text += std::to_string(region.x) + "," + std::to_string(region.y) + " ";
      seen.push_back(text);
    }
    return seen;
  };
  const auto single = boxes("");
  EXPECT_NE(single[0], single[8]);
  EXPECT_EQ(boxes("batch-size=4 nireq=2"), single);
}

TEST(Batches, APoolOfThreeBuffersIsEnough) {
  // Eight frames would fill the batch, the pool has three and must not grow.
  Pipeline pipeline(
      "appsrc name=src format=time block=true "
      "caps=video/x-raw,format=NV12,width=64,height=48,framerate=25/1 ! " +
      Harness::clinfer_launch("name=net batch-size=8 nireq=4") + " ! fakesink");
  const Handle<GstElement> source = pipeline.find("src");
  GstBufferPool* pool = gst_buffer_pool_new();
  GstStructure* config = gst_buffer_pool_get_config(pool);
  GstVideoInfo info;
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, 64, 48);
  gst_buffer_pool_config_set_params(config, nullptr, static_cast<guint>(info.size), 3, 3);
  ASSERT_TRUE(gst_buffer_pool_set_config(pool, config));
  ASSERT_TRUE(gst_buffer_pool_set_active(pool, TRUE));
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  for (int i = 0; i < 12; ++i) {
    GstBuffer* buffer = nullptr;
    ASSERT_EQ(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
    gst_buffer_memset(buffer, 0, 128, info.size);
    GST_BUFFER_PTS(buffer) = static_cast<GstClockTime>(i) * 40 * GST_MSECOND;
    GstFlowReturn flow = GST_FLOW_OK;
    g_signal_emit_by_name(source.get(), "push-buffer", buffer, &flow);
    gst_buffer_unref(buffer);
    ASSERT_EQ(flow, GST_FLOW_OK);
  }
  GstFlowReturn flow = GST_FLOW_OK;
  g_signal_emit_by_name(source.get(), "end-of-stream", &flow);
  EXPECT_EQ(error_on(pipeline.element, 20000ms), "");
  const Handle<GstElement> net = pipeline.find("net");
  EXPECT_EQ(stat(net.get(), "inferred"), 12u);
  gst_element_set_state(pipeline.element, GST_STATE_NULL);
  gst_buffer_pool_set_active(pool, FALSE);
  gst_object_unref(pool);
}

// ---- one model for several elements -------------------------------------------------------------

std::string shared_launch(const std::string& id, const std::string& more = "") {
  return Harness::clinfer_launch("model-instance-id=" + id + " " + more);
}

TEST(Sharing, SixteenStreamsMakeBatchesTogether) {
  constexpr int kStreams = 16, kFrames = 25;
  std::vector<std::unique_ptr<Harness>> streams;
  for (int s = 0; s < kStreams; ++s) {
    streams.push_back(std::make_unique<Harness>(shared_launch("sixteen", "batch-size=8 nireq=2")));
    streams.back()->set_caps(s % 2 ? "NV12" : "RGB", 32 + 2 * s, 24 + 2 * s);
  }
  std::vector<std::thread> threads;
  for (int s = 0; s < kStreams; ++s) {
    threads.emplace_back([&, s] {
      for (int i = 0; i < kFrames; ++i)
        ASSERT_EQ(streams[static_cast<size_t>(s)]->push(kColors[(i + s) % 3].first, i),
                  GST_FLOW_OK);
      gst_harness_push_event(streams[static_cast<size_t>(s)]->get(), gst_event_new_eos());
    });
  }
  for (int s = 0; s < kStreams; ++s)
    for (int i = 0; i < kFrames; ++i) {
      const auto out = streams[static_cast<size_t>(s)]->pull();
      ASSERT_EQ(GST_BUFFER_PTS(out.get()), static_cast<GstClockTime>(i) * 40 * GST_MSECOND);
      ASSERT_EQ(answer_of(out.get()), kColors[(i + s) % 3].second) << s << " " << i;
    }
  for (std::thread& thread : threads) thread.join();
  GstElement* one = streams[0]->clinfer();
  EXPECT_EQ(stat(one, "images"), static_cast<uint64_t>(kStreams * kFrames));
  EXPECT_LT(stat(one, "batches"), static_cast<uint64_t>(kStreams * kFrames) / 2);
  EXPECT_EQ(stat(one, "inferred"), static_cast<uint64_t>(kFrames));
}

TEST(Sharing, AStreamThatStandsStillFlushesFailsOrGoesIsNobodyElsesTrouble) {
  const std::string properties = "batch-size=2 nireq=2 batch-timeout=5";
  Harness moving(shared_launch("trouble", properties));
  moving.set_caps("NV12", 64, 48);
  const auto goes_on = [&](const char* why) {
    for (int i = 0; i < 12; ++i) {
      ASSERT_EQ(moving.push(kColors[i % 3].first, i), GST_FLOW_OK) << why;
      ASSERT_EQ(answer_of(moving.pull().get()), kColors[i % 3].second) << why;
    }
  };
  goes_on("alone");
  {
    // Downstream of it never takes a frame.
    Harness still(shared_launch("trouble", properties));
    static std::promise<void> release;
    static std::shared_future<void> released;
    release = {};
    released = release.get_future().share();
    still.set_caps("NV12", 64, 48);
    gst_pad_set_chain_function(still.get()->sinkpad, [](GstPad*, GstObject*, GstBuffer* buffer) {
      released.wait();
      gst_buffer_unref(buffer);
      return GST_FLOW_OK;
    });
    for (int i = 0; i < 4; ++i) ASSERT_EQ(still.push(kRed, i), GST_FLOW_OK);
    goes_on("with one that stands still");
    release.set_value();
  }
  {
    Harness flushing(shared_launch("trouble", properties));
    flushing.set_caps("RGB", 31, 17);
    for (int round = 0; round < 5; ++round) {
      ASSERT_EQ(flushing.push(kRed, round), GST_FLOW_OK);
      gst_harness_push_event(flushing.get(), gst_event_new_flush_start());
      goes_on("with one that flushes");
      gst_harness_push_event(flushing.get(), gst_event_new_flush_stop(TRUE));
      GstSegment segment;
      gst_segment_init(&segment, GST_FORMAT_TIME);
      gst_harness_push_event(flushing.get(), gst_event_new_segment(&segment));
    }
  }
  {
    Harness failing(shared_launch("trouble", properties));
    failing.set_caps("RGB", 31, 17);
    GstBuffer* small = gst_buffer_new_allocate(nullptr, 100, nullptr);
    EXPECT_EQ(gst_harness_push(failing.get(), small), GST_FLOW_OK);
    goes_on("with one whose frame cannot be read");
  }
  goes_on("alone again");
}

TEST(Sharing, RefusesAnotherModelUnderTheSameName) {
  Harness first(shared_launch("taken"));
  first.set_caps("NV12", 64, 48);
  ASSERT_EQ(first.push(kRed, 0), GST_FLOW_OK);
  EXPECT_EQ(answer_of(first.pull().get()), "red");
  for (const auto& [properties, named] :
       {std::pair{std::string("clinfer labels=a,b,c model-instance-id=taken model=") +
                      testing_models::color_model("another", 8),
                  "model"},
        {shared_launch("taken", "nireq=5"), "nireq"}}) {
    Pipeline second("videotestsrc num-buffers=2 ! " + properties + " ! fakesink");
    gst_element_set_state(second.element, GST_STATE_PLAYING);
    const std::string error = error_on(second.element);
    EXPECT_NE(error.find("model-instance-id=taken is in use with another " + std::string(named)),
              std::string::npos)
        << error;
  }
}

TEST(Sharing, TheModelGoesWithItsLastElement) {
  for (const char* nireq : {"nireq=1", "nireq=2"}) {
    Harness harness(shared_launch("again", nireq));
    harness.set_caps("NV12", 64, 48);
    ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness.pull().get()), "red");
  }
}

// ---- regions ------------------------------------------------------------------------------------

void add_region(GstBuffer* buffer, const char* type, guint x, guint y, guint w, guint h, int id) {
  gst_buffer_add_video_region_of_interest_meta(buffer, type, x, y, w, h)->id = id;
}

// Red on the left, blue on the right, half of each; green below.
GstBuffer* quarters(const GstVideoInfo& info) {
  GstBuffer* buffer = frame_of(info, kGreen, 0);
  GstVideoFrame frame;
  EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
  const int width = GST_VIDEO_FRAME_WIDTH(&frame), height = GST_VIDEO_FRAME_HEIGHT(&frame);
  Canvas canvas(&frame, 0, 0, width, height);
  canvas.fill(0, 0, width / 2, height / 2, kRed);
  canvas.fill(width / 2, 0, width, height / 2, kBlue);
  gst_video_frame_unmap(&frame);
  return buffer;
}

TEST(Regions, EachGetsItsOwnAnswer) {
  Harness harness(Harness::clinfer_launch("inference-region=roi-list batch-size=2 nireq=1"));
  harness.set_caps("NV12", 640, 480);
  GstBuffer* buffer = quarters(harness.info());
  add_region(buffer, "a", 10, 10, 200, 200, 7);
  add_region(buffer, "b", 340, 10, 290, 220, 8);
  add_region(buffer, "c", 100, 260, 9000, 9000, 9);  // as much of it as there is
  add_region(buffer, "d", 700, 20, 50, 50, 10);      // outside
  add_region(buffer, "e", 401, 31, 37, 51, 11);
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto regions = read_regions(out.get(), 640, 480);
  ASSERT_EQ(regions.size(), 5u);
  const char* const kExpected[] = {"red", "blue", "green", nullptr, "blue"};
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(regions[i].classifications.size(), kExpected[i] != nullptr ? 1u : 0u) << i;
    if (kExpected[i] != nullptr) {
      EXPECT_EQ(regions[i].classifications[0].label, kExpected[i]) << i;
      EXPECT_NEAR(static_cast<double>(regions[i].classifications[0].confidence), 1, 1e-3) << i;
    }
  }
  EXPECT_EQ(stat(harness.clinfer(), "images"), 4u);
  EXPECT_EQ(stat(harness.clinfer(), "batches"), 2u);
  EXPECT_EQ(read_results(out.get()).at(0).outcome, Outcome::run);
}

TEST(Regions, OnlyThoseOfTheClassesNamed) {
  Harness harness(
      Harness::clinfer_launch("inference-region=roi-list object-class=\"car, person\""));
  harness.set_caps("RGB", 64, 48);
  GstBuffer* buffer = frame_of(harness.info(), kRed, 0);
  for (const char* type : {"car", "dog", "person"}) add_region(buffer, type, 1, 1, 20, 20, 1);
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto regions = read_regions(out.get(), 64, 48);
  EXPECT_EQ(regions[0].classifications.size(), 1u);
  EXPECT_EQ(regions[1].classifications.size(), 0u);
  EXPECT_EQ(regions[2].classifications.size(), 1u);
  // No regions at all: the frame passes.
  ASSERT_EQ(harness.push(kRed, 1), GST_FLOW_OK);
  EXPECT_EQ(read_results(harness.pull().get()).at(0).outcome, Outcome::run);
}

TEST(Regions, AreOfThePictureThatViewersSee) {
  Harness harness(Harness::clinfer_launch("inference-region=roi-list"));
  harness.set_caps("BGR", 640, 480);
  GstBuffer* buffer = quarters(harness.info());
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer);
  crop->x = 320, crop->y = 0, crop->width = 320, crop->height = 480;
  add_region(buffer, "a", 0, 0, 300, 200, 1);
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  const auto out = harness.pull();
  EXPECT_EQ(read_regions(out.get(), 320, 480).at(0).classifications.at(0).label, "blue");
}

TEST(Regions, ManyMoreThanRequestsAreAllDone) {
  Harness harness(Harness::clinfer_launch("inference-region=roi-list nireq=1"));
  harness.set_caps("RGB", 64, 48);
  for (int f = 0; f < 3; ++f) {
    GstBuffer* buffer = frame_of(harness.info(), kColors[f].first, 0);
    for (int i = 0; i < 40; ++i)
      add_region(buffer, "x", static_cast<guint>(i), 2, 20, 20 + static_cast<guint>(i) % 9, i);
    ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  }
  for (int f = 0; f < 3; ++f) {
    const auto out = harness.pull();
    for (const RegionView& region : read_regions(out.get(), 64, 48))
      EXPECT_EQ(region.classifications.at(0).label, kColors[f].second);
  }
}

TEST(Regions, ObjectsFoundInOneNameTheirParent) {
  Harness harness("clinfer inference-region=roi-list model=" + std::string(CLINFER_SOURCE_DIR) +
                  "/pipelines/models/ball.xml");
  GstHarness* source = gst_harness_new_parse(
      "videotestsrc num-buffers=1 pattern=ball ! "
      "capsfilter caps=video/x-raw,format=NV12,width=320,height=240");
  gst_harness_play(source);
  GstBuffer* buffer = gst_harness_pull(source);
  harness.set_caps("NV12", 320, 240);
  add_region(buffer, "scene", 0, 0, 320, 240, 77);
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto regions = read_regions(out.get(), 320, 240);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[1].parent_id, 77);
  gst_harness_teardown(source);
}

}  // namespace
}  // namespace clinfer
