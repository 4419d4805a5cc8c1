// Moves regions from one picture to another.
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
  if (a.transposed) std::swap(point.x, point.y);
  point.x = moved(point.x, a.x_scale, a.x_shift);
  point.y = moved(point.y, a.y_scale, a.y_shift);
}

PictureBox moved(const PictureBox& box, const Affine& a) {
  Point from{box.x_min, box.y_min}, to{box.x_max, box.y_max};
  move_point(from, a);
  move_point(to, a);
  return {std::min(from.x, to.x), std::min(from.y, to.y), std::max(from.x, to.x),
          std::max(from.y, to.y)};
}

// Moves a grid's area, and rearranges the cells if the picture is turned or mirrored.
void move_grid(GridView& grid, size_t cell_size, const Affine& a) {
  grid.area = moved(grid.area, a);
  if ((!a.transposed && a.x_scale >= 0 && a.y_scale >= 0) || grid.values == nullptr) return;
  const int columns = a.transposed ? grid.rows : grid.columns;
  const int rows = a.transposed ? grid.columns : grid.rows;
  const auto* from = static_cast<const uint8_t*>(g_bytes_get_data(grid.values.get(), nullptr));
  if (g_bytes_get_size(grid.values.get()) <
      cell_size * static_cast<size_t>(columns) * static_cast<size_t>(rows))
    return;
  std::vector<uint8_t> turned;
  turned.reserve(cell_size * static_cast<size_t>(columns) * static_cast<size_t>(rows));
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      int x = a.x_scale < 0 ? columns - 1 - column : column;
      int y = a.y_scale < 0 ? rows - 1 - row : row;
      if (a.transposed) std::swap(x, y);
      const uint8_t* cell = from + cell_size * static_cast<size_t>(y * ptrdiff_t{grid.columns} + x);
      turned.insert(turned.end(), cell, cell + cell_size);
    }
  grid.columns = columns;
  grid.rows = rows;
  grid.values = Bytes(g_bytes_new(turned.data(), turned.size()), g_bytes_unref);
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
  if (region.corners) {
    for (Point& corner : *region.corners) move_point(corner, affine);
    // Exchanges sides if the picture is mirrored, since clockwise becomes anticlockwise.
    if ((affine.x_scale * affine.y_scale < 0) != affine.transposed) {
      std::swap((*region.corners)[0], (*region.corners)[1]);
      std::swap((*region.corners)[2], (*region.corners)[3]);
    }
  }
  for (KeyPoint& point : region.keypoints) move_point(point, affine);
  for (Point& point : region.landmarks) move_point(point, affine);
  if (region.mask) move_grid(*region.mask, sizeof(float), affine);
  move_answers(region, affine);
  return true;
}

void move_answers(Answers& answers, const Affine& affine) {
  for (MapView& map : answers.maps)
    move_grid(map, map.kind == MapKind::classes ? sizeof(uint16_t) : sizeof(float), affine);
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
  // Takes the angle of the longer side, which is more exact.
  box.rotation =
      box.width >= box.height ? std::atan2(along.y, along.x) : std::atan2(-down.x, down.y);
  return box;
}

}  // namespace clinfer
