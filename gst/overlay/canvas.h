// Draws into video frames of 8 and 10 bits, in place: filled rectangles and text masks, blended
// component by component, so that no frame is ever converted.
#pragma once

#include <gst/video/video.h>

#include <array>
#include <cstdint>
#include <vector>

namespace clinfer {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;
};

struct Paint {
  Rgb color;
  uint8_t opacity = 255;
};

// The coverage of pixels, 0..255, row-major.
struct Mask {
  int width = 0, height = 0;
  std::vector<uint8_t> coverage;
};

// A frame that is mapped for writing, and the part of it that viewers see. Coordinates are relative
// to that part's corner; drawing beyond it is clipped.
class Canvas {
 public:
  Canvas(GstVideoFrame* frame, int x, int y, int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  // Return the pixels per chroma sample; edges on multiples of these stay crisp.
  int x_step() const { return x_step_; }
  int y_step() const { return y_step_; }

  // Fills a rectangle; opacity 0..255.
  void fill(int x, int y, int width, int height, Rgb color, int opacity = 255);
  void blend(int x, int y, const Mask& mask, Rgb color, int opacity = 255);
  // Draws a line with round ends and smooth edges.
  void line(float x0, float y0, float x1, float y1, float width, Rgb color);
  void disc(float x, float y, float radius, Rgb color);
  // Gives every pixel its colour: index[y * width() + x] is an index into `paints`; nothing is
  // drawn where it is out of range.
  void paint(const std::vector<int32_t>& index, const std::vector<Paint>& paints);
  // Makes the rectangle's content unrecognisable: leaves about `cells` values along its longer
  // side.
  void blur(int x, int y, int width, int height, int cells);

 private:
  // Draws a rectangle of the frame; coverage(x, y) returns 0..255 for frame pixels.
  template <typename Coverage>
  void draw(int x0, int y0, int x1, int y1, Rgb color, Coverage&& coverage);
  // Returns the colour's components at the frame's depth.
  std::array<int, 4> components(Rgb color) const;

  GstVideoFrame* frame_;
  int left_, top_, width_, height_;
  int x_step_ = 1, y_step_ = 1;
};

// Returns a distinct, vivid colour for each number.
Rgb color_of(unsigned number);
// Returns black or white, whichever is easier to read on `background`.
Rgb text_color_on(Rgb background);

}  // namespace clinfer
