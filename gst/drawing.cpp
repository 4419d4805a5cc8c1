// What an overlay looks like.
#include "gst/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace clinfer {
namespace {

// Ids give neighbours in a list different colours; labels without an id are spread by a hash.
Rgb color_for(const RegionView& region) {
  if (region.label_id) return color_of(static_cast<unsigned>(*region.label_id));
  unsigned hash = 2166136261u;
  for (const char c : region.roi_type) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return color_of(hash % 1024);
}

std::string percent(double confidence) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%", std::clamp(confidence, 0.0, 1.0) * 100);
  return text;
}

std::string tag_of(const RegionView& region, const DrawingStyle& style) {
  std::string tag;
  if (style.show_labels)
    tag = !region.label.empty() ? region.label
          : region.label_id     ? std::to_string(*region.label_id)
                                : region.roi_type;
  if (style.show_scores && region.has_detection)
    tag += (tag.empty() ? "" : " ") + percent(region.confidence);
  return tag;
}

int rounded_to(int value, int step) { return (value + step / 2) / step * step; }

struct Sizes {
  int line = 1, font = 10;
};

Sizes sizes_for(const Canvas& canvas, const DrawingStyle& style) {
  Sizes sizes;
  sizes.line = style.line_width != 0
                   ? static_cast<int>(style.line_width)
                   : std::max(1, static_cast<int>(std::lround(canvas.height() / 240.0)));
  // A line that is a whole number of chroma samples wide keeps its colour.
  if (style.line_width == 0)
    sizes.line = std::max(sizes.line, std::max(canvas.x_step(), canvas.y_step()));
  sizes.font = style.font_size != 0
                   ? static_cast<int>(style.font_size)
                   : std::max(9, static_cast<int>(std::lround(canvas.height() / 36.0)));
  return sizes;
}

struct Edges {
  int x0, y0, x1, y1;
};

Edges edges_of(const Canvas& canvas, const RegionView& region) {
  const auto at = [](float share, int size, int step) {
    const double position = std::clamp(static_cast<double>(share), -1.0, 2.0) * size;
    return std::isfinite(position) ? rounded_to(static_cast<int>(std::lround(position)), step) : 0;
  };
  return {at(region.box.x_min, canvas.width(), canvas.x_step()),
          at(region.box.y_min, canvas.height(), canvas.y_step()),
          at(region.box.x_max, canvas.width(), canvas.x_step()),
          at(region.box.y_max, canvas.height(), canvas.y_step())};
}

void draw_frame(Canvas& canvas, const Edges& e, int line, Rgb color) {
  const int width = e.x1 - e.x0, height = e.y1 - e.y0;
  if (width <= 2 * line || height <= 2 * line) {
    canvas.fill(e.x0, e.y0, std::max(width, line), std::max(height, line), color);
    return;
  }
  canvas.fill(e.x0, e.y0, width, line, color);
  canvas.fill(e.x0, e.y1 - line, width, line, color);
  canvas.fill(e.x0, e.y0 + line, line, height - 2 * line, color);
  canvas.fill(e.x1 - line, e.y0 + line, line, height - 2 * line, color);
}

// A tag with its lower left corner at (x, bottom), moved inside the picture.
void draw_tag(Canvas& canvas, int x, int bottom, const std::string& tag, int font, Rgb color,
              TextCache& text) {
  const Mask& mask = text.mask(tag, font);
  const int margin = std::max(1, font / 5);
  const int width = mask.width + 2 * margin, height = mask.height;
  int top = bottom - height;
  x = std::max(0, std::min(x, canvas.width() - width));
  top = std::max(0, std::min(top, canvas.height() - height));
  canvas.fill(x, top, width, height, color);
  canvas.blend(x + margin, top, mask, text_color_on(color));
}

}  // namespace

void draw_results(Canvas& canvas, const std::vector<RegionView>& regions,
                  const std::vector<ResultView>& results, const DrawingStyle& style,
                  TextCache& text) {
  const Sizes sizes = sizes_for(canvas, style);
  // The surest objects last, on top.
  std::vector<const RegionView*> order;
  for (const RegionView& region : regions) order.push_back(&region);
  std::stable_sort(order.begin(), order.end(), [](const RegionView* a, const RegionView* b) {
    return a->confidence < b->confidence;
  });
  for (const RegionView* region : order)
    draw_frame(canvas, edges_of(canvas, *region), sizes.line, color_for(*region));
  for (const RegionView* region : order) {
    const std::string tag = tag_of(*region, style);
    if (tag.empty()) continue;
    const Edges e = edges_of(canvas, *region);
    // Above the box; inside it where there is no room.
    const int height = text.mask(tag, sizes.font).height;
    const int bottom = e.y0 >= height ? e.y0 : e.y0 + height;
    draw_tag(canvas, e.x0, bottom, tag, sizes.font, color_for(*region), text);
  }
  int line_top = 0;
  for (const ResultView& result : results) {
    for (const Classification& answer : result.classifications) {
      std::string tag;
      if (style.show_labels)
        tag = answer.attribute + ": " +
              (answer.label.empty() ? std::to_string(answer.label_id) : answer.label);
      if (style.show_scores) tag += (tag.empty() ? "" : " ") + percent(answer.confidence);
      if (tag.empty() || line_top >= canvas.height()) continue;
      const int height = text.mask(tag, sizes.font).height;
      draw_tag(canvas, 0, line_top + height, tag, sizes.font,
               color_of(static_cast<unsigned>(answer.label_id)), text);
      line_top += height;
    }
  }
}

}  // namespace clinfer
