// The last frames of a stream, for networks that take several at a time.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "gst/frames/frame_input.h"

namespace clinfer {

// Holds copies in system memory: the frames themselves belong to pools upstream, which would run
// empty. Used by the streaming thread; what frames() returns may be used by others.
class Clip {
 public:
  using Frames = std::vector<std::shared_ptr<FrameInput>>;

  // Takes each `stride`-th frame, which the network gets turned by `orientation`. True when this frame was taken and is the last of `length`.
  // Throws Error{bad_argument, device_failed} for frames that cannot be mapped.
  bool add(GstBuffer* buffer, const GstVideoInfo& info, const Orientation& orientation,
           const CompiledModel& model, size_t length, unsigned stride);
  Frames frames() const { return {frames_.begin(), frames_.end()}; }  // oldest first
  void clear();

 private:
  std::deque<std::shared_ptr<FrameInput>> frames_;
  uint64_t seen_ = 0;
};

}  // namespace clinfer
