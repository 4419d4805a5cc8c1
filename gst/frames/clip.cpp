// Copies the last frames of a stream.
#include "gst/frames/clip.h"

#include "gst/frames/frame_copy.h"

namespace clinfer {

bool Clip::add(GstBuffer* buffer, const GstVideoInfo& info, const Orientation& orientation,
               const CompiledModel& model, size_t length, unsigned stride) {
  if (seen_++ % stride != 0) return false;
  frames_.push_back(copied_input(buffer, info, model));
  frames_.back()->turn(orientation);
  while (frames_.size() > length) frames_.pop_front();
  return frames_.size() == length;
}

void Clip::clear() {
  frames_.clear();
  seen_ = 0;
}

Placement give_frames(InferRequest& request, const Network& network, const Clip::Frames& frames,
                      const Rect& visible, const Rect& rect, const Orientation& turn,
                      std::optional<float> angle, size_t image) {
  const Rect part =
      network.crop_share >= 1 ? rect : fed_part(rect.width == 0 ? visible : rect, network);
  FrameTransform transform = network.transform;
  transform.turn = turned(turn, transform.turn);
  Placement placement;
  for (size_t k = 0; k < frames.size(); ++k)
    placement = frames[k]->fill(request, network.image_input, transform, {part, angle},
                                image * frames.size() + k);
  return placement;
}

}  // namespace clinfer
