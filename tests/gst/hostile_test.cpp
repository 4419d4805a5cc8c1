// Stress on an element besides frames: odd metas, caps and segments, property
// and state changes under load, streams without frames, pools of one buffer, branches that leave.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/gst/harness.h"
#include "tests/gst/live_objects.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

// Runs a pipeline to its end; the error, "" for none, "hangs" for one that does not end.
std::string run_to_end(GstElement* pipeline) {
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message = gst_bus_timed_pop_filtered(
      bus, 60 * GST_SECOND, static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS));
  gst_object_unref(bus);
  if (message == nullptr) return "hangs";
  std::string text;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    text = error->message;
    g_error_free(error);
  }
  gst_message_unref(message);
  return text;
}

// The tests count leaks by these lists.
TEST(LiveObjects, AreListedAndStayAlive) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 16, nullptr);
  const std::vector<std::string> live = live_objects();
  for (const char* type : {"GstBuffer", "GstMemory"})
    EXPECT_TRUE(std::any_of(live.begin(), live.end(), [&](const std::string& text) {
      return text.find(type) != std::string::npos;
    })) << type;
  EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(buffer), 1);
  EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(gst_buffer_peek_memory(buffer, 0)), 1);
  gst_buffer_unref(buffer);
}

// ---- frames -------------------------------------------------------------------------------------

TEST(Hostile, MetasOfAnyKindAreAnErrorOrAFrame) {
  struct Meta {
    guint width, height, planes;
    gsize offset0, offset1;
    gint stride0, stride1;
  };
  const gsize size = 64 * 48 * 3 / 2;
  for (const Meta& m : std::initializer_list<Meta>{{0, 0, 2, 0, 64 * 48, 64, 64},
                                                   {64, 48, 2, 0, 64 * 48, 0, 0},
                                                   {64, 48, 2, 0, 64 * 48, -64, -64},
                                                   {64, 48, 2, 0, 64 * 48, G_MAXINT, G_MAXINT},
                                                   {64, 48, 2, G_MAXSIZE, 64 * 48, 64, 64},
                                                   {64, 48, 2, 0, G_MAXSIZE - 3, 64, 64},
                                                   {G_MAXUINT, G_MAXUINT, 2, 0, 64 * 48, 64, 64},
                                                   {65, 49, 2, 0, 64 * 48, 64, 64},
                                                   {64, 48, 2, 0, size, 64, 64},
                                                   {2, 2, 2, size - 4, size - 2, 2, 2},
                                                   {1, 1, 2, 0, 1, 1, 2}}) {
    Harness harness;
    harness.set_caps("NV12", 64, 48);
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, size, nullptr);
    gst_buffer_memset(buffer, 0, 128, size);
    gsize offsets[4] = {m.offset0, m.offset1};
    gint strides[4] = {m.stride0, m.stride1};
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12,
                                   m.width, m.height, m.planes, offsets, strides);
    const GstFlowReturn flow = gst_harness_push(harness.get(), buffer);
    EXPECT_TRUE(flow == GST_FLOW_OK || flow == GST_FLOW_ERROR) << gst_flow_get_name(flow);
    if (flow == GST_FLOW_OK) {
      EXPECT_NE(answer_of(harness.pull().get()), "no buffer") << m.width << " " << m.stride0;
    }
  }
}

TEST(Hostile, AFrameWithAMetaOfAnotherFormatIsPassedOver) {
  for (const GstVideoFormat format : {GST_VIDEO_FORMAT_I420, GST_VIDEO_FORMAT_BGRx}) {
    for (const std::string& launch : {Harness::clinfer_launch(), std::string("cloverlay")}) {
      Harness harness(launch);
      harness.set_caps("NV12", 64, 48);
      GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 64 * 48 * 4, nullptr);
      gst_buffer_memset(buffer, 0, 128, 64 * 48 * 4);
      gst_buffer_add_video_meta(buffer, GST_VIDEO_FRAME_FLAG_NONE, format, 64, 48);
      gst_buffer_add_video_region_of_interest_meta(buffer, "thing", 3, 3, 30, 30);
      EXPECT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK) << launch;
      const Handle<GstBuffer> out = harness.pull();
      ASSERT_NE(out.get(), nullptr) << launch;
      guint8 first = 0;
      gst_buffer_extract(out.get(), 64 * 3 + 3, &first, 1);
      EXPECT_EQ(first, 128) << launch << " drew into it";
    }
  }
}

TEST(Hostile, AFrameInSeveralMemoriesIsRead) {
  Harness harness;
  harness.set_caps("I420", 64, 48);
  const Handle<GstBuffer> whole(frame_of(harness.info(), kGreen, 0));
  GstBuffer* parts = gst_buffer_new();
  for (const auto& [at, bytes] : {std::pair<gsize, gssize>{0, 1000},
                                  {1000, 64 * 48 - 1000},
                                  {64 * 48, 32 * 24},
                                  {64 * 48 + 32 * 24, 32 * 24}}) {
    const Handle<GstBuffer> part(gst_buffer_copy_region(
        whole.get(), static_cast<GstBufferCopyFlags>(GST_BUFFER_COPY_MEMORY | GST_BUFFER_COPY_DEEP),
        at, static_cast<gsize>(bytes)));
    gst_buffer_append_memory(parts, gst_buffer_get_all_memory(part.get()));
  }
  ASSERT_EQ(gst_harness_push(harness.get(), parts), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "green");
}

TEST(Hostile, CapsChangeToOddSizesWithFramesInFlight) {
  for (const char* properties : {"nireq=4", "nireq=2 batch-size=3", "inference-region=roi-list"}) {
    Harness harness(Harness::clinfer_launch(properties));
    std::vector<const char*> expected;
    int number = 0;
    for (int round = 0; round < 3; ++round)
      for (const auto& [format, width, height] :
           std::initializer_list<std::tuple<const char*, int, int>>{{"NV12", 1, 1},
                                                                    {"I420", 3, 1},
                                                                    {"YUY2", 1, 9},
                                                                    {"NV12", 641, 3},
                                                                    {"BGR", 5, 777},
                                                                    {"UYVY", 17, 13},
                                                                    {"YV12", 2, 1},
                                                                    {"NV21", 33, 33}}) {
        harness.set_caps(format, width, height);
        for (int i = 0; i < 5; ++i, ++number) {
          ASSERT_EQ(harness.push(kColors[number % 3].first, number), GST_FLOW_OK);
          expected.push_back(kColors[number % 3].second);
        }
      }
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    const bool regions = std::string(properties).find("roi") != std::string::npos;
    for (const char* name : expected) {
      const std::string answer = answer_of(harness.pull().get());
      EXPECT_EQ(answer, regions ? "nothing" : name);
    }
  }
}

TEST(Hostile, RegionsMayBeAnywhereAndAnyNumber) {
  Harness harness(Harness::clinfer_launch("inference-region=roi-list batch-size=4"));
  harness.set_caps("NV12", 64, 48);
  GstBuffer* buffer = frame_of(harness.info(), kRed, 0);
  const auto add = [&](guint x, guint y, guint w, guint h) {
    gst_buffer_add_video_region_of_interest_meta(buffer, "thing", x, y, w, h);
  };
  add(0, 0, 0, 0);
  add(G_MAXUINT, G_MAXUINT, G_MAXUINT, G_MAXUINT);
  add(63, 47, G_MAXUINT, G_MAXUINT);
  add(G_MAXUINT - 1, 0, 2, 2);
  add(0, 0, 1, 1);
  add(10, 10, 0, 30);
  for (guint i = 0; i < 300; ++i) add(i % 60, i % 40, 1 + i % 7, 1 + i % 5);
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  const auto out = harness.pull();
  ASSERT_NE(out.get(), nullptr);
  unsigned answered = 0, regions = 0;
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
             out.get(), &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
    auto* roi = reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta);
    ++regions;
    answered += roi->params != nullptr;
  }
  EXPECT_EQ(regions, 306u);
  EXPECT_EQ(answered, 302u) << "all but the four that hold no pixel";
}

// ---- streams ------------------------------------------------------------------------------------

TEST(Hostile, StreamsWithoutFramesEnd) {
  for (const char* properties : {"", "batch-size=4", "model-instance-id=none"}) {
    Harness harness(Harness::clinfer_launch(properties));
    harness.set_caps("NV12", 64, 48);
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    for (bool over = false; !over;) {
      const Handle<GstEvent> event(gst_harness_pull_event(harness.get()));
      ASSERT_NE(event.get(), nullptr) << properties;
      over = GST_EVENT_TYPE(event.get()) == GST_EVENT_EOS;
    }
  }
  Harness gaps(Harness::clinfer_launch("batch-size=4"));
  gaps.set_caps("NV12", 64, 48);
  for (int i = 0; i < 20; ++i)
    gst_harness_push_event(
        gaps.get(), gst_event_new_gap(static_cast<GstClockTime>(i) * GST_SECOND, GST_SECOND));
  gst_harness_push_event(gaps.get(), gst_event_new_eos());
  int seen = 0;
  for (bool over = false; !over;) {
    const Handle<GstEvent> event(gst_harness_pull_event(gaps.get()));
    ASSERT_NE(event.get(), nullptr);
    seen += GST_EVENT_TYPE(event.get()) == GST_EVENT_GAP;
    over = GST_EVENT_TYPE(event.get()) == GST_EVENT_EOS;
  }
  EXPECT_EQ(seen, 20);
}

// Without caps and segment, too.
TEST(Hostile, EndOfStreamBeforeAnythingElse) {
  GstElement* element = gst_element_factory_make("clinfer", nullptr);
  g_object_set(element, "model", testing_models::color_model().c_str(), nullptr);
  GstHarness* harness = gst_harness_new_with_element(element, "sink", "src");
  gst_harness_play(harness);
  gst_harness_push_event(harness, gst_event_new_stream_start("s"));
  EXPECT_TRUE(gst_harness_push_event(harness, gst_event_new_eos()));
  for (bool over = false; !over;) {
    GstEvent* event = gst_harness_pull_event(harness);
    ASSERT_NE(event, nullptr);
    over = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
    gst_event_unref(event);
  }
  gst_harness_teardown(harness);
  gst_object_unref(element);
}

// The frame that waits for others is the one that holds the pool's only buffer.
TEST(Hostile, APoolOfOneBufferDoesNotStandStill) {
  Harness harness(Harness::clinfer_launch("batch-size=4 nireq=2"));
  harness.set_caps("NV12", 64, 48);
  GstBufferPool* pool = gst_video_buffer_pool_new();
  GstStructure* config = gst_buffer_pool_get_config(pool);
  const Handle<GstCaps> caps(gst_video_info_to_caps(&harness.info()));
  gst_buffer_pool_config_set_params(config, caps.get(),
                                    static_cast<guint>(GST_VIDEO_INFO_SIZE(&harness.info())), 1, 1);
  ASSERT_TRUE(gst_buffer_pool_set_config(pool, config));
  ASSERT_TRUE(gst_buffer_pool_set_active(pool, TRUE));
  gst_harness_set_drop_buffers(harness.get(), TRUE);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 6; ++i) {
    GstBuffer* buffer = nullptr;
    ASSERT_EQ(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
    gst_buffer_memset(buffer, 0, 100, G_MAXSIZE);
    GST_BUFFER_PTS(buffer) = static_cast<GstClockTime>(i) * GST_SECOND;
    ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  }
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);  // 1 s on an idle machine
  gst_buffer_pool_set_active(pool, FALSE);
  gst_object_unref(pool);
}

TEST(Hostile, SegmentsOfAnyKind) {
  for (const char* properties : {"", "batch-size=2", "nireq=1"}) {
    Harness harness(Harness::clinfer_launch(properties));
    harness.set_caps("NV12", 64, 48, "");
    int number = 0;
    const auto three = [&] {
      for (int i = 0; i < 3; ++i, ++number)
        ASSERT_EQ(harness.push(kColors[number % 3].first, number), GST_FLOW_OK);
    };
    three();
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.rate = -2;
    segment.stop = 100 * GST_SECOND;
    gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
    three();
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.base = G_MAXUINT64 / 2;
    segment.offset = 50 * GST_SECOND;
    segment.start = 10 * GST_SECOND;
    gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
    three();
    gst_segment_init(&segment, GST_FORMAT_BYTES);
    gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
    three();
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    for (int i = 0; i < number; ++i)
      EXPECT_EQ(answer_of(harness.pull().get()), kColors[i % 3].second);
  }
}

TEST(Hostile, FramesWithoutTimesAndRates) {
  for (const char* rate : {"0/1", "1/2147483647", "2147483647/1"}) {
    Harness harness(Harness::clinfer_launch("batch-size=3"));
    gst_harness_set_live(harness.get(), TRUE);
    const std::string caps =
        std::string("video/x-raw,format=NV12,width=64,height=48,framerate=") + rate;
    gst_harness_set_src_caps_str(harness.get(), caps.c_str());
    GstVideoInfo info;
    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, 64, 48);
    for (int i = 0; i < 7; ++i) {
      GstBuffer* buffer = frame_of(info, kColors[i % 3].first, GST_CLOCK_TIME_NONE);
      GST_BUFFER_DURATION(buffer) = i % 2 ? GST_CLOCK_TIME_NONE : 0;
      ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
    }
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    for (int i = 0; i < 7; ++i) EXPECT_EQ(answer_of(harness.pull().get()), kColors[i % 3].second);
    gst_harness_query_latency(harness.get());
  }
}

TEST(Hostile, SeeksAtNegativeRates) {
  Pipeline pipeline("videotestsrc num-buffers=400 ! video/x-raw,format=NV12,width=64,height=48 ! " +
                    Harness::clinfer_launch("batch-size=2 nireq=3") + " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PAUSED);
  ASSERT_EQ(gst_element_get_state(pipeline.element, nullptr, nullptr, 60 * GST_SECOND),
            GST_STATE_CHANGE_SUCCESS);
  for (const double rate : {-1.0, 2.0, -4.0, 1.0, -1.0}) {
    EXPECT_TRUE(
        gst_element_seek(pipeline.element, rate, GST_FORMAT_TIME,
                         static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE),
                         GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_SET, 2 * GST_SECOND));
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(run_to_end(pipeline.element), "");
}

// ---- states and properties ----------------------------------------------------------------------

// The pads of an element go down one after the other; a source that sends caps in between must not
// take them for refused, which it would post as an error.
TEST(Hostile, CapsBetweenTwoPadsThatGoDownAreNotRefused) {
  Harness harness(Harness::clinfer_launch());
  harness.set_caps("NV12", 64, 48);
  GstPad* src = gst_element_get_static_pad(harness.clinfer(), "src");
  EXPECT_TRUE(gst_pad_set_active(src, FALSE));
  gst_object_unref(src);
  harness.set_caps("NV12", 320, 240);
  EXPECT_EQ(harness.push(kRed, 0), GST_FLOW_FLUSHING);
}

TEST(Hostile, StatesGoUpAndDownUnderLoad) {
  Pipeline pipeline("videotestsrc is-live=false ! video/x-raw,format=NV12,width=320,height=240 ! " +
                    Harness::clinfer_launch("batch-size=3 nireq=4 name=c") +
                    " ! queue ! fakesink sync=false");
  const GstState states[] = {GST_STATE_PLAYING, GST_STATE_PAUSED,  GST_STATE_READY,
                             GST_STATE_PAUSED,  GST_STATE_READY,   GST_STATE_PLAYING,
                             GST_STATE_NULL,    GST_STATE_PLAYING, GST_STATE_READY};
  for (int round = 0; round < 40; ++round) {
    gst_element_set_state(pipeline.element, states[static_cast<size_t>(round) % std::size(states)]);
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 7 * 3));
  }
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(gst_element_get_state(pipeline.element, nullptr, nullptr, 60 * GST_SECOND),
            GST_STATE_CHANGE_SUCCESS);
  EXPECT_EQ(error_on(pipeline.element, 200ms), "");
}

TEST(Hostile, PropertiesChangeWhileFramesFlow) {
  Harness harness(Harness::clinfer_launch("nireq=3 batch-size=2"));
  gst_harness_set_live(harness.get(), FALSE);  // or policies would count
  harness.set_caps("NV12", 64, 48);
  GstElement* clinfer = harness.clinfer();
  std::atomic<bool> over{false};
  std::thread changer([&] {
    for (int i = 0; !over; ++i) {
      g_object_set(clinfer, "threshold", (i % 11) / 10.0, "batch-timeout", i % 5 - 1,
                   "overload-policy", i % 3, "iou-threshold", (i % 7) / 7.0, nullptr);
      // These count from the next start on.
      g_object_set(clinfer, "labels", i % 2 ? "a,b,c" : "", "model", i % 2 ? "/nowhere.xml" : "",
                   "nireq", i % 9, "batch-size", i % 5, "mean", i % 2 ? "x" : "1,2", nullptr);
      stats_of(clinfer);
    }
  });
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(harness.push(kColors[i % 3].first, i), GST_FLOW_OK);
    if (i < 8) continue;
    EXPECT_EQ(answer_of(harness.pull().get()), kColors[(i - 8) % 3].second);
  }
  over = true;
  changer.join();
}

// ---- sharing ------------------------------------------------------------------------------------

TEST(Hostile, AUserOfASharedModelLeavesUnderLoad) {
  const std::string line =
      "videotestsrc ! video/x-raw,format=NV12,width=64,height=48 ! queue ! " +
      Harness::clinfer_launch("model-instance-id=leaving batch-size=4 nireq=2") +
      " ! fakesink name=sink sync=false";
  Pipeline stays(line);
  gst_element_set_state(stays.element, GST_STATE_PLAYING);
  for (int round = 0; round < 8; ++round) {
    Pipeline leaves(line);
    gst_element_set_state(leaves.element, GST_STATE_PLAYING);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 13 * round));
  }
  // The other goes on, and ends when it is told to.
  const Handle<GstElement> sink = stays.find("sink");
  const auto rendered = [&] {
    const Handle<GstStructure> stats = stats_of(sink.get());
    guint64 count = 0;
    gst_structure_get_uint64(stats.get(), "rendered", &count);
    return count;
  };
  const guint64 before = rendered();
  for (int i = 0; i < 1000 && rendered() < before + 20; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_GE(rendered(), before + 20);
  gst_element_send_event(stays.element, gst_event_new_eos());
  EXPECT_EQ(run_to_end(stays.element), "");
}

}  // namespace
}  // namespace clinfer
