// Finds the areas to hide on frames on which no network ran: the places of objects on the last
// frame that was inferred, or, without one, the whole picture.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

// Returns whether objects of this region's label are to be hidden. `labels`: empty for every
// object.
bool is_private(const RegionView& region, const std::vector<std::string>& labels);

// Keeps what to hide. To be used by one thread, which shows it each frame in order.
class HiddenParts {
 public:
  // Returns parts to hide in addition to the objects on the frame, in shares of the picture.
  // `time`: of the frame, in nanoseconds. Each network counts separately, by its name: on a frame
  // that it did not see, its objects are hidden where they were, with a margin because they move.
  // The whole picture is hidden if it has seen no frame yet, or none for a second.
  std::vector<PictureBox> update(const FrameView& frame, const std::vector<std::string>& labels,
                                 std::optional<uint64_t> time);

 private:
  struct Seen {
    std::vector<PictureBox> boxes;
    uint64_t time = 0;
  };
  std::map<std::string, Seen> by_model_;
  uint64_t frames_ = 0;
};

}  // namespace clinfer
