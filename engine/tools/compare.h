// The comparison of two networks on frames of videos, and its report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/tools/agreement.h"
#include "engine/tools/sheet.h"
#include "engine/tools/video_model.h"

namespace clinfer {

// One side of a comparison: a model, its device and settings.
struct Side {
  ModelOptions options;
  Config config;
  std::vector<std::string> element;  // the same for the element, as gst-launch-1.0 takes it
};

struct FrameComparison {
  const VideoFrame* frame = nullptr;
  Agreement agreement;
};

struct SideFacts {
  std::string model, device, precision;
  size_t file_bytes = 0;
  double ms = 0;  // per inference, both measured by turns
};

struct Comparison {
  SideFacts a, b;
  double threshold = 0;
  double gain = 0, gain_low = 0, gain_high = 0;  // time of a over time of b: median and quartiles
  std::vector<FrameComparison> frames;           // those that agree least first
  Agreement all;
};

// Infers all frames with both, and measures both for about `seconds`. Shows progress; throws Error,
// cancelled after an interrupt.
Comparison compare_on_frames(const Side& a, const Side& b, const std::vector<VideoFrame>& frames,
                             std::optional<double> threshold, double seconds);

// The frames that agree least, a beside b, with the product's own drawing.
void draw_worst(const Comparison& comparison, const Side& a, const Side& b,
                const std::string& file);

std::string text_of(const Comparison& comparison);
// One object; `sheet`: the picture's file, or "".
std::string json_of(const Comparison& comparison, const std::string& sheet);

// The element with these options, for draw_sheet().
std::vector<std::string> element_words(const ModelOptions& options, const std::string& device,
                                       const std::vector<std::string>& settings);

}  // namespace clinfer
