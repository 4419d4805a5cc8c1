// clpublish with a broker that is not there: what its queue does is in stats. tests/gst/publish/brokers.py has
// brokers.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include "gst/publish/broker.h"
#include "tests/gst/harness.h"
#include "tests/gst/result_frames.h"

namespace clinfer {
namespace {

class PublishToNobody : public ::testing::Test {
 protected:
  void SetUp() override {
    if (brokers_built_in().find("redis") == std::string::npos) GTEST_SKIP() << "no redis built in";
  }
  // Port 1 of this machine answers with a refusal at once.
  static std::string launch(const std::string& more) {
    return "clpublish method=redis address=127.0.0.1:1 " + more;
  }
  static guint64 stat(GstHarness* harness, const char* name) {
    const Handle<GstElement> element(gst_harness_find_element(harness, "clpublish"));
    const Handle<GstStructure> stats = stats_of(element.get());
    guint64 value = G_MAXUINT64;
    EXPECT_TRUE(gst_structure_get_uint64(stats.get(), name, &value)) << name;
    return value;
  }
};

TEST_F(PublishToNobody, DropsTheOldestAndCountsThem) {
  Harness harness(launch("queue-size=3 queue-policy=drop-oldest"));
  harness.set_caps("GRAY8", kFrameWidth, kFrameHeight);
  for (int frame = 0; frame < 10; ++frame)
    ASSERT_EQ(gst_harness_push(harness.get(), frame_with(frame, {}).release()), GST_FLOW_OK);
  EXPECT_EQ(stat(harness.get(), "frames"), 10u);
  EXPECT_EQ(stat(harness.get(), "queued"), 3u);
  EXPECT_EQ(stat(harness.get(), "dropped"), 7u);
  EXPECT_EQ(stat(harness.get(), "sent"), 0u);
}

TEST_F(PublishToNobody, AFullQueueHoldsFramesUpUntilTheElementStops) {
  Pipeline pipeline("videotestsrc ! video/x-raw,format=GRAY8,width=16,height=16 ! " +
                    launch("queue-size=4 name=p") + " ! fakesink async=false");
  const Handle<GstElement> publish = pipeline.find("p");
  const auto count = [&](const char* name) {
    const Handle<GstStructure> stats = stats_of(publish.get());
    guint64 value = 0;
    gst_structure_get_uint64(stats.get(), name, &value);
    return value;
  };
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  const gint64 end = g_get_monotonic_time() + 120 * G_USEC_PER_SEC;
  while (count("frames") < 5 && g_get_monotonic_time() < end) g_usleep(10000);
  EXPECT_EQ(count("frames"), 5u) << "the fifth waits";
  EXPECT_EQ(count("queued"), 4u);
  EXPECT_EQ(count("dropped"), 0u);
  // Returns: the frame that waits goes back.
  EXPECT_NE(gst_element_set_state(pipeline.element, GST_STATE_NULL), GST_STATE_CHANGE_FAILURE);
}

}  // namespace
}  // namespace clinfer
