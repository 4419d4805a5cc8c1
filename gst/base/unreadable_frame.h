// Errors for frames whose memory or metadata do not fit their format. Cameras, networks and
// applications send one now and then; only that frame is lost, and the stream goes on.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <string>

#include "kernels/base/error.h"

namespace clinfer {

// Thrown if one buffer is at fault, not the stream.
class UnreadableFrame : public Error {
 public:
  explicit UnreadableFrame(const std::string& what, SourcePlace place = SourcePlace::here())
      : Error(ErrorCode::bad_argument, what, place) {}
};

// Thrown if the host cannot map a frame's memory, as the secure memory of protected video.
class UnmappableFrame : public UnreadableFrame {
 public:
  using UnreadableFrame::UnreadableFrame;
};

// Counts the frames that an element could not read. Thread-safe.
class UnreadableFrames {
 public:
  // Notes that the element skips this frame. Warns at the 1st, 2nd, 4th, 8th ... such frame, so
  // that a bad source does not flood the bus. Throws Error if the stream, not a frame, is at fault:
  // no frame could be read for long, or the first ones are in memory that cannot be mapped.
  void lose(GstElement* element, const UnreadableFrame& frame) {
    if (!any_readable_ && dynamic_cast<const UnmappableFrame*>(&frame) != nullptr)
      throw Error{ErrorCode::bad_argument, frame.what(), frame.place()};
    const uint64_t count = ++count_;
    if (++in_a_row_ >= kMostInARow)
      throw Error{ErrorCode::bad_argument,
                  std::to_string(kMostInARow) + " frames in a row cannot be read: " + frame.what(),
                  frame.place()};
    if ((count & (count - 1)) != 0) return;
    gst_element_message_full(
        element, GST_MESSAGE_WARNING, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        g_strdup_printf("a frame is passed over (%s so far): %s", std::to_string(count).c_str(),
                        frame.what()),
        nullptr, frame.place().file, frame.place().function, frame.place().line);
  }
  void count_readable() {
    in_a_row_ = 0;
    any_readable_ = true;
  }
  uint64_t count() const { return count_; }
  void clear() {
    count_ = in_a_row_ = 0;
    any_readable_ = false;
  }

 private:
  static constexpr unsigned kMostInARow = 100;
  std::atomic<uint64_t> count_{0};
  std::atomic<unsigned> in_a_row_{0};
  std::atomic<bool> any_readable_{false};
};

}  // namespace clinfer
