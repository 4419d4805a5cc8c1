// Makes contact sheets: one PNG picture of frames with the results of networks, drawn by the
// elements.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/video/video_frames.h"

namespace clinfer {

struct Tile {
  const VideoFrame* frame = nullptr;
  std::vector<std::string> element;  // "clinfer" and its properties, as words for gst-launch-1.0
};

// Draws tiles of equal size, `columns` in a row. Throws Error.
void draw_sheet(const std::vector<Tile>& tiles, size_t columns, const std::string& file);

}  // namespace clinfer
