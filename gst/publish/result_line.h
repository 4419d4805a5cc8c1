// One frame's results as one line of JSON, with the key names of DL Streamer's gvametaconvert.
// docs/metadata.md lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gst/meta/meta.h"

namespace clinfer {

struct FrameFacts {
  uint64_t number = 0;                // since the element started
  int width = 0, height = 0;          // of the visible picture
  std::optional<uint64_t> timestamp;  // stream time, nanoseconds
  std::string system_timestamp;       // when it was captured, ISO 8601 in UTC; empty: unknown
  std::optional<uint64_t> sender_ntp_unix_ns;  // of the sender's clock, from RTCP
  std::string source;                          // empty: not said
  std::string tags;                            // one value of JSON; empty: none
  bool tensor_data = false;                    // with the values of tensors and maps
};

// Returns the line without its break.
std::string result_line(const FrameFacts& facts, const FrameView& frame);

}  // namespace clinfer
