// Selects objects, regions and tiles.
#include "gst/infer/settings/object_rules.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "engine/heads/files/labels.h"

namespace clinfer {
namespace {

[[noreturn]] void refuse(const char* property, const std::string& text, const char* takes,
                         SourcePlace place = SourcePlace::here()) {
  throw Error{ErrorCode::bad_argument, std::string(property) + "=" + text + ": " + takes, place};
}

// Returns a whole number from 1 to 32, or 0 for other texts.
int count_in(const std::string& text) {
  const double value = number_in(text).value_or(0);
  return value >= 1 && value <= 32 && value == std::floor(value) ? static_cast<int>(value) : 0;
}

// Parses two landmarks by number, "0>2"; returns nothing for other texts.
std::optional<std::pair<size_t, size_t>> landmarks_in(const std::string& text) {
  const std::vector<std::string> parts = split(text, '>');
  const auto from = number_in(parts.front()), to = number_in(parts.back());
  const auto is_landmark = [](const std::optional<double>& v) {
    return v && *v >= 0 && *v < 4096 && *v == std::floor(*v);
  };
  if (parts.size() != 2 || !is_landmark(from) || !is_landmark(to) || *from == *to)
    return std::nullopt;
  return std::pair(static_cast<size_t>(*from), static_cast<size_t>(*to));
}

std::optional<std::pair<Extent, Extent>> size_in(const char* property, const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::vector<std::string> parts = split(text, 'x');
  if (parts.size() == 1) parts.push_back(parts[0]);
  const auto width = extent_in(parts[0]), height = extent_in(parts[1]);
  if (parts.size() != 2 || !width || !height)
    refuse(property, text,
           "takes WxH, or one number for both: whole numbers are pixels (20x40), numbers with a "
           "point are shares of the picture (0.05x0.1)");
  return std::pair(*width, *height);
}

// Returns whether a is greater than b. Pixels and shares can be compared only when the picture is
// known.
bool is_above(const Extent& a, const Extent& b) {
  return a.is_share == b.is_share && a.value > b.value;
}

std::string name_of(const Detection& detection, const std::vector<std::string>& labels) {
  if (!detection.label.empty()) return detection.label;
  const auto id = static_cast<size_t>(detection.label_id);
  return id < labels.size() ? labels[id] : "";
}

// Returns the part of an area that lies in the picture, in pixels of the frame; nothing if there is
// none.
std::optional<Rect> within(double x, double y, double width, double height, const Rect& visible) {
  const auto limited = [](double v, int most) {
    return static_cast<int>(std::lround(std::clamp(v, 0.0, static_cast<double>(most))));
  };
  const int left = limited(x, visible.width), right = limited(x + width, visible.width);
  const int top = limited(y, visible.height), bottom = limited(y + height, visible.height);
  if (right <= left || bottom <= top) return std::nullopt;
  return Rect{visible.x + left, visible.y + top, right - left, bottom - top};
}

// Returns whether an area that is turned about its middle reaches into the picture; 0: no turn.
bool touches(double x, double y, double width, double height, const Rect& visible, float angle,
             double pixel_aspect) {
  constexpr double kFarthest = 1 << 19;
  if (!(std::fabs(x) < kFarthest && std::fabs(y) < kFarthest && width < kFarthest &&
        height < kFarthest))
    return false;
  const double c = std::fabs(std::cos(static_cast<double>(angle))),
               s = std::fabs(std::sin(static_cast<double>(angle)));
  const double half_x = (c * width + s * height / pixel_aspect) / 2,
               half_y = (s * width * pixel_aspect + c * height) / 2;
  const double middle_x = x + width / 2, middle_y = y + height / 2;
  constexpr double kLeast = 1;  // pixels
  return middle_x + half_x >= kLeast && middle_x - half_x <= visible.width - kLeast &&
         middle_y + half_y >= kLeast && middle_y - half_y <= visible.height - kLeast;
}

// A box in pixels of the frame.
struct FrameBox {
  double x_min, y_min, x_max, y_max;
  double area() const { return std::max(0.0, x_max - x_min) * std::max(0.0, y_max - y_min); }
};

FrameBox to_frame(const Detection& d, const Placement& p) {
  const auto x = [&](float v) {
    return (static_cast<double>(v) - p.left) * p.x_scale + p.origin_x;
  };
  const auto y = [&](float v) { return (static_cast<double>(v) - p.top) * p.y_scale + p.origin_y; };
  const auto [x0, x1] = p.transposed ? std::pair(d.y_min, d.y_max) : std::pair(d.x_min, d.x_max);
  const auto [y0, y1] = p.transposed ? std::pair(d.x_min, d.x_max) : std::pair(d.y_min, d.y_max);
  const auto [x_min, x_max] = std::minmax({x(x0), x(x1)});
  const auto [y_min, y_max] = std::minmax({y(y0), y(y1)});
  return {x_min, y_min, x_max, y_max};
}

void set_box(Detection& d, const Placement& p, const FrameBox& box) {
  const auto x = [&](double v) {
    return static_cast<float>((v - p.origin_x) / p.x_scale + p.left);
  };
  const auto y = [&](double v) { return static_cast<float>((v - p.origin_y) / p.y_scale + p.top); };
  std::tie(d.x_min, d.x_max) = std::minmax({x(box.x_min), x(box.x_max)});
  std::tie(d.y_min, d.y_max) = std::minmax({y(box.y_min), y(box.y_max)});
  if (p.transposed) std::swap(d.x_min, d.y_min), std::swap(d.x_max, d.y_max);
}

double overlap(double a_min, double a_max, double b_min, double b_max) {
  return std::max(0.0, std::min(a_max, b_max) - std::max(a_min, b_min));
}

// Returns the intersection of two intervals divided by their union.
double likeness(double a_min, double a_max, double b_min, double b_max) {
  const double both = std::max(a_max, b_max) - std::min(a_min, b_min);
  return both > 0 ? overlap(a_min, a_max, b_min, b_max) / both : 0;
}

struct FoundPiece {
  size_t part;
  const Detection* detection;
  FrameBox box;
  float confidence;
  // The inner edges of its tile that it touches: the object may extend beyond them.
  bool left = false, top = false, right = false, bottom = false;
  bool is_cut() const { return left || top || right || bottom; }
  bool gone = false, grown = false;
};

// Returns whether `a`, cut at an edge of its tile, and `b`, cut at the facing edge of another tile,
// are halves of one object.
bool are_halves(const FoundPiece& a, const FoundPiece& b) {
  constexpr double kAlike = 0.6;
  const bool beside = likeness(a.box.y_min, a.box.y_max, b.box.y_min, b.box.y_max) >= kAlike &&
                      overlap(a.box.x_min, a.box.x_max, b.box.x_min, b.box.x_max) > 0 &&
                      ((a.right && b.left) || (a.left && b.right));
  const bool above = likeness(a.box.x_min, a.box.x_max, b.box.x_min, b.box.x_max) >= kAlike &&
                     overlap(a.box.y_min, a.box.y_max, b.box.y_min, b.box.y_max) > 0 &&
                     ((a.bottom && b.top) || (a.top && b.bottom));
  return beside || above;
}

}  // namespace

ObjectRules::ObjectRules(const Settings& settings) : classes_(parse_labels(settings.classes)) {
  if (!settings.thresholds.empty())
    for (const std::string& part : split(settings.thresholds, ',')) {
      const size_t equals = part.rfind('=');
      const auto value =
          equals == std::string::npos ? std::nullopt : number_in(part.substr(equals + 1));
      if (!value || equals == 0 || *value < 0 || *value > 1)
        refuse("thresholds", settings.thresholds,
               "takes NAME=VALUE,... with labels or their numbers and values from 0 to 1, as in "
               "person=0.6,car=0.4");
      thresholds_[split(part.substr(0, equals), '\n')[0]] = *value;
    }
  least_ = size_in("min-size", settings.min_size);
  most_ = size_in("max-size", settings.max_size);
  if (least_ && most_ &&
      (is_above(least_->first, most_->first) || is_above(least_->second, most_->second)))
    throw Error{ErrorCode::bad_argument, "min-size=" + settings.min_size +
                                             " is above max-size=" + settings.max_size +
                                             ": no object would be kept; change one of them"};
  regions_ = areas_in("regions", settings.regions);
  motion_regions_ = areas_in("motion-regions", settings.motion_regions);
  if (!settings.tiles.empty()) {
    const std::vector<std::string> parts = split(settings.tiles, ',');
    const std::vector<std::string> counts = split(parts[0], 'x');
    const auto overlap = parts.size() == 2 ? number_in(parts[1]) : std::optional(Tiles{}.overlap);
    tiles_ = {count_in(counts.front()), count_in(counts.back()), overlap.value_or(-1)};
    if (parts.size() > 2 || counts.size() != 2 || tiles_->columns == 0 || tiles_->rows == 0 ||
        tiles_->overlap < 0 || tiles_->overlap > 0.9)
      refuse("tiles", settings.tiles,
             "takes COLUMNSxROWS, each from 1 to 32, and after a comma the overlap of neighbours "
             "as a share of a tile, from 0 to 0.9, as in 3x2 or 3x2,0.1");
  }
  if (!settings.region_reach.empty()) {
    reach_ = landmarks_in(settings.region_reach);
    if (!reach_)
      refuse("region-reach", settings.region_reach,
             "takes two landmarks by number, the middle of the region and one at its edge, as in "
             "0>1");
  }
  if (!settings.region_shift.empty()) {
    const std::vector<std::string> parts = split(settings.region_shift, ',');
    const auto first = number_in(parts.front()), last = number_in(parts.back());
    const auto is_share = [](const std::optional<double>& v) { return v && *v >= -10 && *v <= 10; };
    const auto pair = landmarks_in(parts.front());
    if (parts.size() != 2 || !is_share(last) || !(pair || is_share(first)))
      refuse("region-shift", settings.region_shift,
             "takes shares of the region's width and height from -10 to 10, as in 0,-0.5, or two "
             "landmarks by number and a share of the longer side, as in 0>2,0.5");
    shift_ = pair ? Shift{0, 0, *last, pair->first, pair->second} : Shift{*first, *last, 0, 0, 0};
  }
  if (!settings.region_turn.empty()) {
    turn_ = turn_in(settings.region_turn);
    if (!turn_)
      refuse("region-turn", settings.region_turn,
             "takes two landmarks by number, and after commas the direction of the second one from "
             "the first (up, right, down or left; up if it is left out), and quarter for the "
             "nearest quarter turn instead of any angle, as in 0>2 or 0>1,right or 0>2,up,quarter");
  }
  if (!settings.region_margin.empty()) {
    const std::vector<std::string> parts = split(settings.region_margin, ',');
    const auto x = number_in(parts.front()), y = number_in(parts.back());
    if (parts.size() > 2 || !x || !y || !(*x >= 0 && *x <= 10) || !(*y >= 0 && *y <= 10))
      refuse(
          "region-margin", settings.region_margin,
          "takes a share of the region from 0 to 10 for all sides, as in 0.5, or one for left and "
          "right and one for top and bottom, as in 0.3,0.6");
    margin_x_ = *x;
    margin_y_ = *y;
  }
  square_ = settings.region_shape == RegionShape::square;
  if (int{!regions_.empty()} + int{tiles_.has_value()} +
          int{settings.inference_region == RegionChoice::roi_list} >
      1)
    throw Error{ErrorCode::bad_argument,
                "regions, tiles and inference-region=roi-list exclude each other: set one of them"};
}

std::optional<ObjectRules::Turn> ObjectRules::turn_in(const std::string& text) {
  const std::vector<std::string> parts = split(text, ',');
  const auto pair = landmarks_in(parts.front());
  if (!pair) return std::nullopt;
  Turn turn{pair->first, pair->second};
  static const auto& kDirections = *new const std::map<std::string, std::pair<int, int>>{
      {"up", {0, -1}}, {"right", {1, 0}}, {"down", {0, 1}}, {"left", {-1, 0}}};
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto direction = kDirections.find(parts[i]);
    if (i == 1 && direction != kDirections.end())
      std::tie(turn.x, turn.y) = direction->second;
    else if (i + 1 == parts.size() && parts[i] == "quarter")
      turn.quarter = true;
    else
      return std::nullopt;
  }
  return turn;
}

std::vector<ObjectRules::Area> ObjectRules::areas_in(const char* property,
                                                     const std::string& text) {
  std::vector<Area> areas;
  for (const std::string& part : split(text, ';')) {
    if (part.empty()) continue;
    const std::vector<std::string> numbers = split(part, ',');
    std::vector<Extent> extents;
    for (const std::string& number : numbers)
      if (const auto extent = extent_in(number)) extents.push_back(*extent);
    if (numbers.size() != 4 || extents.size() != 4 || extents[2].value <= 0 ||
        extents[3].value <= 0)
      refuse(property, text,
             "takes X,Y,WIDTH,HEIGHT;...: whole numbers are pixels, numbers with a point are "
             "shares of the picture, as in 0.0,0.5,1.0,0.5");
    areas.push_back({extents[0], extents[1], extents[2], extents[3], part});
  }
  return areas;
}

std::optional<Rect> ObjectRules::rect_of(const Area& area, const Rect& visible) {
  return within(area.x.pixels(visible.width), area.y.pixels(visible.height),
                area.width.pixels(visible.width), area.height.pixels(visible.height), visible);
}

std::vector<std::string> ObjectRules::regions_outside(const Rect& visible) const {
  std::vector<std::string> outside;
  for (const std::vector<Area>* areas : {&regions_, &motion_regions_})
    for (const Area& area : *areas)
      if (!rect_of(area, visible)) outside.push_back(area.text);
  return outside;
}

std::vector<Rect> ObjectRules::motion_regions(const Rect& visible) const {
  std::vector<Rect> regions;
  for (const Area& area : motion_regions_)
    regions.push_back(rect_of(area, visible).value_or(Rect{}));
  return regions;
}

// Returns the way from one landmark to another, or nothing if a landmark is missing or both are at
// one place.
std::optional<ObjectRules::Way> ObjectRules::way(std::span<const Point> landmarks, size_t from,
                                                 size_t to, const Rect& visible,
                                                 double pixel_aspect) {
  if (std::max(from, to) >= landmarks.size()) return std::nullopt;
  const Way way{
      static_cast<double>(landmarks[to].x - landmarks[from].x) * visible.width * pixel_aspect,
      static_cast<double>(landmarks[to].y - landmarks[from].y) * visible.height};
  const double length = std::hypot(way.x, way.y);
  return length > 0 && std::isfinite(length) ? std::optional(way) : std::nullopt;
}

// Returns the quarter turn of the upright picture after which the way is closest to the direction.
Orientation ObjectRules::quarter_turn(Way way, const Orientation& orientation) const {
  auto [x, y] = way;
  if (orientation.transpose) std::swap(x, y);
  if (orientation.mirror_x) x = -x;
  if (orientation.mirror_y) y = -y;
  // Turns the way so that the wanted direction is up.
  std::tie(x, y) = std::pair(-turn_->y * x + turn_->x * y, -turn_->x * x - turn_->y * y);
  if (std::fabs(y) >= std::fabs(x)) return {false, y > 0, y > 0};
  return {true, x<0, x> 0};
}

// Returns by how much a region is turned so that the way has the direction in the upright picture.
float ObjectRules::angle(Way way, const Orientation& orientation) const {
  double x = turn_->x, y = turn_->y;  // the direction in the stored picture
  if (orientation.mirror_x) x = -x;
  if (orientation.mirror_y) y = -y;
  if (orientation.transpose) std::swap(x, y);
  return static_cast<float>(std::atan2(x * way.y - y * way.x, x * way.x + y * way.y));
}

void ObjectRules::place(InferenceRegion& region, const Rect& visible, double pixel_aspect,
                        const Orientation& orientation) const {
  struct {
    double x, y, width, height;
  } found{static_cast<double>(region.rect.x - visible.x),
          static_cast<double>(region.rect.y - visible.y), static_cast<double>(region.rect.width),
          static_cast<double>(region.rect.height)};
  bool changed = margin_x_ != 0 || margin_y_ != 0 || square_;
  if (reach_)
    if (const auto along =
            way(region.landmarks, reach_->first, reach_->second, visible, pixel_aspect)) {
      const double reach = std::hypot(along->x, along->y);
      const Point& middle = region.landmarks[reach_->first];
      found = {static_cast<double>(middle.x) * visible.width - reach / pixel_aspect,
               static_cast<double>(middle.y) * visible.height - reach, 2 * reach / pixel_aspect,
               2 * reach};
      changed = true;
    }
  if (turn_)
    if (const auto along = way(region.landmarks, turn_->from, turn_->to, visible, pixel_aspect)) {
      if (turn_->quarter)
        region.turn = quarter_turn(*along, orientation);
      else
        region.angle = angle(*along, orientation);
    }
  double shift_x = found.width * shift_.x, shift_y = found.height * shift_.y;
  if (shift_.along != 0)
    if (const auto along = way(region.landmarks, shift_.from, shift_.to, visible, pixel_aspect)) {
      const double far = shift_.along * std::max(found.width * pixel_aspect, found.height);
      const double length = std::hypot(along->x, along->y);
      shift_x = along->x / length * far / pixel_aspect;
      shift_y = along->y / length * far;
    }
  if (!changed && shift_x == 0 && shift_y == 0) return;
  double width = found.width * (1 + 2 * margin_x_), height = found.height * (1 + 2 * margin_y_);
  if (square_) {
    const double side = std::max(width * pixel_aspect, height);
    width = side / pixel_aspect;
    height = side;
  }
  const double x = found.x + shift_x + (found.width - width) / 2;
  const double y = found.y + shift_y + (found.height - height) / 2;
  if (!touches(x, y, width, height, visible, region.angle.value_or(0), pixel_aspect)) return;
  const auto near = [](double v) { return static_cast<int>(std::lround(v)); };
  const int left = near(x), top = near(y);
  region.rect = {visible.x + left, visible.y + top, std::max(near(x + width) - left, 1),
                 std::max(near(y + height) - top, 1)};
  const bool inside = left >= 0 && top >= 0 && left + region.rect.width <= visible.width &&
                      top + region.rect.height <= visible.height;
  // Keeps the proportions of a region that reaches beyond the picture.
  if (!inside && !region.angle) region.angle = 0;
}

std::vector<Rect> ObjectRules::parts(const Rect& visible) const {
  std::vector<Rect> parts;
  const auto add = [&](const std::optional<Rect>& rect) {
    if (rect) parts.push_back(*rect);
  };
  for (const Area& area : regions_) add(rect_of(area, visible));
  if (tiles_) {
    // n tiles of size s with an overlap of o * s each cover s * (n - (n - 1) * o).
    const double width =
        visible.width / (tiles_->columns - (tiles_->columns - 1) * tiles_->overlap);
    const double height = visible.height / (tiles_->rows - (tiles_->rows - 1) * tiles_->overlap);
    for (int row = 0; row < tiles_->rows; ++row)
      for (int column = 0; column < tiles_->columns; ++column)
        add(within(column * width * (1 - tiles_->overlap), row * height * (1 - tiles_->overlap),
                   width, height, visible));
  }
  return parts;
}

bool ObjectRules::filters() const {
  return !classes_.empty() || !thresholds_.empty() || least_ || most_;
}

DecodeSettings ObjectRules::decoding(const DecodeSettings& settings) const {
  DecodeSettings decode = settings;
  for (const auto& [name, value] : thresholds_)
    decode.threshold = std::min(decode.threshold, static_cast<float>(value));
  if (filters() || tiles_) decode.max_detections = 0;  // applied to the objects that are left
  return decode;
}

bool ObjectRules::is_wanted(const Detection& detection, const Placement& placement,
                            const Rect& visible, const std::vector<std::string>& labels,
                            float threshold) const {
  const std::string name = name_of(detection, labels), id = std::to_string(detection.label_id);
  if (!classes_.empty() && std::none_of(classes_.begin(), classes_.end(), [&](const auto& wanted) {
        return wanted == name || wanted == id;
      }))
    return false;
  auto own = thresholds_.find(name);
  if (own == thresholds_.end()) own = thresholds_.find(id);
  if (detection.confidence <
      (own != thresholds_.end() ? static_cast<float>(own->second) : threshold))
    return false;
  if (!least_ && !most_) return true;
  const std::optional<PictureBox> box = to_picture(detection, placement, visible);
  if (!box) return false;
  // Tolerates rounding, which is no reason to drop an object.
  constexpr double kRounding = 1e-3;
  const double width = static_cast<double>(box->x_max - box->x_min) * visible.width;
  const double height = static_cast<double>(box->y_max - box->y_min) * visible.height;
  const auto reaches = [&](const std::pair<Extent, Extent>& size, double sign) {
    return sign * (width - size.first.pixels(visible.width)) >= -kRounding &&
           sign * (height - size.second.pixels(visible.height)) >= -kRounding;
  };
  return (!least_ || reaches(*least_, 1)) && (!most_ || reaches(*most_, -1));
}

void ObjectRules::keep_wanted(std::vector<PartResult>& parts, const std::vector<Rect>& rects,
                              const Rect& visible, const std::vector<std::string>& labels,
                              const DecodeSettings& settings) const {
  if (tiles_) merge_tiles(parts, rects, settings.iou_threshold);
  if (filters())
    for (PartResult& part : parts)
      std::erase_if(part.results.detections, [&](const Detection& detection) {
        // Keeps a result about the region itself, which is no object of this network.
        if (part.region && detection.subject != Subject::found) return false;
        return !is_wanted(detection, part.placement, visible, labels, settings.threshold);
      });
  if (settings.max_detections == 0 || (!filters() && !tiles_)) return;
  if (!tiles_) {
    for (PartResult& part : parts)
      if (part.results.detections.size() > settings.max_detections)
        part.results.detections.resize(settings.max_detections);
    return;
  }
  // Takes the best of all tiles.
  std::vector<float> confidences;
  for (const PartResult& part : parts)
    for (const Detection& detection : part.results.detections)
      confidences.push_back(detection.confidence);
  if (confidences.size() <= settings.max_detections) return;
  std::sort(confidences.begin(), confidences.end(), std::greater<>());
  const float least = confidences[settings.max_detections - 1];
  size_t left = settings.max_detections;
  for (PartResult& part : parts)
    std::erase_if(part.results.detections, [&](const Detection& detection) {
      return detection.confidence < least || left-- == 0;
    });
}

std::vector<std::string> ObjectRules::unknown_names(const std::vector<std::string>& labels) const {
  std::vector<std::string> names = classes_, unknown;
  for (const auto& [name, value] : thresholds_) names.push_back(name);
  for (const std::string& name : names)
    if (!labels.empty() && std::find(labels.begin(), labels.end(), name) == labels.end() &&
        name.find_first_not_of("0123456789") != std::string::npos)
      unknown.push_back(name);
  return unknown;
}

void merge_tiles(std::vector<PartResult>& parts, const std::vector<Rect>& tiles,
                 float iou_threshold) {
  // An object that ends this close to an edge, as a share of the tile, may extend beyond it.
  constexpr double kTouch = 0.02;
  // The share of an object that must lie in another one, which a tile sees whole.
  constexpr double kInside = 0.7;
  FrameBox all{1e9, 1e9, -1e9, -1e9};
  for (const Rect& tile : tiles) {
    all.x_min = std::min<double>(all.x_min, tile.x);
    all.y_min = std::min<double>(all.y_min, tile.y);
    all.x_max = std::max<double>(all.x_max, tile.x + tile.width);
    all.y_max = std::max<double>(all.y_max, tile.y + tile.height);
  }
  std::vector<FoundPiece> found;
  for (size_t p = 0; p < parts.size(); ++p)
    for (const Detection& detection : parts[p].results.detections) {
      FoundPiece one{p, &detection, to_frame(detection, parts[p].placement), detection.confidence};
      const Rect& tile = tiles[p];
      const double near_x = kTouch * tile.width, near_y = kTouch * tile.height;
      one.left = tile.x > all.x_min && one.box.x_min <= tile.x + near_x;
      one.top = tile.y > all.y_min && one.box.y_min <= tile.y + near_y;
      one.right = tile.x + tile.width < all.x_max && one.box.x_max >= tile.x + tile.width - near_x;
      one.bottom =
          tile.y + tile.height < all.y_max && one.box.y_max >= tile.y + tile.height - near_y;
      found.push_back(one);
    }
  // Takes whole objects first, then large pieces: smaller pieces are dropped or merged with them.
  std::stable_sort(found.begin(), found.end(), [](const FoundPiece& a, const FoundPiece& b) {
    if (a.is_cut() != b.is_cut()) return !a.is_cut();
    return a.is_cut() ? a.box.area() > b.box.area()
                      : a.detection->confidence > b.detection->confidence;
  });
  const auto is_same_kind = [](const FoundPiece& a, const FoundPiece& b) {
    return a.detection->label_id == b.detection->label_id &&
           a.detection->label == b.detection->label;
  };
  const auto shared_area = [](const FoundPiece& a, const FoundPiece& b) {
    return overlap(a.box.x_min, a.box.x_max, b.box.x_min, b.box.x_max) *
           overlap(a.box.y_min, a.box.y_max, b.box.y_min, b.box.y_max);
  };
  for (size_t i = 0; i < found.size(); ++i) {
    FoundPiece& kept = found[i];
    if (kept.gone) continue;
    // Repeats, because a larger object may meet further halves, as one across three tiles does.
    for (bool again = true; again;) {
      again = false;
      for (size_t j = i + 1; j < found.size(); ++j) {
        FoundPiece& other = found[j];
        if (other.gone || other.part == kept.part || !is_same_kind(kept, other)) continue;
        const double both = shared_area(kept, other);
        if (kept.is_cut() && are_halves(kept, other)) {
          kept.box = {
              std::min(kept.box.x_min, other.box.x_min), std::min(kept.box.y_min, other.box.y_min),
              std::max(kept.box.x_max, other.box.x_max), std::max(kept.box.y_max, other.box.y_max)};
          kept.left = kept.left && other.left;
          kept.right = kept.right && other.right;
          kept.top = kept.top && other.top;
          kept.bottom = kept.bottom && other.bottom;
          kept.confidence = std::max(kept.confidence, other.confidence);
          kept.grown = other.gone = again = true;
        } else if (both > iou_threshold * (kept.box.area() + other.box.area() - both) ||
                   (other.is_cut() && both > kInside * other.box.area())) {
          other.gone = true;
        }
      }
    }
  }
  // Drops pieces inside of an object that has grown since.
  for (FoundPiece& piece : found)
    for (const FoundPiece& whole : found)
      if (&piece != &whole && piece.is_cut() && !piece.gone && !whole.gone && whole.grown &&
          is_same_kind(piece, whole) && whole.box.area() > piece.box.area() &&
          shared_area(piece, whole) > kInside * piece.box.area())
        piece.gone = true;
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<Detection> left;
    for (const FoundPiece& one : found)
      if (one.part == p && !one.gone) {
        left.push_back(*one.detection);
        left.back().confidence = one.confidence;
        if (one.grown) set_box(left.back(), parts[p].placement, one.box);
      }
    std::stable_sort(left.begin(), left.end(), [](const Detection& a, const Detection& b) {
      return a.confidence > b.confidence;
    });
    parts[p].results.detections = std::move(left);
  }
}

}  // namespace clinfer
