// A GstBuffer that is mapped to system memory, as a frame of the engine: planes, strides, crop and
// colorimetry.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "kernels/frames/preprocess.h"

namespace clinfer {

// Formats that clinfer and cloverlay take, for caps templates.
#define CLINFER_VIDEO_FORMATS                                                                  \
  "{ NV12, I420, RGB, BGR, RGBx, BGRx, RGBA, BGRA, NV21, YV12, YUY2, UYVY, xRGB, xBGR, ARGB, " \
  "ABGR, GRAY8, NV16, Y42B, Y444, P010_10LE, I420_10LE }"

// Frames that are mapped: in system memory, or linear in memory of a driver (DMABuf). Since 1.24
// the format of the latter is a name of DRM's, which without a modifier means linear.
#if GST_CHECK_VERSION(1, 24, 0)
#define CLINFER_DMA_DRM_CAPS ";" GST_VIDEO_DMA_DRM_CAPS_MAKE ", drm-format=(string)NV12"
#else
#define CLINFER_DMA_DRM_CAPS
#endif
#define CLINFER_MAPPED_CAPS                  \
  GST_VIDEO_CAPS_MAKE(CLINFER_VIDEO_FORMATS) \
  ";" GST_VIDEO_CAPS_MAKE_WITH_FEATURES("memory:DMABuf", CLINFER_VIDEO_FORMATS) CLINFER_DMA_DRM_CAPS

// Bytes from the first sample of a plane to the component's. (That of P010's Cr counts as 1 byte in
// GStreamer 1.22.)
int component_offset(const GstVideoFormatInfo* format, guint component);

// Reads the caps of mapped frames; false if they do not describe a picture. Where they state no
// colorimetry, Y'CbCr counts as BT.601 of limited range. (GStreamer's own default for more than 576
// rows is BT.709.)
bool read_caps(const GstCaps* caps, GstVideoInfo& info);
bool is_dmabuf_caps(const GstCaps* caps);

// Returns whether caps are of frames in memory of this feature, and whether negotiation with
// upstream may still result in such frames.
bool has_feature(const GstCaps* caps, const char* feature);
bool may_send(GstPad* sink, const char* feature);

// Throw UnreadableFrame when a buffer's GstVideoMeta contradicts its caps (GStreamer would
// treat that as a programming error of the element that maps the frame), when a mapped frame's
// planes reach beyond its memory, and when its crop reaches beyond the frame. Upstream elements
// wrote these metas, so they are untrusted.
void check_meta(GstBuffer* buffer, const GstVideoInfo& info);
void check_frame_memory(const GstVideoFrame& mapped, GstBuffer* buffer);
Rect visible_part(int width, int height, GstBuffer* buffer);

// Format, size and colours of caps, without planes. Throws Error{bad_argument} for formats that the
// elements do not take.
Frame frame_of_info(const GstVideoInfo& info);

// A buffer mapped for reading; keeps a reference to it, and the mapping, until it goes.
class MappedFrame {
 public:
  // Strides, offsets and size from the buffer's GstVideoMeta where it has one, else from info;
  // GstVideoCropMeta narrows the region. Throws UnreadableFrame when the memory cannot be
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
