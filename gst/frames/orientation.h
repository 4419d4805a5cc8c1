// Tells how stored pictures are turned to be upright, as GStreamer names it.
#pragma once

#include <gst/video/video.h>

#include <optional>

#include "kernels/frames/preprocess.h"

namespace clinfer {

// No turn for methods that name none (auto, custom).
Orientation orientation_of(GstVideoOrientationMethod method);

// Returns the orientation of a frame whose meta says how it is shown; nothing where that is more
// than turning and mirroring.
std::optional<Orientation> orientation_of(const GstVideoAffineTransformationMeta& meta);

// The orientation of the tag image-orientation; nothing without it.
std::optional<GstVideoOrientationMethod> tagged_orientation(const GstTagList* tags);

// Returns whether an element upstream of this sink pad turns pictures as their tag says (videoflip
// with video-direction=auto). GStreamer 1.22's leaves the tag on the stream that it has turned.
// Looks at elements in a row, not beyond one with several sink pads. Call it from the streaming
// thread.
bool is_turned_upstream(GstPad* sink);

}  // namespace clinfer
