// The CPU time in which the detector of motion looks at a frame: motion_cost [WIDTH HEIGHT].
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "gst/infer/motion/motion_detector.h"

int main(int count, char** arguments) {
  using namespace clinfer;
  const int width = count > 2 ? std::atoi(arguments[1]) : 1920;
  const int height = count > 2 ? std::atoi(arguments[2]) : 1080;
  // Several pictures with noise, so that none stays in a cache near the core.
  std::vector<std::vector<uint8_t>> pictures(
      8, std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height)));
  std::minstd_rand random(1);
  for (std::vector<uint8_t>& picture : pictures)
    for (size_t i = 0; i < picture.size(); ++i)
      picture[i] = static_cast<uint8_t>(100 + i % 37 + random() % 9);
  MotionDetector detector;
  std::vector<double> times;
  for (size_t n = 0; n < 2000; ++n) {
    Frame frame;
    frame.format = PixelFormat::gray8;
    frame.width = width;
    frame.height = height;
    frame.planes[0] = pictures[n % pictures.size()].data();
    frame.strides[0] = width;
    timespec begun{}, ended{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    if (detector.look(frame, {0, 0, width, height})) detector.take_as_reference();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    times.push_back(static_cast<double>(ended.tv_sec - begun.tv_sec) * 1e6 +
                    static_cast<double>(ended.tv_nsec - begun.tv_nsec) / 1e3);
  }
  std::sort(times.begin(), times.end());
  std::printf("%dx%d: median %.1f us, least %.1f us of a core\n", width, height,
              times[times.size() / 2], times.front());
}
