// What an overlay looks like: boxes, labels and scores of a frame's results.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gst/overlay/canvas.h"
#include "gst/meta/meta.h"
#include "gst/base/text.h"

namespace clinfer {

struct DrawingStyle {
  unsigned line_width = 0;  // pixels; 0: by the frame's height
  unsigned font_size = 0;   // pixels; 0: by the frame's height
  bool show_labels = true;
  bool show_scores = true;
};

// A colour for each label, kept from frame to frame: the one of its id, or another where a
// different label of that id came first (two networks on one frame). For one thread.
class Palette {
 public:
  Rgb color_for(const RegionView& region);

 private:
  std::map<std::string, unsigned> number_of_;
  std::map<unsigned, std::string> label_of_;
};

// Boxes in the colour of their label, each with a legible tag; whole-picture answers at the top
// left.
void draw_results(Canvas& canvas, const std::vector<RegionView>& regions,
                  const std::vector<ResultView>& results, const DrawingStyle& style,
                  TextCache& text, Palette& palette);

}  // namespace clinfer
