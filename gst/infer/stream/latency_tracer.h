// The tracer "clinferlatency": GST_TRACERS=clinferlatency GST_DEBUG=GST_TRACER:7 logs each
// frame that leaves a clinfer, with the times of its stages.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace clinfer {

// The way of a frame through the element; times in nanoseconds.
struct FrameTrace {
  GstClockTime pts = GST_CLOCK_TIME_NONE;
  std::string_view outcome;  // as in the results: "run", "skipped", "late", "held"
  std::string model;
  unsigned inferences = 0;  // parts of the frame that the network got
  // Waiting for a request; in the device, from the start of the first inference to the end of the
  // last one; and reading and attaching the results.
  uint64_t queue = 0, infer = 0, decode = 0;
  uint64_t latency = 0;  // from the arrival at the sink pad to here
};

// Registers the tracer as a feature of the plug-in.
gboolean register_latency_tracer(GstPlugin* plugin);

// Returns whether the tracer runs in this process, so that traces are worth the time to fill them.
bool traces_frames();
// Logs a frame. Any thread may call it.
void trace_frame(GstElement* element, const FrameTrace& trace);

}  // namespace clinfer
