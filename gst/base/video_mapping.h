// A buffer of video mapped for a scope.
#pragma once

#include <gst/video/video.h>

#include "gst/base/unreadable_frame.h"

namespace clinfer {

class VideoMapping {
 public:
  // Throws UnreadableFrame with `failure` as its text.
  VideoMapping(GstBuffer* buffer, const GstVideoInfo& info, GstMapFlags flags,
               const char* failure) {
    if (!gst_video_frame_map(&frame_, &info, buffer, flags)) throw UnreadableFrame(failure);
  }
  ~VideoMapping() { gst_video_frame_unmap(&frame_); }
  VideoMapping(const VideoMapping&) = delete;
  VideoMapping& operator=(const VideoMapping&) = delete;

  GstVideoFrame* frame() { return &frame_; }
  const GstVideoFrame* frame() const { return &frame_; }

 private:
  GstVideoFrame frame_;
};

}  // namespace clinfer
