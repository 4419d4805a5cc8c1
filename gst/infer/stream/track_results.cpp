// Keeps the last results of tracked objects.
#include "gst/infer/stream/track_results.h"

#include <algorithm>

namespace clinfer {

Placement moved(Placement placement, const RegionPlace& from_place, const RegionPlace& to_place) {
  const Rect &from = from_place.rect, &to = to_place.rect;
  const auto ratio = [](int a, int b) {
    return b > 0 ? static_cast<float>(a) / static_cast<float>(b) : 1;
  };
  const float x = ratio(to.width, from.width), y = ratio(to.height, from.height);
  const auto shifted = [](float origin, int from, int to, float scale) {
    return static_cast<float>(to) + (origin - static_cast<float>(from)) * scale;
  };
  placement.origin_x = shifted(placement.origin_x, from.x, to.x, x);
  placement.origin_y = shifted(placement.origin_y, from.y, to.y, y);
  placement.pivot_x = shifted(placement.pivot_x, from.x, to.x, x);
  placement.pivot_y = shifted(placement.pivot_y, from.y, to.y, y);
  placement.angle += to_place.angle - from_place.angle;
  placement.x_scale *= x;
  placement.y_scale *= y;
  return placement;
}

void TrackResults::next_frame() {
  const std::lock_guard lock(mutex_);
  ++frame_;
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.seen + kForget < frame_; });
}

bool TrackResults::is_due(uint64_t track, unsigned interval) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMost && entries_.count(track) == 0)
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.seen < b.second.seen; }));
  Entry& entry = entries_[track];
  entry.seen = frame_;
  ++entry.appearances;
  if (!entry.due && (interval == 0 || entry.appearances < interval)) return false;
  entry.due = false;
  entry.appearances = 0;
  return true;
}

void TrackResults::store(uint64_t track, const PartResult& result, const RegionPlace& place) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(track);
  if (entry == entries_.end()) return;
  entry->second.result = result;
  entry->second.result->region.reset();
  entry->second.place = place;
}

std::optional<PartResult> TrackResults::last(uint64_t track, const RegionPlace& place) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(track);
  if (entry == entries_.end()) return std::nullopt;
  if (!entry->second.result) {
    entry->second.due = true;
    return std::nullopt;
  }
  PartResult result = *entry->second.result;
  result.placement = moved(result.placement, entry->second.place, place);
  result.held = true;
  return result;
}

void TrackResults::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

size_t TrackResults::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace clinfer
