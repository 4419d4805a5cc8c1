// Keeps the last frames of a stream, for networks that take several at a time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/heads/network.h"
#include "gst/frames/frame_input.h"

namespace clinfer {

// Holds copies in system memory, because the frames themselves belong to pools upstream, which
// would run empty. To be used by the streaming thread; others may use what frames() returned.
class Clip {
 public:
  using Frames = std::vector<std::shared_ptr<FrameInput>>;

  // Takes each `stride`-th frame, which `orientation` turns for the network. Returns true if this
  // frame was taken and completes `length` frames. Throws Error{bad_argument, device_failed} for
  // frames that cannot be mapped.
  bool add(GstBuffer* buffer, const GstVideoInfo& info, const Orientation& orientation,
           const CompiledModel& model, size_t length, unsigned stride);
  Frames frames() const { return {frames_.begin(), frames_.end()}; }  // oldest first
  void clear();

 private:
  std::deque<std::shared_ptr<FrameInput>> frames_;
  uint64_t seen_ = 0;
};

// Gives a part of frames to a request, as image `image` of its input. `visible`: the part of the
// frames that viewers see; `rect`: that of them to give (width 0: all); `turn`: of the upright
// picture; `angle`: of the part, as FrameInput::fill() takes it.
Placement give_frames(InferRequest& request, const Network& network, const Clip::Frames& frames,
                      const Rect& visible, const Rect& rect, const Orientation& turn,
                      std::optional<float> angle, size_t image);

}  // namespace clinfer
