// A live source that stops without an error, and statistics at an interval.
#include <gtest/gtest.h>

#include <thread>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

class Frozen : public ::testing::Test {
 protected:
  void begin(const std::string& properties, bool live = true) {
    pipeline_ = std::make_unique<Pipeline>(
        std::string("appsrc name=camera format=time min-latency=0 is-live=") +
        (live ? "true" : "false") +
        " caps=video/x-raw,format=RGB,width=64,height=48,framerate=25/1 ! clinfer name=net model=" +
        testing_models::color_model() + " labels=blue,green,red " + properties +
        " ! fakesink sync=false async=false");
    gst_element_set_state(pipeline_->element, GST_STATE_PLAYING);
  }
  void push() {
    const Handle<GstElement> camera = pipeline_->find("camera");
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 64 * 48 * 3, nullptr);
    gst_buffer_memset(buffer, 0, 100, 64 * 48 * 3);
    GST_BUFFER_PTS(buffer) = static_cast<GstClockTime>(number_++) * 40 * GST_MSECOND;
    GstFlowReturn flow = GST_FLOW_OK;
    g_signal_emit_by_name(camera.get(), "push-buffer", buffer, &flow);
    gst_buffer_unref(buffer);
  }
  // The next message of this name; nothing within `wait`.
  Handle<GstStructure> message(const char* name, std::chrono::milliseconds wait) {
    GstBus* bus = gst_element_get_bus(pipeline_->element);
    Handle<GstStructure> found;
    const auto until = std::chrono::steady_clock::now() + wait;
    while (found == nullptr && std::chrono::steady_clock::now() < until) {
      GstMessage* message = gst_bus_timed_pop_filtered(bus, 20 * GST_MSECOND, GST_MESSAGE_ELEMENT);
      if (message == nullptr) continue;
      if (gst_message_has_name(message, name))
        found.reset(gst_structure_copy(gst_message_get_structure(message)));
      gst_message_unref(message);
    }
    gst_object_unref(bus);
    return found;
  }
  bool is_frozen(const GstStructure* told) {
    gboolean frozen = FALSE;
    EXPECT_TRUE(gst_structure_get_boolean(told, "frozen", &frozen));
    return frozen;
  }
  std::unique_ptr<Pipeline> pipeline_;
  int number_ = 0;
};

TEST_F(Frozen, ALiveSourceThatStopsIsToldAndThatItGoesOn) {
  begin("frozen-after=300");
  for (int i = 0; i < 3; ++i) push();
  const auto stopped = message("clinfer-frozen", 60s);
  ASSERT_NE(stopped.get(), nullptr);
  EXPECT_TRUE(is_frozen(stopped.get()));
  guint64 age = 0;
  EXPECT_TRUE(gst_structure_get_uint64(stopped.get(), "age-ms", &age));
  EXPECT_GE(age, 300u);
  EXPECT_EQ(message("clinfer-frozen", 700ms).get(), nullptr) << "told once";
  const Handle<GstStructure> stats = stats_of(pipeline_->find("net").get());
  double in = 0, out = 0;
  EXPECT_TRUE(gst_structure_get(stats.get(), "sink-age-ms", G_TYPE_DOUBLE, &in, "src-age-ms",
                                G_TYPE_DOUBLE, &out, nullptr));
  EXPECT_GE(in, 900);
  EXPECT_GE(out, 600);
  for (int i = 0; i < 20; ++i) {
    push();
    std::this_thread::sleep_for(20ms);
  }
  const auto again = message("clinfer-frozen", 60s);
  ASSERT_NE(again.get(), nullptr);
  EXPECT_FALSE(is_frozen(again.get()));
}

TEST_F(Frozen, ACameraThatNeverSendsIsTold) {
  begin("frozen-after=200");
  EXPECT_NE(message("clinfer-frozen", 60s).get(), nullptr);
}

TEST_F(Frozen, FilesPausesAndTheEndAreNot) {
  begin("frozen-after=100", false);
  push();
  EXPECT_EQ(message("clinfer-frozen", 600ms).get(), nullptr) << "a file";
  begin("frozen-after=200");
  push();
  gst_element_set_state(pipeline_->element, GST_STATE_PAUSED);
  while (message("clinfer-frozen", 50ms) != nullptr) {
  }
  EXPECT_EQ(message("clinfer-frozen", 700ms).get(), nullptr) << "a pause";
}

TEST_F(Frozen, StatisticsComeAtAnInterval) {
  begin("stats-interval=50");
  for (int i = 0; i < 3; ++i) push();
  for (int i = 0; i < 3; ++i) {
    const auto stats = message("clinfer-stats", 60s);
    ASSERT_NE(stats.get(), nullptr) << i;
    EXPECT_TRUE(gst_structure_has_field(stats.get(), "infer-p95-ms"));
  }
  const Handle<GstElement> net = pipeline_->find("net");
  g_object_set(net.get(), "stats-interval", 0u, nullptr);
  message("clinfer-stats", 200ms);
  while (message("clinfer-stats", 10ms) != nullptr) {
  }
  EXPECT_EQ(message("clinfer-stats", 400ms).get(), nullptr) << "turned off while playing";
}

}  // namespace
}  // namespace clinfer
