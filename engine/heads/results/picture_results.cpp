// Places results on pictures.
#include "engine/heads/results/picture_results.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace clinfer {

namespace {

// Converts a point of the network's input to the picture, in shares of its sides.
Point on_picture(float x, float y, const Placement& place, int width, int height) {
  float across = x, down = y;
  if (place.transposed) std::swap(across, down);
  return {((across - place.left) * place.x_scale + place.origin_x) / static_cast<float>(width),
          ((down - place.top) * place.y_scale + place.origin_y) / static_cast<float>(height)};
}

PlacedObject placed_box(const Detection& found, const Placement& place, int width, int height) {
  const Point a = on_picture(found.x_min, found.y_min, place, width, height);
  const Point b = on_picture(found.x_max, found.y_max, place, width, height);
  const auto share = [](float value) { return std::clamp<double>(value, 0, 1); };
  return {share(std::min(a.x, b.x)),
          share(std::min(a.y, b.y)),
          share(std::max(a.x, b.x)),
          share(std::max(a.y, b.y)),
          found.confidence,
          found.label_id,
          found.label};
}

PlacedMap placed_map(const PictureMap& map, const Placement& place, int width, int height) {
  PlacedMap result{map.name, map.kind, {}};
  const auto cell = [](float at, float from, float to, int cells) {
    const float share = (at - from) / (to - from);
    return share >= 0 && share < 1 ? static_cast<int>(share * static_cast<float>(cells)) : -1;
  };
  for (int row = 0; row < PlacedMap::kSide; ++row)
    for (int column = 0; column < PlacedMap::kSide; ++column) {
      const auto at = [](int i, int size) {
        return (static_cast<float>(i) + 0.5f) / PlacedMap::kSide * static_cast<float>(size);
      };
      const float x = (at(column, width) - place.origin_x) / place.x_scale + place.left;
      const float y = (at(row, height) - place.origin_y) / place.y_scale + place.top;
      const int i = cell(x, map.x_min, map.x_max, map.columns);
      const int k = cell(y, map.y_min, map.y_max, map.rows);
      const auto index =
          static_cast<size_t>(k) * static_cast<size_t>(map.columns) + static_cast<size_t>(i);
      float value = std::numeric_limits<float>::quiet_NaN();
      if (i >= 0 && k >= 0 && index < map.classes.size()) value = map.classes[index];
      if (i >= 0 && k >= 0 && index < map.values.size()) value = map.values[index];
      result.values.push_back(value);
    }
  return result;
}

}  // namespace

double overlap(const PlacedObject& a, const PlacedObject& b) {
  const double width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min);
  const double height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (a.area() + b.area() - width * height);
}

PictureResults place(const Results& results, const Placement& placement, int width, int height) {
  PictureResults placed;
  for (const Detection& found : results.detections)
    placed.objects.push_back(placed_box(found, placement, width, height));
  for (const PictureMap& map : results.maps)
    placed.maps.push_back(placed_map(map, placement, width, height));
  placed.answers = results.classifications;
  placed.texts = results.texts;
  placed.embeddings = results.embeddings;
  placed.contradiction = results.contradiction;
  const bool read = !placed.objects.empty() || !placed.maps.empty() || !placed.answers.empty() ||
                    !placed.texts.empty() || !placed.embeddings.empty();
  if (!read)
    for (const NamedTensor& tensor : results.tensors) placed.tensors.push_back(tensor.value);
  return placed;
}

}  // namespace clinfer
