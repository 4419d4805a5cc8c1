// Shared by elements that read or add metadata and leave pictures as they are.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

namespace clinfer {

// Pads for video in any memory and format.
void add_any_video_pads(GstElementClass* element);

// Reads the size of the pictures, and the format where GStreamer's video library knows it.
bool read_size(const GstCaps* caps, GstVideoInfo& info);

// For transforms in place that write metadata only: they make no buffers, so what downstream asks of
// buffers is passed on, and a shared buffer is copied without its memory.
void write_metadata_only(GstBaseTransformClass* transform);

// A read-only property `stats`.
void install_stats(GObjectClass* object, guint id, const char* blurb);

}  // namespace clinfer
