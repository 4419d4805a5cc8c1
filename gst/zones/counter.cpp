// Counts objects that cross lines and visit zones.
#include "gst/zones/counter.h"

#include <algorithm>
#include <cmath>

namespace clinfer {
namespace {

// Returns twice the area of the triangle. In a picture whose rows go down, it is positive where `p`
// is to the right of the way from a to b.
double side(const Place& a, const Place& b, const Place& p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

double distance_to(const Place& a, const Place& b, const Place& p) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double along =
      length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

bool is_inside(const std::vector<Place>& polygon, const Place& p) {
  bool inside = false;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const Place &a = polygon[i], &b = polygon[j];
    if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x)
      inside = !inside;
  }
  return inside;
}

double distance_to_edge(const std::vector<Place>& polygon, const Place& p) {
  double least = INFINITY;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++)
    least = std::min(least, distance_to(polygon[j], polygon[i], p));
  return least;
}

}  // namespace

void ZoneCounter::cross(size_t zone, const SeenObject& object, Presence& presence,
                        std::vector<ZoneEvent>& events) {
  const Place &a = zones_[zone].points[0], &b = zones_[zone].points[1];
  const double now = side(a, b, object.at);
  const double away = std::abs(now) / std::max(std::hypot(b.x - a.x, b.y - a.y), 1e-9);
  if (away <= object.margin || now == 0) return;
  const std::optional<Place> last = std::exchange(presence.sure, object.at);
  if (!last || (side(a, b, *last) > 0) == (now > 0)) return;
  // The object changed sides, which does not count beyond the ends of the line.
  if ((side(*last, object.at, a) > 0) == (side(*last, object.at, b) > 0)) return;
  const bool in = now > 0;
  ++(in ? counts_[zone].in : counts_[zone].out);
  events.push_back({in ? Event::cross_in : Event::cross_out, zone, object.id, 0});
}

void ZoneCounter::leave(size_t zone, uint64_t id, Presence& presence, double seconds,
                        std::vector<ZoneEvent>& events) {
  ++counts_[zone].out;
  --counts_[zone].inside;
  events.push_back({Event::leave, zone, id, seconds - presence.since});
  presence = {};
}

void ZoneCounter::visit(size_t zone, const SeenObject& object, Presence& presence, double seconds,
                        double dwell, std::vector<ZoneEvent>& events) {
  const std::vector<Place>& polygon = zones_[zone].points;
  const bool inside = is_inside(polygon, object.at);
  if (inside != presence.inside && distance_to_edge(polygon, object.at) > object.margin) {
    if (inside) {
      ++counts_[zone].in;
      ++counts_[zone].inside;
      presence.inside = true;
      presence.since = seconds;
      events.push_back({Event::enter, zone, object.id, 0});
    } else {
      leave(zone, object.id, presence, seconds, events);
    }
  }
  if (presence.inside && dwell > 0 && !presence.dwelt && seconds - presence.since >= dwell) {
    presence.dwelt = true;
    events.push_back({Event::dwell, zone, object.id, seconds - presence.since});
  }
}

std::vector<ZoneEvent> ZoneCounter::update(double seconds, std::span<const SeenObject> objects,
                                           double lost, double dwell) {
  std::vector<ZoneEvent> events;
  for (const SeenObject& object : objects) {
    Known& known = known_[object.id];
    known.seen = seconds;
    known.presence.resize(zones_.size());
    for (size_t zone = 0; zone < zones_.size(); ++zone) {
      if (zones_[zone].is_line)
        cross(zone, object, known.presence[zone], events);
      else
        visit(zone, object, known.presence[zone], seconds, dwell, events);
    }
  }
  for (const ZoneEvent& event : forget(seconds, lost)) events.push_back(event);
  return events;
}

std::vector<ZoneEvent> ZoneCounter::forget(double seconds, double lost) {
  std::vector<ZoneEvent> events;
  for (auto item = known_.begin(); item != known_.end();) {
    auto& [id, known] = *item;
    if (seconds - known.seen <= lost) {
      ++item;
      continue;
    }
    for (size_t zone = 0; zone < zones_.size(); ++zone)
      if (known.presence[zone].inside) leave(zone, id, known.presence[zone], known.seen, events);
    item = known_.erase(item);
  }
  return events;
}

std::vector<size_t> ZoneCounter::zones_of(uint64_t id) const {
  std::vector<size_t> zones;
  const auto known = known_.find(id);
  for (size_t zone = 0; known != known_.end() && zone < zones_.size(); ++zone)
    if (known->second.presence[zone].inside) zones.push_back(zone);
  return zones;
}

}  // namespace clinfer
