// Counts objects that cross lines and objects inside zones, by the path of one point of each
// object. Plain C++: places and ids in, events out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace clinfer {

// A position in pixels of the picture.
struct Place {
  double x = 0, y = 0;
};

// A line has two points. Seen from the first point towards the second, objects that come "in" cross
// from left to right. A zone is a polygon of three or more points, whose edges may cross; the
// even-odd rule then decides what is inside.
struct Zone {
  std::string name;
  bool is_line = false;
  std::vector<Place> points;
};

struct ZoneCounts {
  uint64_t in = 0, out = 0;  // objects that crossed in either direction, or that entered and left
  uint64_t inside = 0;       // objects in the zone at present
};

struct SeenObject {
  uint64_t id = 0;
  Place at;
  double margin = 0;  // in pixels: closer to a line than this, an object is on neither side
};

enum class Event { cross_in, cross_out, enter, leave, dwell };

struct ZoneEvent {
  Event event = Event::enter;
  size_t zone = 0;
  uint64_t id = 0;
  double seconds = 0;  // duration of the object's stay in the zone: for dwell and leave
};

// Counts objects at lines and in zones. Not thread-safe.
class ZoneCounter {
 public:
  explicit ZoneCounter(std::vector<Zone> zones)
      : zones_(std::move(zones)), counts_(zones_.size()) {}

  // Takes the objects of a frame at `seconds`, a time that does not decrease. Forgets objects that
  // were not seen for `lost` seconds, which then leave their zones. `dwell`: seconds in a zone
  // after which there is an event, once for each visit; 0: never.
  std::vector<ZoneEvent> update(double seconds, std::span<const SeenObject> objects, double lost,
                                double dwell);
  // Makes objects leave that were not seen for `lost` seconds, even if they are on the next frame.
  // To be called after missing frames, during which no object could be seen.
  std::vector<ZoneEvent> forget(double seconds, double lost);
  // Returns the indices of the zones that an object is in.
  std::vector<size_t> zones_of(uint64_t id) const;
  bool knows(uint64_t id) const { return known_.count(id) != 0; }

  const std::vector<Zone>& zones() const { return zones_; }
  const std::vector<ZoneCounts>& counts() const { return counts_; }

 private:
  struct Presence {
    std::optional<Place> sure;  // for a line: the last place that was on one of its sides
    bool inside = false, dwelt = false;
    double since = 0;
  };
  struct Known {
    double seen = 0;
    std::vector<Presence> presence;  // by zone
  };
  void cross(size_t zone, const SeenObject& object, Presence& presence,
             std::vector<ZoneEvent>& events);
  void visit(size_t zone, const SeenObject& object, Presence& presence, double seconds,
             double dwell, std::vector<ZoneEvent>& events);
  void leave(size_t zone, uint64_t id, Presence& presence, double seconds,
             std::vector<ZoneEvent>& events);

  std::vector<Zone> zones_;
  std::vector<ZoneCounts> counts_;
  std::map<uint64_t, Known> known_;
};

}  // namespace clinfer
