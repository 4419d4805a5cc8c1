// Compares two networks on frames of videos, and reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/heads/results/agreement.h"
#include "engine/tools/video/sheet.h"
#include "engine/tools/video/video_model.h"

namespace clinfer {

// One side of a comparison: a model, its device and settings.
struct Side {
  ModelOptions options;
  Config config;
  std::vector<std::string> element;  // the same as the words of an element for gst-launch-1.0
};

struct FrameComparison {
  const VideoFrame* frame = nullptr;
  Agreement agreement;
};

struct SideFacts {
  std::string model, device, precision;
  size_t file_bytes = 0;
  double ms = 0;  // for each inference, both measured alternately
};

struct Comparison {
  SideFacts a, b;
  double threshold = 0;
  // Time of a divided by time of b: median and quartiles.
  double gain = 0, gain_low = 0, gain_high = 0;
  std::vector<FrameComparison> frames;  // least agreement first
  Agreement all;
};

// Infers all frames with both sides, and measures both for about `seconds`. Shows progress. Throws
// Error; cancelled after an interrupt.
Comparison compare_on_frames(const Side& a, const Side& b, const std::vector<VideoFrame>& frames,
                             std::optional<double> threshold, double seconds);

// Draws the frames that agree least, a beside b, with the product's own elements.
void draw_worst(const Comparison& comparison, const Side& a, const Side& b,
                const std::string& file);

std::string text_of(const Comparison& comparison);
// Returns a JSON object. `sheet`: the picture's file, or "".
std::string json_of(const Comparison& comparison, const std::string& sheet);

// Returns the element with these options, for draw_sheet().
std::vector<std::string> element_words(const ModelOptions& options, const std::string& device,
                                       const std::vector<std::string>& settings);

}  // namespace clinfer
