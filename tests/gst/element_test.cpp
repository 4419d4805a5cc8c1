// The elements through GStreamer: results, order, flushes, end of stream, caps changes, queries,
// states and faults.
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "gst/canvas.h"
#include "gst/handle.h"
#include "gst/meta.h"
#include "gst/surface.h"
#include "tests/gst/test_model.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using testing_models::color_model;

constexpr Rgb kBlue{20, 10, 230}, kGreen{10, 220, 30}, kRed{240, 20, 10};

// A frame of one colour.
GstBuffer* frame_of(const GstVideoInfo& info, Rgb color, GstClockTime pts) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  GstVideoFrame frame;
  EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
  Canvas(&frame, 0, 0, GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame))
      .fill(0, 0, 1 << 20, 1 << 20, color);
  gst_video_frame_unmap(&frame);
  GST_BUFFER_PTS(buffer) = pts;
  GST_BUFFER_DURATION(buffer) = 40 * GST_MSECOND;
  return buffer;
}

class Harness {
 public:
  explicit Harness(const std::string& launch) : harness_(gst_harness_new_parse(launch.c_str())) {}
  // clinfer with the colour model.
  Harness() : Harness(clinfer_launch()) {}
  static std::string clinfer_launch(const std::string& properties = "") {
    return "clinfer model=" + color_model() + " labels=blue,green,red " + properties;
  }
  ~Harness() { gst_harness_teardown(harness_); }
  GstHarness* get() const { return harness_; }
  // The clinfer inside; the harness has a bin around it.
  GstElement* clinfer() const {
    GValue found = G_VALUE_INIT;
    GstIterator* all =
        gst_bin_iterate_all_by_element_factory_name(GST_BIN(harness_->element), "clinfer");
    GstElement* element = gst_iterator_next(all, &found) == GST_ITERATOR_OK
                              ? GST_ELEMENT(g_value_get_object(&found))
                              : nullptr;
    g_value_unset(&found);
    gst_iterator_free(all);
    return element;  // the bin owns it
  }

  void set_caps(const char* format, int width, int height, const char* more = "") {
    const std::string text = std::string("video/x-raw,format=") + format +
                             ",width=" + std::to_string(width) +
                             ",height=" + std::to_string(height) + ",framerate=25/1" + more;
    const Handle<GstCaps> caps(gst_caps_from_string(text.c_str()));
    ASSERT_TRUE(gst_video_info_from_caps(&info_, caps.get()));
    gst_harness_set_src_caps(harness_, gst_caps_ref(caps.get()));
  }
  GstFlowReturn push(Rgb color, int number) {
    return gst_harness_push(
        harness_, frame_of(info_, color, static_cast<GstClockTime>(number) * 40 * GST_MSECOND));
  }
  Handle<GstBuffer> pull() { return Handle<GstBuffer>(gst_harness_pull(harness_)); }
  const GstVideoInfo& info() const { return info_; }

 private:
  GstHarness* harness_;
  GstVideoInfo info_;
};

std::string answer_of(GstBuffer* buffer) {
  if (buffer == nullptr) return "no buffer";
  const auto results = read_results(buffer);
  if (results.empty()) return "no result";
  if (!results[0].ran) return "skipped";
  return results[0].classifications.empty() ? "nothing" : results[0].classifications[0].label;
}

// Name and text of the first error on the bus, "" when there is none within `wait`.
std::string error_on(GstElement* pipeline, std::chrono::milliseconds wait = 5000ms) {
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message =
      gst_bus_timed_pop_filtered(bus, static_cast<GstClockTime>(wait.count()) * GST_MSECOND,
                                 static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS));
  gst_object_unref(bus);
  std::string text;
  if (message != nullptr && GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    text = std::string(g_quark_to_string(error->domain)) + ": " + error->message;
    g_error_free(error);
  }
  if (message != nullptr) gst_message_unref(message);
  return text;
}

struct Pipeline {
  explicit Pipeline(const std::string& launch) {
    GError* error = nullptr;
    element = gst_parse_launch(launch.c_str(), &error);
    EXPECT_EQ(error, nullptr) << launch << ": " << error->message;
    g_clear_error(&error);
  }
  ~Pipeline() {
    gst_element_set_state(element, GST_STATE_NULL);
    gst_object_unref(element);
  }
  GstElement* element;
};

// ---- results
// ----------------------------------------------------------------------------------------------------------

TEST(Clinfer, SeesTheSameInEveryFormatAndSize) {
  const Handle<GstCaps> caps(
      gst_caps_from_string("video/x-raw, format=(string)" CLINFER_VIDEO_FORMATS));
  const GValue* formats = gst_structure_get_value(gst_caps_get_structure(caps.get(), 0), "format");
  Harness harness;
  for (guint i = 0; i < gst_value_list_get_size(formats); ++i) {
    const std::string format = g_value_get_string(gst_value_list_get_value(formats, i));
    const int width = 33 + static_cast<int>(i), height = 17 + static_cast<int>(i % 3);
    harness.set_caps(format.c_str(), width, height);
    for (const auto& [color, name] : {std::pair{kBlue, "blue"}, {kGreen, "green"}, {kRed, "red"}}) {
      ASSERT_EQ(harness.push(color, 0), GST_FLOW_OK);
      const auto out = harness.pull();
      if (format == "GRAY8")  // no colour: all channels are the same
        EXPECT_NEAR(read_results(out.get())[0].classifications[0].confidence, 1.0 / 3, 1e-3);
      else
        EXPECT_EQ(answer_of(out.get()), name) << format << " " << width << "x" << height;
    }
  }
}

TEST(Clinfer, FollowsStridesOffsetsAndCrop) {
  Harness harness;
  harness.set_caps("BGR", 20, 10);
  // A larger frame: green inside the crop, red outside.
  GstVideoInfo big;
  gst_video_info_set_format(&big, GST_VIDEO_FORMAT_BGR, 60, 40);
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 40 * 200 + 17, nullptr);
  gsize offsets[4] = {17};
  gint strides[4] = {200};
  gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_BGR, 60, 40, 1,
                                 offsets, strides);
  GstVideoFrame frame;
  ASSERT_TRUE(gst_video_frame_map(&frame, &big, buffer, GST_MAP_WRITE));
  Canvas canvas(&frame, 0, 0, 60, 40);
  canvas.fill(0, 0, 60, 40, kRed);
  canvas.fill(13, 9, 20, 10, kGreen);
  gst_video_frame_unmap(&frame);
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer);
  crop->x = 13, crop->y = 9, crop->width = 20, crop->height = 10;
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  const auto out = harness.pull();
  EXPECT_EQ(answer_of(out.get()), "green");
  EXPECT_NEAR(static_cast<double>(read_results(out.get())[0].classifications[0].confidence), 1,
              1e-3);
}

TEST(Clinfer, RunsEveryNthFrame) {
  Harness harness(Harness::clinfer_launch("inference-interval=3"));
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    const auto out = harness.pull();
    EXPECT_EQ(answer_of(out.get()), i % 3 == 0 ? "red" : "skipped") << i;
  }
  GstStructure* stats = nullptr;
  g_object_get(harness.clinfer(), "stats", &stats, nullptr);
  const Handle<GstStructure> owner(stats);
  guint64 in = 0, out = 0, inferred = 0, skipped = 0;
  gst_structure_get(stats, "frames-in", G_TYPE_UINT64, &in, "frames-out", G_TYPE_UINT64, &out,
                    "inferred", G_TYPE_UINT64, &inferred, "skipped", G_TYPE_UINT64, &skipped,
                    nullptr);
  EXPECT_EQ(in, 10u);
  EXPECT_EQ(out, 10u);
  EXPECT_EQ(inferred, 4u);
  EXPECT_EQ(skipped, 6u);
  gdouble p50 = 0;
  EXPECT_TRUE(gst_structure_get_double(stats, "infer-p50-ms", &p50));
  EXPECT_GT(p50, 0);
}

TEST(Clinfer, LeavesSharedBuffersAlone) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  const Handle<GstBuffer> shared(frame_of(harness.info(), kBlue, 0));
  ASSERT_EQ(gst_harness_push(harness.get(), gst_buffer_ref(shared.get())), GST_FLOW_OK);
  const auto out = harness.pull();
  EXPECT_NE(out.get(), shared.get());
  EXPECT_EQ(answer_of(out.get()), "blue");
  EXPECT_EQ(answer_of(shared.get()), "no result");
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), gst_buffer_peek_memory(shared.get(), 0));
  const GstParentBufferMeta* parent = gst_buffer_get_parent_buffer_meta(out.get());
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->buffer, shared.get());
}

TEST(Clinfer, TwoInARowEachAddTheirs) {
  Harness harness(Harness::clinfer_launch("name=first") +
                  " ! clinfer name=second model=" + color_model("other", 8) + " labels=b,g,r");
  harness.set_caps("RGB", 31, 21);
  ASSERT_EQ(harness.push(kGreen, 0), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto results = read_results(out.get());
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].classifications[0].label, "green");
  EXPECT_EQ(results[1].classifications[0].label, "g");
  EXPECT_EQ(results[1].model, "other");
}

TEST(Clinfer, RawTensorsAreAttached) {
  Harness harness("clinfer post-process=none model=" + color_model());
  harness.set_caps("RGB", 16, 16);
  ASSERT_EQ(harness.push({255, 0, 0}, 0), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto results = read_results(out.get());
  ASSERT_EQ(results.size(), 1u);
  ASSERT_EQ(results[0].tensors.size(), 1u);
  EXPECT_EQ(results[0].tensors[0].name, "color");
  EXPECT_EQ(results[0].tensors[0].dims, (std::vector<int>{1, 3}));
}

// ---- order, flushes, end of stream
// ------------------------------------------------------------------------------------

// What left the source pad, in order: PTS of buffers as numbers, names of serialised events.
struct Record {
  static GstPadProbeReturn probe(GstPad*, GstPadProbeInfo* info, gpointer user) {
    auto* record = static_cast<Record*>(user);
    const std::lock_guard lock(record->mutex);
    if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) {
      record->seen.push_back(
          std::to_string(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)) / (40 * GST_MSECOND)));
    } else {
      GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
      if (GST_EVENT_TYPE(event) == GST_EVENT_CUSTOM_DOWNSTREAM)
        record->seen.push_back(gst_structure_get_name(gst_event_get_structure(event)));
      else if (GST_EVENT_TYPE(event) == GST_EVENT_EOS)
        record->seen.push_back("eos");
      else if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS)
        record->seen.push_back("caps");
    }
    return GST_PAD_PROBE_OK;
  }
  void watch(GstElement* element) {
    GstPad* pad = gst_element_get_static_pad(element, "src");
    gst_pad_add_probe(pad,
                      static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER |
                                                   GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                      probe, this, nullptr);
    gst_object_unref(pad);
  }
  std::mutex mutex;
  std::vector<std::string> seen;
};

void wait_for_eos(GstHarness* harness) {
  for (;;) {
    GstEvent* event = gst_harness_pull_event(harness);
    ASSERT_NE(event, nullptr) << "no end of stream";
    const bool eos = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
    gst_event_unref(event);
    if (eos) return;
  }
}

TEST(Clinfer, KeepsFramesEventsAndCapsInOrder) {
  Harness harness(Harness::clinfer_launch("nireq=4 throughput-streams=2"));
  Record record;
  record.watch(harness.get()->element);
  std::vector<std::string> expected;
  for (int i = 0; i < 60; ++i) {
    if (i % 10 == 0) {
      harness.set_caps("NV12", 32 + i, 24 + i % 20);
      expected.push_back("caps");
    }
    ASSERT_EQ(harness.push(i % 2 ? kRed : kBlue, i), GST_FLOW_OK);
    expected.push_back(std::to_string(i));
    if (i % 7 == 0) {
      const std::string name = "mark" + std::to_string(i);
      gst_harness_push_event(
          harness.get(),
          gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty(name.c_str())));
      expected.push_back(name);
    }
  }
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  expected.push_back("eos");
  wait_for_eos(harness.get());
  EXPECT_EQ(record.seen, expected);
  for (int i = 0; i < 60; ++i) {
    const auto out = harness.pull();
    EXPECT_EQ(answer_of(out.get()), i % 2 ? "red" : "blue") << i;
  }
}

TEST(Clinfer, EndOfStreamWithAnyNumberInFlight) {
  for (const int frames : {0, 1, 2, 5}) {
    Harness harness;
    harness.set_caps("NV12", 64, 48);
    for (int i = 0; i < frames; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    wait_for_eos(harness.get());
    EXPECT_EQ(gst_harness_buffers_in_queue(harness.get()), static_cast<guint>(frames));
  }
}

TEST(Clinfer, SurvivesAStormOfFlushes) {
  Harness harness(Harness::clinfer_launch("nireq=3"));
  harness.set_caps("NV12", 64, 48);
  gst_harness_set_drop_buffers(harness.get(), TRUE);
  std::atomic<bool> stop{false};
  GstPad* sink = gst_element_get_static_pad(harness.get()->element, "sink");
  // As in an upstream element: the segment comes before the first frame after a flush.
  std::mutex streaming;
  std::thread producer([&] {
    for (int i = 0; !stop; ++i) {
      const std::unique_lock lock(streaming);
      if (harness.push(kRed, i) != GST_FLOW_OK) std::this_thread::sleep_for(200us);
    }
  });
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    gst_pad_send_event(sink, gst_event_new_flush_start());
    if (i % 2) std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    const std::unique_lock lock(streaming);
    gst_pad_send_event(sink, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_send_event(sink, gst_event_new_segment(&segment));
  }
  stop = true;
  producer.join();
  gst_object_unref(sink);
  // What went on before the last flush is gone; what comes now passes.
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  wait_for_eos(harness.get());
}

TEST(Clinfer, AFlushDropsWhatWasBeforeIt) {
  Harness harness(Harness::clinfer_launch("nireq=3"));
  Record record;
  record.watch(harness.get()->element);
  harness.set_caps("NV12", 64, 48);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    GstPad* sink = gst_element_get_static_pad(harness.get()->element, "sink");
    gst_pad_send_event(sink, gst_event_new_flush_start());
    gst_pad_send_event(sink, gst_event_new_flush_stop(TRUE));
    {
      const std::lock_guard lock(record.mutex);
      record.seen.clear();
    }
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_send_event(sink, gst_event_new_segment(&segment));
    gst_object_unref(sink);
    for (int i = 100; i < 103; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    gst_harness_push_event(harness.get(), gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM,
                                                               gst_structure_new_empty("end")));
    for (int tries = 0; tries < 2000; ++tries) {
      std::this_thread::sleep_for(1ms);
      const std::lock_guard lock(record.mutex);
      if (!record.seen.empty() && record.seen.back() == "end") break;
    }
    const std::lock_guard lock(record.mutex);
    EXPECT_EQ(record.seen, (std::vector<std::string>{"100", "101", "102", "end"}));
  }
}

// ---- flow
// ---------------------------------------------------------------------------------------------------------------

GstFlowReturn refuse(GstPad*, GstObject* parent, GstBuffer* buffer) {
  (void)parent;
  gst_buffer_unref(buffer);
  return GST_FLOW_CUSTOM_ERROR;
}

GstFlowReturn end_of_stream(GstPad*, GstObject*, GstBuffer* buffer) {
  gst_buffer_unref(buffer);
  return GST_FLOW_EOS;
}

GstFlowReturn push_until_it_fails(Harness& harness) {
  for (int i = 0; i < 500; ++i) {
    const GstFlowReturn flow = harness.push(kRed, i);
    if (flow != GST_FLOW_OK) return flow;
    std::this_thread::sleep_for(1ms);
  }
  return GST_FLOW_OK;
}

TEST(Clinfer, TellsUpstreamWhatDownstreamSays) {
  for (const auto& [function, flow] :
       {std::pair{&refuse, GST_FLOW_CUSTOM_ERROR}, {&end_of_stream, GST_FLOW_EOS}}) {
    Harness harness;
    harness.set_caps("NV12", 64, 48);
    gst_pad_set_chain_function(harness.get()->sinkpad, function);
    EXPECT_EQ(push_until_it_fails(harness), flow);
  }
}

TEST(Clinfer, GoesOnWithANewSegmentAfterDownstreamEnded) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  GstPad* sinkpad = harness.get()->sinkpad;
  const GstPadChainFunction normal = GST_PAD_CHAINFUNC(sinkpad);
  gst_pad_set_chain_function(sinkpad, end_of_stream);
  EXPECT_EQ(push_until_it_fails(harness), GST_FLOW_EOS);
  gst_pad_set_chain_function(sinkpad, normal);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  ASSERT_EQ(harness.push(kBlue, 7), GST_FLOW_OK);
  const auto out = harness.pull();
  EXPECT_EQ(answer_of(out.get()), "blue");
}

TEST(Clinfer, AFrameThatLiesAboutItsMemoryIsAnError) {
  Pipeline pipeline(
      "appsrc name=src caps=video/x-raw,format=NV12,width=64,height=48,framerate=25/1 format=time "
      "! " +
      Harness::clinfer_launch() + " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  GstElement* source = gst_bin_get_by_name(GST_BIN(pipeline.element), "src");
  GstFlowReturn flow = GST_FLOW_OK;
  GstBuffer* small = gst_buffer_new_allocate(nullptr, 100, nullptr);
  g_signal_emit_by_name(source, "push-buffer", small, &flow);
  gst_buffer_unref(small);
  gst_object_unref(source);
  EXPECT_NE(error_on(pipeline.element).find("100 bytes"), std::string::npos);
}

// ---- queries and messages
// ---------------------------------------------------------------------------------------------

TEST(Clinfer, AsksForEnoughBuffers) {
  Harness harness(Harness::clinfer_launch("nireq=5 inference-interval=2"));
  harness.set_caps("NV12", 64, 48);
  GstQuery* query = gst_query_new_allocation(gst_pad_get_current_caps(harness.get()->srcpad), TRUE);
  ASSERT_TRUE(gst_pad_peer_query(harness.get()->srcpad, query));
  ASSERT_GE(gst_query_get_n_allocation_pools(query), 1u);
  guint size = 0, least = 0, most = 0;
  gst_query_parse_nth_allocation_pool(query, 0, nullptr, &size, &least, &most);
  EXPECT_EQ(least, 11u);
  EXPECT_EQ(most, 0u);
  EXPECT_EQ(size, GST_VIDEO_INFO_SIZE(&harness.info()));
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  gst_caps_unref(caps);
  gst_query_unref(query);
}

TEST(Clinfer, ReportsItsLatencyWhenLive) {
  Harness harness;
  gst_harness_set_live(harness.get(), TRUE);
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    harness.pull();
  }
  GstQuery* query = gst_query_new_latency();
  ASSERT_TRUE(gst_pad_peer_query(harness.get()->sinkpad, query));
  gboolean live = FALSE;
  GstClockTime least = 0, most = 0;
  gst_query_parse_latency(query, &live, &least, &most);
  gst_query_unref(query);
  EXPECT_TRUE(live);
  EXPECT_GT(least, 0u);
  EXPECT_LT(least, 10 * GST_SECOND);
  EXPECT_GE(most, least);
}

TEST(Clinfer, PassesLateFramesUninferredAndSaysSo) {
  Harness harness;
  GstBus* bus = gst_bus_new();
  gst_element_set_bus(harness.get()->element, bus);
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
  // The sink got frame 0 200 ms late.
  gst_harness_push_upstream_event(
      harness.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 200 * GST_MSECOND, 0));
  for (int i = 1; i < 13; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness.pull().get()), i <= 10 ? "skipped" : "red") << i;
  }
  int told = 0;
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_QOS)) {
    guint64 dropped = 0;
    GstFormat format;
    gst_message_parse_qos_stats(message, &format, nullptr, &dropped);
    EXPECT_EQ(dropped, static_cast<guint64>(++told));
    gst_message_unref(message);
  }
  EXPECT_EQ(told, 10);
  g_object_set(harness.clinfer(), "qos", FALSE, nullptr);
  gst_harness_push_upstream_event(
      harness.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 20 * GST_SECOND, 0));
  ASSERT_EQ(harness.push(kRed, 20), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
  gst_element_set_bus(harness.get()->element, nullptr);
  gst_object_unref(bus);
}

// ---- states
// ---------------------------------------------------------------------------------------------------------------

TEST(Clinfer, FiftyTimesNullToPlaying) {
  Pipeline pipeline("videotestsrc ! video/x-raw,format=I420,width=64,height=48 ! " +
                    Harness::clinfer_launch() + " ! fakesink sync=false");
  for (int i = 0; i < 50; ++i) {
    ASSERT_NE(gst_element_set_state(pipeline.element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE)
        << i;
    if (i % 3 == 0) {
      ASSERT_EQ(gst_element_get_state(pipeline.element, nullptr, nullptr, 20 * GST_SECOND),
                GST_STATE_CHANGE_SUCCESS)
          << i;
    }
    if (i % 3 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(i));
    ASSERT_NE(
        gst_element_set_state(pipeline.element, i % 5 == 0 ? GST_STATE_READY : GST_STATE_NULL),
        GST_STATE_CHANGE_FAILURE)
        << i;
  }
  EXPECT_EQ(error_on(pipeline.element, 0ms), "");
}

TEST(Clinfer, KeepsTheCompiledModelInReadyAndTakesNewLabels) {
  Pipeline pipeline(
      "videotestsrc pattern=red num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! " +
      Harness::clinfer_launch("name=net") + " ! fakesink name=sink");
  GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline.element), "net");
  double first = 0;
  for (int i = 0; i < 2; ++i) {
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    EXPECT_EQ(error_on(pipeline.element, 20000ms), "");
    GstStructure* stats = nullptr;
    g_object_get(net, "stats", &stats, nullptr);
    double load = 0;
    EXPECT_TRUE(gst_structure_get_double(stats, "load-ms", &load));
    gst_structure_free(stats);
    if (i == 0) first = load;
    EXPECT_EQ(load, first);
    gst_element_set_state(pipeline.element, GST_STATE_READY);
    g_object_set(net, "labels", "x,y,z", nullptr);
  }
  gst_object_unref(net);
}

TEST(Clinfer, StopsWhileItCompiles) {
  for (int i = 0; i < 5; ++i) {
    Pipeline pipeline("videotestsrc ! video/x-raw,width=64,height=48 ! " +
                      Harness::clinfer_launch("cache-dir=\"\"") + " ! fakesink");
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * i));
    const auto begun = std::chrono::steady_clock::now();
    gst_element_set_state(pipeline.element, GST_STATE_NULL);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
  }
}

TEST(Clinfer, TwoPipelinesInOneProcess) {
  Pipeline first("videotestsrc num-buffers=40 ! video/x-raw,format=NV12,width=64,height=48 ! " +
                 Harness::clinfer_launch() + " ! fakesink");
  Pipeline second("videotestsrc num-buffers=40 ! video/x-raw,format=RGB,width=33,height=21 ! " +
                  Harness::clinfer_launch() + " ! fakesink");
  gst_element_set_state(first.element, GST_STATE_PLAYING);
  gst_element_set_state(second.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(first.element, 20000ms), "");
  EXPECT_EQ(error_on(second.element, 20000ms), "");
}

TEST(Clinfer, BothBranchesOfATeeRun) {
  Pipeline pipeline(
      "videotestsrc num-buffers=30 ! video/x-raw,format=NV12,width=64,height=48 ! tee name=t ! "
      "queue ! " +
      Harness::clinfer_launch() + " ! cloverlay ! fakesink t. ! queue ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(pipeline.element, 20000ms), "");
}

// ---- faults
// ---------------------------------------------------------------------------------------------------------------

std::string fault_of(const std::string& clinfer_properties) {
  Pipeline pipeline("videotestsrc num-buffers=2 ! video/x-raw,width=64,height=48 ! clinfer " +
                    clinfer_properties + " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  return error_on(pipeline.element);
}

TEST(Faults, ModelFiles) {
  EXPECT_NE(fault_of("").find("set model="), std::string::npos);
  const std::string missing = fault_of("model=/nowhere/net.xml");
  EXPECT_NE(missing.find("gst-resource-error-quark"), std::string::npos) << missing;
  EXPECT_NE(missing.find("/nowhere/net.xml"), std::string::npos) << missing;
  EXPECT_NE(fault_of("model=" + testing_models::write_file("text.xml", "hello")).find("text.xml"),
            std::string::npos);
  const std::string whole = color_model("cut", 16);
  testing_models::write_file("cut.bin", "short");
  const std::string cut = fault_of("model=" + whole);
  EXPECT_NE(cut.find("cut.bin"), std::string::npos) << cut;
}

TEST(Faults, WrongKindOfModel) {
  const std::string fault = fault_of("model=" + color_model() + " post-process=yolox");
  EXPECT_NE(fault.find("color [1,3]"), std::string::npos) << fault;
  // Without labels nothing says that three numbers are classes.
  const std::string ambiguous = fault_of("model=" + color_model());
  EXPECT_NE(ambiguous.find("classification"), std::string::npos) << ambiguous;
  EXPECT_NE(ambiguous.find("none"), std::string::npos) << ambiguous;
}

TEST(Faults, Settings) {
  const std::string model = "model=" + color_model() + " post-process=none ";
  EXPECT_NE(fault_of(model + "labels-file=/nowhere/l.txt").find("/nowhere/l.txt"),
            std::string::npos);
  EXPECT_NE(fault_of(model + "labels-file=" + testing_models::write_file("bad.txt", "a\n\xff\n"))
                .find("UTF-8"),
            std::string::npos);
  EXPECT_NE(fault_of(model + "mean=abc").find("abc"), std::string::npos);
  EXPECT_NE(fault_of(model + "config=NO_SUCH_KEY=1").find("NO_SUCH_KEY"), std::string::npos);
  EXPECT_NE(fault_of(model + "device=GPU.77").find("GPU.77"), std::string::npos);
}

TEST(Faults, CapsThatCannotBeUsed) {
  Harness harness;
  for (const char* text : {"video/x-raw,format=GRAY16_LE,width=64,height=48",
                           "video/x-raw(memory:Other),format=NV12,width=64,height=48",
                           "audio/x-raw,format=S16LE,rate=8000,channels=1,layout=interleaved"}) {
    GstPad* sink = gst_element_get_static_pad(harness.get()->element, "sink");
    const Handle<GstCaps> caps(gst_caps_from_string(text));
    EXPECT_FALSE(gst_pad_query_accept_caps(sink, caps.get())) << text;
    EXPECT_FALSE(gst_pad_send_event(sink, gst_event_new_caps(caps.get()))) << text;
    gst_object_unref(sink);
  }
  // A frame without any format.
  GstBus* bus = gst_bus_new();
  gst_element_set_bus(harness.get()->element, bus);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness.get(), gst_event_new_stream_start("test"));
  gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  EXPECT_EQ(gst_harness_push(harness.get(), gst_buffer_new()), GST_FLOW_NOT_NEGOTIATED);
  gst_element_set_bus(harness.get()->element, nullptr);
  gst_object_unref(bus);
}

TEST(Faults, AnEarlyEndDownstreamIsNone) {
  Pipeline pipeline("videotestsrc num-buffers=20 ! video/x-raw,format=NV12,width=64,height=48 ! " +
                    Harness::clinfer_launch() + " ! identity eos-after=5 ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(pipeline.element), "");  // ends early, without an error
}

// ---- cloverlay and clpublish
// ------------------------------------------------------------------------------------------

std::vector<guint8> bytes_of(GstBuffer* buffer) {
  std::vector<guint8> bytes(gst_buffer_get_size(buffer));
  gst_buffer_extract(buffer, 0, bytes.data(), bytes.size());
  return bytes;
}

GstBuffer* with_region(GstBuffer* buffer) {
  FrameResult result;
  result.ran = true;
  result.model = "m";
  result.visible = {0, 0, 64, 48};
  result.results.detections = {{10, 10, 40, 40, 0.9f, 1}};
  attach_result(buffer, result, {"a", "b"});
  return buffer;
}

TEST(Cloverlay, DrawsInPlaceAndCopiesOnlySharedFrames) {
  Harness harness("cloverlay");
  harness.set_caps("NV12", 64, 48);
  GstBuffer* plain = frame_of(harness.info(), kBlue, 0);
  const auto before = bytes_of(plain);
  ASSERT_EQ(gst_harness_push(harness.get(), plain), GST_FLOW_OK);
  auto out = harness.pull();
  EXPECT_EQ(out.get(), plain);
  EXPECT_EQ(bytes_of(out.get()), before);

  GstBuffer* own = with_region(frame_of(harness.info(), kBlue, 0));
  ASSERT_EQ(gst_harness_push(harness.get(), own), GST_FLOW_OK);
  out = harness.pull();
  EXPECT_EQ(out.get(), own);
  EXPECT_NE(bytes_of(out.get()), before);

  const Handle<GstBuffer> shared(with_region(frame_of(harness.info(), kBlue, 0)));
  ASSERT_EQ(gst_harness_push(harness.get(), gst_buffer_ref(shared.get())), GST_FLOW_OK);
  out = harness.pull();
  EXPECT_NE(out.get(), shared.get());
  EXPECT_NE(bytes_of(out.get()), before);
  EXPECT_EQ(bytes_of(shared.get()), before);

  const Handle<GstBuffer> shared_plain(frame_of(harness.info(), kBlue, 0));
  ASSERT_EQ(gst_harness_push(harness.get(), gst_buffer_ref(shared_plain.get())), GST_FLOW_OK);
  out = harness.pull();
  EXPECT_EQ(out.get(), shared_plain.get());
}

TEST(Clpublish, WritesALineAFrameAtOnce) {
  const std::string path = testing_models::folder() + "/lines.jsonl";
  Harness harness("clpublish file-path=" + path);
  harness.set_caps("NV12", 64, 48);
  const auto lines = [&] {
    std::ifstream file(path);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  };
  ASSERT_EQ(gst_harness_push(harness.get(), with_region(frame_of(harness.info(), kBlue, 0))),
            GST_FLOW_OK);
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_NE(lines()[0].find("\"label\":\"b\""), std::string::npos) << lines()[0];
  ASSERT_EQ(harness.push(kRed, 3), GST_FLOW_OK);
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(
      lines()[1],
      R"({"frame":1,"objects":[],"resolution":{"width":64,"height":48},"timestamp":120000000})");
}

TEST(Clpublish, RefusesAPathThatCannotBeWritten) {
  Pipeline pipeline(
      "videotestsrc num-buffers=1 ! clpublish file-path=/nowhere/out.jsonl ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  const std::string error = error_on(pipeline.element);
  EXPECT_NE(error.find("/nowhere/out.jsonl"), std::string::npos) << error;
}

TEST(Clpublish, ResultsSurviveConversion) {
  const std::string path = testing_models::folder() + "/converted.jsonl";
  Pipeline pipeline(
      "videotestsrc pattern=red num-buffers=4 ! video/x-raw,format=NV12,width=64,height=48 ! " +
      Harness::clinfer_launch() +
      " ! cloverlay ! videoconvert ! video/x-raw,format=RGB ! clpublish file-path=" + path +
      " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(pipeline.element, 20000ms), "");
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    EXPECT_NE(line.find("\"label\":\"red\""), std::string::npos) << line;
    EXPECT_NE(line.find("\"inference\":\"run\""), std::string::npos) << line;
  }
  EXPECT_EQ(lines, 4);
}

}  // namespace
}  // namespace clinfer
