// Streams of the device and precision under a target, through the element: on a device that takes a
// time for each launch of a queue, so that what is faster is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>

#include "tests/faults/slow_device.h"
#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// An element message clinfer-target.
struct Told {
  std::string text, precision;
  guint streams = 0;
  bool trial = false;
};

class TargetTrials : public ::testing::Test {
 protected:
  void TearDown() override { set_pace(0); }

  // Starts three cameras that share a model; together they have more frames than the device infers.
  // The queues of the model take `pace` milliseconds for a launch.
  void play(int pace, const std::string& properties) {
    set_pace(pace);
    std::string launch;
    for (const char* name : kElements)
      launch += std::string("videotestsrc is-live=true pattern=blue ! ") +
                "video/x-raw,format=RGB,width=64,height=48,framerate=30/1 ! clinfer name=" + name +
                " labels=blue,green,red first-tier=false model-instance-id=trials "
                "target-latency=2000 model=" +
                testing_models::color_model() + " " + properties +
                " ! fakesink sync=false async=false ";
    pipeline_ = std::make_unique<Pipeline>(launch);
    gst_element_set_state(pipeline_->element, GST_STATE_PLAYING);
    // Each loads on a thread of its own, so that any of them may be the last.
    ASSERT_TRUE(waits_for([&] {
      return std::ranges::all_of(kElements,
                                 [&](const char* name) { return text(name, "tier") == "full"; });
    }));
  }
  Handle<GstStructure> stats(const char* name) { return stats_of(pipeline_->find(name).get()); }
  std::string text(const char* name, const char* field) {
    const Handle<GstStructure> now = stats(name);
    const char* value = gst_structure_get_string(now.get(), field);
    return value != nullptr ? value : "";
  }
  guint number(const char* name, const char* field) {
    const Handle<GstStructure> now = stats(name);
    guint value = 0;
    gst_structure_get_uint(now.get(), field, &value);
    return value;
  }
  // Collects messages until `reached` returns true. Returns false if that takes too long.
  bool waits_for(const std::function<bool()>& reached) {
    GstBus* bus = gst_element_get_bus(pipeline_->element);
    const auto until = Clock::now() + 120s;
    bool is_reached = false;
    while (!(is_reached = reached()) && Clock::now() < until) {
      GstMessage* message = gst_bus_timed_pop_filtered(
          bus, 50 * GST_MSECOND,
          static_cast<GstMessageType>(GST_MESSAGE_ELEMENT | GST_MESSAGE_WARNING));
      if (message == nullptr) continue;
      note(message);
      gst_message_unref(message);
    }
    gst_object_unref(bus);
    return is_reached;
  }
  // Notes the messages of one of the elements.
  void note(GstMessage* message) {
    if (std::string(GST_MESSAGE_SRC_NAME(message)) != "a") return;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING) {
      GError* error = nullptr;
      gst_message_parse_warning(message, &error, nullptr);
      const std::string text = error->message;
      if (text.find("cannot be had") != std::string::npos) warnings_.push_back(text);
      g_error_free(error);
    } else if (gst_message_has_name(message, "clinfer-target")) {
      const GstStructure* content = gst_message_get_structure(message);
      Told told{gst_structure_get_string(content, "text"),
                gst_structure_get_string(content, "precision")};
      gboolean trial = FALSE;
      gst_structure_get(content, "streams", G_TYPE_UINT, &told.streams, "trial", G_TYPE_BOOLEAN,
                        &trial, nullptr);
      told.trial = trial;
      told_.push_back(told);
    }
  }
  // Waits for a message of the end of a trial, and returns it.
  Told outcome() {
    const auto ended = [&] { return !told_.empty() && !told_.back().trial; };
    EXPECT_TRUE(waits_for(ended));
    return ended() ? told_.back() : Told();
  }
  bool all_use(const std::string& precision, guint streams) {
    return waits_for([&] {
      for (const char* name : kElements)
        if (text(name, "precision") != precision || number(name, "streams") != streams)
          return false;
      return true;
    });
  }

  static constexpr std::array kElements{"a", "b", "c"};
  std::vector<Told> told_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Pipeline> pipeline_;
};

TEST_F(TargetTrials, StreamsThatInferMoreAreTaken) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "a CPU has a stream for each core";
  play(20, "");
  EXPECT_EQ(number("a", "streams"), 1u);
  const Told outcome = this->outcome();
  EXPECT_EQ(outcome.streams, 2u) << outcome.text;
  EXPECT_EQ(outcome.precision, "f32");
  ASSERT_GE(told_.size(), 2u);
  EXPECT_TRUE(told_[0].trial) << "the trial itself is told";
  EXPECT_EQ(told_[0].streams, 2u);
  EXPECT_TRUE(all_use("f32", 2));
  EXPECT_EQ(number("b", "target-streams"), 2u);
  EXPECT_TRUE(text("b", "target-tried").starts_with("2 streams: ")) << text("b", "target-tried");
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

// The number of streams is set, so that only the precision is tried.
TEST_F(TargetTrials, AnAllowedPrecisionThatInfersMoreIsTaken) {
  play(20, "throughput-streams=1 allow-precision=f16");
  set_pace(0);
  const Told outcome = this->outcome();
  EXPECT_EQ(outcome.precision, "f16") << outcome.text;
  EXPECT_EQ(outcome.streams, 1u);
  ASSERT_GE(told_.size(), 2u);
  EXPECT_TRUE(told_[0].trial);
  EXPECT_EQ(told_[0].precision, "f16");
  EXPECT_TRUE(all_use("f16", 1));
  EXPECT_EQ(text("b", "target-precision"), "f16");
  // It stays where the elements start again.
  gst_element_set_state(pipeline_->element, GST_STATE_READY);
  gst_element_set_state(pipeline_->element, GST_STATE_PLAYING);
  EXPECT_TRUE(all_use("f16", 1));
}

TEST_F(TargetTrials, APrecisionThatInfersLessStaysUnused) {
  play(20, "throughput-streams=1 allow-precision=f16");
  set_pace(100);
  const Told outcome = this->outcome();
  EXPECT_EQ(outcome.precision, "f32") << outcome.text;
  EXPECT_NE(outcome.text.find("f32, which stays"), std::string::npos) << outcome.text;
  EXPECT_TRUE(all_use("f32", 1));
  EXPECT_TRUE(text("b", "target-tried").starts_with("f16: 0.")) << text("b", "target-tried");
}

TEST_F(TargetTrials, APrecisionThatCannotBeHadIsTold) {
  play(20, "throughput-streams=1 allow-precision=f16");
  set_pace(-1);
  ASSERT_TRUE(waits_for([&] { return !warnings_.empty(); }));
  EXPECT_NE(warnings_[0].find(": f16 cannot be had: "), std::string::npos) << warnings_[0];
  EXPECT_TRUE(all_use("f32", 1));
}

TEST_F(TargetTrials, ATargetThatEndsGivesUpWhatIsOnlyTried) {
  play(20, "throughput-streams=1 allow-precision=f16");
  set_pace(0);
  ASSERT_TRUE(waits_for([&] { return text("a", "precision") == "f16"; }));
  for (const char* name : kElements) {
    const Handle<GstElement> element = pipeline_->find(name);
    g_object_set(element.get(), "target-latency", 0u, nullptr);
  }
  EXPECT_TRUE(all_use("f32", 1));
}

// Without allow-precision and with a number of streams, nothing is tried.
TEST_F(TargetTrials, NothingElseIsTried) {
  play(20, "throughput-streams=1");
  ASSERT_TRUE(waits_for([&] {
    const Handle<GstStructure> now = stats("a");
    double limit = 0;
    gst_structure_get_double(now.get(), "target-limit", &limit);
    return limit > 0;
  })) << "the device is not short of time";
  std::this_thread::sleep_for(15s);
  EXPECT_TRUE(text("a", "target-tried").empty());
  EXPECT_TRUE(all_use("f32", 1));
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace clinfer
