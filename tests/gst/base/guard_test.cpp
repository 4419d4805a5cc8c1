// Exceptions at the border to GStreamer, and elements that got too little memory to be made.
#include "gst/base/guard.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "gst/base/handle.h"
#include "gst/base/instance.h"

namespace clinfer {
namespace {

// The failure that guard() tells of a body, with its code in front.
template <typename Body>
std::string told_of(Body&& body) {
  std::string told = "nothing";
  const int result = guard(
      [&](const Failure& failure) {
        told = std::to_string(static_cast<int>(failure.code)) + " " + failure.what;
      },
      -1, body);
  EXPECT_EQ(result, told == "nothing" ? 7 : -1);
  return told;
}

std::string told(ErrorCode code, const std::string& text) {
  return std::to_string(static_cast<int>(code)) + " " + text;
}

TEST(Guard, EveryExceptionIsTold) {
  EXPECT_EQ(told_of([] { return 7; }), "nothing");
  EXPECT_EQ(told_of([]() -> int { throw Error(ErrorCode::bad_model, "a loop has no end"); }),
            told(ErrorCode::bad_model, "a loop has no end"));
  EXPECT_EQ(told_of([]() -> int { throw std::bad_alloc(); }),
            told(ErrorCode::out_of_memory, "not enough memory"));
  EXPECT_EQ(told_of([]() -> int { throw std::runtime_error("the driver failed"); }),
            told(ErrorCode::device_failed, "the driver failed"));
  EXPECT_EQ(told_of([]() -> int { throw std::runtime_error(""); }),
            told(ErrorCode::device_failed, "not enough memory"));
}

// As where there is no memory for the message.
TEST(Guard, TellsOnceMoreWhereTellingFails) {
  for (const int failures : {1, 5}) {
    int calls = 0;
    std::string told;
    const int result = guard(
        [&](const Failure& failure) {
          if (++calls <= failures) throw std::bad_alloc();
          told = failure.what;
        },
        -1, []() -> int { throw Error(ErrorCode::io, "the disk is full"); });
    EXPECT_EQ(result, -1);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(told, failures == 1 ? "not enough memory" : "");
  }
}

TEST(Guard, CodesAreGStreamers) {
  struct Case {
    ErrorCode code;
    GQuark domain;
    int wanted;
  };
  const Handle<GstElement> bin(GST_ELEMENT(gst_object_ref_sink(gst_bin_new(nullptr))));
  GstBus* bus = gst_bus_new();
  const Handle<GstObject> owner_of_bus(GST_OBJECT(bus));
  gst_element_set_bus(bin.get(), bus);
  for (const Case& c : std::initializer_list<Case>{
           {ErrorCode::bad_model, GST_STREAM_ERROR, GST_STREAM_ERROR_DECODE},
           {ErrorCode::not_found, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND},
           {ErrorCode::unsupported, GST_STREAM_ERROR, GST_STREAM_ERROR_NOT_IMPLEMENTED},
           {ErrorCode::bad_argument, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS},
           {ErrorCode::no_device, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND},
           {ErrorCode::out_of_memory, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT},
           {ErrorCode::device_failed, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED},
           {ErrorCode::io, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE},
           {ErrorCode::cancelled, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED}}) {
    guard(bin.get(), [&] { throw Error(c.code, "why"); });
    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    gst_message_unref(message);
    const Handle<GError> owner(error);
    EXPECT_TRUE(g_error_matches(error, c.domain, c.wanted)) << g_quark_to_string(error->domain);
    EXPECT_STREQ(error->message, "why");
  }
  gst_element_set_bus(bin.get(), nullptr);
}

struct NeedsMemory {
  explicit NeedsMemory(bool there) {
    if (!there) throw std::bad_alloc();
  }
};

TEST(Instance, WithoutMemoryEachFunctionFails) {
  const std::unique_ptr<NeedsMemory> made(make_state<NeedsMemory>(true)),
      missing(make_state<NeedsMemory>(false));
  EXPECT_EQ(&state_of(made.get()), made.get());
  EXPECT_EQ(missing, nullptr);
  EXPECT_EQ(told_of([&]() -> int {
              state_of(missing.get());
              return 7;
            }),
            told(ErrorCode::out_of_memory, "there was not enough memory to make the element"));
}

}  // namespace
}  // namespace clinfer
