// Runs the tracker's core over boxes in the text form of the MOT challenge, for comparisons with other
// trackers: frame,id,left,top,width,height,confidence,... in; the same with ids out.
// Usage: track_boxes FRAMES_PER_SECOND INTERVAL [PROPERTY=VALUE ...] <boxes >tracks. Of every INTERVAL
// frames the first has boxes; on the others the predicted ones are written. The properties are cltrack's.
// The time that tracking took goes to stderr.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "gst/track/tracker.h"

static bool set(clinfer::TrackerSettings& settings, const std::string& option) {
  const size_t end = option.find('=');
  if (end == std::string::npos) return false;
  const std::string name = option.substr(0, end);
  const double value = std::atof(option.c_str() + end + 1);
  if (name == "min-hits") return settings.min_hits = static_cast<unsigned>(value), true;
  if (name == "lost-time") return settings.lost_time = value / 1000, true;
  if (name == "low-threshold") return settings.low_threshold = value, true;
  return name == "high-threshold" && (settings.high_threshold = value, true);
}

int main(int argc, char** argv) {
  const double fps = argc > 1 ? std::atof(argv[1]) : 30;
  const int interval = argc > 2 ? std::atoi(argv[2]) : 1;
  clinfer::TrackerSettings settings;
  for (int i = 3; i < argc; ++i)
    if (!set(settings, argv[i])) return std::fprintf(stderr, "no property: %s\n", argv[i]), 1;
  std::map<int, std::vector<clinfer::Observation>> frames;
  char line[512];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    int frame = 0, id = 0;
    double left = 0, top = 0, width = 0, height = 0, confidence = 0;
    if (std::sscanf(line, "%d,%d,%lf,%lf,%lf,%lf,%lf", &frame, &id, &left, &top, &width, &height,
                    &confidence) != 7)
      return std::fprintf(stderr, "no line of seven numbers: %s", line), 1;
    frames[frame].push_back({{left, top, left + width, top + height}, confidence, {}});
  }
  uint64_t last = 0;
  clinfer::Tracker tracker(settings, [&] { return ++last; });
  const auto write = [](int frame, uint64_t id, const clinfer::Box& box) {
    std::printf("%d,%llu,%.2f,%.2f,%.2f,%.2f,1,-1,-1,-1\n", frame,
                static_cast<unsigned long long>(id), box.x_min, box.y_min, box.width(),
                box.height());
  };
  std::chrono::duration<double> spent{0};
  const int frame_count = frames.empty() ? 0 : frames.rbegin()->first;
  const std::vector<clinfer::Observation> none;
  for (int frame = 1; frame <= frame_count; ++frame) {
    const auto found = frames.find(frame);
    const auto& objects = found == frames.end() ? none : found->second;
    const auto begin = std::chrono::steady_clock::now();
    if ((frame - 1) % interval == 0) {
      const std::vector<uint64_t> ids = tracker.update(1 / fps, objects);
      spent += std::chrono::steady_clock::now() - begin;
      for (size_t i = 0; i < ids.size(); ++i)
        if (ids[i] != 0) write(frame, ids[i], objects[i].box);
    } else {
      tracker.skip(1 / fps);
      spent += std::chrono::steady_clock::now() - begin;
      for (const clinfer::Track& track : tracker.tracks())
        if (track.id != 0 && track.missed == 0) write(frame, track.id, track.motion.box());
    }
  }
  std::fprintf(stderr, "%d frames, %.0f frames/s\n", frame_count, frame_count / spent.count());
}
