// A viewer of a camera by WebRTC: a pipeline of its own, which encodes the camera's pictures again.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gst/base/handle.h"

namespace clinfer {

// To be used on one thread, whose default GMainContext has to run: the server's.
class Viewer {
 public:
  // Gives a picture (JPEG) if its number is not `seen`, and its number; null if there is none.
  using Pictures = std::function<std::shared_ptr<const std::string>(uint64_t& seen)>;
  // Gets the answer to the offer (SDP), or "" and what is wrong with the offer.
  using Answered = std::function<void(const std::string& answer, const std::string& problem)>;

  // Returns an element that GStreamer lacks for this; "" if it has all of them.
  static std::string lacks();

  // `offer`: the SDP of a viewer that wants one video without audio. The addresses in it are not
  // used: the viewer has to begin, and reaches 127.0.0.1 only. Calls `answered` once. Throws Error
  // if the offer is not one.
  Viewer(Pictures pictures, const std::string& offer, Answered answered);
  ~Viewer();
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  // Sends the picture if it is a new one, and any once a second. Does not block: where the encoder
  // or the viewer is slow, pictures are dropped.
  void send();
  // Returns whether the viewer has left, or has not come.
  bool is_over() const { return is_over_ || has_left(); }

 private:
  static gboolean on_message(GstBus*, GstMessage* message, gpointer self);
  void take(GstMessage* message);
  void answer(const std::string& text, const std::string& problem);
  bool has_left() const;
  void listen();

  const Pictures pictures_;
  Answered answered_;  // null once it has been called
  Handle<GstElement> pipeline_, source_, peer_;
  const int64_t begun_us_ = g_get_monotonic_time();
  const std::shared_ptr<std::atomic<int64_t>> heard_us_ =
      std::make_shared<std::atomic<int64_t>>(begun_us_);  // monotonic time of the last packet
  int64_t sent_us_ = 0;
  uint64_t seen_ = 0;
  bool is_over_ = false;
};

}  // namespace clinfer
