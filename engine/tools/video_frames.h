// Frames of videos, spread over them evenly, as the elements of a pipeline get them.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/frames/frame.h"

namespace clinfer {

// A frame in I420. `bytes` holds the planes of `frame` as GStreamer lays them out.
struct VideoFrame {
  std::shared_ptr<const std::vector<uint8_t>> bytes;
  Frame frame;
  std::string colours;  // its colorimetry for GStreamer; may be empty
  std::string video;
  size_t number = 0;  // in the video, from 0
};

// Frames of all videos (files or URIs), `count` altogether at most, in the order of the videos. Of a
// source without end those of its first 20 seconds. Memory limits their number: 512 MiB. Shows
// progress. Throws Error{not_found, bad_argument, cancelled}.
std::vector<VideoFrame> sample_frames(const std::vector<std::string>& videos, size_t count);

// The size, colours and memory of frames with these caps, as GStreamer writes them as text, with
// planes without memory; bytes: of one frame. Throws Error{bad_argument} on other formats.
struct FrameLayout {
  Frame frame;
  std::array<size_t, 3> offsets{};
  size_t bytes = 0;
  std::string colours;  // the field colorimetry
};
FrameLayout layout_of(const std::string& caps);

// Keeps some of a sequence of unknown length, evenly spread: every one, then every second, every
// fourth ...
class EvenSample {
 public:
  explicit EvenSample(size_t count) : count_(count) {}
  // Returns true when the frame of this number is to be kept. Numbers come in order. Frames that were kept before may
  // be dropped by it: kept() lists those that remain.
  bool wants(size_t number);
  const std::vector<size_t>& kept() const { return kept_; }
  std::vector<size_t> chosen() const;  // `count` of what is kept at most, the ends included

 private:
  size_t count_, step_ = 1;
  std::vector<size_t> kept_;
};

}  // namespace clinfer
