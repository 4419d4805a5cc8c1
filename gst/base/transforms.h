// Shared by elements that read or add metadata and do not change pictures.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include "gst/base/frame_time.h"

namespace clinfer {

// Reads the size of the pictures, and the format if GStreamer's video library knows it.
bool read_size(const GstCaps* caps, GstVideoInfo& info);

// Prepares a transform in place that passes downstream's allocation requirements upstream unchanged
// and makes no pool.
void make_no_buffers(GstBaseTransformClass* transform);

// Does what make_no_buffers() does, for transforms that write metadata only: a shared buffer is
// copied without its memory.
void write_metadata_only(GstBaseTransformClass* transform);

// Returns the time since the frame before, by running time. Warns once of a stamp that is not
// trusted.
FrameTime::Step advance_time(FrameTime& time, GstBaseTransform* transform, GstBuffer* buffer,
                             const GstVideoInfo& info);

}  // namespace clinfer
