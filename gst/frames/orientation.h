// Finds how stored pictures have to be turned to be upright, from what GStreamer says of them.
#pragma once

#include <gst/video/video.h>

#include <optional>

#include "kernels/frames/preprocess.h"

namespace clinfer {

// Returns the orientation for a method; no turn for methods that name none (auto, custom).
Orientation orientation_of(GstVideoOrientationMethod method);

// Returns the orientation of a frame whose meta tells how it is shown; nothing if that is more than
// turning and mirroring.
std::optional<Orientation> orientation_of(const GstVideoAffineTransformationMeta& meta);

// Returns the orientation in the tag image-orientation; nothing without the tag.
std::optional<GstVideoOrientationMethod> tagged_orientation(const GstTagList* tags);

// Returns whether an element upstream of this sink pad turns pictures as their tag says (videoflip
// with video-direction=auto). In GStreamer 1.22 videoflip leaves the tag on the stream that it has
// turned. Follows elements in a row, not beyond one with several sink pads. Call it from the
// streaming thread.
bool is_turned_upstream(GstPad* sink);

}  // namespace clinfer
