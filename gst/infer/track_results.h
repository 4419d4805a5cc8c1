// A network's last results about each tracked object, so that it need not run on every frame.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "gst/meta/meta.h"

namespace clinfer {

// The placement that the network's pixels have when the region is `to` instead of `from`.
Placement moved(Placement placement, const Rect& from, const Rect& to);

// Frames are taken by the streaming thread and given back, in the same order, by the source pad's
// task.
class TrackResults {
 public:
  // Streaming thread: another frame comes. Objects that were on none of the last kForget frames are
  // forgotten.
  void next_frame();
  // Streaming thread: whether the object is to be inferred on this frame: once (interval 0), or on
  // every Nth frame on which it is.
  bool is_due(uint64_t track, unsigned interval);
  // Task: the result on a region, `rect` in pixels of the frame.
  void store(uint64_t track, const PartResult& result, const Rect& rect);
  // Task: the last result, moved to where the object is now and marked as held. Nothing: there is
  // none, because its frame was dropped or failed; then the object is due on the next frame.
  std::optional<PartResult> last(uint64_t track, const Rect& rect);
  void clear();
  size_t size() const;

  static constexpr uint64_t kForget = 300;
  static constexpr size_t kMost = 4096;  // objects; of more, the one seen longest ago is forgotten

 private:
  struct Entry {
    uint64_t seen = 0;         // number of the frame
    uint64_t appearances = 0;  // on frames since it was inferred
    bool due = true;
    std::optional<PartResult> result;
    Rect rect;
  };
  mutable std::mutex mutex_;
  uint64_t frame_ = 0;
  std::map<uint64_t, Entry> entries_;
};

}  // namespace clinfer
