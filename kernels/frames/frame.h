// Video frames for networks: their memory, their placement in a network's input, and the way back
// from there to the frame. Part of the public interface.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace clinfer {

// Memory layouts of video frames, by GStreamer's names. x: unused byte, a: alpha (ignored). Samples
// have 8 bits, except in p010 (laid out as nv12) and i420_10 (as i420): these have 10 bits in two
// bytes, little endian, p010 in the upper bits and i420_10 in the lower ones.
enum class PixelFormat {
  nv12,
  nv21,
  i420,
  yv12,
  yuy2,
  uyvy,
  rgb,
  bgr,
  rgbx,
  bgrx,
  xrgb,
  xbgr,
  gray8,
  nv16,
  y42b,
  y444,
  p010,
  i420_10
};

// The matrix from Y'CbCr to RGB; it is ignored for RGB formats. The range is video (16..235) or
// full.
enum class YuvMatrix { bt601, bt709, bt2020 };

struct Rect {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Rect&) const = default;
};

// Makes a stored picture upright: first exchanges rows and columns if `transpose`, then mirrors
// left and right (`mirror_x`), top and bottom (`mirror_y`).
struct Orientation {
  bool transpose = false, mirror_x = false, mirror_y = false;
  bool operator==(const Orientation&) const = default;
};

// Returns the orientation that `first` and then `second` give.
inline Orientation turned(const Orientation& first, const Orientation& second) {
  const bool x = second.transpose ? first.mirror_y : first.mirror_x;
  const bool y = second.transpose ? first.mirror_x : first.mirror_y;
  return {first.transpose != second.transpose, x != second.mirror_x, y != second.mirror_y};
}

// A frame in host memory. Planes that the format lacks are null. Strides are in bytes and at least
// the row's bytes. Chroma of odd sizes is rounded up: width 5 has 3 chroma columns.
struct Frame {
  PixelFormat format = PixelFormat::nv12;
  int width = 0, height = 0;  // of the planes, in pixels
  std::array<const uint8_t*, 3> planes{};
  std::array<int, 3> strides{};
  YuvMatrix matrix = YuvMatrix::bt601;
  bool full_range = false;
  Rect visible{};             // the picture, as viewers see it; width 0: all of the planes
  Rect region{};              // the part of the picture to take; width 0: all of it
  Orientation orientation{};  // the network gets the picture upright
  double pixel_aspect =
      1;  // width of a pixel over its height; proportions are those that are shown
  // Clockwise turn of the region about its middle, in radians of the picture as it is shown. With
  // an angle, even 0, the region may reach beyond the visible part, whose outermost pixels are
  // repeated there; without one, only what lies in the planes is taken.
  std::optional<float> angle{};
};

// The arithmetic that turns Y'CbCr into RGB. exact: by the matrix and range of the frame, rounded
// to 8 bits once. videoconvert: bit-exact with the 8-bit coefficients of GStreamer's videoconvert.
enum class ColorArithmetic { exact, videoconvert };

enum class ResizeMode { stretch, letterbox, crop };
enum class ColorOrder { bgr, rgb, gray };

// The network receives (value - mean[c]) / scale[c], with values 0..255 and c in network channel
// order.
struct FrameTransform {
  ResizeMode resize = ResizeMode::stretch;
  ColorOrder color = ColorOrder::bgr;
  std::vector<float> mean{0}, scale{1};  // one, or one per channel
  // 0..255, around a letterboxed picture (before mean and scale): one, or one per channel
  std::vector<float> pad_value{0};
  bool centered = true;  // letterbox: picture in the middle, else at the top left
  bool nhwc = false;     // the input's logical shape is [N,H,W,C], not [N,C,H,W]
  Orientation turn;      // turn of the upright picture, before it fills the input
  ColorArithmetic color_arithmetic = ColorArithmetic::exact;
};

// The mapping between the picture and the network's input: frame_x = (x - left) * x_scale +
// origin_x, with x in network input pixels (continuous coordinates: pixel i covers [i, i+1));
// likewise for y. If `transposed`, frame_x follows from the network's y, and frame_y from its x. A
// negative scale mirrors. The resulting point is then turned about the pivot, the region's middle.
struct Placement {
  float left = 0, top = 0;           // network pixels
  float x_scale = 1, y_scale = 1;    // frame pixels per network pixel
  float origin_x = 0, origin_y = 0;  // frame pixels
  bool transposed = false;
  float angle = 0;                 // clockwise, in radians of the picture as it is shown
  float pivot_x = 0, pivot_y = 0;  // frame pixels
  float pixel_aspect = 1;          // width of a frame's pixel over its height
};

// A map of points: x' = xx * x + xy * y + x0, and y' = yx * x + yy * y + y0.
struct PointMap {
  double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
};

// Returns the map from a network's input to the frame, in pixels of each.
PointMap to_frame(const Placement& placement);

// Computes the placement of the picture for a network input of width x height.
Placement placement_of(const Frame& frame, const FrameTransform& transform, int width, int height);

// The bytes and rows of each plane of a frame (rows x row bytes), for uploads.
struct PlaneSize {
  int rows = 0, row_bytes = 0;
  // Returns the bytes from the first to the last, with rows `stride` bytes apart.
  int64_t bytes(int stride) const { return int64_t{stride} * (rows - 1) + row_bytes; }
};
std::array<PlaneSize, 3> plane_sizes(const Frame& frame);

}  // namespace clinfer
