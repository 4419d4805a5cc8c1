// Moves regions from one picture to another.
#include "gst/meta/views.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace clinfer {
namespace {

bool is_transposed(const PointMap& a) { return a.xx == 0 && a.yy == 0; }

// Returns whether a map turns by other than quarter turns.
bool is_slanted(const PointMap& a) { return !is_transposed(a) && (a.xy != 0 || a.yx != 0); }

// An infinite or missing coordinate stays away from the other one.
double product(double factor, float value) {
  return factor == 0 ? 0 : factor * static_cast<double>(value);
}

template <typename P>
void move_point(P& point, const PointMap& a) {
  const float x = point.x, y = point.y;
  point.x = static_cast<float>(product(a.xx, x) + product(a.xy, y) + a.x0);
  point.y = static_cast<float>(product(a.yx, x) + product(a.yy, y) + a.y0);
}

std::array<Point, 4> moved_corners(const PictureBox& box, const PointMap& a) {
  std::array<Point, 4> corners{{{box.x_min, box.y_min},
                                {box.x_max, box.y_min},
                                {box.x_max, box.y_max},
                                {box.x_min, box.y_max}}};
  for (Point& corner : corners) move_point(corner, a);
  return corners;
}

PictureBox box_around(const std::array<Point, 4>& corners) {
  const auto [x_min, x_max] = std::minmax({corners[0].x, corners[1].x, corners[2].x, corners[3].x});
  const auto [y_min, y_max] = std::minmax({corners[0].y, corners[1].y, corners[2].y, corners[3].y});
  return {x_min, y_min, x_max, y_max};
}

PictureBox moved(const PictureBox& box, const PointMap& a) {
  return box_around(moved_corners(box, a));
}

PointMap inverse(const PointMap& a) {
  const double d = a.xx * a.yy - a.xy * a.yx;
  return {a.yy / d,  -a.xy / d, (a.xy * a.y0 - a.yy * a.x0) / d,
          -a.yx / d, a.xx / d,  (a.yx * a.x0 - a.xx * a.y0) / d};
}

// Makes a grid whose sides are the picture's from one that is slanted there. `at(x, y)` returns the
// value at a place of the old grid, in cells from its corner, or outside of it.
template <typename Value, typename At>
void straighten(GridView& grid, const PictureBox& before, const PointMap& a, At&& at) {
  const double width = static_cast<double>(before.x_max - before.x_min),
               height = static_cast<double>(before.y_max - before.y_min);
  const double cell_x = width / grid.columns, cell_y = height / grid.rows;
  const auto count = [&](float from, float to, double size) {
    // Few cells would be too coarse for edges that are aslant.
    constexpr double kFewest = 96;
    const double cells = std::ceil(static_cast<double>(to - from) / size - 1e-6);
    return static_cast<int>(
        std::clamp<double>(cells, kFewest, kFewest + 2.0 * (grid.columns + grid.rows)));
  };
  const int columns =
      count(grid.area.x_min, grid.area.x_max, std::hypot(a.xx * cell_x, a.xy * cell_y));
  const int rows =
      count(grid.area.y_min, grid.area.y_max, std::hypot(a.yx * cell_x, a.yy * cell_y));
  const PointMap back = inverse(a);
  std::vector<Value> values;
  values.reserve(static_cast<size_t>(columns) * static_cast<size_t>(rows));
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      Point place{
          grid.area.x_min + (grid.area.x_max - grid.area.x_min) *
                                (static_cast<float>(column) + 0.5f) / static_cast<float>(columns),
          grid.area.y_min + (grid.area.y_max - grid.area.y_min) * (static_cast<float>(row) + 0.5f) /
                                static_cast<float>(rows)};
      move_point(place, back);
      values.push_back(at(static_cast<double>(place.x - before.x_min) / cell_x,
                          static_cast<double>(place.y - before.y_min) / cell_y));
    }
  grid.columns = columns;
  grid.rows = rows;
  grid.values = Bytes(g_bytes_new(values.data(), values.size() * sizeof(Value)), g_bytes_unref);
}

// Returns the interpolated value at a place in cells, or `outside`.
float between_cells(const float* values, int columns, int rows, double x, double y, float outside) {
  if (!(x >= 0 && y >= 0 && x <= columns && y <= rows)) return outside;
  const auto taps = [](double at, int size) {
    const double inside = std::clamp<double>(at - 0.5, 0, size - 1);
    const int first = static_cast<int>(inside);
    return std::tuple(first, std::min(first + 1, size - 1), static_cast<float>(inside - first));
  };
  const auto [x0, x1, to_x] = taps(x, columns);
  const auto [y0, y1, to_y] = taps(y, rows);
  const auto row = [&, x0 = x0, x1 = x1, to_x = to_x](int y) {
    const float* line = values + static_cast<ptrdiff_t>(y) * columns;
    return line[x0] + (line[x1] - line[x0]) * to_x;
  };
  const float top = row(y0);
  return top + (row(y1) - top) * to_y;
}

void straighten_floats(GridView& grid, const PictureBox& before, const PointMap& a, float outside) {
  const Bytes kept = grid.values;
  const auto cells = static_cast<size_t>(grid.columns) * static_cast<size_t>(grid.rows);
  const float* values = values_of<float>(kept);
  if (values == nullptr || cells == 0 || count_of<float>(kept) < cells) return;
  straighten<float>(grid, before, a,
                    [&, columns = grid.columns, rows = grid.rows](double x, double y) {
                      return between_cells(values, columns, rows, x, y, outside);
                    });
}

void straighten_classes(GridView& grid, const PictureBox& before, const PointMap& a) {
  const Bytes kept = grid.values;
  const auto cells = static_cast<size_t>(grid.columns) * static_cast<size_t>(grid.rows);
  const uint16_t* values = values_of<uint16_t>(kept);
  if (values == nullptr || cells == 0 || count_of<uint16_t>(kept) < cells) return;
  straighten<uint16_t>(
      grid, before, a, [&, columns = grid.columns, rows = grid.rows](double x, double y) {
        if (!(x >= 0 && y >= 0 && x < columns && y < rows)) return kNoClass;
        return values[static_cast<ptrdiff_t>(y) * columns + static_cast<ptrdiff_t>(x)];
      });
}

// Moves a grid's area, and rearranges the cells if the picture is turned by quarter turns or
// mirrored.
void move_grid(GridView& grid, size_t cell_size, const PointMap& a) {
  grid.area = moved(grid.area, a);
  const bool transposed = is_transposed(a);
  const bool mirror_x = a.xx + a.xy < 0, mirror_y = a.yx + a.yy < 0;
  if ((!transposed && !mirror_x && !mirror_y) || grid.values == nullptr) return;
  const int columns = transposed ? grid.rows : grid.columns;
  const int rows = transposed ? grid.columns : grid.rows;
  const auto* from = static_cast<const uint8_t*>(g_bytes_get_data(grid.values.get(), nullptr));
  if (g_bytes_get_size(grid.values.get()) <
      cell_size * static_cast<size_t>(columns) * static_cast<size_t>(rows))
    return;
  std::vector<uint8_t> turned;
  turned.reserve(cell_size * static_cast<size_t>(columns) * static_cast<size_t>(rows));
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      int x = mirror_x ? columns - 1 - column : column;
      int y = mirror_y ? rows - 1 - row : row;
      if (transposed) std::swap(x, y);
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

PointMap between(const Rect& from, const Rect& to) {
  if (from.width <= 0 || from.height <= 0 || to.width <= 0 || to.height <= 0) return {};
  const auto scale = [](int a, int b) { return static_cast<double>(a) / b; };
  return {scale(from.width, to.width),    0,
          scale(from.x - to.x, to.width), 0,
          scale(from.height, to.height),  scale(from.y - to.y, to.height)};
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

bool move_region(RegionView& region, const PointMap& affine, int width, int height) {
  const bool slanted = is_slanted(affine);
  std::optional<std::array<Point, 4>> corners = region.corners;
  if (corners) {
    for (Point& corner : *corners) move_point(corner, affine);
    // Exchanges sides if the picture is mirrored, since clockwise becomes anticlockwise.
    if (affine.xx * affine.yy - affine.xy * affine.yx < 0) {
      std::swap((*corners)[0], (*corners)[1]);
      std::swap((*corners)[2], (*corners)[3]);
    }
  } else if (slanted) {
    corners = moved_corners(region.box, affine);
  }
  PictureBox box = slanted ? box_around(*corners) : moved(region.box, affine);
  box = {std::clamp(box.x_min, 0.0f, 1.0f), std::clamp(box.y_min, 0.0f, 1.0f),
         std::clamp(box.x_max, 0.0f, 1.0f), std::clamp(box.y_max, 0.0f, 1.0f)};
  if (!(box.x_max > box.x_min) || !(box.y_max > box.y_min)) return false;
  region.box = box;
  const Rect rect = pixels_of(box, width, height);
  region.x = rect.x, region.y = rect.y, region.width = rect.width, region.height = rect.height;
  region.corners = corners;
  for (KeyPoint& point : region.keypoints) move_point(point, affine);
  for (Point& point : region.landmarks) move_point(point, affine);
  if (region.mask && slanted) {
    MaskView& mask = *region.mask;
    const PictureBox before = mask.area;
    mask.area = moved(mask.area, affine);
    straighten_floats(mask, before, affine, mask.level > 0 ? 0 : mask.level - 1);
  } else if (region.mask) {
    move_grid(*region.mask, sizeof(float), affine);
  }
  move_answers(region, affine);
  return true;
}

void move_answers(Answers& answers, const PointMap& affine) {
  for (MapView& map : answers.maps) {
    if (!is_slanted(affine)) {
      move_grid(map, map.kind == MapKind::classes ? sizeof(uint16_t) : sizeof(float), affine);
      continue;
    }
    const PictureBox before = map.area;
    map.area = moved(map.area, affine);
    if (map.kind == MapKind::classes)
      straighten_classes(map, before, affine);
    else
      straighten_floats(map, before, affine, std::numeric_limits<float>::quiet_NaN());
  }
}

void move_zone(ZoneView& zone, const PointMap& affine) {
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
