// Reads YOLO v8 and later before suppression: one output with a column (or row) for each cell of
// strides 8, 16, 32, which holds centre and size, a probability for each class, and what the task
// adds: key points, an angle, or coefficients of mask prototypes, which are in a second output.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/masks.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

enum class Task { detect, pose, segment, obb };

struct CellOutput {
  size_t output = 0, cells = 0, columns = 0;
  bool class_major = true;
};

// Returns the first output with a row or column for each cell; several of one shape are main and
// auxiliary heads (v9).
std::optional<CellOutput> find_cells(const ModelFacts& facts) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const Shape& s = facts.outputs[i].shape;
    if (s.size() != 3 || s[0] != 1 || !is_float_output(facts.outputs[i])) continue;
    const auto size = [&](size_t d) { return static_cast<size_t>(s[d]); };
    if (s[1] >= 5 && grid_levels(facts, s[2], 1)) return CellOutput{i, size(2), size(1), true};
    if (s[2] >= 5 && grid_levels(facts, s[1], 1)) return CellOutput{i, size(1), size(2), false};
  }
  return std::nullopt;
}

struct Layout {
  Task task = Task::detect;
  Fit fit = Fit::possible;
  size_t classes = 0, extra = 0;  // columns after the classes
  std::string why;
  std::vector<std::string> assumptions;
  bool guessed = false;  // true for a usual layout, which the values must confirm
};

std::optional<Task> stated_cell_task(const ModelFacts& facts) {
  const std::string task = lower(info(facts, "task"));
  if (task == "detect") return Task::detect;
  if (task == "pose") return Task::pose;
  if (task == "segment" || task == "seg") return Task::segment;
  if (task == "obb") return Task::obb;
  return std::nullopt;
}

const char* name_of(Task task) {
  switch (task) {
    case Task::pose:
      return "pose";
    case Task::segment:
      return "seg";
    case Task::obb:
      return "obb";
    case Task::detect:
      break;
  }
  return "detect";
}

// Returns how many columns a task adds after the classes, if that is known.
std::optional<size_t> extra_of(const ModelFacts& facts, Task task, size_t columns,
                               const std::optional<Prototypes>& prototypes) {
  const size_t room = columns - 5;
  if (task == Task::detect) return 0;
  if (task == Task::obb) return room >= 1 ? std::optional<size_t>(1) : std::nullopt;
  if (task == Task::segment)
    return prototypes && prototypes->channels <= room ? std::optional(prototypes->channels)
                                                      : std::nullopt;
  const PointShape points = stated_points(facts);
  if (points.count != 0)
    return points.elements() <= room ? std::optional(points.elements()) : std::nullopt;
  const size_t labels = facts.labels.size();
  const size_t extra = labels != 0 && labels + 4 < columns ? columns - 4 - labels : room;
  return extra >= 6 && extra % 3 == 0 ? std::optional(extra) : std::nullopt;
}

// Determines the columns from stated facts, the prototypes, the number of labels, and last from the
// usual layout.
Layout settle(const ModelFacts& facts, const CellOutput& cells,
              const std::optional<Prototypes>& prototypes) {
  const size_t columns = cells.columns, labels = facts.labels.size();
  Layout layout;
  layout.classes = columns - 4;
  const auto take = [&](Task task, Fit fit, std::string why) {
    const auto extra = extra_of(facts, task, columns, prototypes);
    if (!extra) return false;
    layout.task = task;
    layout.fit = fit;
    layout.extra = *extra;
    layout.classes = columns - 4 - *extra;
    layout.why = std::move(why);
    return true;
  };
  if (const auto task = stated_cell_task(facts))
    if (take(*task, Fit::certain, std::string("task ") + name_of(*task))) return layout;
  if (prototypes && take(Task::segment, Fit::certain, "a second output of mask prototypes"))
    return layout;
  const bool is_yolo = lower(info(facts, "model_type")).rfind("yolo", 0) == 0;
  if (labels != 0 && labels + 4 <= columns) {
    const size_t extra = columns - 4 - labels;
    const std::string why =
        std::to_string(labels) + " labels and " + std::to_string(columns) + " columns";
    if (extra == 0 && take(Task::detect, Fit::certain, why)) return layout;
    if (facts.own_labels && extra == 1 &&
        take(Task::obb, is_yolo ? Fit::certain : Fit::likely, why))
      return layout;
    if (facts.own_labels && extra >= 6 && extra % 3 == 0 && (is_yolo || extra == 51) &&
        take(Task::pose, Fit::certain, why))
      return layout;
  }
  if (columns == 56 && labels == 0 &&
      take(Task::pose, Fit::likely, "56 columns are one class and 17 key points")) {
    layout.assumptions.push_back(
        "56 columns are read as one class and 17 key points; post-process=yolov8 reads them as 52 "
        "classes");
    layout.guessed = true;
    return layout;
  }
  if (columns == 20 && labels == 0 && facts.width == 1024 && facts.height == 1024 &&
      take(Task::obb, Fit::possible, "20 columns are the 15 classes of DOTA and an angle")) {
    layout.assumptions.push_back(
        "20 columns at 1024x1024 are read as 15 classes and an angle; post-process=yolov8 reads "
        "them as 16 classes");
    return layout;
  }
  take(Task::detect, Fit::likely, std::to_string(columns - 4) + " classes");
  if (!cells.class_major) layout.fit = columns == 84 ? Fit::likely : Fit::possible;
  return layout;
}

// The best class of each cell, and the range of coordinates and scores. Computed in one walk in the
// order of memory, which is most of the host's work for a frame.
struct CellScan {
  std::vector<float> best;
  std::vector<int> label;
  float reach = 0, lowest = 0, highest = 0;
};

// Converts floats to integers that compare in the same way, in loops that the compiler vectorises:
// the magnitude's bits with the sign of the number. NaN is neither above nor below anything.
template <typename Bits>
struct Order {
  using Key = Bits;  // as wide as the floats
  using Label = std::make_unsigned_t<Bits>;
  static constexpr bool kHalf = sizeof(Bits) == 2;
  static constexpr Key kInfinity = kHalf ? 0x7c00 : 0x7f800000;
  static constexpr Key kMinusOne = kHalf ? -0x3c00 : -0x3f800000;

  static Key magnitude(Bits bits) {
    return static_cast<Key>(bits & std::numeric_limits<Key>::max());
  }
  static Key key(Bits bits) {
    const auto sign = static_cast<Key>(bits >> (8 * sizeof(Bits) - 1));  // 0 or -1
    return static_cast<Key>((magnitude(bits) ^ sign) - sign);
  }
  static Key above(Bits bits) {
    return magnitude(bits) > kInfinity ? std::numeric_limits<Key>::min() : key(bits);
  }
  static Key below(Bits bits) { return magnitude(bits) > kInfinity ? Key{0} : key(bits); }
  static Key reach(Bits bits) { return magnitude(bits) < kInfinity ? magnitude(bits) : Key{0}; }
  static float to_float(Key key) {
    const Key bits = static_cast<Key>(key < 0 ? -key : key);
    float value = 0;
    if constexpr (kHalf)
      value = half_to_float(static_cast<uint16_t>(bits));
    else
      value = std::bit_cast<float>(bits);
    return key < 0 ? -value : value;
  }
};

template <typename Bits>
void compare_plane(const Bits* __restrict plane, size_t count, typename Order<Bits>::Label here,
                   Bits* __restrict best, typename Order<Bits>::Label* __restrict label,
                   Bits* __restrict lowest) {
  for (size_t i = 0; i < count; ++i) {
    const Bits above = Order<Bits>::above(plane[i]), below = Order<Bits>::below(plane[i]);
    label[i] = above > best[i] ? here : label[i];
    best[i] = above > best[i] ? above : best[i];
    lowest[i] = below < lowest[i] ? below : lowest[i];
  }
}

// Scans planes of `count` cells: four of coordinates, then `classes`.
template <typename Bits>
CellScan scan_planes(const void* memory, size_t count, size_t classes) {
  using Of = Order<Bits>;
  const auto* planes = static_cast<const Bits*>(memory);
  Bits reach = 0;
  for (size_t i = 0; i < 4 * count; ++i) reach = std::max(reach, Of::reach(planes[i]));
  std::vector<Bits> best(count, Of::kMinusOne), lowest(count, Bits{0});
  std::vector<typename Of::Label> label(count, 0);
  for (size_t k = 0; k < classes; ++k)
    compare_plane(planes + (4 + k) * count, count, static_cast<typename Of::Label>(k), best.data(),
                  label.data(), lowest.data());
  CellScan scan;
  scan.reach = Of::to_float(reach);
  scan.best.resize(count);
  scan.label.assign(label.begin(), label.end());
  for (size_t i = 0; i < count; ++i) {
    scan.best[i] = Of::to_float(best[i]);
    scan.lowest = std::min(scan.lowest, Of::to_float(lowest[i]));
    if (scan.best[i] > scan.highest) scan.highest = scan.best[i];
  }
  return scan;
}

CellScan scan_rows(const Floats& values, const CellOutput& cells, size_t classes) {
  CellScan scan;
  scan.best.assign(cells.cells, -1.0f);
  scan.label.assign(cells.cells, 0);
  std::vector<float> buffer;
  for (size_t i = 0; i < cells.cells; ++i) {
    const float* row = values.run(i * cells.columns, 4 + classes, buffer);
    for (size_t k = 0; k < 4; ++k)
      if (std::isfinite(row[k])) scan.reach = std::max(scan.reach, std::fabs(row[k]));
    for (size_t k = 0; k < classes; ++k) {
      const float value = row[4 + k];
      if (value < scan.lowest) scan.lowest = value;
      if (value > scan.best[i]) {
        scan.best[i] = value;
        scan.label[i] = static_cast<int>(k);
      }
    }
    if (scan.best[i] > scan.highest) scan.highest = scan.best[i];
  }
  return scan;
}

CellScan scan_cells(const Floats& values, const CellOutput& cells, size_t classes) {
  if (!cells.class_major) return scan_rows(values, cells, classes);
  if (values.halves() && classes <= std::numeric_limits<uint16_t>::max())
    return scan_planes<int16_t>(values.halves(), cells.cells, classes);
  std::vector<float> all;
  return scan_planes<int32_t>(values.run(0, cells.cells * cells.columns, all), cells.cells,
                              classes);
}

// Returns whether the numbers from column `from` on are at most `most` in every cell.
bool all_below(const Floats& values, const CellOutput& cells, size_t from, float most) {
  for (size_t k = from; k < cells.columns; ++k)
    for (size_t i = 0; i < cells.cells; ++i)
      if (values[cells.class_major ? k * cells.cells + i : i * cells.columns + k] > most)
        return false;
  return true;
}

// Returns a message if the first class looks like an objectness, which YOLOX and v6 have before
// their classes: it is high wherever another class is, or in most cells.
std::string objectness_seen(const Floats& values, const CellOutput& cells, size_t classes,
                            const CellScan& scan, float threshold) {
  constexpr float kHigh = 0.5f;
  size_t likely = 0, both = 0;
  for (size_t i = 0; i < cells.cells; ++i) {
    if (!(scan.best[i] >= std::max(threshold, kHigh))) continue;
    ++likely;
    const auto score = [&](size_t k) {
      return values[cells.class_major ? (4 + k) * cells.cells + i : i * cells.columns + 4 + k];
    };
    if (!(score(0) >= kHigh)) continue;
    size_t k = 1;
    while (k < classes && !(score(k) >= kHigh)) ++k;
    both += k < classes;
  }
  const std::string rather =
      ", as an objectness is: the head is rather yolox (set post-process, or "
      "labels of " +
      std::to_string(classes) + " classes)";
  if (likely * 2 > cells.cells) return "the first class is high in most cells" + rather;
  if (likely != 0 && both * 5 >= likely * 4)
    return "the first class is high wherever another is" + rather;
  return {};
}

// Returns a message if columns of six are no box and two class scores (corner_rows_seen()).
std::string corners_seen(const Floats& values, const CellOutput& cells) {
  if (cells.columns != 6) return {};
  std::array<float, 6> row;
  const auto seen = corner_rows_seen(cells.cells, [&](size_t i) {
    for (size_t k = 0; k < row.size(); ++k)
      row[k] = values[cells.class_major ? k * cells.cells + i : i * cells.columns + k];
    return row.data();
  });
  return seen != Decided::second ? ""
                                 : "six columns hold corners, a score and the number of a class "
                                   "(post-process=yolox reads them)";
}

struct LevelCellHead {
  ModelFacts facts;
  CellOutput cells;
  Layout layout;
  std::optional<Prototypes> prototypes;
  PointShape points;
  Decided units;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats values(output_of(outputs, cells.output, cells.cells * cells.columns));
    const size_t cell_step = cells.class_major ? 1 : cells.columns;
    const size_t column_step = cells.class_major ? cells.cells : 1;
    const auto at = [&](size_t cell, size_t column) {
      return values[cell * cell_step + column * column_step];
    };
    const CellScan scan = scan_cells(values, cells, layout.classes);
    const PixelUnits unit = pixel_units(units, scan.reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    const size_t tail = 4 + layout.classes;
    // Some point of some cell must lie more than a pixel from the corner, unless there are no
    // points.
    if (layout.guessed && !unit.shares && all_below(values, cells, tail, 1.01f)) {
      results.contradiction =
          "no key point lies inside the picture: the columns are rather those of " +
          std::to_string(cells.columns - 4) + " classes (post-process=yolov8)";
      return;
    }
    if (layout.task == Task::detect &&
        !(results.contradiction = corners_seen(values, cells)).empty())
      return;
    // COCO's 80 classes, and stated ones, are no guess.
    if (layout.task == Task::detect && layout.fit < Fit::certain && layout.classes > 1 &&
        layout.classes != 80) {
      results.contradiction =
          objectness_seen(values, cells, layout.classes, scan, settings.threshold);
      if (!results.contradiction.empty()) return;
    }
    Candidates candidates(settings);
    candidates.expect_probability(scan.lowest);
    candidates.expect_probability(scan.highest);
    for (size_t i = 0; i < cells.cells; ++i) {
      if (!(scan.best[i] >= settings.threshold)) continue;
      const float x = at(i, 0) * x_unit, y = at(i, 1) * y_unit;
      const float width = at(i, 2) * x_unit, height = at(i, 3) * y_unit;
      if (layout.task == Task::obb) {
        const Hull hull = hull_of({x, y, width, height, at(i, tail)});
        candidates.add(hull.x_min, hull.y_min, hull.x_max, hull.y_max, scan.best[i], scan.label[i],
                       i);
      } else {
        candidates.add_centered(x, y, width, height, scan.best[i], scan.label[i], i);
      }
      if (layout.task == Task::pose && points.dimensions == 3)
        for (size_t k = 0; k < points.count; ++k)
          candidates.expect_probability(at(i, tail + 3 * k + 2));
    }
    const auto oriented = [&](size_t cell) {
      return OrientedBox{at(cell, 0) * x_unit, at(cell, 1) * y_unit, at(cell, 2) * x_unit,
                         at(cell, 3) * y_unit, at(cell, tail)};
    };
    const auto overlap = [&](const Candidate& a, const Candidate& b) {
      return oriented_iou(oriented(a.row), oriented(b.row));
    };
    std::optional<Floats> masks;
    if (prototypes) masks.emplace(output_of(outputs, prototypes->output, prototypes->elements()));
    const auto complete = [&](const Candidate& kept, Detection& detection) {
      const auto column = [&](size_t k) { return at(kept.row, tail + k); };
      if (layout.task == Task::obb) detection.oriented_box = oriented(kept.row);
      if (layout.task == Task::pose) add_points(points, column, x_unit, y_unit, detection);
      if (layout.task != Task::segment) return;
      std::vector<float> coefficients(layout.extra);
      for (size_t k = 0; k < layout.extra; ++k) coefficients[k] = column(k);
      detection.mask = prototype_mask(*prototypes, *masks, coefficients.data(), detection,
                                      facts.width, facts.height);
    };
    finish(settings, suppression_of(facts, Family::yolo), candidates, results, complete,
           layout.task == Task::obb ? Overlap(overlap) : Overlap());
  }
};

Match match_task(const ModelFacts& facts, Task task) {
  const char* needs = "needs an output [1,4+classes,cells] with strides 8, 16, 32";
  const auto cells = find_cells(facts);
  if (!cells) return {Fit::no, needs, {}};
  const auto prototypes = find_prototypes(facts);
  Layout layout = settle(facts, *cells, prototypes);
  if (layout.task != task) {
    const auto extra = extra_of(facts, task, cells->columns, prototypes);
    if (!extra) return {Fit::no, "the columns do not fit the task", {}};
    const std::string why = std::string("is read as ") + name_of(layout.task) + ": " + layout.why;
    layout = {task, Fit::against, cells->columns - 4 - *extra, *extra, why, {}, false};
  }
  // Further outputs suggest something else, unless they are of the same kind.
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (i != cells->output && facts.outputs[i].shape != facts.outputs[cells->output].shape &&
        !(layout.task == Task::segment && prototypes && i == prototypes->output) &&
        layout.fit == Fit::likely)
      layout.fit = Fit::possible;
  LevelCellHead head{facts, *cells, layout, {}, {}, {}};
  if (task == Task::segment) head.prototypes = prototypes;
  if (task == Task::pose) head.points = points_of(facts, layout.extra);
  Match match;
  match.fit = layout.fit;
  match.reason = std::to_string(cells->columns) + " numbers for each of " +
                 std::to_string(cells->cells) + " cells, " + layout.why;
  match.decode = head;
  match.picture = picture_of(Family::yolo);
  match.assumptions = layout.assumptions;
  match.classes = layout.classes;
  return match;
}

}  // namespace

Match match_yolov8(const ModelFacts& facts) { return match_task(facts, Task::detect); }
Match match_yolov8_pose(const ModelFacts& facts) { return match_task(facts, Task::pose); }
Match match_yolov8_seg(const ModelFacts& facts) { return match_task(facts, Task::segment); }
Match match_yolov8_obb(const ModelFacts& facts) { return match_task(facts, Task::obb); }

}  // namespace clinfer
