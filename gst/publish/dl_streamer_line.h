// Writes one frame's results as one line of JSON with the keys that DL Streamer 2026.2's
// gvametaconvert writes, and no others. docs/metadata.md lists them.
#pragma once

#include <string>

#include "gst/publish/result_line.h"

namespace clinfer {

// Returns the line without a line break; "" for a frame without results, unless
// FrameFacts::empty_results says otherwise.
std::string dl_streamer_line(const FrameFacts& facts, const FrameView& frame);

}  // namespace clinfer
