// Measures what results cost on each frame: the CPU time to attach and to read them, what an
// element adds to it, and their memory; for docs/tracking.md and docs/metadata.md.
// Usage: metadata_speed "ELEMENT ! ELEMENT" [OBJECTS] [FRAMES] [ROI-META: 1 or 0]
#include <gst/check/gstharness.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "tests/gst/result_frames.h"

namespace {

double seconds(std::clock_t ticks) { return static_cast<double>(ticks) / CLOCKS_PER_SEC; }

clinfer::FrameResult result_of(int frame, int objects, bool roi_meta) {
  clinfer::FrameResult result;
  result.outcome = clinfer::Outcome::run;
  result.model = "net";
  result.visible = {0, 0, clinfer::kFrameWidth, clinfer::kFrameHeight};
  result.roi_meta = roi_meta;
  std::vector<clinfer::Detection>& boxes = result.parts.emplace_back().results.detections;
  for (int i = 0; i < objects; ++i) {
    const auto x = static_cast<float>(i % 10 * 31 + frame % 50 / 10),
               y = static_cast<float>(i / 10 % 4 * 60 + frame % 50 / 8);
    boxes.push_back(clinfer::box(x, y, x + 24, y + 50));
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  const int objects = argc > 2 ? std::atoi(argv[2]) : 20,
            frames = argc > 3 ? std::atoi(argv[3]) : 4000;
  const bool roi_meta = argc <= 4 || std::atoi(argv[4]) != 0;
  clinfer::register_result_meta();
  GstHarness* harness = gst_harness_new_parse(argc > 1 ? argv[1] : "cltrack");
  gst_harness_set_src_caps_str(harness,
                               "video/x-raw,format=GRAY8,width=320,height=240,framerate=25/1");
  std::clock_t attaching = 0, reading = 0, passing = 0;
  size_t bytes = 0;
  for (int frame = 0; frame < frames; ++frame) {
    const clinfer::FrameResult result = result_of(frame, objects, roi_meta);
    GstBuffer* buffer = clinfer::frame_of_size(frame).release();
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    const std::clock_t begin = std::clock();
    clinfer::attach_result(buffer, result, {"person", "car"});
    const std::clock_t attached = std::clock();
    bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    const std::clock_t read_from = std::clock();
    const clinfer::FrameView view =
        clinfer::read_frame(buffer, clinfer::kFrameWidth, clinfer::kFrameHeight);
    const std::clock_t pushed = std::clock();
    reading += pushed - read_from;
    gst_harness_push(harness, buffer);
    passing += std::clock() - pushed;
    attaching += attached - begin;
    gst_buffer_unref(gst_harness_pull(harness));
  }
  std::printf("%d objects: %.0f frames/s; attached in %.1f us, read in %.1f us, %.1f kB a frame\n",
              objects, frames / seconds(passing), seconds(attaching) * 1e6 / frames,
              seconds(reading) * 1e6 / frames, static_cast<double>(bytes) / 1e3);
  gst_harness_teardown(harness);
}
