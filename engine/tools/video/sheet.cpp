// Runs a pipeline that draws frames side by side.
#include "engine/tools/video/sheet.h"

#include <unistd.h>

#include <array>
#include <map>

#include "engine/tools/video/elements.h"
#include "kernels/base/system/files.h"

namespace clinfer {

namespace {

constexpr size_t kWidth = 480;  // of a tile
constexpr size_t kGap = 6;

}  // namespace

void draw_sheet(const std::vector<Tile>& tiles, size_t columns, const std::string& file) {
  const Folder folder;
  std::map<const VideoFrame*, std::string> files;
  const Frame& first = tiles.at(0).frame->frame;
  const size_t height =
      kWidth * static_cast<size_t>(first.height) / static_cast<size_t>(first.width) / 2 * 2 + 2;
  std::vector<std::string> words = {"compositor", "name=sheet", "background=black"};
  for (size_t i = 0; i < tiles.size(); ++i) {
    const std::string pad = "sink_" + std::to_string(i) + "::";
    append(words, {pad + "xpos=" + std::to_string(i % columns * (kWidth + kGap)),
                   pad + "ypos=" + std::to_string(i / columns * (height + kGap))});
  }
  append(words, {"!", "videoconvert", "!", "pngenc", "snapshot=true", "!", "filesink",
                 assignment("location", file)});
  for (size_t i = 0; i < tiles.size(); ++i) {
    const VideoFrame& frame = *tiles[i].frame;
    auto [known, fresh] = files.try_emplace(&frame, folder.file(std::to_string(files.size())));
    if (fresh)
      write_named_file(known->second, std::array{std::string_view(
                                          reinterpret_cast<const char*>(frame.bytes->data()),
                                          frame.bytes->size())});
    append(words, {"filesrc", assignment("location", known->second), "!", "rawvideoparse",
                   "format=i420", "framerate=1/1", "width=" + std::to_string(frame.frame.width),
                   "height=" + std::to_string(frame.frame.height)});
    if (!frame.colours.empty()) words.push_back("colorimetry=" + frame.colours);
    words.push_back("!");
    words.insert(words.end(), tiles[i].element.begin(), tiles[i].element.end());
    append(words, {"!", "cloverlay", "!", "videoconvert", "!", "videoscale", "!",
                   "video/x-raw,pixel-aspect-ratio=1/1,width=" + std::to_string(kWidth) +
                       ",height=" + std::to_string(height),
                   "!", "sheet.sink_" + std::to_string(i)});
  }
  run_elements(
      words,
      "the elements clinfer and cloverlay (set GST_PLUGIN_PATH), compositor, rawvideoparse "
      "and pngenc",
      STDERR_FILENO);
}

}  // namespace clinfer
