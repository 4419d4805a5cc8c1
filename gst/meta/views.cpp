// Regions moved from one picture to another.
#include "gst/meta/views.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace clinfer {
namespace {

float moved(float value, double scale, double shift) {
  return static_cast<float>(static_cast<double>(value) * scale + shift);
}

template <typename P>
void move_point(P& point, const Affine& a) {
  point.x = moved(point.x, a.x_scale, a.x_shift);
  point.y = moved(point.y, a.y_scale, a.y_shift);
}

PictureBox moved(const PictureBox& box, const Affine& a) {
  return {moved(box.x_min, a.x_scale, a.x_shift), moved(box.y_min, a.y_scale, a.y_shift),
          moved(box.x_max, a.x_scale, a.x_shift), moved(box.y_max, a.y_scale, a.y_shift)};
}

constexpr std::pair<Outcome, std::string_view> kOutcomes[] = {{Outcome::run, "run"},
                                                              {Outcome::skipped, "skipped"},
                                                              {Outcome::late, "late"},
                                                              {Outcome::held, "held"}};

}  // namespace

std::string_view name_of(Outcome outcome) {
  for (const auto& [known, name] : kOutcomes)
    if (known == outcome) return name;
  return "";
}

std::optional<Outcome> outcome_named(std::string_view name) {
  for (const auto& [outcome, known] : kOutcomes)
    if (known == name) return outcome;
  return std::nullopt;
}

Affine between(const Rect& from, const Rect& to) {
  if (from.width <= 0 || from.height <= 0 || to.width <= 0 || to.height <= 0) return {};
  const auto scale = [](int a, int b) { return static_cast<double>(a) / b; };
  return {scale(from.width, to.width), scale(from.x - to.x, to.width),
          scale(from.height, to.height), scale(from.y - to.y, to.height)};
}

Rect pixels_of(const PictureBox& box, int width, int height) {
  const auto first = [](float share, int size) {
    const long pixel = std::lround(static_cast<double>(share) * size);
    return static_cast<int>(std::clamp<long>(pixel, 0, std::max(size - 1, 0)));
  };
  const auto end = [](float share, int size) {
    return static_cast<int>(
        std::clamp<long>(std::lround(static_cast<double>(share) * size), 0, size));
  };
  Rect rect{first(box.x_min, width), first(box.y_min, height), 0, 0};
  rect.width = std::max(end(box.x_max, width) - rect.x, 1);
  rect.height = std::max(end(box.y_max, height) - rect.y, 1);
  return rect;
}

bool move_region(RegionView& region, const Affine& affine, int width, int height) {
  PictureBox box = moved(region.box, affine);
  box = {std::clamp(box.x_min, 0.0f, 1.0f), std::clamp(box.y_min, 0.0f, 1.0f),
         std::clamp(box.x_max, 0.0f, 1.0f), std::clamp(box.y_max, 0.0f, 1.0f)};
  if (!(box.x_max > box.x_min) || !(box.y_max > box.y_min)) return false;
  region.box = box;
  const Rect rect = pixels_of(box, width, height);
  region.x = rect.x, region.y = rect.y, region.width = rect.width, region.height = rect.height;
  if (region.corners)
    for (Point& corner : *region.corners) move_point(corner, affine);
  for (KeyPoint& point : region.keypoints) move_point(point, affine);
  for (Point& point : region.landmarks) move_point(point, affine);
  if (region.mask) region.mask->area = moved(region.mask->area, affine);
  move_answers(region, affine);
  return true;
}

void move_answers(Answers& answers, const Affine& affine) {
  for (MapView& map : answers.maps) map.area = moved(map.area, affine);
}

void move_zone(ZoneView& zone, const Affine& affine) {
  for (Point& point : zone.points) move_point(point, affine);
}

OrientedBox oriented_box(const std::array<Point, 4>& corners, int width, int height) {
  const auto side = [&](size_t from, size_t to) {
    return Point{(corners[to].x - corners[from].x) * static_cast<float>(width),
                 (corners[to].y - corners[from].y) * static_cast<float>(height)};
  };
  OrientedBox box;
  for (const Point& corner : corners) {
    box.x_center += corner.x * static_cast<float>(width) / 4;
    box.y_center += corner.y * static_cast<float>(height) / 4;
  }
  const Point along = side(0, 1), down = side(0, 3);
  box.width = std::hypot(along.x, along.y);
  box.height = std::hypot(down.x, down.y);
  // The longer side says the angle more exactly.
  box.rotation =
      box.width >= box.height ? std::atan2(along.y, along.x) : std::atan2(-down.x, down.y);
  return box;
}

}  // namespace clinfer
