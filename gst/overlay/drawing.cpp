// What an overlay looks like.
#include "gst/overlay/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace clinfer {
namespace {

constexpr size_t kMostLabels = 4096;

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
  const auto add = [&](const std::string& text) { tag += (tag.empty() ? "" : " ") + text; };
  if (style.show_scores && region.has_detection) add(percent(region.confidence));
  for (const ClassificationView& answer : region.classifications) {
    if (style.show_labels)
      add(answer.label.empty() ? answer.attribute + " " + std::to_string(answer.label_id)
                               : answer.label);
    if (style.show_scores) add(percent(answer.confidence));
  }
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

bool overlap(const Edges& a, const Edges& b) {
  return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
}

// Where a tag of this size goes: above its box, else inside, below, or the next free place further
// down. Inside the picture always.
Edges place_tag(const Canvas& canvas, const Edges& box, int width, int height,
                const std::vector<Edges>& taken) {
  const int x = std::max(0, std::min(box.x0, canvas.width() - width));
  std::vector<int> tops = {box.y0 - height, box.y0, box.y1};
  for (int i = 1; i < 8; ++i) tops.push_back(box.y0 + i * height);
  for (const int top : tops) {
    if (top < 0 || top + height > canvas.height()) continue;
    const Edges place{x, top, x + width, top + height};
    if (std::none_of(taken.begin(), taken.end(),
                     [&](const Edges& other) { return overlap(place, other); }))
      return place;
  }
  const int top = std::max(0, std::min(box.y0 - height, canvas.height() - height));
  return {x, top, x + width, top + height};
}

int margin_of(int font) { return std::max(1, font / 5); }

void draw_tag(Canvas& canvas, const Edges& place, const Mask& mask, int font, Rgb color) {
  canvas.fill(place.x0, place.y0, place.x1 - place.x0, place.y1 - place.y0, color);
  canvas.blend(place.x0 + margin_of(font), place.y0, mask, text_color_on(color));
}

}  // namespace

Rgb Palette::color_for(const RegionView& region) {
  const std::string& name = region.label.empty() ? region.roi_type : region.label;
  if (const auto known = number_of_.find(name); known != number_of_.end())
    return color_of(known->second);
  unsigned number = region.label_id ? static_cast<unsigned>(*region.label_id) : 0;
  if (number_of_.size() >= kMostLabels) return color_of(number);
  while (label_of_.count(number) != 0) ++number;
  number_of_[name] = number;
  label_of_[number] = name;
  return color_of(number);
}

void draw_results(Canvas& canvas, const std::vector<RegionView>& regions,
                  const std::vector<ResultView>& results, const DrawingStyle& style,
                  TextCache& text, Palette& palette) {
  const Sizes sizes = sizes_for(canvas, style);
  std::vector<const RegionView*> order;
  for (const RegionView& region : regions) order.push_back(&region);
  std::stable_sort(order.begin(), order.end(), [](const RegionView* a, const RegionView* b) {
    return a->confidence > b->confidence;
  });
  // The surest objects last, on top; their tags first, in the best places.
  for (auto region = order.rbegin(); region != order.rend(); ++region)
    draw_frame(canvas, edges_of(canvas, **region), sizes.line, palette.color_for(**region));
  std::vector<Edges> taken;
  const auto add_tag = [&](const std::string& tag, const Edges& box, Rgb color) {
    if (tag.empty()) return;
    const Mask& mask = text.mask(tag, sizes.font);
    const int width = mask.width + 2 * margin_of(sizes.font);
    const Edges place = place_tag(canvas, box, width, mask.height, taken);
    draw_tag(canvas, place, mask, sizes.font, color);
    taken.push_back(place);
  };
  for (const ResultView& result : results) {
    for (const ClassificationView& answer : result.classifications) {
      std::string tag;
      if (style.show_labels)
        tag = answer.attribute + ": " +
              (answer.label.empty() ? std::to_string(answer.label_id) : answer.label);
      if (style.show_scores) tag += (tag.empty() ? "" : " ") + percent(answer.confidence);
      // A line of its own at the top left.
      const int top = taken.empty() ? 0 : taken.back().y1;
      add_tag(tag, {0, top, 0, top}, color_of(static_cast<unsigned>(answer.label_id)));
    }
  }
  for (const RegionView* region : order)
    add_tag(tag_of(*region, style), edges_of(canvas, *region), palette.color_for(*region));
}

}  // namespace clinfer
