// Contact sheets: frames with what networks say of them, drawn by the elements, in one PNG picture.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/video_frames.h"

namespace clinfer {

struct Tile {
  const VideoFrame* frame = nullptr;
  std::vector<std::string> element;  // "clinfer" and its properties, as gst-launch-1.0 takes them
};

// Tiles of equal size row by row, `columns` in a row. Throws Error.
void draw_sheet(const std::vector<Tile>& tiles, size_t columns, const std::string& file);

}  // namespace clinfer
