// Frames that carry their number as a pattern, which a network reads back: no frame can get
// another's result unseen. And what endurance tests measure of their own process.
#pragma once

#include <malloc.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gst/meta/meta.h"
#include "tests/gst/harness.h"

namespace clinfer {

inline constexpr int kBits = 16;  // of the watermark, 4x4 blocks, dark or bright

// CLINFER_ENDURANCE_FRAMES says how many; the default suite runs a few seconds.
inline int frames_wanted() {
  const char* text = std::getenv("CLINFER_ENDURANCE_FRAMES");
  return text != nullptr ? std::atoi(text) : 1500;
}

// A frame with `number` in it, and in its PTS.
inline GstBuffer* watermarked(const GstVideoInfo& info, unsigned number) {
  GstBuffer* buffer = frame_of(info, {40, 40, 40}, number * GST_MSECOND);
  GstVideoFrame frame;
  EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
  const int width = GST_VIDEO_FRAME_WIDTH(&frame), height = GST_VIDEO_FRAME_HEIGHT(&frame);
  Canvas canvas(&frame, 0, 0, width, height);
  for (int bit = 0; bit < kBits; ++bit)
    if ((number >> bit) % 2 != 0)
      canvas.fill(bit % 4 * width / 4, bit / 4 * height / 4, width / 4, height / 4,
                  {220, 220, 220});
  gst_video_frame_unmap(&frame);
  return buffer;
}

// The number that the network of blocks_model() saw, or -1.
inline int number_in(GstBuffer* buffer) {
  const std::vector<ResultView> results = read_results(buffer);
  if (results.empty() || results[0].tensors.empty()) return -1;
  const Bytes& data = results[0].tensors[0].data;
  int number = 0;
  for (int bit = 0; bit < kBits && count_of<float>(data) == kBits; ++bit)
    if (values_of<float>(data)[bit] > 130) number |= 1 << bit;
  return number;
}

inline long resident_kib() {
  std::ifstream file("/proc/self/statm");
  long pages = 0;
  file >> pages >> pages;
  return pages * 4;
}

// Memory that malloc has given out and not got back. The resident size says less: freed memory
// stays with the arenas of the threads that come and go.
inline long allocated_kib() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<long>((info.uordblks + info.hblkhd) / 1024);
}

inline long open_files() {
  long count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

}  // namespace clinfer
