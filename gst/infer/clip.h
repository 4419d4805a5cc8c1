// Keeps the last frames of a stream, for networks that take several at a time.
#pragma once

#include <deque>
#include <memory>
#include <vector>

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

}  // namespace clinfer
