// Draws into video frames of 8 and 10 bits.
#include "gst/overlay/canvas.h"

#include <algorithm>
#include <cmath>

#include "gst/frames/mapped_frame.h"

namespace clinfer {
namespace {

constexpr unsigned kMostComponents = 4;

// The samples of one component of a frame: single bytes, or two bytes each, of which the upper or
// lower bits are used.
class Samples {
 public:
  Samples(GstVideoFrame* frame, unsigned c)
      : sub_x(GST_VIDEO_FORMAT_INFO_W_SUB(frame->info.finfo, c)),
        sub_y(GST_VIDEO_FORMAT_INFO_H_SUB(frame->info.finfo, c)),
        data_(static_cast<uint8_t*>(
                  GST_VIDEO_FRAME_PLANE_DATA(frame, GST_VIDEO_FRAME_COMP_PLANE(frame, c))) +
              component_offset(frame->info.finfo, c)),
        pixel_(GST_VIDEO_FRAME_COMP_PSTRIDE(frame, c)),
        stride_(GST_VIDEO_FRAME_COMP_STRIDE(frame, c)),
        shift_(static_cast<int>(GST_VIDEO_FORMAT_INFO_SHIFT(frame->info.finfo, c))),
        is_deep_(GST_VIDEO_FORMAT_INFO_DEPTH(frame->info.finfo, c) > 8) {}

  int get(int x, int y) const {
    const uint8_t* at = place(x, y);
    return is_deep_ ? (at[0] | at[1] << 8) >> shift_ : at[0];
  }
  void set(int x, int y, int value) const {
    uint8_t* at = place(x, y);
    if (is_deep_) value <<= shift_;
    at[0] = static_cast<uint8_t>(value);
    if (is_deep_) at[1] = static_cast<uint8_t>(value >> 8);
  }

  const int sub_x, sub_y;  // log2 of the pixels per sample

 private:
  uint8_t* place(int x, int y) const {
    return data_ + static_cast<ptrdiff_t>(y) * stride_ + static_cast<ptrdiff_t>(x) * pixel_;
  }
  uint8_t* const data_;
  const int pixel_, stride_, shift_;
  const bool is_deep_;
};

unsigned count_components(const GstVideoFrame* frame) {
  return std::min(GST_VIDEO_FORMAT_INFO_N_COMPONENTS(frame->info.finfo), kMostComponents);
}

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

std::array<int, 4> Canvas::components(Rgb color) const {
  const GstVideoInfo& info = frame_->info;
  if (GST_VIDEO_INFO_IS_RGB(&info)) return {color.r, color.g, color.b, 255};
  const double unit = 1 << (GST_VIDEO_FORMAT_INFO_DEPTH(info.finfo, 0) - 8);
  const int most = static_cast<int>(256 * unit) - 1;
  // Converts to Y'CbCr by the frame's own matrix and range; gray is its luma.
  double kr = 0.299, kb = 0.114;
  gst_video_color_matrix_get_Kr_Kb(info.colorimetry.matrix, &kr, &kb);
  const bool full =
      info.colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255 || GST_VIDEO_INFO_IS_GRAY(&info);
  const double r = color.r / 255.0, g = color.g / 255.0, b = color.b / 255.0;
  const double y = kr * r + (1 - kr - kb) * g + kb * b;
  const double cb = (b - y) / (2 * (1 - kb)), cr = (r - y) / (2 * (1 - kr));
  const double luma = full ? most : 219 * unit, chroma = full ? most : 224 * unit,
               black = full ? 0 : 16 * unit, middle = 128 * unit;
  const auto sample = [&](double value) {
    return static_cast<int>(std::clamp(std::lround(value), 0L, static_cast<long>(most)));
  };
  return {sample(black + luma * y), sample(middle + chroma * cb), sample(middle + chroma * cr),
          most};
}

template <typename Coverage>
void Canvas::draw(int x0, int y0, int x1, int y1, Rgb color, Coverage&& coverage) {
  x0 = std::max(x0, left_);
  y0 = std::max(y0, top_);
  x1 = std::min(x1, left_ + width_);
  y1 = std::min(y1, top_ + height_);
  if (x0 >= x1 || y0 >= y1) return;
  const std::array<int, 4> target = components(color);
  const int frame_width = GST_VIDEO_FRAME_WIDTH(frame_);
  const int frame_height = GST_VIDEO_FRAME_HEIGHT(frame_);
  for (unsigned c = 0; c < count_components(frame_); ++c) {
    const Samples samples(frame_, c);
    const int sub_x = samples.sub_x, sub_y = samples.sub_y;
    for (int cy = y0 >> sub_y; cy <= (y1 - 1) >> sub_y; ++cy) {
      for (int cx = x0 >> sub_x; cx <= (x1 - 1) >> sub_x; ++cx) {
        int covered = 0, pixels = 0;
        // Computes which share of the sample's pixels is covered; pixels beyond the frame's edge do
        // not count.
        for (int py = cy << sub_y; py < (cy + 1) << sub_y && py < frame_height; ++py) {
          for (int px = cx << sub_x; px < (cx + 1) << sub_x && px < frame_width; ++px) {
            ++pixels;
            if (px >= x0 && px < x1 && py >= y0 && py < y1) covered += coverage(px, py);
          }
        }
        if (covered == 0) continue;
        const int full = 255 * pixels;
        samples.set(
            cx, cy,
            (samples.get(cx, cy) * (full - covered) + target[c] * covered + full / 2) / full);
      }
    }
  }
}

void Canvas::fill(int x, int y, int width, int height, Rgb color, int opacity) {
  draw(left_ + x, top_ + y, left_ + x + width, top_ + y + height, color,
       [opacity](int, int) { return opacity; });
}

void Canvas::blend(int x, int y, const Mask& mask, Rgb color, int opacity) {
  const int x0 = left_ + x, y0 = top_ + y;
  draw(x0, y0, x0 + mask.width, y0 + mask.height, color, [&](int px, int py) -> int {
    return mask.coverage[static_cast<size_t>(py - y0) * static_cast<size_t>(mask.width) +
                         static_cast<size_t>(px - x0)] *
           opacity / 255;
  });
}

void Canvas::line(float x0, float y0, float x1, float y1, float width, Rgb color) {
  // Skips lines far outside of the picture, since their ends do not fit into integers.
  const float most = 4.0f * static_cast<float>(std::max(width_, height_)) + 100;
  for (const float v : {x0, y0, x1, y1})
    if (!(std::fabs(v) < most)) return;
  // Draws a line in pieces, so that a slanted one does not visit its whole rectangle.
  constexpr float kPiece = 48;
  const float length = std::hypot(x1 - x0, y1 - y0);
  const int pieces = std::max(1, static_cast<int>(length / kPiece));
  const float radius = width / 2;
  for (int i = 0; i < pieces; ++i) {
    const auto at = [&](float from, float to, int end) {
      return from + (to - from) * static_cast<float>(end) / static_cast<float>(pieces);
    };
    const float ax = at(x0, x1, i), ay = at(y0, y1, i), bx = at(x0, x1, i + 1),
                by = at(y0, y1, i + 1);
    const float dx = bx - ax, dy = by - ay, square = dx * dx + dy * dy;
    const auto low = [&](float a, float b) {
      return static_cast<int>(std::floor(std::min(a, b) - radius - 1));
    };
    const auto high = [&](float a, float b) {
      return static_cast<int>(std::ceil(std::max(a, b) + radius + 1));
    };
    draw(left_ + low(ax, bx), top_ + low(ay, by), left_ + high(ax, bx), top_ + high(ay, by), color,
         [&](int px, int py) -> int {
           const float x = static_cast<float>(px - left_) + 0.5f - ax,
                       y = static_cast<float>(py - top_) + 0.5f - ay;
           const float t = square > 0 ? std::clamp((x * dx + y * dy) / square, 0.0f, 1.0f) : 0.0f;
           const float distance = std::hypot(x - t * dx, y - t * dy);
           return static_cast<int>(std::clamp(radius + 0.5f - distance, 0.0f, 1.0f) * 255);
         });
  }
}

void Canvas::disc(float x, float y, float radius, Rgb color) {
  line(x, y, x, y, 2 * radius, color);
}

void Canvas::paint(const std::vector<int32_t>& index, const std::vector<Paint>& paints) {
  std::vector<std::array<int, 4>> targets;
  for (const Paint& paint : paints) targets.push_back(components(paint.color));
  for (unsigned c = 0; c < count_components(frame_); ++c) {
    const Samples samples(frame_, c);
    const int sub_x = samples.sub_x, sub_y = samples.sub_y;
    for (int cy = top_ >> sub_y; cy <= (top_ + height_ - 1) >> sub_y; ++cy) {
      // Gives a chroma sample the colour of the pixel at its corner.
      const int y = std::clamp((cy << sub_y) - top_, 0, height_ - 1);
      const int32_t* places = &index[static_cast<size_t>(y) * static_cast<size_t>(width_)];
      for (int cx = left_ >> sub_x; cx <= (left_ + width_ - 1) >> sub_x; ++cx) {
        const int32_t place = places[std::clamp((cx << sub_x) - left_, 0, width_ - 1)];
        if (place < 0 || static_cast<size_t>(place) >= paints.size()) continue;
        const int opacity = paints[static_cast<size_t>(place)].opacity;
        samples.set(cx, cy,
                    (samples.get(cx, cy) * (255 - opacity) +
                     targets[static_cast<size_t>(place)][c] * opacity + 127) /
                        255);
      }
    }
  }
}

void Canvas::blur(int x, int y, int width, int height, int cells) {
  const int x0 = std::max(x, 0) + left_, y0 = std::max(y, 0) + top_;
  const int x1 = std::min(x + width, width_) + left_, y1 = std::min(y + height, height_) + top_;
  if (x0 >= x1 || y0 >= y1) return;
  const int side = std::max({(std::max(x1 - x0, y1 - y0) + cells - 1) / cells, x_step_, y_step_});
  const int columns = (x1 - x0 + side - 1) / side, rows = (y1 - y0 + side - 1) / side;
  for (unsigned c = 0; c < count_components(frame_); ++c) {
    const Samples samples(frame_, c);
    const int sub_x = samples.sub_x, sub_y = samples.sub_y;
    // Computes the means of cells, and interpolates between their centres.
    std::vector<float> sums(static_cast<size_t>(columns) * static_cast<size_t>(rows), 0);
    std::vector<int> counts(sums.size(), 0);
    const auto for_each_sample = [&](auto&& visit) {
      for (int cy = y0 >> sub_y; cy <= (y1 - 1) >> sub_y; ++cy)
        for (int cx = x0 >> sub_x; cx <= (x1 - 1) >> sub_x; ++cx)
          visit(cx, cy, static_cast<float>((cx << sub_x) - x0) / static_cast<float>(side),
                static_cast<float>((cy << sub_y) - y0) / static_cast<float>(side));
    };
    const auto cell = [&](int column, int row) {
      return static_cast<size_t>(std::clamp(row, 0, rows - 1)) * static_cast<size_t>(columns) +
             static_cast<size_t>(std::clamp(column, 0, columns - 1));
    };
    for_each_sample([&](int x_at, int y_at, float u, float v) {
      const size_t at = cell(static_cast<int>(u), static_cast<int>(v));
      sums[at] += static_cast<float>(samples.get(x_at, y_at));
      ++counts[at];
    });
    for (size_t i = 0; i < sums.size(); ++i) sums[i] /= static_cast<float>(std::max(counts[i], 1));
    for_each_sample([&](int x_at, int y_at, float u, float v) {
      u -= 0.5f;
      v -= 0.5f;
      const int column = static_cast<int>(std::floor(u)), row = static_cast<int>(std::floor(v));
      const float p = u - static_cast<float>(column), q = v - static_cast<float>(row);
      const auto mean = [&](int dx, int dy) {
        const size_t at = cell(column + dx, row + dy);
        return counts[at] > 0 ? sums[at]
                              : sums[cell(static_cast<int>(u + 0.5f), static_cast<int>(v + 0.5f))];
      };
      const float above = mean(0, 0) * (1 - p) + mean(1, 0) * p;
      const float below = mean(0, 1) * (1 - p) + mean(1, 1) * p;
      // The value lies between means, so the sample can have it.
      samples.set(x_at, y_at, static_cast<int>(std::lround(above * (1 - q) + below * q)));
    });
  }
}

Rgb color_of(unsigned number) {
  // Goes round the colour circle in steps of the golden ratio, so that colours of consecutive
  // numbers are far apart.
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
