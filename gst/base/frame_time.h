// Measures the time from frame to frame, for elements that measure how long objects are seen.
// Clocks of cameras and recorders jump, and networks lose frames: a stamp far from the one before
// is trusted only when the next one confirms it. Plain C++.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace clinfer {

// Measures the time between frames. Not thread-safe.
class FrameTime {
 public:
  struct Step {
    double seconds = 0;    // since the frame before, at least 0
    bool is_hole = false;  // true if frames were missing in this time; known one frame late
    // A message for the user at the first stamp that is far from the one before; else "".
    std::string problem;
  };

  // Advances to the next frame. `stamp`: its time in nanoseconds; nothing if unknown. `interval`:
  // seconds between frames as the stream states it; 0 if unknown.
  Step advance(std::optional<uint64_t> stamp, double interval);
  // Forgets everything, for another stream.
  void clear() { *this = {}; }

 private:
  Step bridge(double seconds);
  Step accept(uint64_t stamp, double seconds, bool is_hole = false);

  std::optional<uint64_t> last_;      // the last stamp that is trusted
  std::optional<uint64_t> doubtful_;  // the stamp of the last frame, if it is far from `last_`
  double bridged_ = 0;                // seconds counted beyond `last_`
  double usual_ = 0;                  // seconds between frames, smoothed; 0: not known yet
  bool confirmed_ = false;            // `last_` followed from another stamp
  bool told_ = false;
};

}  // namespace clinfer
