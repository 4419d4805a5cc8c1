// Snapshots of the properties, and the flow return that the element's threads share.
#include "gst/infer/settings/live_settings.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "gst/base/handle.h"
#include "gst/infer/stream/flow.h"

namespace clinfer {
namespace {

class LiveSettingsTest : public testing::Test {
 protected:
  void set(const char* name, unsigned number) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_TYPE_UINT);
    g_value_set_uint(&value, number);
    const auto& rows = element_properties();
    for (guint id = 1; id <= rows.size(); ++id)
      if (std::string_view(rows[id - 1].spec->name) == name)
        settings_.set(id, rows[id - 1], &value);
    g_value_unset(&value);
  }

  const Handle<GstObject> owner_{
      GST_OBJECT(gst_object_ref_sink(gst_pad_new("owner", GST_PAD_SRC)))};
  LiveSettings settings_{reinterpret_cast<GstElement*>(owner_.get())};
};

TEST_F(LiveSettingsTest, AChangeLeavesEarlierSnapshotsAsTheyAre) {
  const auto before = settings_.now();
  EXPECT_EQ(settings_.now(), before) << "a reader copies no settings";
  set("share", 7);
  EXPECT_EQ(before->share, 1u);
  EXPECT_NE(settings_.now(), before);
  EXPECT_EQ(settings_.now()->share, 7u);
}

TEST_F(LiveSettingsTest, AReaderSeesEachChangeWhole) {
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    for (unsigned i = 1; i <= 2000; ++i) {
      set("share", i % 1000 + 1);
      set("hold-results", i % 1000 + 1);
    }
    done = true;
  });
  while (!done) {
    const auto now = settings_.now();
    // The second follows the first, so that it is the same or one behind it.
    if (now->hold_results == 0) continue;
    EXPECT_LE((now->share + 1000 - now->hold_results) % 1000, 1u);
  }
}

TEST(Flow, TheFirstEndStaysUntilAFlush) {
  Flow flow;
  EXPECT_EQ(flow.now(), GST_FLOW_FLUSHING);
  flow.stop_flush();
  EXPECT_TRUE(flow.is_fine());
  flow.end(GST_FLOW_EOS);
  flow.end(GST_FLOW_ERROR);
  EXPECT_EQ(flow.now(), GST_FLOW_EOS);
  flow.go_on_after(GST_FLOW_NOT_LINKED);
  EXPECT_EQ(flow.now(), GST_FLOW_EOS);
  flow.go_on_after(GST_FLOW_EOS);
  EXPECT_TRUE(flow.is_fine());
}

TEST(Flow, FailuresTogetherAreToldOnce) {
  Flow flow;
  flow.stop_flush();
  std::atomic<int> told{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { flow.fail_once([&] { ++told; }); });
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(flow.now(), GST_FLOW_ERROR);
  EXPECT_FALSE(flow.claim_report()) << "the application knows";
  flow.start_flush();
  flow.fail_once([&] { ++told; });
  EXPECT_EQ(told, 1) << "silent while flushing";
}

TEST(Flow, ARefusalOfDownstreamIsReportedOnceByWhoComesFirst) {
  Flow flow;
  flow.stop_flush();
  EXPECT_FALSE(flow.claim_report());
  flow.end(GST_FLOW_NOT_LINKED);
  EXPECT_EQ(flow.claim_report(), std::optional(GST_FLOW_NOT_LINKED));
  EXPECT_FALSE(flow.claim_report());
  flow.go_on_after(GST_FLOW_NOT_LINKED);
  flow.end(GST_FLOW_NOT_NEGOTIATED);
  EXPECT_EQ(flow.tell_upstream(), GST_FLOW_NOT_NEGOTIATED);
  EXPECT_FALSE(flow.claim_report()) << "upstream knows";
}

}  // namespace
}  // namespace clinfer
