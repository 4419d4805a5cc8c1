// YOLO heads whose boxes are rows of one output: YOLOX (cells with raw offsets, or decoded), v5 and
// v7 (three anchors a cell, decoded), v8 and later (no objectness, class-major).
#include <algorithm>
#include <cstring>

#include "engine/heads/common.h"
#include "engine/heads/heads.h"

namespace clinfer {
namespace {

// The class of a row [box, objectness, class scores...].
size_t best_class(const float* row, size_t width) {
  size_t best = 5;
  for (size_t k = 6; k < width; ++k)
    if (row[k] > row[best]) best = k;
  return best;
}

// Rows of centre, size, objectness and class scores, decoded to pixels or shares of the input.
void decode_rows(const ModelFacts& facts, const Floats& values, const RowScan& scan, size_t width,
                 const DecodeSettings& settings, Results& results) {
  const float x_unit = scan.reach <= 2 ? static_cast<float>(facts.width) : 1;
  const float y_unit = scan.reach <= 2 ? static_cast<float>(facts.height) : 1;
  std::vector<Detection> found;
  std::vector<float> buffer;
  for (const size_t i : scan.likely) {  // class scores are at most 1
    const float* row = values.run(i * width, width, buffer);
    const size_t best = best_class(row, width);
    const float score = width > 5 ? row[4] * row[best] : row[4];
    const float x = row[0] * x_unit, y = row[1] * y_unit;
    const float half_w = row[2] * x_unit / 2, half_h = row[3] * y_unit / 2;
    add_detection(settings, x - half_w, y - half_h, x + half_w, y + half_h, score,
                  width > 5 ? static_cast<int64_t>(best - 5) : 0, found);
  }
  finish_detections(settings, true, found, results);
}

// YOLOX without its last step: offsets from the cell's corner and logarithms of sizes, in steps of
// the level.
void decode_cells(const std::vector<GridLevel>& levels, const Floats& values, const RowScan& scan,
                  size_t width, const DecodeSettings& settings, Results& results) {
  std::vector<Detection> found;
  std::vector<float> buffer;
  auto level = levels.begin();
  size_t first = 0;  // row of the level
  const auto cells = [](const GridLevel& of) { return static_cast<size_t>(of.rows * of.columns); };
  for (const size_t i : scan.likely) {
    for (; i - first >= cells(*level); ++level) first += cells(*level);
    const auto columns = static_cast<size_t>(level->columns);
    const float* row = values.run(i * width, width, buffer);
    const size_t best = best_class(row, width);
    const float center_x = (row[0] + static_cast<float>((i - first) % columns)) * level->x_step;
    const float center_y = (row[1] + static_cast<float>((i - first) / columns)) * level->y_step;
    const float half_w = std::exp(row[2]) * level->x_step / 2;
    const float half_h = std::exp(row[3]) * level->y_step / 2;
    add_detection(settings, center_x - half_w, center_y - half_h, center_x + half_w,
                  center_y + half_h, row[4] * row[best], static_cast<int64_t>(best - 5), found);
  }
  finish_detections(settings, true, found, results);
}

struct Table {
  int64_t rows = 0, columns = 0;
};

// The single output as a matrix, or nullopt.
std::optional<Table> single_table(const ModelFacts& facts) {
  if (facts.outputs.size() != 1 || !is_float_output(facts.outputs[0])) return std::nullopt;
  const Shape& shape = facts.outputs[0].shape;
  if (shape.size() != 3 || shape[0] != 1) return std::nullopt;
  return Table{shape[1], shape[2]};
}

// Of two heads that differ in the columns before the classes: does the number of labels (or COCO's
// 80) speak for this one?
Fit fit_by_classes(const ModelFacts& facts, int64_t classes) {
  const int64_t labels = static_cast<int64_t>(facts.labels.size());
  if (labels != 0) return labels == classes ? Fit::certain : Fit::against;
  return classes == 80 ? Fit::certain : Fit::possible;
}

}  // namespace

Match match_yolox(const ModelFacts& facts) {
  const std::optional<Table> table = single_table(facts);
  const auto levels = table ? grid_levels(facts, table->rows, 1) : std::nullopt;
  if (!levels || table->columns < 6)
    return {Fit::no, "needs one output [1,cells,5+classes] with strides 8, 16, 32", {}};
  const Fit fit = fit_by_classes(facts, table->columns - 5);
  auto decode = [facts, table = *table, levels = *levels](std::span<const Tensor> outputs,
                                                          const DecodeSettings& settings,
                                                          Results& results) {
    const size_t rows = static_cast<size_t>(table.rows), width = static_cast<size_t>(table.columns);
    const Floats values(output_of(outputs, 0, rows * width));
    // Raw offsets stay within a few cells; decoded centres run over the whole picture.
    const RowScan scan = scan_rows(values, rows, width, settings.threshold);
    if (scan.first_reach > 0.5f * static_cast<float>(facts.width))
      decode_rows(facts, values, scan, width, settings, results);
    else
      decode_cells(levels, values, scan, width, settings, results);
  };
  const std::string reason = "a row of " + std::to_string(table->columns) + " for each of " +
                             std::to_string(table->rows) + " cells";
  return {fit, reason, decode};
}

Match match_yolov5_rows(const ModelFacts& facts) {
  const std::optional<Table> table = single_table(facts);
  if (!table || table->columns < 6 || !grid_levels(facts, table->rows, 3))
    return {Fit::no, "needs one output [1,3*cells,5+classes], or three raw heads", {}};
  auto decode = [facts, table = *table](std::span<const Tensor> outputs,
                                        const DecodeSettings& settings, Results& results) {
    const size_t rows = static_cast<size_t>(table.rows), width = static_cast<size_t>(table.columns);
    const Floats values(output_of(outputs, 0, rows * width));
    decode_rows(facts, values, scan_rows(values, rows, width, settings.threshold), width, settings,
                results);
  };
  return {Fit::certain, "three rows of " + std::to_string(table->columns) + " a cell", decode};
}

Match match_yolov8(const ModelFacts& facts) {
  // [1, 4 + classes (+ extra), cells], or transposed; segmentation adds an output of mask
  // prototypes, whose coefficients follow the classes.
  const OutputFacts* rows_output = nullptr;
  size_t index = 0;
  int64_t extra = 0;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    if (!is_float_output(output) || output.shape.empty() || output.shape[0] != 1) continue;
    if (output.shape.size() == 3 && rows_output == nullptr) {
      rows_output = &output;
      index = i;
    } else if (output.shape.size() == 4) {
      extra = output.shape[1];
    }
  }
  const char* needs = "needs an output [1,4+classes,cells] with strides 8, 16, 32";
  if (rows_output == nullptr || facts.outputs.size() > 2 ||
      (facts.outputs.size() == 2) != (extra != 0))
    return {Fit::no, needs, {}};
  const int64_t a = rows_output->shape[1], b = rows_output->shape[2];
  const bool class_major = grid_levels(facts, b, 1).has_value();
  const int64_t cells = class_major ? b : a, columns = class_major ? a : b;
  if (!grid_levels(facts, cells, 1) || columns - extra < 5) return {Fit::no, needs, {}};
  int64_t classes = columns - 4 - extra;
  Fit fit = Fit::certain;
  if (!class_major) fit = fit_by_classes(facts, classes);
  const int64_t labels = static_cast<int64_t>(facts.labels.size());
  if (labels != 0 && labels < classes) classes = labels;  // what follows the classes: key points
  auto decode = [facts, index, cells, columns, classes, class_major](
                    std::span<const Tensor> outputs, const DecodeSettings& settings,
                    Results& results) {
    const size_t count = static_cast<size_t>(cells), width = static_cast<size_t>(columns);
    const Floats values(output_of(outputs, index, count * width));
    const size_t cell_step = class_major ? 1 : width, column_step = class_major ? count : 1;
    std::vector<float> best(count, -1.0f), buffer;
    std::vector<int> label(count, 0);
    float reach = 0;
    const auto visit = [&](size_t i, size_t k, float value) {
      if (k < 4) {
        if (std::isfinite(value)) reach = std::max(reach, std::fabs(value));
      } else if (value > best[i]) {
        best[i] = value;
        label[i] = static_cast<int>(k - 4);
      }
    };
    // In the order of memory.
    const size_t wanted = 4 + static_cast<size_t>(classes);
    if (class_major) {
      for (size_t k = 0; k < wanted; ++k) {
        const float* plane = values.run(k * count, count, buffer);
        for (size_t i = 0; i < count; ++i) visit(i, k, plane[i]);
      }
    } else {
      for (size_t i = 0; i < count; ++i) {
        const float* row = values.run(i * width, wanted, buffer);
        for (size_t k = 0; k < wanted; ++k) visit(i, k, row[k]);
      }
    }
    const float x_unit = reach <= 2 ? static_cast<float>(facts.width) : 1;
    const float y_unit = reach <= 2 ? static_cast<float>(facts.height) : 1;
    std::vector<Detection> found;
    for (size_t i = 0; i < count; ++i) {
      if (!(best[i] >= settings.threshold)) continue;
      auto at = [&](size_t k) { return values[i * cell_step + k * column_step]; };
      const float x = at(0) * x_unit, y = at(1) * y_unit;
      const float half_w = at(2) * x_unit / 2, half_h = at(3) * y_unit / 2;
      add_detection(settings, x - half_w, y - half_h, x + half_w, y + half_h, best[i], label[i],
                    found);
    }
    finish_detections(settings, true, found, results);
  };
  return {fit,
          "4 + " + std::to_string(columns - 4) + " numbers for each of " + std::to_string(cells) +
              " cells",
          decode};
}

}  // namespace clinfer
