// Computes masks and maps at the picture's resolution.
#include "gst/meta/run_lengths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace clinfer {
namespace {

// The place of a pixel between two cells of a grid, along one axis.
struct BetweenCells {
  int low = 0, high = 0;
  float weight = 0;  // share of the cell `high`; the cell `low` has the rest
  bool inside = false;
};

// Finds the places of `count` pixels from `first` on, of `size`.
std::vector<BetweenCells> places(int first, int count, int size, float area_min, float area_max,
                                 int cells) {
  std::vector<BetweenCells> list(static_cast<size_t>(std::max(count, 0)));
  const double extent = static_cast<double>(area_max) - static_cast<double>(area_min);
  if (!(extent > 0) || cells <= 0) return list;
  for (int i = 0; i < count; ++i) {
    const double share = ((first + i + 0.5) / size - static_cast<double>(area_min)) / extent;
    BetweenCells& place = list[static_cast<size_t>(i)];
    if (!(share >= 0 && share < 1)) continue;
    const double cell = std::clamp(share * cells - 0.5, 0.0, static_cast<double>(cells - 1));
    place.inside = true;
    place.low = static_cast<int>(cell);
    place.weight = static_cast<float>(cell - place.low);
    // Ignores a neighbour without weight, which may be NaN.
    place.high = place.weight > 0 ? std::min(place.low + 1, cells - 1) : place.low;
  }
  return list;
}

float between_cells(const float* values, int columns, const BetweenCells& x,
                    const BetweenCells& y) {
  const auto at = [&](int column, int row) {
    return values[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                  static_cast<size_t>(column)];
  };
  const float above = at(x.low, y.low) + (at(x.high, y.low) - at(x.low, y.low)) * x.weight;
  const float below = at(x.low, y.high) + (at(x.high, y.high) - at(x.low, y.high)) * x.weight;
  return above + (below - above) * y.weight;
}

template <typename Value>
const Value* grid_values(const GridView& grid) {
  const auto cells =
      static_cast<size_t>(std::max(grid.columns, 0)) * static_cast<size_t>(std::max(grid.rows, 0));
  return cells == 0 || count_of<Value>(grid.values) < cells ? nullptr
                                                            : values_of<Value>(grid.values);
}

// Collects run lengths; pixels come in ascending order of places.
class Runs {
 public:
  void add(uint64_t from, uint64_t count) {
    if (count == 0) return;
    if (from == end_ && !counts_.empty()) {
      counts_.back() += static_cast<uint32_t>(count);
    } else {
      counts_.push_back(static_cast<uint32_t>(from - end_));
      counts_.push_back(static_cast<uint32_t>(count));
    }
    end_ = from + count;
    pixels_ += count;
  }
  std::vector<uint32_t> finish(uint64_t size) {
    if (end_ < size || counts_.empty()) counts_.push_back(static_cast<uint32_t>(size - end_));
    return std::move(counts_);
  }
  uint64_t pixels() const { return pixels_; }

 private:
  std::vector<uint32_t> counts_;  // always ends with a run of ones
  uint64_t end_ = 0, pixels_ = 0;
};

uint64_t size_of(int width, int height) {
  return static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
}

}  // namespace

Raster raster_of(const MaskView& mask, const PictureBox& box, int width, int height) {
  Raster raster;
  raster.rect = pixels_of(box, width, height);
  const Rect& r = raster.rect;
  raster.pixels.assign(size_of(r.width, r.height), 0);
  const float* values = grid_values<float>(mask);
  if (values == nullptr) return raster;
  const auto xs = places(r.x, r.width, width, mask.area.x_min, mask.area.x_max, mask.columns);
  const auto ys = places(r.y, r.height, height, mask.area.y_min, mask.area.y_max, mask.rows);
  auto pixel = raster.pixels.begin();
  for (const BetweenCells& y : ys)
    for (const BetweenCells& x : xs)
      *pixel++ =
          x.inside && y.inside && between_cells(values, mask.columns, x, y) > mask.level ? 255 : 0;
  return raster;
}

std::vector<uint32_t> run_lengths(const Raster& raster, int width, int height) {
  Runs runs;
  const Rect& r = raster.rect;
  for (int x = 0; x < r.width; ++x) {
    for (int y = 0; y < r.height; ++y) {
      if (raster.pixels[size_of(r.width, y) + static_cast<size_t>(x)] == 0) continue;
      runs.add(size_of(r.x + x, height) + static_cast<uint64_t>(r.y + y), 1);
    }
  }
  return runs.finish(size_of(width, height));
}

std::vector<int32_t> class_of_pixels(const MapView& map, int width, int height) {
  std::vector<int32_t> classes(size_of(width, height), -1);
  const uint16_t* values = grid_values<uint16_t>(map);
  if (values == nullptr) return classes;
  const auto xs = places(0, width, width, map.area.x_min, map.area.x_max, map.columns);
  const auto ys = places(0, height, height, map.area.y_min, map.area.y_max, map.rows);
  const auto nearest = [](const BetweenCells& place) {
    return static_cast<size_t>(place.weight < 0.5f ? place.low : place.high);
  };
  auto pixel = classes.begin();
  for (const BetweenCells& y : ys)
    for (const BetweenCells& x : xs) {
      const uint16_t value =
          x.inside && y.inside ? values[nearest(y) * static_cast<size_t>(map.columns) + nearest(x)]
                               : kNoClass;
      *pixel++ = value == kNoClass ? -1 : value;
    }
  return classes;
}

std::vector<ClassShare> class_shares(const MapView& map, int width, int height) {
  const std::vector<int32_t> classes = class_of_pixels(map, width, height);
  std::map<int32_t, Runs> runs;
  for (int x = 0; x < width; ++x) {
    for (int y = 0; y < height;) {
      const auto at = [&](int row) {
        return classes[size_of(width, row) + static_cast<size_t>(x)];
      };
      const int32_t label = at(y);
      const int start = y;
      while (y < height && at(y) == label) ++y;
      if (label >= 0)
        runs[label].add(size_of(x, height) + static_cast<uint64_t>(start),
                        static_cast<uint64_t>(y - start));
    }
  }
  std::vector<ClassShare> shares;
  const uint64_t size = size_of(width, height);
  for (auto& [label, run] : runs) {
    const double share = static_cast<double>(run.pixels()) / static_cast<double>(size);
    shares.push_back({label, share, run.finish(size)});
  }
  return shares;
}

std::vector<float> value_of_pixels(const MapView& map, int width, int height) {
  std::vector<float> pixels(size_of(width, height), std::numeric_limits<float>::quiet_NaN());
  const float* values = grid_values<float>(map);
  if (values == nullptr) return pixels;
  const auto xs = places(0, width, width, map.area.x_min, map.area.x_max, map.columns);
  const auto ys = places(0, height, height, map.area.y_min, map.area.y_max, map.rows);
  auto pixel = pixels.begin();
  for (const BetweenCells& y : ys) {
    for (const BetweenCells& x : xs) {
      if (x.inside && y.inside) *pixel = between_cells(values, map.columns, x, y);
      ++pixel;
    }
  }
  return pixels;
}

}  // namespace clinfer
