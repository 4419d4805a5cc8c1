// Makes masks of objects: from prototypes times coefficients, and from finished grids.
#include "engine/heads/pictures/masks.h"

#include <algorithm>

namespace clinfer {
namespace {

// The cells from..to (exclusive) of a grid of `cells` over `size` pixels that a side of a box
// needs, with one more on either side for interpolation. Empty for a box outside of the grid.
struct Span {
  size_t from = 0, to = 0;
};
Span cells_of(float low, float high, size_t cells, int size) {
  const double step = static_cast<double>(size) / static_cast<double>(cells);
  const double last = static_cast<double>(cells);
  const double from = std::clamp(std::floor(low / step) - 1, 0.0, last);
  const double to = std::clamp(std::ceil(high / step) + 1, 0.0, last);
  return {static_cast<size_t>(from), static_cast<size_t>(std::max(from, to))};
}

// Makes an empty grid over cells x, y of `columns` x `rows` that cover width x height pixels.
std::shared_ptr<ObjectMask> grid_over(Span x, Span y, size_t columns, size_t rows, int width,
                                      int height) {
  auto mask = std::make_shared<ObjectMask>();
  const float x_step = static_cast<float>(width) / static_cast<float>(columns);
  const float y_step = static_cast<float>(height) / static_cast<float>(rows);
  mask->columns = static_cast<int>(x.to - x.from);
  mask->rows = static_cast<int>(y.to - y.from);
  mask->x_min = static_cast<float>(x.from) * x_step;
  mask->x_max = static_cast<float>(x.to) * x_step;
  mask->y_min = static_cast<float>(y.from) * y_step;
  mask->y_max = static_cast<float>(y.to) * y_step;
  mask->values.resize((x.to - x.from) * (y.to - y.from));
  return mask;
}

}  // namespace

std::optional<Prototypes> find_prototypes(const ModelFacts& facts) {
  const auto has_step = [&](int64_t step, int64_t rows, int64_t columns) {
    return rows == (facts.height + step - 1) / step && columns == (facts.width + step - 1) / step;
  };
  // Prefers a quarter of the input's side, which is the rule; other sizes are mostly feature maps.
  const auto is_scale = [&](int64_t rows, int64_t columns, int64_t channels) {
    if (channels < 8 || channels > 256) return false;
    return has_step(4, rows, columns) ||
           (channels == 32 && (has_step(2, rows, columns) || has_step(8, rows, columns)));
  };
  std::optional<Prototypes> found;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const Shape& s = facts.outputs[i].shape;
    if (s.size() != 4 || s[0] != 1 || !is_float_output(facts.outputs[i])) continue;
    const bool first = is_scale(s[2], s[3], s[1]), last = is_scale(s[1], s[2], s[3]);
    if (!first && !last) continue;
    if (found) {
      // It is not clear which one it is.
      if (facts.outputs[found->output].shape != s) return std::nullopt;
      continue;
    }
    const auto size = [&](size_t d) { return static_cast<size_t>(s[d]); };
    found = first ? Prototypes{i, size(1), size(2), size(3), false}
                  : Prototypes{i, size(3), size(1), size(2), true};
  }
  return found;
}

std::shared_ptr<const ObjectMask> prototype_mask(const Prototypes& prototypes, const Floats& values,
                                                 const float* coefficients, const Detection& box,
                                                 int width, int height) {
  const Span x = cells_of(box.x_min, box.x_max, prototypes.columns, width);
  const Span y = cells_of(box.y_min, box.y_max, prototypes.rows, height);
  auto mask = grid_over(x, y, prototypes.columns, prototypes.rows, width, height);
  mask->level = 0;
  std::vector<float> buffer;
  for (size_t row = y.from; row < y.to && x.to > x.from; ++row) {
    float* to = mask->values.data() + (row - y.from) * (x.to - x.from);
    if (prototypes.channels_last) {
      for (size_t column = x.from; column < x.to; ++column) {
        const float* at = values.run((row * prototypes.columns + column) * prototypes.channels,
                                     prototypes.channels, buffer);
        float sum = 0;
        for (size_t k = 0; k < prototypes.channels; ++k) sum += coefficients[k] * at[k];
        to[column - x.from] = sum;
      }
      continue;
    }
    for (size_t k = 0; k < prototypes.channels; ++k) {
      const float* at = values.run((k * prototypes.rows + row) * prototypes.columns + x.from,
                                   x.to - x.from, buffer);
      for (size_t i = 0; i < x.to - x.from; ++i) to[i] += coefficients[k] * at[i];
    }
  }
  return mask;
}

std::optional<MaskGrids> find_mask_grids(const ModelFacts& facts, size_t count) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    if (!is_float_output(output) && output.type != ElementType::u8) continue;
    Shape s = output.shape;
    if (s.size() >= 4 && s[0] == 1 && (s.size() > 4 || s[1] > 1) &&
        static_cast<size_t>(s[1]) == count)
      s.erase(s.begin());
    // Feature maps have the same shapes, so the name has to say what this is, or to be a mere number.
    if (s.size() == 3 && !name_has(output, {"mask"}) && !number_of(output.name)) continue;
    if (s.size() == 4 && s[1] == 1) s.erase(s.begin() + 1);
    if (s.size() != 3 || s[0] < 1 || static_cast<size_t>(s[0]) != count || s[1] < 8 || s[2] < 8)
      continue;
    const bool whole = s[1] * 4 >= facts.height && s[2] * 4 >= facts.width && s[1] > 64;
    return MaskGrids{i, count, static_cast<size_t>(s[1]), static_cast<size_t>(s[2]), whole};
  }
  return std::nullopt;
}

std::shared_ptr<const ObjectMask> grid_mask(const MaskGrids& grids, const Floats& values,
                                            size_t row, bool logits, const Detection& box,
                                            int width, int height) {
  Span x{0, grids.columns}, y{0, grids.rows};
  if (grids.whole_picture) {
    x = cells_of(box.x_min, box.x_max, grids.columns, width);
    y = cells_of(box.y_min, box.y_max, grids.rows, height);
  }
  auto mask = grid_over(x, y, grids.columns, grids.rows, width, height);
  mask->level = logits ? 0 : 0.5f;
  if (!grids.whole_picture) {
    mask->x_min = box.x_min;
    mask->y_min = box.y_min;
    mask->x_max = box.x_max;
    mask->y_max = box.y_max;
  }
  const size_t first = row * grids.rows * grids.columns;
  for (size_t r = y.from; r < y.to; ++r)
    for (size_t c = x.from; c < x.to; ++c)
      mask->values[(r - y.from) * (x.to - x.from) + c - x.from] =
          values[first + r * grids.columns + c];
  return mask;
}

}  // namespace clinfer
