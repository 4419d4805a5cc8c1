// Shared by elements that read or add metadata and leave pictures as they are.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include "gst/base/frame_time.h"

namespace clinfer {

// Reads the size of the pictures, and the format where GStreamer's video library knows it.
bool read_size(const GstCaps* caps, GstVideoInfo& info);

// Prepares a transform in place: downstream's allocation requirements are passed upstream as they
// are, and no pool is made.
void make_no_buffers(GstBaseTransformClass* transform);

// Does what make_no_buffers() does, for transforms that write metadata only: a shared buffer is
// copied without its memory.
void write_metadata_only(GstBaseTransformClass* transform);

// The time since the frame before, by the frame's running time. A stamp that is not believed is told
// with a warning, once.
FrameTime::Step advance_time(FrameTime& time, GstBaseTransform* transform, GstBuffer* buffer,
                             const GstVideoInfo& info);

}  // namespace clinfer
