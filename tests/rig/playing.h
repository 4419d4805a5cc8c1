// Runs launch lines on the rig, and hands over what the sink got of a network that gives back its
// input.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gst/infer/clinfer.h"
#include "gst/meta/meta.h"
#include "tests/gst/harness.h"
#include "tests/rig/counters.h"
#include "tests/small_ir.h"

namespace clinfer {

// The frames that the sink got, and the messages on the bus.
struct Played {
  std::vector<std::vector<float>>
      tensors;  // the first one of each frame; empty where the network did not run
  std::vector<std::string> warnings;
  std::string error;
  std::string path, reason;
  guint64 zero_copy = 0;
  guint tuning_hits = 0, tuning_measured = 0;
};

inline std::vector<float> tensor_of(GstBuffer* buffer) {
  const std::vector<ResultView> results = read_results(buffer);
  if (results.empty() || results[0].tensors.empty()) return {};
  const Bytes& data = results[0].tensors[0].data;
  return std::vector<float>(values_of<float>(data), values_of<float>(data) + count_of<float>(data));
}

// Calls `probe` for each frame that comes to the element "net".
inline void probe_frames(GstElement* pipeline, GstPadProbeCallback probe) {
  GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline), "net");
  GstPad* pad = gst_element_get_static_pad(net, "sink");
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, probe, nullptr, nullptr);
  gst_object_unref(pad);
  gst_object_unref(net);
}

// Marks a part of 151 x 61 pixels at (20, 10) in each frame that comes to "net".
inline void crop_frames(GstElement* pipeline) {
  probe_frames(pipeline, [](GstPad*, GstPadProbeInfo* info, gpointer) {
    GstBuffer* buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_DATA(info) = buffer;
    GstVideoCropMeta* meta = gst_buffer_add_video_crop_meta(buffer);
    meta->x = 20;
    meta->y = 10;
    meta->width = 151;
    meta->height = 61;
    return GST_PAD_PROBE_OK;
  });
}

inline void read_bus(GstElement* pipeline, Played& played) {
  GstBus* bus = gst_element_get_bus(pipeline);
  const auto kinds =
      static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS | GST_MESSAGE_WARNING);
  for (bool more = true; more;) {
    GstMessage* message = gst_bus_timed_pop_filtered(bus, 600 * GST_SECOND, kinds);
    if (message == nullptr) {  // the sanitizers are slow while kernels are compiled
      played.error = "nothing happened for ten minutes";
      break;
    }
    GError* error = nullptr;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING) {
      gst_message_parse_warning(message, &error, nullptr);
      // The rig's devices are no GPUs, which is said once.
      if (std::string(error->message).rfind("there is no GPU: ", 0) != 0)
        played.warnings.emplace_back(error->message);
    } else {
      more = false;
      if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(message, &error, nullptr);
        played.error = error->message;
      }
    }
    g_clear_error(&error);
    gst_message_unref(message);
  }
  gst_object_unref(bus);
}

using Prepare = std::function<void(GstElement* pipeline)>;

// Runs "... ! clinfer name=net ... ! fakesink name=sink" to its end, and looks that nothing was
// misused or left behind.
inline Played play(const std::string& launch, const Prepare& prepare = {}) {
  Played played;
  const long misuse = va_counters().misuse + cl_counters().misuse;
  {
    Pipeline pipeline(launch);
    GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline.element), "net");
    GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline.element), "sink");
    GstPad* pad = gst_element_get_static_pad(sink, "sink");
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad*, GstPadProbeInfo* info, gpointer data) {
          static_cast<Played*>(data)->tensors.push_back(tensor_of(GST_PAD_PROBE_INFO_BUFFER(info)));
          return GST_PAD_PROBE_OK;
        },
        &played, nullptr);
    if (prepare) prepare(pipeline.element);
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    read_bus(pipeline.element, played);
    GstStructure* stats = nullptr;
    g_object_get(net, "stats", &stats, nullptr);
    if (const char* path = gst_structure_get_string(stats, "path")) played.path = path;
    if (const char* reason = gst_structure_get_string(stats, "path-reason")) played.reason = reason;
    gst_structure_get_uint64(stats, "zero-copy-frames", &played.zero_copy);
    gst_structure_get_uint(stats, "tuning-hits", &played.tuning_hits);
    gst_structure_get_uint(stats, "tuning-measured", &played.tuning_measured);
    gst_structure_free(stats);
    gst_element_set_state(pipeline.element, GST_STATE_NULL);
    gst_object_unref(pad);
    gst_object_unref(sink);
    gst_object_unref(net);
  }
  EXPECT_EQ(va_counters().misuse + cl_counters().misuse, misuse) << launch;
  EXPECT_EQ(va_counters().surfaces_alive, 0) << launch;
  EXPECT_EQ(cl_counters().images_alive, 0) << launch;
  EXPECT_EQ(cl_counters().buffers_alive, 0) << launch;
  EXPECT_EQ(cl_counters().acquired, cl_counters().released) << launch;
  return played;
}

inline std::string source(int width, int height, const std::string& more = "", int frames = 3,
                          const std::string& format = "NV12") {
  return "videotestsrc num-buffers=" + std::to_string(frames) +
         " pattern=chroma-zone-plate kx2=20 ky2=20 kt=1 ! video/x-raw," + "format=" + format +
         ",width=" + std::to_string(width) + ",height=" + std::to_string(height) +
         ",framerate=25/1" + more;
}

// A network [1,3,24,40] -> ReLU that hands on what it gets. Path of its .xml.
inline const std::string& echo_model() {
  static const std::string path = [] {
    const Shape shape{1, 3, 24, 40};
    test::SmallIr ir("echo");
    ir.result(ir.add("ReLU", 1, "", {ir.input(shape, "data")}, shape, "echo"));
    return ir.write(testing_models::folder());
  }();
  return path;
}

inline std::string net(const std::string& properties = "") {
  return " ! clinfer name=net first-tier=false post-process=none color-format=bgr mean=0 scale=1 "
         "resize-mode=stretch model=" +
         echo_model() + " " + properties;
}
// GStreamer 1.22 copies the last sample, and unmaps in the copy memory that it did not map.
inline constexpr const char* kSink = " ! fakesink name=sink enable-last-sample=false";

inline void expect_same(const Played& surfaces, const Played& memory, const std::string& what) {
  ASSERT_EQ(surfaces.error, "") << what;
  ASSERT_EQ(memory.error, "") << what;
  ASSERT_EQ(surfaces.tensors.size(), memory.tensors.size()) << what;
  for (size_t i = 0; i < memory.tensors.size(); ++i) {
    ASSERT_FALSE(memory.tensors[i].empty()) << what;
    ASSERT_EQ(surfaces.tensors[i].size(), memory.tensors[i].size()) << what << ", frame " << i;
    float worst = 0;
    for (size_t k = 0; k < memory.tensors[i].size(); ++k)
      worst = std::max(worst, std::abs(surfaces.tensors[i][k] - memory.tensors[i][k]));
    EXPECT_LE(worst, 1) << what << ", frame " << i << ": of 255";
  }
}

}  // namespace clinfer
