// Maps a video buffer for a scope.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "gst/base/unreadable_frame.h"

namespace clinfer {

// Reports that a buffer could not be mapped: throws UnmappableFrame if its memory is the cause,
// else UnreadableFrame with the text `failure`.
[[noreturn]] inline void throw_not_mapped(GstBuffer* buffer, const std::string& failure) {
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    GstMemory* memory = gst_buffer_peek_memory(buffer, i);
    GstMapInfo map;
    if (gst_memory_map(memory, &map, GST_MAP_READ)) {
      gst_memory_unmap(memory, &map);
      continue;
    }
    const gchar* type = memory->allocator != nullptr ? memory->allocator->mem_type : nullptr;
    throw UnmappableFrame(std::string("frames lie in memory that the host cannot map (") +
                          (type != nullptr ? type : "of no named type") +
                          "), as secure memory; let their source give memory of the system");
  }
  throw UnreadableFrame(failure);
}

class VideoMapping {
 public:
  // Throws as throw_not_mapped() does.
  VideoMapping(GstBuffer* buffer, const GstVideoInfo& info, GstMapFlags flags,
               const char* failure) {
    if (!gst_video_frame_map(&frame_, &info, buffer, flags)) throw_not_mapped(buffer, failure);
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
