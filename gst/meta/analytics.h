// Results in GstAnalytics metas, for GStreamer's own elements and applications: objects with their
// classifications and tracks from 1.24 on, tensors and segmentation from 1.26 on. If built with an
// older GStreamer, this writes and finds nothing.
#pragma once

#include <gst/video/video.h>

#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

// An object in GstAnalytics.
struct AnalyticsObject {
  RegionView view;  // with everything related to it; its analytics_id is set, not `id`
  int parent = -1;  // analytics_id of the object that it is part of; -1: none
};

struct AnalyticsContents {
  std::vector<AnalyticsObject> objects;
  // Classifications and segmentations that belong to no object.
  Answers whole;
};

// Reads what is on the buffer. `width`, `height` here and below: of the visible picture.
AnalyticsContents read_analytics(GstBuffer* buffer, int width, int height);

// Returns whether an object of GstAnalytics is this region: the same label and, but for rounding,
// the same rectangle.
bool is_same_object(const RegionView& a, const RegionView& b);

// Returns whether results can be in GstAnalytics.
bool has_analytics();

// Makes room for this many objects if the buffer has no relation meta yet. GStreamer's matrix of
// relations grows by its first size, by 5 unless it is told.
void reserve_analytics(GstBuffer* buffer, size_t objects);

// Adds to the buffer's relation meta and, if there are tensors, to its tensor meta. Makes the metas
// only if there is something to add. Sets the objects' analytics_id, and relates them to their
// parents among `objects`.
void add_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects, int width,
                           int height);
// Makes an object a part of `parent`; both are on the buffer.
void add_analytics_parent(GstBuffer* buffer, const RegionView& object, const RegionView& parent,
                          int width, int height);
// Replaces all objects in GstAnalytics by these.
void replace_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects,
                               int width, int height);
// Counts the objects in GstAnalytics.
size_t count_analytics_objects(GstBuffer* buffer);
// Relates an object that is on the buffer to a track, whose first frame had the time `first_seen`
// and whose last one has `last_seen`.
void add_analytics_track(GstBuffer* buffer, const RegionView& object, uint64_t id,
                         uint64_t first_seen, uint64_t last_seen, int width, int height);
// Relates an object that is on the buffer to its mask.
void add_analytics_mask(GstBuffer* buffer, const RegionView& object, int width, int height);
// Adds answers about `object`, which is on the buffer; null: about the whole picture.
void add_analytics_answers(GstBuffer* buffer, const RegionView* object, const Answers& answers,
                           int width, int height);
// Adds classes and segmentations of the whole picture to the buffer of a changed picture.
void add_analytics_answers_again(GstBuffer* buffer, const std::vector<ResultView>& results,
                                 int width, int height);

}  // namespace clinfer
