// Draws the results of a frame.
#include "gst/overlay/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>

#include "engine/heads/files/labels.h"
#include "gst/meta/run_lengths.h"
#include "gst/overlay/privacy.h"

namespace clinfer {
namespace {

constexpr size_t kMostLabels = 4096;

std::string percent(double confidence) {
  if (confidence > 0 && confidence < 0.005) return "<1%";
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%", std::clamp(confidence, 0.0, 1.0) * 100);
  return text;
}

// Appends a text to a tag. Text from right to left would pull a number after it to its other side,
// without its percent sign, so that a left-to-right mark separates them. The blank stands before
// the mark, and so belongs to the direction of the whole tag.
void add(std::string& tag, const std::string& text) {
  if (tag.empty() || text.empty()) {
    tag += text;
    return;
  }
  const bool is_ascii = std::all_of(tag.begin(), tag.end(), [](char c) { return c >= 0; });
  tag += (is_ascii ? " " : " \u200e") + text;
}

// Returns the label of an object. A skeleton implies what it belongs to if the model has no names.
std::string name_of(const RegionView& region) {
  if (!region.label.empty()) return region.label;
  const bool one_class = !region.label_id || *region.label_id == 0;
  switch (one_class ? region.skeleton : Skeleton::none) {
    case Skeleton::coco17:
    case Skeleton::body25:
    case Skeleton::body18:
    case Skeleton::body33:
      return "person";
    case Skeleton::face5:
      return "face";
    case Skeleton::hand21:
      return "hand";
    default:
      return region.label_id ? std::to_string(*region.label_id) : region.roi_type;
  }
}

// Returns the tags of a region from the longest to the shortest: scores of attributes, attributes
// and texts, the object's score, and its name beside a number are left out one after the other. No
// tag is empty.
std::vector<std::string> tags_of(const RegionView& region, const DrawingStyle& style) {
  std::string name, id, score;
  if (style.show_labels) name = name_of(region);
  if (style.show_labels && region.track_id) id = "#" + std::to_string(*region.track_id);
  if (style.show_scores && region.has_detection) score = percent(region.confidence);
  std::string attributes, names;
  std::string last;
  for (const ClassificationView& answer : region.classifications) {
    // Takes only the best of several answers of one output, and none without a name.
    if (answer.attribute == last || answer.label.empty()) continue;
    last = answer.attribute;
    if (style.show_labels) add(attributes, answer.label), add(names, answer.label);
    if (style.show_scores) add(attributes, percent(static_cast<double>(answer.confidence)));
  }
  if (style.show_labels)
    for (const TextView& text : region.texts)
      for (std::string* tag : {&attributes, &names}) add(*tag, "\u201c" + text.text + "\u201d");
  std::vector<std::string> tags;
  using Parts = std::initializer_list<const std::string*>;
  for (const Parts& parts : {Parts{&name, &id, &score, &attributes},
                             {&name, &id, &score, &names},
                             {&name, &id, &score},
                             {&name, &id},
                             {id.empty() ? &name : &id}}) {
    std::string tag;
    for (const std::string* part : parts) add(tag, *part);
    if (!tag.empty() && (tags.empty() || tags.back() != tag)) tags.push_back(tag);
  }
  return tags;
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
  // Makes lines as wide as a chroma sample at least, so that they keep their colour.
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

bool hits(const Edges& place, const std::vector<Edges>& others) {
  return std::any_of(others.begin(), others.end(),
                     [&](const Edges& other) { return overlap(place, other); });
}

// Returns the first free place for a tag of this size: above its box, inside below its upper line,
// or below it, each at the left or right edge; always inside the picture.
std::optional<Edges> free_place(const Canvas& canvas, const Edges& box, int line, int width,
                                int height, const std::vector<Edges>& taken,
                                const std::vector<Edges>& kept) {
  const int most = canvas.width() - width;
  for (const int top : {box.y0 - height, box.y0 + line, box.y1})
    for (const int left : {box.x0, box.x1 - width}) {
      const int x = std::max(0, std::min(left, most));
      const Edges place{x, top, x + width, top + height};
      if (top >= 0 && top + height <= canvas.height() && !hits(place, taken) && !hits(place, kept))
        return place;
    }
  return std::nullopt;
}

// Returns a place for a tag that must be seen: if there is no such free place, the next one further
// down, or one over other tags.
Edges place_tag(const Canvas& canvas, const Edges& box, int width, int height,
                const std::vector<Edges>& taken) {
  if (const auto place = free_place(canvas, box, 0, width, height, taken, {})) return *place;
  const int x = std::max(0, std::min(box.x0, canvas.width() - width));
  for (int i = 1; i < 8; ++i) {
    const int top = box.y0 + i * height;
    const Edges place{x, top, x + width, top + height};
    if (top >= 0 && top + height <= canvas.height() && !hits(place, taken)) return place;
  }
  const int top = std::max(0, std::min(box.y0 - height, canvas.height() - height));
  return {x, top, x + width, top + height};
}

// Returns colours of zones, which are pale, unlike those of labels and tracks.
Rgb color_of_zone(size_t number) {
  constexpr Rgb kColors[] = {{255, 255, 255}, {255, 232, 150}, {165, 225, 255},
                             {255, 190, 215}, {195, 250, 190}, {215, 200, 255}};
  return kColors[number % std::size(kColors)];
}

// Averages a place with those around it, because boxes, and with them the centre of their lower
// edge, tremble.
Point smoothed(const std::deque<Point>& points, size_t at) {
  constexpr size_t kAround = 3;
  const size_t reach = std::min({kAround, at, points.size() - 1 - at});
  Point sum;
  for (size_t i = at - reach; i <= at + reach; ++i) {
    sum.x += points[i].x;
    sum.y += points[i].y;
  }
  const auto count = static_cast<float>(2 * reach + 1);
  return {sum.x / count, sum.y / count};
}

int margin_of(int font) { return std::max(1, font / 5); }

bool is_inside(const PictureBox& box) {
  return box.x_min < 1 && box.y_min < 1 && box.x_max > 0 && box.y_max > 0 &&
         box.x_max >= box.x_min && box.y_max >= box.y_min;
}

// The confidence below which a point is a guess and is not drawn.
constexpr float kLeastPoint = 0.3f;

// Draws one frame.
class Painter {
 public:
  Painter(Canvas& canvas, const FrameView& frame, const DrawingStyle& style, TextCache& text,
          Palette& palette, const Trails& trails)
      : canvas_(canvas),
        frame_(frame),
        style_(style),
        text_(text),
        palette_(palette),
        trails_(trails),
        sizes_(sizes_for(canvas, style)) {
    for (const RegionView& region : frame.regions)
      if (is_inside(region.box)) order_.push_back(&region);
    // Draws the objects with the highest confidence last, on top, but places their tags first.
    std::stable_sort(order_.begin(), order_.end(), [](const RegionView* a, const RegionView* b) {
      return a->confidence < b->confidence;
    });
  }

  void run() {
    if (style_.privacy != Privacy::none) hide();
    if (style_.show_masks) {
      for (const ResultView& result : frame_.results)
        for (const MapView& map : result.maps) draw_map(map);
      for (const RegionView* region : order_) draw_mask(*region);
    }
    if (style_.show_zones)
      for (size_t i = 0; i < frame_.zones.size(); ++i) draw_zone(frame_.zones[i], color_of_zone(i));
    for (const RegionView* region : order_) draw_trail(*region);
    if (style_.show_boxes)
      for (const RegionView* region : order_) draw_box(*region);
    if (style_.show_points)
      for (const RegionView* region : order_) draw_points(*region);
    for (const ResultView& result : frame_.results) draw_answers(result);
    for (auto region = order_.rbegin(); region != order_.rend(); ++region) add_region_tag(**region);
  }

 private:
  Rgb color_of_region(const RegionView& region) {
    return style_.color_by == ColorBy::track && region.track_id
               ? color_of(static_cast<unsigned>(*region.track_id % 1021))
               : palette_.color_for(region);
  }

  Point at(float x, float y) const {
    return {x * static_cast<float>(canvas_.width()), y * static_cast<float>(canvas_.height())};
  }
  void draw_line(const Point& a, const Point& b, float width, Rgb color) {
    const Point p = at(a.x, a.y), q = at(b.x, b.y);
    canvas_.line(p.x, p.y, q.x, q.y, width, color);
  }

  void hide() {
    const std::vector<std::string> labels = parse_labels(style_.privacy_labels);
    for (const RegionView* region : order_) {
      if (is_private(*region, labels)) hide_part(canvas_, region->box, style_.privacy);
    }
  }

  uint8_t opacity() const {
    return static_cast<uint8_t>(std::lround(std::clamp(style_.mask_opacity, 0.0, 1.0) * 255));
  }

  void draw_map(const MapView& map) {
    std::vector<Paint> paints;
    std::vector<int32_t> index;
    if (map.kind == MapKind::classes) {
      index = class_of_pixels(map, canvas_.width(), canvas_.height());
      const auto most = std::max_element(index.begin(), index.end());
      for (int32_t label = 0; most != index.end() && label <= *most; ++label)
        paints.push_back({color_of(static_cast<unsigned>(label)),
                          is_background(map, label) ? uint8_t{0} : opacity()});
    } else {
      const std::vector<float> values = value_of_pixels(map, canvas_.width(), canvas_.height());
      float least = 0, most = 1;
      if (map.kind == MapKind::depth) range_of(values, least, most);
      constexpr int kSteps = 64;
      for (int step = 0; step < kSteps; ++step) {
        // Colours all of a depth map; in other maps, low values are almost transparent.
        const int share = map.kind == MapKind::depth ? kSteps - 1 : step;
        paints.push_back({heat(static_cast<double>(step) / (kSteps - 1)),
                          static_cast<uint8_t>(opacity() * share / (kSteps - 1))});
      }
      for (const float value : values) {
        const float step = (value - least) / (most - least) * (kSteps - 1);
        index.push_back(
            std::isfinite(step) ? static_cast<int32_t>(std::clamp(step, 0.0f, kSteps - 1.0f)) : -1);
      }
    }
    canvas_.paint(index, paints);
  }

  // Leaves pixels of the background class unpainted.
  static bool is_background(const MapView& map, int32_t label) {
    if (static_cast<size_t>(label) >= map.labels.size()) return false;
    const std::string& name = map.labels[static_cast<size_t>(label)];
    return name == "background" || name == "__background__" || name == "bg";
  }

  static void range_of(const std::vector<float>& values, float& least, float& most) {
    least = std::numeric_limits<float>::infinity();
    most = -least;
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    if (!(most > least)) most = least + 1;
  }

  // Returns a colour from blue over green and yellow to red.
  static Rgb heat(double value) {
    const auto channel = [](double v) {
      return static_cast<uint8_t>(std::lround(255 * std::clamp(v, 0.0, 1.0)));
    };
    return {channel(2 * value - 0.5), channel(2 - std::fabs(4 * value - 2)),
            channel(1.5 - 2 * value)};
  }

  void draw_mask(const RegionView& region) {
    if (!region.mask) return;
    const Raster raster = raster_of(*region.mask, region.box, canvas_.width(), canvas_.height());
    canvas_.blend(raster.rect.x, raster.rect.y,
                  {raster.rect.width, raster.rect.height, raster.pixels}, color_of_region(region),
                  opacity());
  }

  void draw_trail(const RegionView& region) {
    if (style_.trail_length == 0 || !region.track_id) return;
    const std::deque<Point>& points = trails_.of(*region.track_id);
    const Rgb color = color_of_region(region);
    for (size_t i = 1; i < points.size(); ++i)
      draw_line(smoothed(points, i - 1), smoothed(points, i), static_cast<float>(sizes_.line),
                color);
  }

  // Draws a zone's outline, with the counts at its first point.
  void draw_zone(const ZoneView& zone, Rgb color) {
    const size_t count = zone.points.size();
    if (count == 0) return;
    for (size_t i = 0; i + (zone.is_line ? 1 : 0) < count; ++i)
      draw_line(zone.points[i], zone.points[(i + 1) % count], static_cast<float>(sizes_.line),
                color);
    if (!style_.show_labels) return;
    const Point first = at(zone.points[0].x, zone.points[0].y);
    const int x = static_cast<int>(std::clamp(first.x, 0.0f, static_cast<float>(canvas_.width())));
    const int y = static_cast<int>(std::clamp(first.y, 0.0f, static_cast<float>(canvas_.height())));
    add_tag(zone.is_line
                ? zone.name + " in " + std::to_string(zone.in) + " out " + std::to_string(zone.out)
                : zone.name + " " + std::to_string(zone.inside),
            {x, y, x, y}, color);
  }

  void draw_box(const RegionView& region) {
    const Rgb color = color_of_region(region);
    if (!region.corners) {
      draw_frame(canvas_, edges_of(canvas_, region), sizes_.line, color);
      return;
    }
    const auto& corners = *region.corners;
    for (size_t i = 0; i < 4; ++i)
      draw_line(corners[i], corners[(i + 1) % 4], static_cast<float>(sizes_.line), color);
  }

  void draw_points(const RegionView& region) {
    // Draws small points on small objects.
    const float height = static_cast<float>(region.height),
                width = static_cast<float>(region.width);
    const float line =
        std::clamp(std::max(height, width) / 80, 1.0f, static_cast<float>(sizes_.line));
    const Rgb color = color_of_region(region);
    const std::vector<KeyPoint>& points = region.keypoints;
    const auto is_sure = [&](int i) {
      return i >= 0 && static_cast<size_t>(i) < points.size() &&
             points[static_cast<size_t>(i)].confidence >= kLeastPoint;
    };
    for (const auto& [from, to] : skeleton_of(region.skeleton).connections) {
      if (!is_sure(from) || !is_sure(to)) continue;
      const KeyPoint &a = points[static_cast<size_t>(from)], &b = points[static_cast<size_t>(to)];
      draw_line({a.x, a.y}, {b.x, b.y}, line, color);
    }
    const auto dot = [&](float x, float y) {
      const Point p = at(x, y);
      canvas_.disc(p.x, p.y, line * 1.6f, text_color_on(color));
      canvas_.disc(p.x, p.y, line * 1.2f, color);
    };
    for (const KeyPoint& point : points)
      if (point.confidence >= kLeastPoint) dot(point.x, point.y);
    for (const Point& point : region.landmarks) dot(point.x, point.y);
  }

  // Writes lines at the top left, one below the other.
  void draw_answers(const ResultView& result) {
    const auto add_line = [&](const std::string& line, Rgb color) {
      add_tag(line, {0, lines_end_, 0, lines_end_}, color);
      if (!line.empty() && !taken_.empty()) lines_end_ = taken_.back().y1;
    };
    for (const ClassificationView& answer : result.classifications) {
      std::string line;
      if (style_.show_labels)
        line = answer.attribute + ": " +
               (answer.label.empty() ? std::to_string(answer.label_id) : answer.label);
      if (style_.show_scores) add(line, percent(static_cast<double>(answer.confidence)));
      add_line(line, color_of(static_cast<unsigned>(std::max(answer.label_id, 0))));
    }
    if (!style_.show_labels) return;
    for (const TextView& text : result.texts) add_line(text.text, {255, 255, 255});
    for (const MapView& map : result.maps)
      if (map.kind == MapKind::classes && style_.show_masks) draw_legend(map, add_line);
  }

  template <typename AddLine>
  void draw_legend(const MapView& map, AddLine&& add_line) {
    constexpr size_t kMostNames = 12;
    std::vector<ClassShare> shares = class_shares(map, canvas_.width(), canvas_.height());
    std::stable_sort(shares.begin(), shares.end(),
                     [](const ClassShare& a, const ClassShare& b) { return a.share > b.share; });
    shares.resize(std::min(shares.size(), kMostNames));
    for (const ClassShare& part : shares) {
      const auto id = static_cast<size_t>(part.label_id);
      const bool known = id < map.labels.size() && !map.labels[id].empty();
      std::string line = known ? map.labels[id] : std::to_string(part.label_id);
      if (style_.show_scores) add(line, percent(part.share));
      add_line(line, color_of(static_cast<unsigned>(part.label_id)));
    }
  }

  // Limits a tag to half of the picture's width, if that leaves a few letters.
  int widest_tag() const {
    return std::min(canvas_.width(), std::max(canvas_.width() / 2, 12 * sizes_.font));
  }

  void add_tag(const std::string& tag, const Edges& box, Rgb color) {
    if (tag.empty()) return;
    const int margin = margin_of(sizes_.font);
    const Mask& mask = text_.mask(tag, sizes_.font, std::max(widest_tag() - 2 * margin, 1));
    paint_tag(place_tag(canvas_, box, mask.width + 2 * margin, mask.height, taken_), mask, color);
  }

  void paint_tag(const Edges& place, const Mask& mask, Rgb color) {
    const int margin = margin_of(sizes_.font);
    canvas_.fill(place.x0, place.y0, place.x1 - place.x0, place.y1 - place.y0, color);
    canvas_.blend(place.x0 + margin, place.y0, mask, text_color_on(color));
    taken_.push_back(place);
  }

  // Places the longest tag that has room without covering the upper parts of other objects, or else
  // without covering the upper edges of their boxes. In a crowd, a tag without room is left out.
  void add_region_tag(const RegionView& region) {
    const std::vector<std::string> tags = tags_of(region, style_);
    const Edges box = edges_of(canvas_, region);
    const int margin = margin_of(sizes_.font);
    std::vector<Edges> heads, tops;
    for (const RegionView* other : order_) {
      if (other == &region) continue;
      const Edges e = edges_of(canvas_, *other);
      const Edges top{e.x0, e.y0, e.x1, e.y0 + 2 * sizes_.line};
      // Two networks may have found the same object.
      const int near = 2 * sizes_.line;
      const bool same_top = std::abs(e.y0 - box.y0) <= near && std::abs(e.x0 - box.x0) <= near &&
                            std::abs(e.x1 - box.x1) <= near;
      if (!same_top) tops.push_back(top);
      const bool nested = (e.x0 <= box.x0 && e.x1 >= box.x1 && e.y0 <= box.y0 && e.y1 >= box.y1) ||
                          (box.x0 <= e.x0 && box.x1 >= e.x1 && box.y0 <= e.y0 && box.y1 >= e.y1);
      if (!nested && !same_top) heads.push_back({e.x0, e.y0, e.x1, e.y0 + (e.y1 - e.y0) / 3});
    }
    for (const std::vector<Edges>* kept : {&heads, &tops})
      for (const std::string& tag : tags) {
        const bool shortest = &tag == &tags.back();
        const int most = shortest && order_.size() > 1 ? std::max(box.x1 - box.x0, 4 * sizes_.font)
                                                       : widest_tag();
        const Mask& mask =
            text_.mask(tag, sizes_.font, std::max(std::min(most, widest_tag()) - 2 * margin, 1));
        if (const auto place = free_place(canvas_, box, sizes_.line, mask.width + 2 * margin,
                                          mask.height, taken_, *kept))
          return paint_tag(*place, mask, color_of_region(region));
      }
    if (order_.size() == 1 && !tags.empty()) add_tag(tags.front(), box, color_of_region(region));
  }

  Canvas& canvas_;
  const FrameView& frame_;
  const DrawingStyle& style_;
  TextCache& text_;
  Palette& palette_;
  const Trails& trails_;
  const Sizes sizes_;
  std::vector<const RegionView*> order_;  // lowest confidence first
  std::vector<Edges> taken_;              // covered by tags
  int lines_end_ = 0;
};

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

void Trails::add(const std::vector<RegionView>& regions, unsigned length) {
  ++frame_;
  for (const RegionView& region : regions) {
    if (!region.track_id || length == 0) continue;
    Trail& trail = trails_[*region.track_id];
    // An object stands at the centre of its lower edge.
    trail.points.push_back({(region.box.x_min + region.box.x_max) / 2, region.box.y_max});
    trail.last_frame = frame_;
  }
  std::erase_if(trails_,
                [&](const auto& entry) { return entry.second.last_frame + length <= frame_; });
  for (auto& [track, trail] : trails_)
    while (trail.points.size() > length) trail.points.pop_front();
}

const std::deque<Point>& Trails::of(uint64_t track) const {
  static const auto& kNone = *new const std::deque<Point>;
  const auto found = trails_.find(track);
  return found != trails_.end() ? found->second.points : kNone;
}

void hide_part(Canvas& canvas, const PictureBox& box, Privacy privacy) {
  const Rect r = pixels_of(box, canvas.width(), canvas.height());
  if (privacy == Privacy::fill) canvas.fill(r.x, r.y, r.width, r.height, {0, 0, 0});
  if (privacy == Privacy::blur) canvas.blur(r.x, r.y, r.width, r.height, 6);
}

bool has_drawing(const FrameView& frame) {
  return !frame.regions.empty() || !frame.zones.empty() ||
         std::any_of(frame.results.begin(), frame.results.end(), [](const ResultView& result) {
           return !result.classifications.empty() || !result.texts.empty() || !result.maps.empty();
         });
}

void draw_results(Canvas& canvas, const FrameView& frame, const DrawingStyle& style,
                  TextCache& text, Palette& palette, Trails& trails) {
  trails.add(frame.regions, style.trail_length);
  Painter(canvas, frame, style, text, palette, trails).run();
}

}  // namespace clinfer
