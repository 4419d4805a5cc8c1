// Helpers of the element tests: frames of one colour, a GstHarness around clinfer, a pipeline and
// its errors.
#pragma once

#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "gst/base/handle.h"
#include "gst/meta/meta.h"
#include "gst/overlay/canvas.h"
#include "tests/gst/test_model.h"

namespace clinfer {

// A test that takes longer hangs. Under the sanitizers a busy machine compiles a network for many
// minutes.
inline constexpr GstClockTime kPatience = 1200 * GST_SECOND;

inline constexpr Rgb kBlue{20, 10, 230}, kGreen{10, 220, 30}, kRed{240, 20, 10};
// Colours, each with the label that color_model() gives a frame of it.
inline constexpr std::pair<Rgb, const char*> kColors[] = {
    {kBlue, "blue"}, {kGreen, "green"}, {kRed, "red"}};

// A frame of one colour.
inline GstBuffer* frame_of(const GstVideoInfo& info, Rgb color, GstClockTime pts) {
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

// The property `stats` of one of our elements, as it is now.
inline Handle<GstStructure> stats_of(GstElement* element) {
  GstStructure* stats = nullptr;
  g_object_get(element, "stats", &stats, nullptr);
  return Handle<GstStructure>(stats);
}

class Harness {
 public:
  // As gst_harness_new_parse, with a bus from before the start: a model is loaded from then on, and
  // its messages come at any time.
  explicit Harness(const std::string& launch)
      : harness_(gst_harness_new_empty()), bus_(gst_bus_new()) {
    GError* error = nullptr;
    GstElement* bin = gst_parse_bin_from_description(launch.c_str(), TRUE, &error);
    EXPECT_EQ(error, nullptr) << launch << ": " << error->message;
    g_clear_error(&error);
    gst_element_set_bus(bin, bus_);
    const auto pad = [&](const char* name) {
      const Handle<GstPad> found(gst_element_get_static_pad(bin, name));
      return found ? name : nullptr;
    };
    static GstStaticPadTemplate source =
        GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
    static GstStaticPadTemplate sink =
        GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
    gst_harness_add_element_full(harness_, bin, &source, pad("sink"), &sink, pad("src"));
    gst_object_unref(bin);
  }
  // clinfer with the colour model, on the device from the first frame on unless the properties say
  // otherwise.
  Harness() : Harness(clinfer_launch()) {}
  static std::string clinfer_launch(const std::string& properties = "") {
    return "clinfer first-tier=false model=" + testing_models::color_model() +
           " labels=blue,green,red " + properties;
  }
  ~Harness() {
    gst_element_set_bus(harness_->element, nullptr);
    gst_object_unref(bus_);
    gst_harness_teardown(harness_);
  }
  // The messages of all elements since the start.
  GstBus* bus() const { return bus_; }
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

  void set_caps(const char* format, int width, int height, const char* more = "", int fps = 25) {
    const std::string text =
        std::string("video/x-raw,format=") + format + ",width=" + std::to_string(width) +
        ",height=" + std::to_string(height) + ",framerate=" + std::to_string(fps) + "/1" + more;
    const Handle<GstCaps> caps(gst_caps_from_string(text.c_str()));
    ASSERT_TRUE(gst_video_info_from_caps(&info_, caps.get()));
    gst_harness_set_src_caps(harness_, gst_caps_ref(caps.get()));
  }
  GstFlowReturn push(Rgb color, int number) {
    return gst_harness_push(
        harness_, frame_of(info_, color, static_cast<GstClockTime>(number) * 40 * GST_MSECOND));
  }
  // Waits for up to ten minutes, ten times as long as GstHarness: kernels compile slowly under the
  // sanitizers.
  Handle<GstBuffer> pull() {
    for (int minute = 0; minute < 10; ++minute)
      if (GstBuffer* const buffer = gst_harness_pull(harness_)) return Handle<GstBuffer>(buffer);
    return nullptr;
  }
  const GstVideoInfo& info() const { return info_; }

 private:
  GstHarness* harness_;
  GstBus* bus_;
  GstVideoInfo info_;
};

inline std::string answer_of(GstBuffer* buffer) {
  if (buffer == nullptr) return "no buffer";
  const auto results = read_results(buffer);
  if (results.empty()) return "no result";
  if (results[0].outcome != Outcome::run) return std::string(name_of(results[0].outcome));
  return results[0].classifications.empty() ? "nothing" : results[0].classifications[0].label;
}

// Name and text of the first error on the bus, "" when there is none within `wait`.
inline std::string error_on(GstElement* pipeline,
                            std::chrono::milliseconds wait = std::chrono::minutes(1)) {
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
  // The element of this name, of which the pipeline always has one.
  Handle<GstElement> find(const char* name) const {
    return Handle<GstElement>(gst_bin_get_by_name(GST_BIN(element), name));
  }
  GstElement* element;
};

}  // namespace clinfer
