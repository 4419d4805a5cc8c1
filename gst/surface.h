// A GstBuffer as the engine sees a frame: planes, strides, crop, colorimetry. In system memory, or
// mapped to it.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "kernels/preprocess.h"

namespace clinfer {

// Formats that the elements take, for caps templates.
#define CLINFER_VIDEO_FORMATS                                                                  \
  "{ NV12, I420, RGB, BGR, RGBx, BGRx, RGBA, BGRA, NV21, YV12, YUY2, UYVY, xRGB, xBGR, ARGB, " \
  "ABGR, GRAY8 }"

// Throw Error{bad_argument} when a mapped frame's planes reach beyond its memory, and when its crop
// reaches beyond the frame: the metas of a buffer are whatever an upstream element wrote there.
void check_frame_memory(const GstVideoFrame& mapped, GstBuffer* buffer);
Rect visible_part(int width, int height, GstBuffer* buffer);

// Format, size and colours of caps, without planes. Throws Error{bad_argument} for formats that the
// elements do not take.
Frame frame_of_info(const GstVideoInfo& info);

// A buffer mapped for reading; keeps a reference to it, and the mapping, until it goes.
class MappedFrame {
 public:
  // Strides, offsets and size from the buffer's GstVideoMeta where it has one, else from info;
  // GstVideoCropMeta narrows the region. Throws Error{bad_argument} when the memory cannot be
  // mapped or does not hold what the metadata say.
  MappedFrame(GstBuffer* buffer, const GstVideoInfo& info);
  ~MappedFrame();
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;

  const Frame& frame() const { return frame_; }
  // The part that viewers see: the crop, else everything. Results are relative to it.
  const Rect& visible() const { return visible_; }

 private:
  GstVideoFrame mapped_;
  Frame frame_;
  Rect visible_;
};

}  // namespace clinfer
