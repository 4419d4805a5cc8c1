// Reads YOLO heads whose boxes are rows of one output with an objectness: v5 and v7 (three anchors
// in each cell, decoded; followed by mask coefficients, key points or face points), YOLOX (cells
// with raw offsets) and v6 (cells, decoded). Rows of six belong to a single class, or have corners,
// score and class before their suppression, as DeepStream-Yolo's exporters write them.
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/boxes/grids.h"
#include "engine/heads/pictures/masks.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

// The output [1,N,M] with `per_cell` rows for each cell, or [1,M,N], as some converters leave it.
struct RowTable {
  size_t output = 0, rows = 0, columns = 0;
  bool turned = false;  // true for [1,M,N]
  bool alone = true;    // true if there is no further output
};
std::optional<RowTable> find_table(const ModelFacts& facts, int per_cell) {
  for (const bool turned : {false, true})
    for (size_t i = 0; i < facts.outputs.size(); ++i) {
      const Shape& s = facts.outputs[i].shape;
      if (s.size() != 3 || s[0] != 1 || !is_float_output(facts.outputs[i])) continue;
      const int64_t rows = s[turned ? 2 : 1], columns = s[turned ? 1 : 2];
      if (columns < 6 || !grid_levels(facts, rows, per_cell)) continue;
      return RowTable{i, static_cast<size_t>(rows), static_cast<size_t>(columns), turned,
                      facts.outputs.size() == 1};
    }
  return std::nullopt;
}

// Returns the table's tensor as [1,N,M].
Tensor rows_of(const RowTable& table, std::span<const Tensor> outputs) {
  const Tensor& tensor = output_of(outputs, table.output, table.rows * table.columns);
  if (!table.turned) return tensor;
  const Floats values(tensor);
  std::vector<float> rows(table.rows * table.columns), buffer;
  for (size_t k = 0; k < table.columns; ++k) {
    const float* column = values.run(k * table.rows, table.rows, buffer);
    for (size_t i = 0; i < table.rows; ++i) rows[i * table.columns + k] = column[i];
  }
  return Tensor::of<float>(
      ElementType::f32, {1, static_cast<int64_t>(table.rows), static_cast<int64_t>(table.columns)},
      rows);
}

// The columns of a row: box and objectness first, then classes and the rest.
struct RowLayout {
  size_t classes_at = 5, classes = 0;
  size_t masks = 0, masks_at = 0;  // coefficients
  size_t points_at = 0;
  PointShape points;
  bool landmarks = false;  // points belong to a face and have no confidence
  bool guessed = false;    // the points are a guess, which the values must confirm
};

size_t best_class(const float* row, const RowLayout& layout) {
  size_t best = 0;
  for (size_t k = 1; k < layout.classes; ++k)
    if (row[layout.classes_at + k] > row[layout.classes_at + best]) best = k;
  return best;
}

struct RowHead {
  ModelFacts facts;
  Family family;
  RowTable table;
  RowLayout layout;
  std::optional<Prototypes> prototypes;
  Decided units;
  Decided sixes;  // for rows of six; first: a single class

  // Returns whether rows of six have corners and class numbers, which no row may contradict.
  bool are_corner_rows(const Floats& values) const {
    if (table.columns != 6) return false;
    std::vector<float> buffer;
    const auto seen =
        corner_rows_seen(table.rows, [&](size_t i) { return values.run(i * 6, 6, buffer); });
    return sixes.settle(seen, Decided::first) == Decided::second;
  }

  void decode_corner_rows(const Floats& values, const RowScan& scan, const DecodeSettings& settings,
                          Results& results) const {
    const PixelUnits unit = pixel_units(units, scan.reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    Candidates candidates(settings);
    std::vector<float> buffer;
    for (const size_t i : scan.likely) {
      const float* row = values.run(i * 6, 6, buffer);
      candidates.expect_probability(row[4]);
      candidates.add(row[0] * x_unit, row[1] * y_unit, row[2] * x_unit, row[3] * y_unit, row[4],
                     row[5], i);
    }
    finish(settings, suppression_of(facts, family), candidates, results);
  }

  // Returns whether some point of some row lies more than a pixel from the corner.
  bool has_points(const Floats& values) const {
    for (size_t i = 0; i < table.rows; ++i)
      for (size_t k = layout.points_at; k < table.columns; ++k)
        if (values[i * table.columns + k] > 1.01f) return true;
    return false;
  }

  // Decodes rows of centre, size, objectness and class scores, in pixels or shares of the input.
  void decode(const Floats& values, const RowScan& scan, std::span<const Tensor> outputs,
              const DecodeSettings& settings, Results& results) const {
    const PixelUnits unit = pixel_units(units, scan.reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    if (layout.guessed && !unit.shares && !has_points(values)) {
      results.contradiction = "no point lies inside the picture: the rows are rather those of " +
                              std::to_string(table.columns - 5) +
                              " classes (set labels, or labels-file)";
      return;
    }
    Candidates candidates(settings);
    std::vector<float> buffer;
    for (const size_t i : scan.likely) {  // class scores are at most 1
      const float* row = values.run(i * table.columns, table.columns, buffer);
      const size_t best = best_class(row, layout);
      const float of_class = layout.classes == 0 ? 1 : row[layout.classes_at + best];
      candidates.expect_probability(row[4]);
      candidates.expect_probability(of_class);
      candidates.add_centered(row[0] * x_unit, row[1] * y_unit, row[2] * x_unit, row[3] * y_unit,
                              row[4] * of_class, static_cast<double>(best), i);
    }
    std::optional<Floats> masks;
    if (prototypes) masks.emplace(output_of(outputs, prototypes->output, prototypes->elements()));
    finish(
        settings, suppression_of(facts, family), candidates, results,
        [&](const Candidate& kept, Detection& detection) {
          const float* row = values.run(kept.row * table.columns, table.columns, buffer);
          if (prototypes)
            detection.mask = prototype_mask(*prototypes, *masks, row + layout.masks_at, detection,
                                            facts.width, facts.height);
          const auto column = [&](size_t k) { return row[layout.points_at + k]; };
          if (layout.landmarks) {
            detection.skeleton = Skeleton::face5;
            for (size_t k = 0; k < 5; ++k)
              detection.landmarks.push_back({column(2 * k) * x_unit, column(2 * k + 1) * y_unit});
          } else if (layout.points.count != 0) {
            add_points(layout.points, column, x_unit, y_unit, detection);
          }
        });
  }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Tensor rows = rows_of(table, outputs);
    const Floats values(rows);
    const RowScan scan = scan_rows(values, table.rows, table.columns, settings.threshold);
    if (are_corner_rows(values))
      decode_corner_rows(values, scan, settings, results);
    else
      decode(values, scan, outputs, settings, results);
  }
};

// YOLOX without its last step (offsets from the cell's corner and logarithms of sizes, in steps of
// the level), or with it.
struct CellHead {
  RowHead rows;
  std::vector<GridLevel> levels;
  Decided form;         // first: decoded
  bool logits = false;  // true if the scores lack their sigmoid

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const RowTable& table = rows.table;
    const Tensor tensor = rows_of(table, outputs);
    const Floats values(tensor);
    const float least = logits ? logit(settings.threshold) : settings.threshold;
    const RowScan scan = scan_rows(values, table.rows, table.columns, least);
    if (logits) {
      decode_cells(values, scan, settings, results);
      return;
    }
    if (rows.are_corner_rows(values)) {
      rows.decode_corner_rows(values, scan, settings, results);
      return;
    }
    // Logarithms of sizes in steps stay far below 10 and are often negative; among the sizes
    // themselves some are larger in any picture, and none is negative.
    float largest = 0, smallest = 0;
    for (size_t i = 0; i < table.rows; ++i)
      for (size_t k = 2; k < 4; ++k) {
        const float v = values[i * table.columns + k];
        if (!std::isfinite(v)) continue;
        largest = std::max(largest, v);
        smallest = std::min(smallest, v);
      }
    const auto seen = smallest < -0.01f ? Decided::second
                      : largest > 10    ? Decided::first
                                        : Decided::open;
    if (form.settle(seen, Decided::second) == Decided::first)
      rows.decode(values, scan, outputs, settings, results);
    else
      decode_cells(values, scan, settings, results);
  }

  void decode_cells(const Floats& values, const RowScan& scan, const DecodeSettings& settings,
                    Results& results) const {
    Candidates candidates(settings);
    std::vector<float> buffer;
    auto level = levels.begin();
    size_t first = 0;  // first row of the level
    const auto probability = [&](float score) { return logits ? sigmoid(score) : score; };
    const auto cells = [](const GridLevel& of) {
      return static_cast<size_t>(of.rows) * static_cast<size_t>(of.columns);
    };
    for (const size_t i : scan.likely) {
      for (; i - first >= cells(*level); ++level) first += cells(*level);
      const auto columns = static_cast<size_t>(level->columns);
      const float* row = values.run(i * rows.table.columns, rows.table.columns, buffer);
      const size_t best = best_class(row, rows.layout);
      const float of_class = probability(row[rows.layout.classes_at + best]);
      const float of_object = probability(row[4]);
      candidates.expect_probability(of_object);
      candidates.expect_probability(of_class);
      candidates.add_centered((row[0] + static_cast<float>((i - first) % columns)) * level->x_step,
                              (row[1] + static_cast<float>((i - first) / columns)) * level->y_step,
                              std::exp(row[2]) * level->x_step, std::exp(row[3]) * level->y_step,
                              of_object * of_class, static_cast<double>(best), i);
    }
    finish(settings, suppression_of(rows.facts, rows.family), candidates, results);
  }
};

// bubbliiiing's YOLOX before its tables are joined: a map [1,5+C,h,w] at each stride, as the last
// convolutions make it.
struct CellMaps {
  std::vector<Map> maps;
  CellHead head;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const RowTable& table = head.rows.table;
    std::vector<float> rows(table.rows * table.columns), buffer;
    float* to = rows.data();
    for (const Map& map : maps) {
      const Floats values(output_of(outputs, map.output, map.elements()));
      for (size_t k = 0; k < table.columns; ++k) {
        const float* channel = values.run(k * map.cells(), map.cells(), buffer);
        for (size_t i = 0; i < map.cells(); ++i) to[i * table.columns + k] = channel[i];
      }
      to += map.cells() * table.columns;
    }
    const Tensor joined = Tensor::of<float>(
        ElementType::f32,
        {1, static_cast<int64_t>(table.rows), static_cast<int64_t>(table.columns)}, rows);
    head(std::span(&joined, 1), settings, results);
  }
};

std::optional<Match> match_cell_maps(const ModelFacts& facts) {
  CellMaps maps;
  size_t rows = 0;
  for (const int stride : {8, 16, 32}) {
    const std::vector<Map> of_stride = maps_of(facts, stride);
    if (of_stride.size() != 1 || of_stride[0].channels_last ||
        attribute_of(facts.outputs[of_stride[0].output], "linear", 0) == 0)
      return std::nullopt;
    maps.maps.push_back(of_stride[0]);
    rows += of_stride[0].cells();
  }
  const size_t columns = maps.maps[0].channels;
  const auto levels = grid_levels(facts, static_cast<int64_t>(rows), 1);
  if (facts.outputs.size() != maps.maps.size() || columns < 6 || !levels ||
      std::any_of(maps.maps.begin(), maps.maps.end(),
                  [&](const Map& map) { return map.channels != columns; }))
    return std::nullopt;
  const size_t classes = columns - 5, labels = facts.labels.size();
  // Without labels, maps with more channels may be YOLOv8's, with 64 numbers for the sides; those
  // of a multiple of three YOLOv5's, with three anchors.
  constexpr size_t kSides = 64;
  const bool known =
      labels == 0 ? classes == 80 || (columns <= kSides && columns % 3 != 0) : labels == classes;
  if (!known) return std::nullopt;
  Match match;
  match.fit = labels == classes ? Fit::certain : Fit::likely;
  match.reason = std::to_string(columns) + " logits for each cell, in maps";
  match.classes = classes;
  RowLayout layout;
  layout.classes = classes;
  maps.head = {{facts, Family::yolox_logits, {0, rows, columns, false, true}, layout, {}, {}, {}},
               *levels,
               {},
               true};
  match.picture = picture_of(Family::yolox_logits);
  match.decode = std::move(maps);
  return match;
}

// Distinguishes heads that differ in the columns before the classes: certain if this one has as
// many classes as there are labels (or COCO's 80). A wrong number of labels says nothing.
Fit fit_by_classes(const ModelFacts& facts, size_t classes) {
  if (facts.labels.size() == classes) return Fit::certain;
  return classes == 80 ? Fit::likely : Fit::possible;
}

// Settles rows of six: with labels of three or more classes they have corners, else values decide.
// Returns false for rows of another size.
bool settle_sixes(const ModelFacts& facts, RowHead& head) {
  if (head.table.columns != 6) return false;
  if (facts.own_labels && facts.labels.size() > 2) head.sixes = Decided(Decided::second);
  return true;
}

}  // namespace

Match match_yolox(const ModelFacts& facts) {
  if (const auto maps = match_cell_maps(facts)) return *maps;
  const auto table = find_table(facts, 1);
  const auto levels = table && table->alone
                          ? grid_levels(facts, static_cast<int64_t>(table->rows), 1)
                          : std::nullopt;
  if (!levels)
    return {Fit::no,
            "needs one output [1,cells,5+classes] (or [1,5+classes,cells]) with strides 8, 16, 32",
            {}};
  RowLayout layout;
  layout.classes = table->columns - 5;
  Match match;
  const bool v6 = file_says(facts, "yolov6") || file_says(facts, "yolo_v6");
  RowHead head{facts, v6 ? Family::yolov6 : Family::yolox, *table, layout, {}, {}, {}};
  const bool sixes = settle_sixes(facts, head);
  const bool named = file_says(facts, "yolox") || file_says(facts, "yolo_x") ||
                     file_says(facts, "yolov6") || file_says(facts, "yolo_v6");
  // A column for each cell is more likely v8's, unless the name or COCO's number of classes says
  // otherwise.
  match.fit = !table->turned || named ? fit_by_classes(facts, layout.classes)
              : layout.classes == 80  ? Fit::likely
                                      : Fit::possible;
  match.reason = "a row of " + std::to_string(table->columns) + " for each of " +
                 std::to_string(table->rows) + " cells";
  match.classes = layout.classes;
  if (sixes) match.classes = 0;  // the values decide
  // DeepStream-Yolo's exporters call their input "input"; YOLOX's is "images".
  const bool deepstream =
      sixes && !table->turned && !named && facts.input_names == std::vector<std::string>{"input"};
  if (deepstream || (sixes && head.sixes.get() == Decided::second)) {
    match.fit = Fit::certain;
    head.family = Family::deepstream_yolo;
  }
  // bubbliiiing's YOLOX ends with its convolutions, and its code computes the rest.
  const bool logits = attribute_of(facts.outputs[table->output], "linear", 0) != 0;
  if (logits) {
    head.family = Family::yolox_logits;
    match.reason += ", whose scores are logits";
  }
  match.decode = CellHead{head, *levels, {}, logits};
  match.picture = picture_of(head.family);
  return match;
}

Match match_yolov5_rows(const ModelFacts& facts) {
  const auto table = find_table(facts, 3);
  if (!table) return {Fit::no, "needs one output [1,3*cells,5+classes], or three raw heads", {}};
  const size_t columns = table->columns, labels = facts.labels.size();
  RowHead head{facts, Family::yolov5, *table, {}, find_prototypes(facts), {}, {}};
  const bool sixes = settle_sixes(facts, head);
  RowLayout& layout = head.layout;
  Match match;
  match.fit = Fit::certain;
  match.reason = "three rows of " + std::to_string(columns) + " a cell";
  layout.classes = columns - 5;
  // It may be accompanied by the maps from which it was made, and by prototypes; separate boxes
  // belong to another head.
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (i != table->output && facts.outputs[i].shape.size() < 5 &&
        !(head.prototypes && i == head.prototypes->output))
      match.fit = Fit::possible;
  const bool pose = columns == 57 && labels <= 1;
  const bool face = columns == 16 && labels <= 1;
  if (head.prototypes && head.prototypes->channels + 5 < columns) {
    layout.masks = head.prototypes->channels;
    layout.classes = columns - 5 - layout.masks;
    layout.masks_at = 5 + layout.classes;
    match.reason += ", with " + std::to_string(layout.masks) + " mask coefficients";
  } else if (pose) {
    head.prototypes.reset();
    layout.classes = 1;
    layout.points_at = 6;
    layout.points = {17, 3, Skeleton::coco17};
    layout.guessed = labels == 0;
    match.reason += ": one class and 17 key points";
    match.assumptions.push_back(
        "rows of 57 are read as one class and 17 key points (YOLOv7-pose); labels of 52 classes "
        "would have them read as classes");
  } else if (face) {
    head.prototypes.reset();
    match.class_names = {"face"};
    layout.classes = 1;
    layout.classes_at = 15;
    layout.points_at = 5;
    layout.landmarks = true;
    layout.guessed = labels == 0;
    match.reason += ": a face and its five points";
    if (!file_says(facts, "face"))
      match.assumptions.push_back(
          "rows of 16 are read as a face and its five points (YOLOv5-face); labels of 11 classes "
          "would have them read as classes");
  } else {
    head.prototypes.reset();
  }
  match.classes = sixes ? 0 : layout.classes;
  match.decode = head;
  match.picture = picture_of(head.family);
  return match;
}

}  // namespace clinfer
