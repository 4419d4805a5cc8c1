// Keeps a network's last results for each tracked object, so that it need not run on every frame.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "gst/meta/meta.h"

namespace clinfer {

// Where a region is, and by how much it is turned about its middle (0: not).
struct RegionPlace {
  explicit RegionPlace(const InferenceRegion& region)
      : rect(region.rect), angle(region.angle.value_or(0)) {}
  RegionPlace(const Rect& rect, float angle) : rect(rect), angle(angle) {}
  Rect rect;  // in pixels of the frame
  float angle;
};

// Returns the placement of the network's pixels if the region is `to` instead of `from`.
Placement moved(Placement placement, const RegionPlace& from, const RegionPlace& to);

// The streaming thread takes frames, and the source pad's task returns them in the same order.
class TrackResults {
 public:
  // Called by the streaming thread for each frame. Forgets objects that were on none of the last
  // kForget frames.
  void next_frame();
  // Called by the streaming thread. Returns whether the object has to be inferred on this frame:
  // once (interval 0), or on every Nth frame on which it is.
  bool is_due(uint64_t track, unsigned interval);
  // Called by the task. Stores the result on a region.
  void store(uint64_t track, const PartResult& result, const RegionPlace& place);
  // Called by the task. Returns the last result, moved to where the object is now and marked as
  // held. Returns nothing if there is none, because its frame was dropped or failed; the object is
  // then due on the next frame.
  std::optional<PartResult> last(uint64_t track, const RegionPlace& place);
  void clear();
  size_t size() const;

  static constexpr uint64_t kForget = 300;
  // Limit of objects; beyond it, the one seen longest ago is forgotten.
  static constexpr size_t kMost = 4096;

 private:
  struct Entry {
    uint64_t seen = 0;         // number of the frame on which it was last seen
    uint64_t appearances = 0;  // number of frames with it since it was inferred
    bool due = true;
    std::optional<PartResult> result;
    RegionPlace place{{}, 0};
  };
  mutable std::mutex mutex_;
  uint64_t frame_ = 0;
  std::map<uint64_t, Entry> entries_;
};

}  // namespace clinfer
