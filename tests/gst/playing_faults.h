// A pipeline as a scenario of failures (tests/faults/runner.h): it ends with an error on the bus, or all
// frames have the right answer.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "gst/meta/meta.h"
#include "tests/faults/runner.h"
#include "tests/gst/harness.h"
#include "tests/gst/live_objects.h"

namespace clinfer {

constexpr int kFaultFrames = 3;
constexpr int kFaultsInARow = 10;

struct Seen {
  int right = 0;
  bool wrong = false;
};

// Looks at a frame at the end. Failing allocations here are no fault of the elements.
inline void look(GstElement*, GstBuffer* buffer, GstPad*, gpointer data) {
  auto& seen = *static_cast<Seen*>(data);
  for (int attempt = 0; attempt <= kFaultsInARow; ++attempt) try {
      if (answer_of(buffer) == "red")
        ++seen.right;
      else
        seen.wrong = true;
      return;
    } catch (const std::bad_alloc&) {
    }
}

struct Closed {
  void operator()(GstElement* pipeline) const {
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
  }
  void operator()(GstBus* bus) const { gst_object_unref(bus); }
  void operator()(GstMessage* message) const { gst_message_unref(message); }
};

// Plays `launch`, whose sink is named "end" and gets kFaultFrames red frames.
inline std::string play_red(const std::string& launch) {
  constexpr GstClockTime kEnough = 60 * GST_SECOND;
  Seen seen;
  GError* error = nullptr;
  std::unique_ptr<GstElement, Closed> pipeline(gst_parse_launch(launch.c_str(), &error));
  if (error != nullptr) {
    const Handle<GError> owner(error);
    throw std::runtime_error(error->message);
  }
  const Handle<GstElement> end(gst_bin_get_by_name(GST_BIN(pipeline.get()), "end"));
  g_signal_connect(end.get(), "handoff", G_CALLBACK(look), &seen);
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  const std::unique_ptr<GstBus, Closed> bus(gst_element_get_bus(pipeline.get()));
  const std::unique_ptr<GstMessage, Closed> message(gst_bus_timed_pop_filtered(
      bus.get(), kEnough, static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS)));
  if (message == nullptr) return "neither the end of the stream nor an error came";
  if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ERROR) {
    gst_message_parse_error(message.get(), &error, nullptr);
    const Handle<GError> owner(error);
    throw std::runtime_error(error->message);
  }
  pipeline.reset();
  if (seen.wrong) return "a frame has the wrong answer";
  return seen.right == kFaultFrames ? "" : std::to_string(seen.right) + " frames came";
}

// `live` as in Scenario, besides what GStreamer knows.
inline Scenario playing(
    const std::string& launch, const std::function<long()>& live = [] { return 0L; }) {
  return {[] {
            g_setenv("GST_TRACERS", "leaks", TRUE);
            gst_init(nullptr, nullptr);
            register_result_meta();
          },
          [launch] { return play_red(launch); }, [live] { return count_live_objects() + live(); }};
}

}  // namespace clinfer
