// The areas to hide on frames that no network looked at: the places of objects on the last frame
// that was inferred, and for want of that the whole picture.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

// Returns whether privacy is for objects of this region's label. labels: empty for every object.
bool is_private(const RegionView& region, const std::vector<std::string>& labels);

// Keeps what to hide. One thread uses it, and shows it each frame in their order.
class HiddenParts {
 public:
  // Parts to hide besides the objects on the frame, in shares of the picture. time: of the frame, in
  // nanoseconds. Each network counts by its name: on a frame that it did not see, its objects are
  // hidden where they were, and around that because they move; the whole picture, if it has seen
  // none yet or none for a second.
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
