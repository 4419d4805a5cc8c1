// Reads frames from videos, evenly spread, as a pipeline's elements would get them.
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
  std::string colours;  // colorimetry, as in GStreamer's caps; may be empty
  std::string video;
  size_t number = 0;  // index in the video, from 0
};

// Returns frames of all videos (files or URIs), at most `count` altogether, in the order of the
// videos. Uses the first 20 seconds of a source without end. Limits the memory of all frames to 512
// MiB. Shows progress. Throws Error{not_found, bad_argument, cancelled}.
std::vector<VideoFrame> sample_frames(const std::vector<std::string>& videos, size_t count);

// The size, colours and memory layout of frames with these caps, given in GStreamer's text form;
// `frame` has planes without memory, and `bytes` is the size of one frame. Throws
// Error{bad_argument} for other formats.
struct FrameLayout {
  Frame frame;
  std::array<size_t, 3> offsets{};
  size_t bytes = 0;
  std::string colours;  // the caps field colorimetry
};
FrameLayout layout_of(const std::string& caps);

// Keeps some elements of a sequence of unknown length, evenly spread: first every one, then every
// second, every fourth and so on.
class EvenSample {
 public:
  explicit EvenSample(size_t count) : count_(count) {}
  // Returns true if the frame of this number has to be kept. Numbers come in order. A call may drop
  // frames that were kept before: kept() lists those that remain.
  bool wants(size_t number);
  const std::vector<size_t>& kept() const { return kept_; }
  // At most `count` of the kept frames, including the first and the last.
  std::vector<size_t> chosen() const;

 private:
  size_t count_, step_ = 1;
  std::vector<size_t> kept_;
};

}  // namespace clinfer
