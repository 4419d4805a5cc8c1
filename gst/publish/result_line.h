// Writes one frame's results as one line of JSON, with the key names of DL Streamer's
// gvametaconvert. docs/metadata.md lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gst/meta/meta.h"

namespace clinfer {

struct FrameFacts {
  uint64_t number = 0;                         // counted from the element's start
  int width = 0, height = 0;                   // of the visible picture
  std::optional<uint64_t> timestamp;           // stream time in nanoseconds
  std::string system_timestamp;                // time of capture, ISO 8601 in UTC; empty: unknown
  std::optional<uint64_t> sender_ntp_unix_ns;  // by the sender's clock, from RTCP
  std::string source;                          // empty: left out
  std::string tags;                            // one JSON value; empty: left out
  bool tensor_data = false;                    // true: includes the values of tensors and maps
  bool empty_results = false;  // of DL Streamer's schema: true: also lines without results
};

// Returns the line without a line break.
std::string result_line(const FrameFacts& facts, const FrameView& frame);

}  // namespace clinfer
