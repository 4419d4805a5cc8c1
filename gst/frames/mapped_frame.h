// A GstBuffer that is mapped to system memory, as the engine's frame: planes, strides, crop and
// colorimetry.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "kernels/frames/preprocess.h"

namespace clinfer {

// Formats that clinfer and cloverlay accept, for caps templates.
#define CLINFER_VIDEO_FORMATS                                                                  \
  "{ NV12, I420, RGB, BGR, RGBx, BGRx, RGBA, BGRA, NV21, YV12, YUY2, UYVY, xRGB, xBGR, ARGB, " \
  "ABGR, GRAY8, NV16, Y42B, Y444, P010_10LE, I420_10LE }"

// Caps of frames that can be mapped: in system memory, or linear in memory of a driver (DMABuf).
// Since 1.24 such caps name a DRM format, which is linear without a modifier.
#if GST_CHECK_VERSION(1, 24, 0)
#define CLINFER_DMA_DRM_CAPS ";" GST_VIDEO_DMA_DRM_CAPS_MAKE ", drm-format=(string)NV12"
#else
#define CLINFER_DMA_DRM_CAPS
#endif
#define CLINFER_MAPPED_CAPS                  \
  GST_VIDEO_CAPS_MAKE(CLINFER_VIDEO_FORMATS) \
  ";" GST_VIDEO_CAPS_MAKE_WITH_FEATURES("memory:DMABuf", CLINFER_VIDEO_FORMATS) CLINFER_DMA_DRM_CAPS

// Returns the bytes from the first sample of a plane to the component's. (GStreamer 1.22 returns 1
// byte for P010's Cr.)
int component_offset(const GstVideoFormatInfo* format, guint component);

// Reads the caps of mapped frames. Returns false if they do not describe a picture. Without
// colorimetry, Y'CbCr counts as BT.601 of limited range. (GStreamer's own default for more than 576
// rows is BT.709.)
bool read_caps(const GstCaps* caps, GstVideoInfo& info);
bool is_dmabuf_caps(const GstCaps* caps);

// Return whether caps are of frames in memory of this feature, and whether negotiation with
// upstream may still result in such frames.
bool has_feature(const GstCaps* caps, const char* feature);
bool may_send(GstPad* sink, const char* feature);

// Throw UnreadableFrame if a buffer's GstVideoMeta contradicts its caps (GStreamer would treat that
// as a programming error of the element that maps the frame), if a mapped frame's planes exceed its
// memory, and if its crop exceeds the frame. Upstream elements wrote these metas, so they are
// untrusted.
void check_meta(GstBuffer* buffer, const GstVideoInfo& info);
void check_frame_memory(const GstVideoFrame& mapped, GstBuffer* buffer);
Rect visible_part(int width, int height, GstBuffer* buffer);

// Returns format, size and colours of caps, without planes. Throws Error{bad_argument} for formats
// that the elements do not accept.
Frame frame_of_info(const GstVideoInfo& info);

// A buffer mapped for reading. Keeps a reference to the buffer, and the mapping, until it is
// destroyed.
class MappedFrame {
 public:
  // Takes strides, offsets and size from the buffer's GstVideoMeta, or from `info` without one;
  // GstVideoCropMeta narrows the region. Throws UnreadableFrame if the memory cannot be mapped or
  // does not hold what the metadata describe.
  MappedFrame(GstBuffer* buffer, const GstVideoInfo& info);
  ~MappedFrame();
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;

  const Frame& frame() const { return frame_; }
  // Returns the part that viewers see: the crop, or everything. Results are relative to it.
  const Rect& visible() const { return visible_; }

 private:
  GstVideoFrame mapped_;
  Frame frame_;
  Rect visible_;
};

}  // namespace clinfer
