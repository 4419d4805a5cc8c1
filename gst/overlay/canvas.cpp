// Drawing into video frames of any 8-bit format.
#include "gst/overlay/canvas.h"

#include <algorithm>
#include <cmath>

namespace clinfer {
namespace {

constexpr unsigned kMostComponents = 4;

uint8_t to_byte(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

}  // namespace

Canvas::Canvas(GstVideoFrame* frame, int x, int y, int width, int height)
    : frame_(frame), left_(x), top_(y), width_(width), height_(height) {
  const GstVideoFormatInfo* format = frame->info.finfo;
  for (unsigned c = 0; c < GST_VIDEO_FORMAT_INFO_N_COMPONENTS(format); ++c) {
    x_step_ = std::max(x_step_, 1 << GST_VIDEO_FORMAT_INFO_W_SUB(format, c));
    y_step_ = std::max(y_step_, 1 << GST_VIDEO_FORMAT_INFO_H_SUB(format, c));
  }
}

std::array<uint8_t, 4> Canvas::components(Rgb color) const {
  const GstVideoInfo& info = frame_->info;
  if (GST_VIDEO_INFO_IS_RGB(&info)) return {color.r, color.g, color.b, 255};
  // Y'CbCr by the frame's own matrix and range; gray is its luma.
  double kr = 0.299, kb = 0.114;
  gst_video_color_matrix_get_Kr_Kb(info.colorimetry.matrix, &kr, &kb);
  const bool full =
      info.colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255 || GST_VIDEO_INFO_IS_GRAY(&info);
  const double r = color.r / 255.0, g = color.g / 255.0, b = color.b / 255.0;
  const double y = kr * r + (1 - kr - kb) * g + kb * b;
  const double cb = (b - y) / (2 * (1 - kb)), cr = (r - y) / (2 * (1 - kr));
  const double luma = full ? 255 : 219, chroma = full ? 255 : 224, black = full ? 0 : 16;
  return {to_byte(black + luma * y), to_byte(128 + chroma * cb), to_byte(128 + chroma * cr), 255};
}

template <typename Coverage>
void Canvas::draw(int x0, int y0, int x1, int y1, Rgb color, Coverage&& coverage) {
  x0 = std::max(x0, left_);
  y0 = std::max(y0, top_);
  x1 = std::min(x1, left_ + width_);
  y1 = std::min(y1, top_ + height_);
  if (x0 >= x1 || y0 >= y1) return;
  const GstVideoFormatInfo* format = frame_->info.finfo;
  const std::array<uint8_t, 4> target = components(color);
  const int frame_width = GST_VIDEO_FRAME_WIDTH(frame_);
  const int frame_height = GST_VIDEO_FRAME_HEIGHT(frame_);
  const unsigned count = std::min(GST_VIDEO_FORMAT_INFO_N_COMPONENTS(format), kMostComponents);
  for (unsigned c = 0; c < count; ++c) {
    const int sub_x = GST_VIDEO_FORMAT_INFO_W_SUB(format, c);
    const int sub_y = GST_VIDEO_FORMAT_INFO_H_SUB(format, c);
    const int pixel = GST_VIDEO_FRAME_COMP_PSTRIDE(frame_, c);
    const int stride = GST_VIDEO_FRAME_COMP_STRIDE(frame_, c);
    auto* data = static_cast<uint8_t*>(GST_VIDEO_FRAME_COMP_DATA(frame_, c));
    for (int cy = y0 >> sub_y; cy <= (y1 - 1) >> sub_y; ++cy) {
      uint8_t* row = data + static_cast<ptrdiff_t>(cy) * stride;
      for (int cx = x0 >> sub_x; cx <= (x1 - 1) >> sub_x; ++cx) {
        int covered = 0, pixels = 0;
        // The share of the sample's pixels that is covered; pixels beyond the frame's edge do not
        // count.
        for (int py = cy << sub_y; py < (cy + 1) << sub_y && py < frame_height; ++py) {
          for (int px = cx << sub_x; px < (cx + 1) << sub_x && px < frame_width; ++px) {
            ++pixels;
            if (px >= x0 && px < x1 && py >= y0 && py < y1) covered += coverage(px, py);
          }
        }
        if (covered == 0) continue;
        const int full = 255 * pixels;
        uint8_t& sample = row[static_cast<ptrdiff_t>(cx) * pixel];
        sample = static_cast<uint8_t>((sample * (full - covered) + target[c] * covered + full / 2) /
                                      full);
      }
    }
  }
}

void Canvas::fill(int x, int y, int width, int height, Rgb color, int opacity) {
  draw(left_ + x, top_ + y, left_ + x + width, top_ + y + height, color,
       [opacity](int, int) { return opacity; });
}

void Canvas::blend(int x, int y, const Mask& mask, Rgb color) {
  const int x0 = left_ + x, y0 = top_ + y;
  draw(x0, y0, x0 + mask.width, y0 + mask.height, color, [&](int px, int py) -> int {
    return mask.coverage[static_cast<size_t>(py - y0) * static_cast<size_t>(mask.width) +
                         static_cast<size_t>(px - x0)];
  });
}

Rgb color_of(unsigned number) {
  // Steps of the golden ratio round the colour circle: any few numbers are far apart.
  const double hue = std::fmod(0.33 + number * 0.61803398875, 1.0) * 6;
  const double value = number % 2 == 0 ? 1.0 : 0.85, saturation = 0.9;
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + hue, 6.0);
    return to_byte(255 * (value - value * saturation * std::clamp(std::min(k, 4 - k), 0.0, 1.0)));
  };
  return {channel(5), channel(3), channel(1)};
}

Rgb text_color_on(Rgb background) {
  const double luma = 0.299 * background.r + 0.587 * background.g + 0.114 * background.b;
  return luma > 140 ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
}

}  // namespace clinfer
