// A buffer of video mapped for a scope.
#pragma once

#include <gst/video/video.h>

#include "kernels/base/error.h"

namespace clinfer {

class VideoMapping {
 public:
  // Throws Error{bad_argument} with `failure` as its text.
  VideoMapping(GstBuffer* buffer, const GstVideoInfo& info, GstMapFlags flags,
               const char* failure) {
    if (!gst_video_frame_map(&frame_, &info, buffer, flags))
      throw Error{ErrorCode::bad_argument, failure};
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
