// The trackers of a stream, one for each kind of object. Keeps which frames had an inference, which
// objects are tracked, and what is known about them. Uses no GStreamer element types.
#pragma once

#include <gst/video/video.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gst/meta/meta.h"
#include "gst/track/tracker.h"

namespace clinfer {

struct TrackSettings {
  double high_threshold = TrackerSettings{}.high_threshold;
  double low_threshold = TrackerSettings{}.low_threshold;
  unsigned min_hits = TrackerSettings{}.min_hits;
  unsigned lost_time = 2000;  // in milliseconds
  double appearance_threshold = TrackerSettings{}.appearance_threshold;
  bool per_class = true;
  bool predict = true;
  unsigned max_objects = 500;  // of one kind on one frame
  std::string object_class;
};

// Tracks the objects of a stream, of all models and labels. Not thread-safe.
class FrameTracker {
 public:
  // Returns the objects to attach to a frame that comes `seconds` after the one before. `width`,
  // `height`: of the visible picture, which may change. `time`: of the frame, in nanoseconds.
  std::vector<TrackedObject> track(const FrameView& frame, const TrackSettings& settings,
                                   double seconds, int width, int height, uint64_t time);
  // Begins another stream, or another part of it: ids go on, tracks do not.
  void clear() {
    kinds_.clear();
    begins_ = true;
    width_ = height_ = 0;
  }

  uint64_t ids() const { return last_id_; }  // number of ids given so far
  size_t tracks() const;                     // number of present tracks
  // Returns how many objects got no id because their confidence was below high-threshold.
  uint64_t unsure() const { return unsure_; }

 private:
  using Key = std::pair<std::string, std::string>;  // model, label
  struct Known {
    RegionView view;  // as it was seen last, without the answers of networks
    uint64_t first_seen = 0;
  };
  struct Kind {
    Tracker tracker;
    std::map<uint64_t, Known> known;  // by id
    std::vector<size_t> regions;      // of this frame
  };
  void update(Kind& kind, const FrameView& frame, const TrackSettings& settings, double seconds,
              int width, int height, uint64_t time, std::vector<TrackedObject>& tracked);
  void predict(Kind& kind, const TrackSettings& settings, int width, int height, uint64_t time,
               std::vector<TrackedObject>& tracked) const;
  void repeat(const Kind& kind, const FrameView& frame, int width, int height, uint64_t time,
              std::vector<TrackedObject>& tracked) const;

  std::map<Key, Kind> kinds_;
  uint64_t last_id_ = 0, unsure_ = 0;
  bool begins_ = true;  // true if the next frame is the first one
  // The size of the first frame in pixels. Tracks are kept in this unit, so that a stream may
  // change its size.
  int width_ = 0, height_ = 0;
};

}  // namespace clinfer
