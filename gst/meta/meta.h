// Results on buffers. A region of interest stands for each object, with parameters that are named
// as DL Streamer names them; one custom meta (record.h) holds all of it once more and follows the
// frame through converters; with GStreamer 1.24 or newer the results are in GstAnalytics as well.
// Results are read from whichever of these a buffer has.
#pragma once

#include <gst/video/video.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/heads/decoder.h"
#include "gst/meta/record.h"
#include "gst/meta/views.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// Turns network pixels into shares of the visible picture, clipped; nothing when the box lies
// outside.
std::optional<PictureBox> to_picture(const Detection& detection, const Placement& placement,
                                     const Rect& visible);

// A part of a frame to infer: all of it, or one of the regions on its buffer.
struct InferenceRegion {
  std::optional<size_t> index;    // index into the result of read_regions()
  Rect rect;                      // pixels of the frame; width 0: all of it
  std::optional<uint64_t> track;  // of the object
  std::vector<Point> landmarks;   // of the object, in shares of the visible picture
  Orientation turn = {};          // of the upright picture, for the network
};

// The regions on a buffer whose label is among `object_class` (comma separated; empty: any),
// clipped to `visible`; those that lie outside are left out.
std::vector<InferenceRegion> regions_to_infer(GstBuffer* buffer, const Rect& visible,
                                              const std::string& object_class);

// The network's results for one part.
struct PartResult {
  Results results;
  Placement placement;
  std::optional<size_t> region;  // InferenceRegion::index
  bool held = false;             // of an earlier frame
};

struct FrameResult {
  Outcome outcome = Outcome::skipped;
  std::string model;
  std::vector<PartResult> parts;
  Rect visible;
};

// Adds a frame's results to a writable buffer, whose regions must be those that regions_to_infer()
// saw. labels: names by label_id. Objects become regions with ids above all that are there; results
// about a region become parameters of it.
void attach_result(GstBuffer* buffer, const FrameResult& result,
                   const std::vector<std::string>& labels);

// An object as a tracker sees it.
struct TrackedObject {
  uint64_t id = 0;
  std::optional<size_t> region;  // index into the result of read_regions()
  RegionView expected;           // without `region`: the object, where it should be
  // Times of frames, nanoseconds.
  uint64_t first_seen = 0, now = 0;
};

// Returns whether a region's label is among these; without any, each is.
bool is_among(const RegionView& region, const std::vector<std::string>& labels);

// Puts an object on a writable buffer, as it is but for its id.
void attach_object(GstBuffer* buffer, const Rect& visible, const RegionView& object);

// Events at lines and in zones.
struct ZoneResult {
  std::vector<ZoneView> zones;
  std::vector<EventView> events;
  // Names of the zones that a region is in, by its place among those that read_regions() gives.
  std::map<size_t, std::vector<std::string>> objects;
};

// The results on a frame, read once and then added to. For one thread, as long as nobody else changes the
// buffer, which is writable.
class FrameResults {
 public:
  FrameResults(GstBuffer* buffer, const Rect& visible);
  ~FrameResults();
  FrameResults(const FrameResults&) = delete;
  FrameResults& operator=(const FrameResults&) = delete;

  // Returns the frame's results as they were read.
  const FrameView& view() const;
  // Gives regions their tracks, and adds those that are expected but were not looked for on this
  // frame. One of these, once.
  void attach(const std::vector<TrackedObject>& objects);
  void attach(const ZoneResult& zones);

 private:
  class Contents;
  std::unique_ptr<Contents> contents_;
};

// Everything known of a frame. width, height: of the visible picture.
FrameView read_frame(GstBuffer* buffer, int width, int height);

// Every object and region on the buffer, ours or another element's.
std::vector<RegionView> read_regions(GstBuffer* buffer, int width, int height);

// One for each clinfer that the buffer passed.
std::vector<ResultView> read_results(GstBuffer* buffer);

}  // namespace clinfer
