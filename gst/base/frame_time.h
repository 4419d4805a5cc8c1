// The time that passes from frame to frame, for elements that measure how long objects are seen. Clocks
// of cameras and recorders jump, and networks lose frames: a stamp far from the one before is not
// believed before the next one confirms it. Plain C++.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace clinfer {

// Measures the time between frames. For one thread.
class FrameTime {
 public:
  struct Step {
    double seconds = 0;    // since the frame before, at least 0
    bool is_hole = false;  // frames were missing in this time; known one frame late
    // The text for the user, at the first stamp that is far from the one before; else "".
    std::string problem;
  };

  // stamp: of the next frame, nanoseconds; nothing: unknown. interval: seconds between frames as the
  // stream states it; 0: unknown.
  Step advance(std::optional<uint64_t> stamp, double interval);
  // Another stream begins.
  void clear() { *this = {}; }

 private:
  Step bridge(double seconds);
  Step accept(uint64_t stamp, double seconds, bool is_hole = false);

  std::optional<uint64_t> last_;      // the last stamp that is believed
  std::optional<uint64_t> doubtful_;  // the stamp of the last frame, if it is far from that
  double bridged_ = 0;                // seconds counted beyond `last_`
  double usual_ = 0;                  // seconds between frames, smoothed; 0: not known yet
  bool confirmed_ = false;            // `last_` followed from another stamp
  bool told_ = false;
};

}  // namespace clinfer
