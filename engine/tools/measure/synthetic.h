// Synthetic video frames for measurements, with the same content in every run.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// A frame that owns its planes.
class SyntheticFrame {
 public:
  // Takes "1920x1080:NV12". Throws Error{bad_argument}, which lists the formats.
  explicit SyntheticFrame(const std::string& text);
  SyntheticFrame(const SyntheticFrame&) = delete;  // deleted because frame() points into planes_
  SyntheticFrame& operator=(const SyntheticFrame&) = delete;

  const Frame& frame() const { return frame_; }

 private:
  Frame frame_;
  std::vector<uint8_t> planes_[3];
};

// The input for frames: the first one of rank 4 with 1 or 3 channels. Throws Error{bad_argument} if
// there is none.
struct ImageInput {
  size_t index = 0;
  size_t batch = 1;
  FrameTransform transform;
};
ImageInput find_image_input(const std::vector<Port>& inputs);

}  // namespace clinfer
