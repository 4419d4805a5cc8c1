// Frames that do not hold their picture: each is lost alone, with a warning; the stream goes on.
#include <gtest/gtest.h>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

size_t warnings_on(GstBus* bus, const char* part) {
  size_t count = 0;
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_WARNING)) {
    GError* error = nullptr;
    gst_message_parse_warning(message, &error, nullptr);
    if (std::string(error->message).find(part) != std::string::npos) ++count;
    g_error_free(error);
    gst_message_unref(message);
  }
  return count;
}

// A frame of the harness's format with `bytes` of its memory, and a region for elements that want one.
GstFlowReturn push_part(Harness& harness, int number, gsize bytes) {
  GstBuffer* buffer =
      frame_of(harness.info(), kGreen, static_cast<GstClockTime>(number) * 40 * GST_MSECOND);
  if (bytes == 0)
    gst_buffer_remove_all_memory(buffer);
  else
    gst_buffer_resize(buffer, 0, static_cast<gssize>(bytes));
  gst_buffer_add_video_region_of_interest_meta(buffer, "thing", 2, 2, 20, 20);
  return gst_harness_push(harness.get(), buffer);
}

TEST(Unreadable, ShortAndEmptyBuffersAreLostAlone) {
  for (const std::string& launch :
       {Harness::clinfer_launch(), Harness::clinfer_launch("inference-region=roi-list"),
        Harness::clinfer_launch("regions=0,0,32,32;8,8,32,32"), std::string("cloverlay"),
        std::string("cltrack ! clzones lines=a:0.0,0.5,1.0,0.5 ! cloverlay")})
    for (const gsize bytes : {gsize{0}, gsize{1}, gsize{64 * 48}}) {
      Harness harness(launch);
      harness.set_caps("RGB", 64, 48);
      for (int i = 0; i < 12; ++i)
        EXPECT_EQ(push_part(harness, i, i % 5 == 3 ? bytes : gsize{64 * 48 * 3}), GST_FLOW_OK)
            << launch;
      for (int i = 0; i < 12; ++i) {
        const Handle<GstBuffer> out = harness.pull();
        ASSERT_NE(out.get(), nullptr) << launch << " " << i;
        if (launch != Harness::clinfer_launch()) continue;
        EXPECT_EQ(answer_of(out.get()), i % 5 == 3 ? "skipped" : "green") << bytes << " " << i;
      }
      EXPECT_EQ(warnings_on(harness.bus(), "passed over"), 2u) << launch;
    }
}

TEST(Unreadable, CropsGoOn) {
  Harness harness("clcrop");
  harness.set_caps("RGB", 64, 48);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(push_part(harness, i, i == 2 ? gsize{0} : gsize{64 * 48 * 3}), GST_FLOW_OK);
  for (int i = 0; i < 5; ++i) EXPECT_NE(harness.pull().get(), nullptr) << i;
  EXPECT_EQ(gst_harness_try_pull(harness.get()), nullptr);
  EXPECT_EQ(warnings_on(harness.bus(), "passed over"), 1u);
}

TEST(Unreadable, WhatMustBeHiddenIsNotPassedOn) {
  Harness harness("cloverlay privacy=fill");
  harness.set_caps("RGB", 64, 48);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(push_part(harness, i, i == 2 ? gsize{64} : gsize{64 * 48 * 3}), GST_FLOW_OK);
  for (int i = 0; i < 5; ++i) EXPECT_NE(harness.pull().get(), nullptr) << i;
  EXPECT_EQ(gst_harness_try_pull(harness.get()), nullptr);
}

TEST(Unreadable, AStreamOfThemIsAnError) {
  Harness harness;
  harness.set_caps("RGB", 64, 48);
  int good = 0;
  while (good < 1000 && push_part(harness, good, 100) == GST_FLOW_OK) ++good;
  EXPECT_EQ(good, 99);
  EXPECT_NE(error_on(harness.get()->element, std::chrono::seconds(1)).find("100 frames in a row"),
            std::string::npos);
}

}  // namespace
}  // namespace clinfer
