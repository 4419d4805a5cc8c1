// A live source that is faster than the device: what each policy does, and that memory and latency
// stay bounded. Events keep their places, and a flush comes through in time.
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A network of a few milliseconds: the colour model on pictures of 320x320 pixels.
std::string slow_launch(const std::string& properties) {
  return "clinfer name=net labels=blue,green,red model=" +
         testing_models::color_model("slow", 320) + " " + properties;
}

struct Counts {
  uint64_t in = 0, out = 0, inferred = 0, skipped = 0, late = 0, dropped = 0;
  explicit Counts(GstElement* clinfer) {
    const Handle<GstStructure> stats = stats_of(clinfer);
    EXPECT_TRUE(gst_structure_get(stats.get(), "frames-in", G_TYPE_UINT64, &in, "frames-out",
                                  G_TYPE_UINT64, &out, "inferred", G_TYPE_UINT64, &inferred,
                                  "skipped", G_TYPE_UINT64, &skipped, "late", G_TYPE_UINT64, &late,
                                  "dropped", G_TYPE_UINT64, &dropped, nullptr));
  }
};

// Frames by what became of them, and how long each took; gathered at the source pad.
struct Departures {
  std::mutex mutex;
  std::vector<std::pair<uint64_t, std::string>> seen;  // number and outcome
  std::map<uint64_t, Clock::time_point> pushed;
  std::vector<double> latencies_ms;
  std::atomic<unsigned> alive{0}, most_alive{0};  // buffers

  static GstFlowReturn chain(GstPad* pad, GstObject*, GstBuffer* buffer) {
    auto* self = static_cast<Departures*>(GST_PAD_ELEMENT_PRIVATE(pad));
    {
      const std::lock_guard lock(self->mutex);
      const uint64_t number = GST_BUFFER_PTS(buffer) / GST_MSECOND;
      self->seen.emplace_back(number, answer_of(buffer));
      self->latencies_ms.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - self->pushed[number]).count());
    }
    gst_buffer_unref(buffer);
    return GST_FLOW_OK;
  }
};

struct Drive {
  std::vector<std::pair<uint64_t, std::string>> seen;
  std::vector<double> latencies_ms;
  unsigned most_alive = 0, qos_messages = 0;
  double interval_ms = 0;  // between frames
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

double service_ms() {
  Harness harness(slow_launch("nireq=1"));
  harness.set_caps("NV12", 64, 48);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const auto begun = Clock::now();
    EXPECT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    harness.pull();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Returns when the model is compiled: statistics name the full tier from then on.
void wait_until_ready(GstElement* clinfer) {
  for (bool ready = false; !ready; std::this_thread::sleep_for(2ms)) {
    const Handle<GstStructure> stats = stats_of(clinfer);
    const char* tier = gst_structure_get_string(stats.get(), "tier");
    ready = tier != nullptr && std::string(tier) == "full";
  }
}

double statistic(GstElement* clinfer, const char* name) {
  const Handle<GstStructure> stats = stats_of(clinfer);
  double value = -1;
  EXPECT_TRUE(gst_structure_get_double(stats.get(), name, &value)) << name;
  return value;
}

// Pushes `frames` red frames, one every fifth of the service time.
Drive overload(Harness& harness, int frames, bool live = true) {
  const auto step = std::chrono::duration<double, std::milli>(service_ms() / 5);
  Departures departures;
  gst_harness_set_live(harness.get(), live);
  gst_pad_set_element_private(harness.get()->sinkpad, &departures);
  gst_pad_set_chain_function(harness.get()->sinkpad, Departures::chain);
  harness.set_caps("NV12", 64, 48, "", static_cast<int>(1000 / step.count()));
  wait_until_ready(harness.clinfer());
  const auto begun = Clock::now();
  for (int i = 0; i < frames; ++i) {
    std::this_thread::sleep_until(begun + i * std::chrono::duration_cast<Clock::duration>(step));
    GstBuffer* buffer = frame_of(harness.info(), kRed, static_cast<GstClockTime>(i) * GST_MSECOND);
    departures.most_alive = std::max(departures.most_alive.load(), ++departures.alive);
    gst_mini_object_weak_ref(
        GST_MINI_OBJECT(buffer),
        [](gpointer counter, GstMiniObject*) { --*static_cast<std::atomic<unsigned>*>(counter); },
        &departures.alive);
    {
      const std::lock_guard lock(departures.mutex);
      departures.pushed[static_cast<uint64_t>(i)] = Clock::now();
    }
    EXPECT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  }
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  while (GstEvent* event = gst_harness_pull_event(harness.get())) {
    const bool eos = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
    gst_event_unref(event);
    if (eos) break;
  }
  Drive drive{departures.seen, departures.latencies_ms, departures.most_alive.load()};
  drive.interval_ms = step.count();
  while (GstMessage* message = gst_bus_pop_filtered(harness.bus(), GST_MESSAGE_QOS)) {
    ++drive.qos_messages;
    gst_message_unref(message);
  }
  return drive;
}

bool in_order(const Drive& drive) { return std::is_sorted(drive.seen.begin(), drive.seen.end()); }

size_t count_outcome(const Drive& drive, const std::string& outcome) {
  return static_cast<size_t>(
      std::count_if(drive.seen.begin(), drive.seen.end(),
                    [&](const auto& frame) { return frame.second == outcome; }));
}

TEST(Overload, BlockMakesTheSourceWait) {
  Harness harness(slow_launch("nireq=2"));
  const Drive drive = overload(harness, 60);
  EXPECT_EQ(count_outcome(drive, "red"), 60u);
  EXPECT_LE(drive.most_alive, 5u);
  const Counts counts(harness.clinfer());
  EXPECT_EQ(counts.inferred, 60u);
  EXPECT_EQ(counts.dropped, 0u);
}

TEST(Overload, SkipInferencePassesWhatDoesNotFit) {
  Harness harness(slow_launch("nireq=2 overload-policy=skip-inference"));
  const Drive drive = overload(harness, 150);
  EXPECT_EQ(drive.seen.size(), 150u);
  EXPECT_TRUE(in_order(drive));
  const size_t inferred = count_outcome(drive, "red"), skipped = count_outcome(drive, "skipped");
  EXPECT_EQ(inferred + skipped, 150u);
  EXPECT_GT(inferred, 3u);
  EXPECT_GT(skipped, 10u);  // some 100 on an idle machine
  EXPECT_EQ(drive.qos_messages, skipped);
  EXPECT_LE(drive.most_alive, (2u + 1u) * 8u + 2u);
  const Counts counts(harness.clinfer());
  EXPECT_EQ(counts.inferred, inferred);
  EXPECT_EQ(counts.skipped, skipped);
}

TEST(Overload, DropPassesWhatIsInferred) {
  Harness harness(slow_launch("nireq=2 overload-policy=drop"));
  const Drive drive = overload(harness, 150);
  EXPECT_TRUE(in_order(drive));
  EXPECT_EQ(count_outcome(drive, "red"), drive.seen.size());
  EXPECT_GT(drive.seen.size(), 3u);
  EXPECT_LT(drive.seen.size(), 140u);  // some 40 on an idle machine
  const Counts counts(harness.clinfer());
  EXPECT_EQ(counts.in, 150u);
  EXPECT_EQ(counts.out, drive.seen.size());
  EXPECT_EQ(counts.dropped, 150u - drive.seen.size());
  EXPECT_EQ(drive.qos_messages, counts.dropped);
  EXPECT_LE(drive.most_alive, 5u);
}

TEST(Overload, FilesAreNeverDropped) {
  for (const char* policy : {"drop", "skip-inference"}) {
    Harness harness(slow_launch(std::string("nireq=1 overload-policy=") + policy));
    const Drive drive = overload(harness, 30, false);
    EXPECT_EQ(count_outcome(drive, "red"), 30u) << policy;
  }
}

TEST(Overload, FramesAfterDroppedOnesAreMarked) {
  Harness harness(slow_launch("nireq=1 overload-policy=drop"));
  gst_harness_set_live(harness.get(), TRUE);
  harness.set_caps("NV12", 64, 48);
  wait_until_ready(harness.clinfer());
  for (int i = 0; i < 40; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  const uint64_t dropped = Counts(harness.clinfer()).dropped;
  ASSERT_GT(dropped, 0u);
  int64_t last = -1;
  for (uint64_t i = 0; i < 40 - dropped; ++i) {
    const auto out = harness.pull();
    const auto number = static_cast<int64_t>(GST_BUFFER_PTS(out.get()) / (40 * GST_MSECOND));
    EXPECT_EQ(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_DISCONT), number != last + 1)
        << number;
    last = number;
  }
}

TEST(Overload, LatencyStaysBelowOneInferenceAndOneFrame) {
  for (const char* policy : {"skip-inference", "drop"}) {
    // Half an inference more for a busy machine; a queue of one would make it two each time, other
    // processes do so only at times.
    constexpr double kAllowed = 1.5;
    double inferences = 2 * kAllowed;
    for (int attempt = 0; attempt < 8 && inferences >= kAllowed; ++attempt) {
      Harness harness(slow_launch(std::string("nireq=4 overload-policy=") + policy));
      const Drive drive = overload(harness, 200);
      inferences = (median(drive.latencies_ms) - drive.interval_ms) /
                   statistic(harness.clinfer(), "infer-p50-ms");
    }
    EXPECT_LT(inferences, kAllowed) << policy;
  }
}

// Inferences of each of 8 cameras of one model in `time`, all in phase or spread over an interval.
std::vector<uint64_t> inferred_of_cameras(const std::string& properties, bool same_phase,
                                          std::chrono::milliseconds time) {
  constexpr int kCameras = 8;
  std::string launch;
  for (int i = 0; i < kCameras; ++i)
    launch += "videotestsrc is-live=true pattern=red timestamp-offset=" +
              std::to_string(same_phase ? 0 : i * 10000000 / kCameras) +
              " ! video/x-raw,format=GRAY8,width=32,height=32,framerate=100/1 ! clinfer name=c" +
              std::to_string(i) +
              " model-instance-id=cameras model=" + testing_models::color_model("slow", 640) + " " +
              properties + " ! fakesink sync=false async=false ";
  Pipeline pipeline(launch);
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  std::vector<Handle<GstElement>> cameras;
  for (int i = 0; i < kCameras; ++i) {
    cameras.emplace_back(
        gst_bin_get_by_name(GST_BIN(pipeline.element), ("c" + std::to_string(i)).c_str()));
    wait_until_ready(cameras.back().get());
  }
  std::this_thread::sleep_for(200ms);
  std::vector<uint64_t> counts;
  for (const auto& camera : cameras) counts.push_back(Counts(camera.get()).inferred);
  std::this_thread::sleep_for(time);
  for (size_t i = 0; i < counts.size(); ++i)
    counts[i] = Counts(cameras[i].get()).inferred - counts[i];
  return counts;
}

TEST(Overload, EightCamerasOfOneModelGetEqualShares) {
  struct Case {
    const char *policy, *batch;
    bool same_phase;
  };
  for (const Case& c : {Case{"skip-inference", "1", true}, Case{"drop", "1", false},
                        Case{"skip-inference", "4", false}, Case{"drop", "4", true}}) {
    // Two frames are within the tolerance where a busy machine infers few. It may be busy for some
    // cameras only; who is unfair is so each time.
    bool is_fair = false;
    std::string text;
    for (int attempt = 0; attempt < 5 && !is_fair; ++attempt) {
      const std::vector<uint64_t> counts = inferred_of_cameras(
          std::string("overload-policy=") + c.policy + " batch-size=" + c.batch, c.same_phase, 1s);
      const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      is_fair = static_cast<double>(*least) >= 0.9 * static_cast<double>(*most) - 2 && *least >= 3;
      for (const uint64_t count : counts) text += std::to_string(count) + " ";
      text += "\n";
    }
    EXPECT_TRUE(is_fair) << c.policy << " batch " << c.batch
                         << (c.same_phase ? " in phase: " : " out of phase: ") << text;
  }
}

TEST(Live, FramesPassWhileTheModelCompiles) {
  for (const char* policy : {"skip-inference", "drop", "block"}) {
    // 17 MB of weights, so that the model is not ready at once.
    Harness harness("clinfer labels=blue,green,red cache-dir=\"\" model=" +
                    testing_models::color_model("large", 700) + " overload-policy=" + policy);
    gst_harness_set_live(harness.get(), TRUE);
    harness.set_caps("NV12", 64, 48);
    ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
    const bool is_ready = std::string(policy) == "block";
    gst_harness_query_latency(harness.get());  // answered at once
    if (is_ready) {
      EXPECT_EQ(answer_of(harness.pull().get()), "red");
      continue;
    }
    if (std::string(policy) == "skip-inference")
      EXPECT_EQ(answer_of(harness.pull().get()), "skipped");
    else
      EXPECT_EQ(Counts(harness.clinfer()).dropped, 1u);
    wait_until_ready(harness.clinfer());
    // Ready is said before the last message about it is posted, with which frames are inferred.
    std::string answer = "skipped";
    for (int i = 1; answer == "skipped" && i < 1000; ++i) {
      std::this_thread::sleep_for(2ms);
      ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
      if (std::string(policy) == "drop" && Counts(harness.clinfer()).dropped != 0 &&
          gst_harness_buffers_in_queue(harness.get()) == 0)
        continue;
      answer = answer_of(harness.pull().get());
    }
    EXPECT_EQ(answer, "red") << policy;
  }
}

TEST(Live, FramesPassWhileTheModelIsTuned) {
  const std::string file = testing_models::folder() / "live-tuning.json";
  Harness harness("clinfer labels=blue,green,red cache-dir=\"\" model=" +
                  testing_models::color_model("large", 700) +
                  " overload-policy=skip-inference tuning-mode=create tuning-file=" + file);
  gst_harness_set_live(harness.get(), TRUE);
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    const std::string answer = answer_of(harness.pull().get());
    if (i > 0 && answer == "red") break;  // tuned while this thread stood still
    EXPECT_EQ(answer, "skipped");
    gst_harness_query_latency(harness.get());
  }
}

// Two cameras of one model, which ask for far more than any device gives; the share of one grows
// while they play.
TEST(Live, SharesFollowTheirBinding) {
  std::string launch;
  for (const char* name : {"plain", "bound"})
    launch +=
        std::string("videotestsrc is-live=true pattern=red ! ") +
        "video/x-raw,format=GRAY8,width=32,height=32,framerate=2000/1 ! clinfer name=" + name +
        " model-instance-id=bound overload-policy=skip-inference model=" +
        testing_models::color_model("slower", 1000) + " ! fakesink sync=false async=false ";
  Pipeline pipeline(launch);
  const Handle<GstElement> plain = pipeline.find("plain");
  const Handle<GstElement> bound = pipeline.find("bound");
  GstControlSource* source = gst_interpolation_control_source_new();
  g_object_set(source, "mode", GST_INTERPOLATION_MODE_NONE, nullptr);
  auto* timed = GST_TIMED_VALUE_CONTROL_SOURCE(source);
  gst_timed_value_control_source_set(timed, 0, 1);
  gst_timed_value_control_source_set(timed, GST_SECOND / 2, 4);
  gst_object_add_control_binding(
      GST_OBJECT(bound.get()),
      gst_direct_control_binding_new_absolute(GST_OBJECT(bound.get()), "share", source));
  gst_object_unref(source);
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  wait_until_ready(plain.get());
  wait_until_ready(bound.get());
  for (guint share = 0; share != 4; std::this_thread::sleep_for(5ms))
    g_object_get(bound.get(), "share", &share, nullptr);
  const uint64_t plain_before = Counts(plain.get()).inferred;
  const uint64_t bound_before = Counts(bound.get()).inferred;
  uint64_t with_one = 0, with_four = 0;
  // However slow the machine is: until there is enough to compare.
  while (with_one + with_four < 60) {
    std::this_thread::sleep_for(20ms);
    with_one = Counts(plain.get()).inferred - plain_before;
    with_four = Counts(bound.get()).inferred - bound_before;
  }
  std::printf("inferred with a share of 1 and 4: %d, %d\n", static_cast<int>(with_one),
              static_cast<int>(with_four));
  EXPECT_GT(with_four, 2 * with_one);
}

TEST(Live, ResultsAreHeldOnFramesWithoutInference) {
  Harness harness(Harness::clinfer_launch("inference-interval=4 hold-results=2"));
  harness.set_caps("NV12", 64, 48);
  std::vector<std::string> seen;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(harness.push(i < 4 ? kRed : kBlue, i), GST_FLOW_OK);
    const auto buffer = harness.pull();
    const auto results = read_results(buffer.get());
    ASSERT_EQ(results.size(), 1u);
    seen.push_back(
        std::string(name_of(results[0].outcome)) +
        (results[0].classifications.empty() ? "" : " " + results[0].classifications[0].label));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"run red", "held red", "held red", "skipped",
                                            "run blue", "held blue"}));
}

TEST(Live, AFlushComesThroughWithinAnInference) {
  Harness harness(slow_launch("nireq=4"));
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  harness.pull();
  const double service = service_ms();
  std::vector<double> times;
  for (int round = 0; round < 9; ++round) {
    for (int i = 0; i < 4; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    const auto begun = Clock::now();
    gst_harness_push_event(harness.get(), gst_event_new_flush_start());
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
    gst_harness_push_event(harness.get(), gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], service);
}

TEST(Live, LatencyIsToldAnewOnlyWhenItHasChanged) {
  Harness harness(slow_launch("nireq=1"));
  gst_harness_set_live(harness.get(), TRUE);
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    harness.pull();
  }
  unsigned told = 0;
  while (GstMessage* message = gst_bus_pop_filtered(harness.bus(), GST_MESSAGE_LATENCY)) {
    ++told;
    gst_message_unref(message);
  }
  EXPECT_GE(told, 1u);
  EXPECT_LE(told, 8u);
}

}  // namespace
}  // namespace clinfer
