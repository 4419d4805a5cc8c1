// The plausible ways to feed a model and to read its outputs, and which of them the frames of a video
// favour.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/video_frames.h"
#include "engine/tools/video_model.h"

namespace clinfer {

// A way to feed the model and to read its outputs.
struct Way {
  FrameTransform transform;
  std::string range;  // "0..1"
  size_t head = 0;    // of Diagnosis::heads
  // The product of a factor for each fact in which it contradicts what the elements take by
  // themselves: a small one for those that somebody states or the family has.
  double prior = 1;
  std::vector<double> evidence;  // of each frame that it saw

  double mean() const;  // of the evidence
  double weight() const { return prior * mean(); }
};

struct Diagnosis {
  std::vector<std::string> heads;  // the first is the one that the elements take
  // Best first. Those after the first few saw fewer frames.
  std::vector<Way> ways;
  size_t own = 0;  // place of the way that the elements take by themselves
  // The data decide: the first way beats all others by more than chance, and by 2 % of its evidence.
  bool decided = false;
  std::vector<size_t> rivals;  // ways that the data do not tell from the first one
  size_t inferences = 0;
};

// Tries all ways on the first frames and the better ones on more, for about `seconds`. Shows progress.
// Throws Error, cancelled after an interrupt.
Diagnosis diagnose(const VideoModel& model, const ModelOptions& options,
                   const std::vector<VideoFrame>& frames, double seconds);

// The properties that make the element take this way: "color-format=rgb", "mean=127.5" ...
std::vector<std::string> properties_of(const Way& way, const Diagnosis& diagnosis);
// Describes the way in words: "RGB, 0..1, letterboxed, read as yolov8".
std::string text_of(const Way& way, const Diagnosis& diagnosis);

}  // namespace clinfer
