// One frame's results as one line of JSON, with the key names of DL Streamer's gvametaconvert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gst/meta/meta.h"

namespace clinfer {

struct FrameFacts {
  uint64_t number = 0;                // since the element started
  int width = 0, height = 0;          // of the visible picture
  std::optional<uint64_t> timestamp;  // stream time, nanoseconds
};

// Without the line break.
std::string result_line(const FrameFacts& frame, const std::vector<RegionView>& regions,
                        const std::vector<ResultView>& results);

}  // namespace clinfer
