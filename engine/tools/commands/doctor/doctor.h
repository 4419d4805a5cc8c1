// Finds plausible ways to feed a model and to read its outputs, and which of them the frames of a
// video favour.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/video/video_frames.h"
#include "engine/tools/video/video_model.h"

namespace clinfer {

// A way to feed the model and to read its outputs.
struct Way {
  FrameTransform transform;
  std::string range;  // "0..1"
  size_t head = 0;    // index into Diagnosis::heads
  // Product of a factor for each fact in which this way contradicts what the elements use by
  // themselves. The factor is small for facts that are stated or come from the model's family.
  double prior = 1;
  std::vector<double> evidence;  // for each frame that this way saw

  double mean() const;  // returns the mean of the evidence
  double weight() const { return prior * mean(); }
};

struct Diagnosis {
  std::vector<std::string> heads;  // the first is the elements' choice
  // The ways, best first. All but the first few saw fewer frames.
  std::vector<Way> ways;
  size_t own = 0;  // index of the way that the elements use by themselves
  // True if the data decide: the first way beats all others by more than chance, and by 2 % of its
  // evidence.
  bool decided = false;
  std::vector<size_t> rivals;  // ways that the data cannot tell from the first one
  size_t inferences = 0;
};

// Tries all ways on the first frames and the better ones on more, for about `seconds`. Shows
// progress. Throws Error; cancelled after an interrupt.
Diagnosis diagnose(const VideoModel& model, const ModelOptions& options,
                   const std::vector<VideoFrame>& frames, double seconds);

// Returns the properties that make the element use this way: "color-format=rgb", "mean=127.5" ...
std::vector<std::string> properties_of(const Way& way, const Diagnosis& diagnosis);
// Describes the way in words: "RGB, 0..1, letterboxed, read as yolov8".
std::string text_of(const Way& way, const Diagnosis& diagnosis);

}  // namespace clinfer
