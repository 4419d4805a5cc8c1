// Measures what an element adds to each frame that has results: frames/s of CPU time, for docs/tracking.md.
// Usage: metadata_speed "ELEMENT ! ELEMENT" [OBJECTS] [FRAMES]
#include <gst/check/gstharness.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "tests/gst/result_frames.h"

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  const int objects = argc > 2 ? std::atoi(argv[2]) : 20,
            frames = argc > 3 ? std::atoi(argv[3]) : 4000;
  clinfer::register_result_meta();
  GstHarness* harness = gst_harness_new_parse(argc > 1 ? argv[1] : "cltrack");
  gst_harness_set_src_caps_str(harness,
                               "video/x-raw,format=GRAY8,width=320,height=240,framerate=25/1");
  std::clock_t spent = 0;
  for (int frame = 0; frame < frames; ++frame) {
    std::vector<clinfer::Detection> boxes;
    for (int i = 0; i < objects; ++i) {
      const auto x = static_cast<float>(i % 10 * 31 + frame % 50 / 10),
                 y = static_cast<float>(i / 10 % 4 * 60 + frame % 50 / 8);
      boxes.push_back(clinfer::box(x, y, x + 24, y + 50));
    }
    GstBuffer* buffer = clinfer::frame_with(frame, boxes).release();
    const std::clock_t begin = std::clock();
    gst_harness_push(harness, buffer);
    spent += std::clock() - begin;
    gst_buffer_unref(gst_harness_pull(harness));
  }
  std::printf("%d objects: %.0f frames/s\n", objects,
              frames / (static_cast<double>(spent) / CLOCKS_PER_SEC));
  gst_harness_teardown(harness);
}
