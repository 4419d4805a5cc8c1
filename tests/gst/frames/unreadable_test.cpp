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

// ---- memory that the host cannot map, as that of protected video --------------------------------

GstMemory* secure_alloc(GstAllocator* allocator, gsize size, GstAllocationParams*) {
  GstMemory* memory = g_new0(GstMemory, 1);
  gst_memory_init(memory, GST_MEMORY_FLAG_NOT_MAPPABLE, allocator, nullptr, size, 0, 0, size);
  return memory;
}
void secure_free(GstAllocator*, GstMemory* memory) { g_free(memory); }
gpointer secure_map(GstMemory*, gsize, GstMapFlags) { return nullptr; }
void secure_unmap(GstMemory*) {}

void secure_class_init(gpointer klass, gpointer) {
  static_cast<GstAllocatorClass*>(klass)->alloc = secure_alloc;
  static_cast<GstAllocatorClass*>(klass)->free = secure_free;
}
void secure_init(GTypeInstance* instance, gpointer) {
  auto* allocator = reinterpret_cast<GstAllocator*>(instance);
  allocator->mem_map = secure_map;
  allocator->mem_unmap = secure_unmap;
}

Handle<GstAllocator> secure_allocator(const char* mem_type) {
  static const GType type = [] {
    GTypeInfo info{};
    info.class_size = sizeof(GstAllocatorClass);
    info.class_init = secure_class_init;
    info.instance_size = sizeof(GstAllocator);
    info.instance_init = secure_init;
    return g_type_register_static(GST_TYPE_ALLOCATOR, "TestSecureAllocator", &info, {});
  }();
  auto* made = static_cast<GstAllocator*>(g_object_new(type, nullptr));
  made->mem_type = mem_type;
  gst_object_ref_sink(made);
  return Handle<GstAllocator>(made);
}

TEST(Unreadable, MemoryThatCannotBeMappedIsOneError) {
  for (const std::string& launch :
       {Harness::clinfer_launch(), std::string("cloverlay"), std::string("clcrop"),
        std::string("clpublish file-path=/dev/null ! cloverlay")})
    for (const char* mem_type : {"Secure", static_cast<const char*>(nullptr)}) {
      const Handle<GstAllocator> allocator = secure_allocator(mem_type);
      Harness harness(launch);
      harness.set_caps("RGB", 64, 48);
      const auto push = [&](bool secure, int number) {
        GstBuffer* buffer =
            frame_of(harness.info(), kGreen, static_cast<GstClockTime>(number) * 40 * GST_MSECOND);
        if (secure)
          gst_buffer_replace_all_memory(
              buffer, gst_allocator_alloc(allocator.get(), gst_buffer_get_size(buffer), nullptr));
        gst_buffer_add_video_region_of_interest_meta(buffer, "thing", 2, 2, 20, 20);
        return gst_harness_push(harness.get(), buffer);
      };
      if (mem_type == nullptr) {  // a frame between others is lost alone
        EXPECT_EQ(push(false, 0), GST_FLOW_OK) << launch;
        EXPECT_EQ(push(true, 1), GST_FLOW_OK) << launch;
        EXPECT_EQ(push(false, 2), GST_FLOW_OK) << launch;
        EXPECT_EQ(warnings_on(harness.bus(), "cannot map (of no named type)"), 1u) << launch;
        continue;
      }
      EXPECT_EQ(push(true, 0), GST_FLOW_ERROR) << launch;
      EXPECT_NE(error_on(harness.get()->element, std::chrono::seconds(1))
                    .find("frames lie in memory that the host cannot map (Secure)"),
                std::string::npos)
          << launch;
      EXPECT_EQ(warnings_on(harness.bus(), "passed over"), 0u) << launch;
    }
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
