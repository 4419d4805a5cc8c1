// Follows objects of one kind from frame to frame and gives them ids: association in two stages as
// in ByteTrack (Y. Zhang et al., 2022), objects of high confidence first, using their appearance if
// that is known. Plain C++: boxes in, ids out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gst/track/motion.h"

namespace clinfer {

struct TrackerSettings {
  double high_threshold = 0.55;  // least confidence of an object that is certain
  double low_threshold = 0.1;    // least confidence of an object that may continue a track
  unsigned min_hits = 2;         // frames on which an object must be seen before it gets an id
  // Seconds for which an object may be out of sight and keep its id; longer if it was not looked
  // for in that time.
  double lost_time = 2;
  // Least cosine of two embeddings of the same object; 0: embeddings are not used.
  double appearance_threshold = 0.5;
};

// Returns the least confidence of an object that starts a track: 0.1 above high_threshold, since an
// object that was never seen before is more often an error.
inline double start_threshold(double high_threshold) { return std::min(high_threshold + 0.1, 1.0); }

struct Observation {
  Box box;
  double confidence = 0;
  std::span<const float> embedding;  // empty: unknown; has the same length for all objects
};

struct Track {
  uint64_t id = 0;  // 0: not seen often enough yet
  Motion motion;
  Box observed;             // where it was seen last
  double unseen = 0;        // seconds since then
  unsigned missed = 0;      // frames since then on which it was looked for in vain
  unsigned hits = 0;        // number of frames on which it was seen
  std::vector<float> look;  // mean direction of its embeddings; empty: unknown
};

// Tracks objects of one kind. Not thread-safe.
class Tracker {
 public:
  using NextId = std::function<uint64_t()>;

  // `next_id`: called for each object that gets an id. `begins`: objects of the first frame get ids
  // at once.
  Tracker(TrackerSettings settings, NextId next_id, bool begins = true)
      : settings_(settings), next_id_(std::move(next_id)), begins_(begins) {}

  // Advances by `seconds` (between the frames, at least 0), then takes the objects found on this
  // frame. Returns the id of each object; 0 if it has none (yet). Boxes may have any unit, the same
  // one for all frames. Boxes that are empty or not finite are never tracked.
  std::vector<uint64_t> update(double seconds, std::span<const Observation> objects);
  // Advances by `seconds` over a frame on which no object was looked for.
  void skip(double seconds);

  // Returns all tracks, seen on the last frame or not.
  const std::vector<Track>& tracks() const { return tracks_; }
  void set(const TrackerSettings& settings) { settings_ = settings; }

 private:
  struct Pairing;
  void advance(double seconds);
  void forget();
  template <typename IsWanted, typename Cost>
  void pair_up(Pairing& pairing, IsWanted&& is_wanted, bool high, Cost&& cost);
  void follow_camera(Pairing& pairing);
  void pair_all(Pairing& pairing);
  void see(Track& track, const Observation& object);

  TrackerSettings settings_;
  NextId next_id_;
  std::vector<Track> tracks_;
  double since_update_ = 0;  // in seconds
  bool begins_;
};

}  // namespace clinfer
