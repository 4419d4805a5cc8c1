// Results on buffers. With GStreamer 1.24 or newer, an object of GstAnalytics stands for each
// object; a region of interest, with parameters that are named as in DL Streamer, does so besides
// (FrameResult::roi_meta), and alone with older versions. One custom meta (record.h) holds all
// results again and follows the frame through converters. Results are read from whichever of these
// a buffer has.
#pragma once

#include <gst/video/video.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/heads/base/decoder.h"
#include "gst/meta/record.h"
#include "gst/meta/views.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// Converts network pixels to shares of the visible picture, clipped; returns nothing if the box
// lies outside.
std::optional<PictureBox> to_picture(const Detection& detection, const Placement& placement,
                                     const Rect& visible);

// A part of a frame to infer: the whole frame, or one of the regions on its buffer.
struct InferenceRegion {
  std::optional<size_t> index;    // index into what read_regions() returned
  Rect rect;                      // in pixels of the frame; width 0: the whole frame
  std::optional<uint64_t> track;  // the object's track
  std::vector<Point> landmarks;   // landmarks of the object, in shares of the visible picture
  Orientation turn = {};          // turn of the upright picture, for the network
  std::optional<float> angle;     // turn of `rect`, as in Frame
};

// Returns the regions on a frame whose label is among `object_class` (comma separated; empty:
// any), clipped to `visible`; leaves out those outside of it.
std::vector<InferenceRegion> regions_to_infer(const FrameView& frame, const Rect& visible,
                                              const std::string& object_class);

// The network's results for one part.
struct PartResult {
  Results results;
  Placement placement;
  std::optional<size_t> region;  // InferenceRegion::index
  bool held = false;             // true for the result of an earlier frame
};

struct FrameResult {
  Outcome outcome = Outcome::skipped;
  std::string model;
  std::vector<PartResult> parts;
  Rect visible;
  bool roi_meta = true;  // objects become regions of interest besides objects of GstAnalytics
};

// Adds a frame's results to a writable buffer, whose regions must be those that regions_to_infer()
// saw. `labels`: names by label_id. Objects get ids above all existing ones; results about a region
// become a part of it.
void attach_result(GstBuffer* buffer, const FrameResult& result,
                   const std::vector<std::string>& labels);

// An object in the view of a tracker.
struct TrackedObject {
  uint64_t id = 0;
  std::optional<size_t> region;  // index into what read_regions() returned
  RegionView expected;           // the expected object, if it was not looked for (no `region`)
  // Times of frames in nanoseconds.
  uint64_t first_seen = 0, now = 0;
};

// Returns whether a region's label is among these; always true if there are none.
bool is_among(const RegionView& region, const std::vector<std::string>& labels);

// Adds objects to a writable buffer unchanged, except for their ids, which it returns.
std::vector<int> attach_objects(GstBuffer* buffer, const Rect& visible,
                                const std::vector<RegionView>& objects);

// Events at lines and in zones, for one frame.
struct ZoneResult {
  std::vector<ZoneView> zones;
  std::vector<EventView> events;
  // Names of the zones that a region is in, by its index in what read_regions() returned.
  std::map<size_t, std::vector<std::string>> objects;
};

// The results on a frame, which are read once and then added to. Not thread-safe; the buffer must
// be writable, and nobody else may change it.
class FrameResults {
 public:
  FrameResults(GstBuffer* buffer, const Rect& visible);
  ~FrameResults();
  FrameResults(const FrameResults&) = delete;
  FrameResults& operator=(const FrameResults&) = delete;

  // Returns the frame's results as they were read.
  const FrameView& view() const;
  // Add tracks to regions and regions for objects that are expected but were not looked for on this
  // frame; or events and zones. Call one of the two functions, once.
  void attach(const std::vector<TrackedObject>& objects);
  void attach(const ZoneResult& zones);

 private:
  class Contents;
  std::unique_ptr<Contents> contents_;
};

// Returns everything known about a frame. `width`, `height`: of the visible picture.
FrameView read_frame(GstBuffer* buffer, int width, int height);

// Returns every object and region on the buffer, also those of other elements.
std::vector<RegionView> read_regions(GstBuffer* buffer, int width, int height);

// Returns a result for each clinfer that the buffer has passed.
std::vector<ResultView> read_results(GstBuffer* buffer);

}  // namespace clinfer
