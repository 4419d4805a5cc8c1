// How stored pictures are turned to be upright, as GStreamer names it.
#pragma once

#include <gst/video/video.h>

#include <optional>

#include "kernels/frames/preprocess.h"

namespace clinfer {

// Of a method that is no turn (auto, custom): none.
Orientation orientation_of(GstVideoOrientationMethod method);

// The orientation of the tag image-orientation; nothing without it.
std::optional<GstVideoOrientationMethod> tagged_orientation(const GstTagList* tags);

}  // namespace clinfer
