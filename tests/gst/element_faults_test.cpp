// Each failure under the elements ends in an error on the bus or in the right results.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include "gst/meta/meta.h"
#include "tests/engine/test_files.h"
#include "tests/faults/runner.h"
#include "tests/gst/harness.h"
#include "tests/gst/test_model.h"

namespace clinfer {
namespace {

constexpr int kFrames = 3;
constexpr auto kPatience = std::chrono::seconds(60);

struct Seen {
  int right = 0;
  bool wrong = false;
};

// Looks at a frame at the end. A failing allocation here is no fault of the elements.
void look(GstElement*, GstBuffer* buffer, GstPad*, gpointer data) {
  auto& seen = *static_cast<Seen*>(data);
  for (int attempt = 0; attempt < 2; ++attempt) try {
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

class ElementFaults : public testing::Test {
 protected:
  Scenario playing() {
    return {[] {
              gst_init(nullptr, nullptr);
              register_result_meta();
            },
            [this] { return play(); }};
  }

 private:
  std::string play() const {
    Seen seen;
    GError* error = nullptr;
    std::unique_ptr<GstElement, Closed> pipeline(gst_parse_launch(launch_.c_str(), &error));
    if (error != nullptr) {
      const std::string text = error->message;
      g_clear_error(&error);
      throw std::runtime_error(text);
    }
    const Handle<GstElement> end(gst_bin_get_by_name(GST_BIN(pipeline.get()), "end"));
    g_signal_connect(end.get(), "handoff", G_CALLBACK(look), &seen);
    gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
    const std::unique_ptr<GstBus, Closed> bus(gst_element_get_bus(pipeline.get()));
    const std::unique_ptr<GstMessage, Closed> message(gst_bus_timed_pop_filtered(
        bus.get(), GST_SECOND * static_cast<GstClockTime>(kPatience.count()),
        static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS)));
    if (message.get() == nullptr) return "neither the end of the stream nor an error came";
    if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ERROR) {
      gst_message_parse_error(message.get(), &error, nullptr);
      const std::string text = error->message;
      g_clear_error(&error);
      throw std::runtime_error(text);
    }
    pipeline.reset();
    if (seen.wrong) return "a frame has the wrong answer";
    return seen.right == kFrames ? "" : std::to_string(seen.right) + " frames came";
  }

  const TemporaryFolder folder_;
  const std::string launch_ =
      "videotestsrc pattern=red num-buffers=" + std::to_string(kFrames) +
      " ! video/x-raw,format=BGR,width=32,height=32,framerate=25/1 ! clinfer model=" +
      testing_models::color_model() + " labels=blue,green,red cache-dir=" + (folder_ / "cache") +
      " ! cloverlay ! clpublish file-path=" + (folder_ / "lines") +
      " ! fakesink name=end signal-handoffs=true";
};

TEST_F(ElementFaults, Allocations) { fail_each(kAllocation, 60, playing()); }
TEST_F(ElementFaults, Threads) { fail_each(kThread, 20, playing()); }
TEST_F(ElementFaults, Files) { fail_each(kFile, 20, playing()); }
TEST_F(ElementFaults, OpenClCalls) { fail_each(kOpenCl, 60, playing()); }

}  // namespace
}  // namespace clinfer
