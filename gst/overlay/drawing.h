// Draws an overlay: boxes, labels, masks, skeletons, trails and everything else in a frame's
// results.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "gst/meta/meta.h"
#include "gst/overlay/canvas.h"
#include "gst/overlay/text.h"

namespace clinfer {

enum class ColorBy { label, track };
enum class Privacy { none, blur, fill };

struct DrawingStyle {
  unsigned line_width = 0;  // in pixels; 0: follows the frame's height
  unsigned font_size = 0;   // in pixels; 0: follows the frame's height
  bool show_boxes = true;
  bool show_labels = true;
  bool show_scores = true;
  bool show_masks = true;
  bool show_points = true;
  bool show_zones = true;
  double mask_opacity = 0.4;
  ColorBy color_by = ColorBy::label;
  unsigned trail_length = 0;  // in frames
  Privacy privacy = Privacy::none;
  std::string privacy_labels;  // comma separated; empty: every object
};

// Chooses a colour for each label, and keeps it from frame to frame: that of the label's id, or
// another if a different label of that id came first (two networks on one frame). Not thread-safe.
class Palette {
 public:
  Rgb color_for(const RegionView& region);

 private:
  std::map<std::string, unsigned> number_of_;
  std::map<unsigned, std::string> label_of_;
};

// Remembers where tracks were on earlier frames. Not thread-safe.
class Trails {
 public:
  // Adds a frame. Forgets tracks that were not seen for `length` frames.
  void add(const std::vector<RegionView>& regions, unsigned length);
  // Returns places, oldest first, in shares of the picture; empty for an unknown track.
  const std::deque<Point>& of(uint64_t track) const;

 private:
  struct Trail {
    std::deque<Point> points;
    uint64_t last_frame = 0;
  };
  std::map<uint64_t, Trail> trails_;
  uint64_t frame_ = 0;
};

// Makes a part of the picture unrecognisable.
void hide_part(Canvas& canvas, const PictureBox& box, Privacy privacy);

// Returns whether drawing this frame would change it.
bool has_drawing(const FrameView& frame);

// Draws privacy boxes first, then maps and masks, lines and zones, trails, boxes and skeletons, and
// tags on top; results about the whole picture stand at the top left.
void draw_results(Canvas& canvas, const FrameView& frame, const DrawingStyle& style,
                  TextCache& text, Palette& palette, Trails& trails);

}  // namespace clinfer
