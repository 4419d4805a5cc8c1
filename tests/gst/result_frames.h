// Frames that carry results as clinfer attaches them, without a network.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "gst/base/handle.h"
#include "gst/meta/meta.h"

namespace clinfer {

inline constexpr int kFrameWidth = 320, kFrameHeight = 240;

// GRAY8, 25 frames a second.
inline Handle<GstBuffer> frame_of_size(int number) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, kFrameWidth * kFrameHeight, nullptr);
  gst_buffer_memset(buffer, 0, 0, kFrameWidth * kFrameHeight);
  GST_BUFFER_PTS(buffer) = static_cast<GstClockTime>(number) * 40 * GST_MSECOND;
  GST_BUFFER_DURATION(buffer) = 40 * GST_MSECOND;
  return Handle<GstBuffer>(buffer);
}

// Corners in pixels; label 0 is "person", 1 "car".
inline Detection box(float x_min, float y_min, float x_max, float y_max, float confidence = 0.9f,
                     int label = 0) {
  Detection detection;
  detection.x_min = x_min;
  detection.y_min = y_min;
  detection.x_max = x_max;
  detection.y_max = y_max;
  detection.confidence = confidence;
  detection.label_id = label;
  return detection;
}

inline Handle<GstBuffer> frame_with(int number, const std::vector<Detection>& objects,
                                    Outcome outcome = Outcome::run) {
  Handle<GstBuffer> buffer = frame_of_size(number);
  FrameResult result;
  result.outcome = outcome;
  result.model = "net";
  result.visible = {0, 0, kFrameWidth, kFrameHeight};
  if (outcome != Outcome::skipped) result.parts.emplace_back().results.detections = objects;
  attach_result(buffer.get(), result, {"person", "car"});
  return buffer;
}

}  // namespace clinfer
