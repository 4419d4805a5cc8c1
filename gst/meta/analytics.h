// Results in GstAnalytics metas, for GStreamer's own elements and applications: objects with their
// classifications and tracks from 1.24 on, tensors and segmentation from 1.26 on. If built with an
// older GStreamer, this writes and finds nothing.
#pragma once

#include <gst/video/video.h>

#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

// Returns objects on the buffer with everything related to them; sets their analytics_id, not `id`.
// `width`, `height`: of the visible picture.
std::vector<RegionView> read_analytics_objects(GstBuffer* buffer, int width, int height);

// Returns classifications that belong to no object.
std::vector<ClassificationView> read_analytics_answers(GstBuffer* buffer);

// Returns whether an object of GstAnalytics is this region: the same label and, but for rounding,
// the same rectangle.
bool is_same_object(const RegionView& a, const RegionView& b);

// Adds to the buffer's relation meta and, if there are tensors, to its tensor meta. Makes the metas
// only if there is something to add. Sets the objects' analytics_id.
void add_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects);
// Replaces all objects in GstAnalytics by these.
void replace_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects);
// Counts the objects in GstAnalytics.
size_t count_analytics_objects(GstBuffer* buffer);
// Relates an object that is on the buffer to a track, whose first frame had the time `first_seen`
// and whose last one has `last_seen`.
void add_analytics_track(GstBuffer* buffer, const RegionView& object, uint64_t id,
                         uint64_t first_seen, uint64_t last_seen, int width, int height);
// Adds answers about `object`, which is on the buffer; null: about the whole picture.
void add_analytics_answers(GstBuffer* buffer, const RegionView* object, const Answers& answers,
                           int width, int height);

}  // namespace clinfer
