// Reads end-to-end rows: one output whose rows are objects, already suppressed unless there is a
// row for each cell. Rows have corners, score and class (YOLO v10, v26, nms=True), and what a task
// adds; or class, score and corners (PaddleDetection); or seven columns (v7, YOLO-NAS).
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/files/labels.h"
#include "engine/heads/pictures/masks.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

struct RowsOutput {
  size_t output = 0, rows = 0, columns = 0;
  std::optional<size_t> count;  // output with the number of valid rows
};

// Returns the only matrix among the outputs with `columns` columns (0: any number from 6 on), if
// the other outputs are just a count and what `also` allows.
std::optional<RowsOutput> find_rows(const ModelFacts& facts, size_t columns,
                                    std::optional<size_t> also = {}) {
  std::optional<RowsOutput> found;
  std::optional<size_t> count;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    if (also && *also == i) continue;
    if (vector_size(output.shape) == 1 && !is_float(output.type) && !count) {
      count = i;
      continue;
    }
    const auto table = table_of(output);
    if (!table || found || table->rows < 2) return std::nullopt;  // [1,C] holds classes
    if (lists_columns(output, table->columns)) return std::nullopt;
    if (columns != 0 ? table->columns != columns : table->columns < 6) return std::nullopt;
    found = RowsOutput{i, table->rows, table->columns, {}};
  }
  if (found) found->count = count;
  return found;
}

// Returns the number of valid rows: as the count output says, else all.
size_t rows_used(const RowsOutput& rows, std::span<const Tensor> outputs) {
  const size_t all =
      static_cast<size_t>(std::max<int64_t>(outputs[rows.output].elements(), 0)) / rows.columns;
  if (!rows.count || *rows.count >= outputs.size() || outputs[*rows.count].empty()) return all;
  const std::vector<int64_t> count = outputs[*rows.count].to_ints();
  return count.size() == 1 ? std::min(all, static_cast<size_t>(std::max<int64_t>(count[0], 0)))
                           : all;
}

Floats values_of(const RowsOutput& rows, std::span<const Tensor> outputs) {
  if (rows.output >= outputs.size() || outputs[rows.output].empty())
    throw Error{ErrorCode::device_failed, "the output is missing"};
  return Floats(outputs[rows.output]);
}

// Statistics of the first columns of rows, as evidence of boxes: their range, and whether four
// numbers can be corners. Rows of zeros are ignored.
struct BoxScan {
  float reach = 0;
  size_t rows = 0, ordered = 0;
  Decided::Kind corners_or_centers() const {
    if (rows == 0) return Decided::open;
    return ordered * 10 >= rows * 9 ? Decided::first : Decided::second;
  }
};
BoxScan scan_boxes(const Floats& values, size_t rows, size_t columns, size_t at) {
  BoxScan scan;
  std::vector<float> buffer;
  for (size_t i = 0; i < rows; ++i) {
    const float* box = values.run(i * columns + at, 4, buffer);
    float reach = 0;
    for (int k = 0; k < 4; ++k)
      if (std::isfinite(box[k])) reach = std::max(reach, std::fabs(box[k]));
    if (reach == 0) continue;
    scan.reach = std::max(scan.reach, reach);
    ++scan.rows;
    scan.ordered += box[2] > box[0] && box[3] > box[1];
  }
  return scan;
}

enum class RowTask { detect, pose, segment, obb };

// Rows [x0, y0, x1, y1, score, class, more...]; oriented boxes begin with centre and size.
struct EndToEnd {
  ModelFacts facts;
  RowsOutput rows;
  RowTask task = RowTask::detect;
  std::optional<Prototypes> prototypes;
  PointShape points;
  bool is_yolo = false;
  Suppression suppression = Suppression::none;
  Decided units, form;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats values = values_of(rows, outputs);
    const size_t used = rows_used(rows, outputs), width = rows.columns;
    const BoxScan scan = scan_boxes(values, used, width, 0);
    const PixelUnits unit = pixel_units(units, scan.reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    // Pixels are corners in all such networks. Shares come from RT-DETR, whose boxes are centres,
    // and from graphs that end in their own suppression.
    bool centers = task == RowTask::obb;
    if (!centers && unit.shares)
      centers =
          is_yolo || form.settle(scan.corners_or_centers(), Decided::first) == Decided::second;
    Candidates candidates(settings);
    std::vector<float> buffer;
    for (size_t i = 0; i < used; ++i) {
      const float* row = values.run(i * width, width, buffer);
      candidates.expect_probability(row[4]);
      if (!(row[4] >= settings.threshold)) continue;
      const float a = row[0] * x_unit, b = row[1] * y_unit, c = row[2] * x_unit,
                  d = row[3] * y_unit;
      if (task == RowTask::obb) {
        const Hull hull = hull_of({a, b, c, d, row[6]});
        candidates.add(hull.x_min, hull.y_min, hull.x_max, hull.y_max, row[4], row[5], i);
      } else if (centers) {
        candidates.add_centered(a, b, c, d, row[4], row[5], i);
      } else {
        candidates.add(a, b, c, d, row[4], row[5], i);
      }
      if (task == RowTask::pose && points.dimensions == 3)
        for (size_t k = 0; k < points.count; ++k) candidates.expect_probability(row[8 + 3 * k]);
    }
    std::optional<Floats> masks;
    if (prototypes) masks.emplace(output_of(outputs, prototypes->output, prototypes->elements()));
    const auto complete = [&](const Candidate& kept, Detection& detection) {
      const float* row = values.run(kept.row * width, width, buffer);
      if (task == RowTask::obb)
        detection.oriented_box =
            OrientedBox{row[0] * x_unit, row[1] * y_unit, row[2] * x_unit, row[3] * y_unit, row[6]};
      if (task == RowTask::pose)
        add_points(
            points, [&](size_t k) { return row[6 + k]; }, x_unit, y_unit, detection);
      if (task == RowTask::segment)
        detection.mask =
            prototype_mask(*prototypes, *masks, row + 6, detection, facts.width, facts.height);
    };
    finish(settings, suppression, candidates, results, complete);
  }
};

// PaddleDetection's rows: class, score, corners; or, if `last`, in reverse order. Unused rows have
// class -1. Rows with ten columns have class, score and four corners of a rotated box.
struct ClassFirst {
  ModelFacts facts;
  RowsOutput rows;
  Decided units;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats values = values_of(rows, outputs);
    const size_t used = rows_used(rows, outputs), width = rows.columns;
    const BoxScan scan = scan_boxes(values, used, width, 2);
    const PixelUnits unit = pixel_units(units, scan.reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    Candidates candidates(settings);
    std::vector<float> buffer;
    const auto oriented = [&](const float* row) {
      OrientedBox box;
      for (int k = 0; k < 4; ++k) {
        box.x_center += row[2 + 2 * k] * x_unit / 4;
        box.y_center += row[3 + 2 * k] * y_unit / 4;
      }
      const float dx = (row[4] - row[2]) * x_unit, dy = (row[5] - row[3]) * y_unit;
      box.width = std::hypot(dx, dy);
      box.height = std::hypot((row[6] - row[4]) * x_unit, (row[7] - row[5]) * y_unit);
      box.rotation = std::atan2(dy, dx);
      return box;
    };
    for (size_t i = 0; i < used; ++i) {
      const float* row = values.run(i * width, width, buffer);
      if (!(row[0] >= 0)) continue;
      candidates.expect_probability(row[1]);
      if (!(row[1] >= settings.threshold)) continue;
      if (width == 10) {
        const Hull hull = hull_of(oriented(row));
        candidates.add(hull.x_min, hull.y_min, hull.x_max, hull.y_max, row[1], row[0], i);
      } else {
        candidates.add(row[2] * x_unit, row[3] * y_unit, row[4] * x_unit, row[5] * y_unit, row[1],
                       row[0], i);
      }
    }
    finish(settings, Suppression::none, candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             if (width == 10)
               detection.oriented_box = oriented(values.run(kept.row * width, width, buffer));
           });
  }
};

// Rows [image, x0, y0, x1, y1, class, score] (v7), or with score before class (YOLO-NAS): class
// numbers are whole numbers, scores hardly ever.
struct RowsOfSeven {
  ModelFacts facts;
  RowsOutput rows;
  Decided order;  // first: class before score
  Decided units;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats values = values_of(rows, outputs);
    const size_t used = rows_used(rows, outputs);
    const BoxScan scan = scan_boxes(values, used, 7, 1);
    const PixelUnits unit = pixel_units(units, scan.reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    std::vector<float> buffer;
    bool first_whole = true, last_whole = true;
    for (size_t i = 0; i < used; ++i) {
      const float* row = values.run(i * 7, 7, buffer);
      first_whole = first_whole && row[5] == std::floor(row[5]);
      last_whole = last_whole && row[6] == std::floor(row[6]);
    }
    const Decided::Kind seen = first_whole == last_whole ? Decided::open
                               : first_whole             ? Decided::first
                                                         : Decided::second;
    const bool class_first = order.settle(seen, Decided::first) == Decided::first;
    Candidates candidates(settings);
    for (size_t i = 0; i < used; ++i) {
      const float* row = values.run(i * 7, 7, buffer);
      if (!(row[0] >= 0) || !(row[0] < 1)) continue;  // belongs to another image, or none
      const float score = class_first ? row[6] : row[5], label = class_first ? row[5] : row[6];
      candidates.expect_probability(score);
      candidates.add(row[1] * x_unit, row[2] * y_unit, row[3] * x_unit, row[4] * y_unit, score,
                     label, i);
    }
    finish(settings, Suppression::none, candidates, results);
  }
};

std::optional<RowTask> stated_row_task(const ModelFacts& facts) {
  const std::string task = lower(info(facts, "task"));
  if (task == "detect") return RowTask::detect;
  if (task == "pose") return RowTask::pose;
  if (task == "segment") return RowTask::segment;
  if (task == "obb") return RowTask::obb;
  return std::nullopt;
}

const char* head_of(RowTask task) {
  switch (task) {
    case RowTask::pose:
      return "yolov10-pose";
    case RowTask::segment:
      return "yolov10-seg";
    case RowTask::obb:
      return "yolov10-obb";
    case RowTask::detect:
      break;
  }
  return "yolov10";
}

Match match_rows(const ModelFacts& facts, RowTask task) {
  const auto prototypes = task == RowTask::segment ? find_prototypes(facts) : std::nullopt;
  if (task == RowTask::segment && !prototypes)
    return {Fit::no, "needs rows [1,N,6+P] and P mask prototypes", {}};
  const size_t wanted = task == RowTask::detect    ? 6
                        : task == RowTask::obb     ? 7
                        : task == RowTask::segment ? 6 + prototypes->channels
                                                   : 0;
  const auto rows =
      find_rows(facts, wanted, prototypes ? std::optional(prototypes->output) : std::nullopt);
  if (!rows) return {Fit::no, std::string("needs one output [1,N,6] for ") + head_of(task), {}};
  EndToEnd head{facts, *rows, task, prototypes, {}, false, Suppression::none, {}, {}};
  // Exports keep 100 or 300 rows, so as many columns are rows whose axes are swapped.
  if (task == RowTask::pose && (rows->columns == 100 || rows->columns == 300) &&
      rows->rows < rows->columns)
    return {Fit::no, "has as many columns as exports keep rows: its axes are swapped", {}};
  // A column for each cell means a head before suppression.
  if (rows->columns > 400 || grid_levels(facts, static_cast<int64_t>(rows->columns), 1))
    return {Fit::no, "has too many columns for rows of objects", {}};
  const Shape& shape = facts.outputs[rows->output].shape;
  head.is_yolo = lower(info(facts, "model_type")).rfind("yolo", 0) == 0 || stated_row_task(facts);
  if (task == RowTask::pose) {
    const size_t elements = rows->columns - 6;
    head.points = points_of(facts, elements);
    const PointShape stated = stated_points(facts);
    if (elements < 2 || head.points.elements() != elements ||
        (stated.count != 0 && stated.elements() != elements))
      return {Fit::no, "needs rows [1,N,6+3*points]", {}};
  }
  // A YOLO head before suppression may have such columns; it has as many rows as cells.
  const auto n = static_cast<int64_t>(rows->rows);
  const bool cells = grid_levels(facts, n, 1) || grid_levels(facts, n, 3);
  // Suppression keeps some hundred rows. More, with one for each cell, are those of
  // DeepStream-Yolo.
  const Family family = cells && n > 1000 ? Family::deepstream_yolo : Family::end_to_end;
  head.suppression = suppression_of(facts, family);
  Match match;
  match.decode = head;
  match.picture = picture_of(family);
  match.reason =
      "rows of " + std::to_string(rows->columns) + ": " +
      (task == RowTask::obb ? "centre, size, score, class, angle" : "corners, score, class") +
      (task == RowTask::pose ? ", key points" : "") +
      (task == RowTask::segment ? ", mask coefficients" : "");
  const auto stated = stated_row_task(facts);
  if (stated && *stated != task) {
    match.fit = Fit::against;
    match.reason += "; but the task is " + info(facts, "task");
    return match;
  }
  const bool sure = stated.has_value() || head.is_yolo;
  switch (task) {
    case RowTask::detect:
      match.fit = shape.size() == 3 ? Fit::certain : Fit::likely;
      // MoveNet with six persons, transposed.
      if (n == 56 && !sure) match.fit = Fit::possible;
      break;
    case RowTask::segment:
      match.fit = Fit::certain;
      break;
    case RowTask::pose: {
      // As many columns as labels and a box are classes.
      const bool classes = facts.labels.size() + 4 == rows->columns;
      const bool points = stated.has_value() || rows->columns == 57 ||
                          (head.is_yolo && !facts.labels.empty() && (rows->columns - 6) % 3 == 0);
      match.fit = points && !classes ? Fit::certain : Fit::against;
      break;
    }
    case RowTask::obb:
      match.fit = sure ? Fit::certain : shape.size() == 3 ? Fit::possible : Fit::against;
      break;
  }
  // End-to-end exports keep 100 or 300 rows.
  const bool kept = task == RowTask::detect && (n == 100 || n == 300);
  if (cells && match.fit == Fit::certain) match.fit = kept ? Fit::likely : Fit::possible;
  return match;
}

Match match_sevens(const ModelFacts& facts, bool class_first) {
  const auto rows = find_rows(facts, 7);
  if (!rows) return {Fit::no, "needs one output of rows of 7", {}};
  const OutputFacts& output = facts.outputs[rows->output];
  const bool nas = name_has(output, {"flat_predictions", "graph2"}) ||
                   lower(facts.name).find("nas") != std::string::npos;
  Match match;
  match.decode = RowsOfSeven{facts, *rows, {}, {}};
  match.reason =
      class_first ? "rows of image, corners, class, score" : "rows of image, corners, score, class";
  // A row for each cell means a head before its suppression.
  const auto n = static_cast<int64_t>(rows->rows);
  const bool cells = n > 400 && (grid_levels(facts, n, 1) || grid_levels(facts, n, 3));
  match.fit = output.op == "DetectionOutput" || output.shape.size() > 3 || cells ? Fit::against
              : nas == class_first                                               ? Fit::against
              : output.shape.size() == 2 || nas                                  ? Fit::certain
                                                                                 : Fit::possible;
  if (lower(info(facts, "task")) == "obb") match.fit = Fit::against;
  match.picture = picture_of(class_first ? Family::yolov7_rows : Family::yolo_nas);
  return match;
}

}  // namespace

Match match_end_to_end(const ModelFacts& facts) {
  Match match = match_rows(facts, RowTask::detect);
  if (match.fit > Fit::against && from_paddle(facts, facts.outputs[0])) {
    match.fit = Fit::against;
    match.reason += "; but the model is PaddleDetection's";
  }
  return match;
}
Match match_end_to_end_pose(const ModelFacts& facts) { return match_rows(facts, RowTask::pose); }
Match match_end_to_end_seg(const ModelFacts& facts) { return match_rows(facts, RowTask::segment); }
Match match_end_to_end_obb(const ModelFacts& facts) { return match_rows(facts, RowTask::obb); }

Match match_class_first(const ModelFacts& facts) {
  auto rows = find_rows(facts, 6);
  if (!rows) rows = find_rows(facts, 10);
  if (!rows) return {Fit::no, "needs one output of rows of 6 (or 10) and a count", {}};
  const OutputFacts& output = facts.outputs[rows->output];
  // Excludes PP-OCR's steps of characters, which look the same: by the blank in the dictionary, by
  // the softmax, and by the dictionary's size.
  const bool is_text = std::any_of(facts.labels.begin(), facts.labels.end(), is_blank_name) ||
                       name_has(output, {"softmax"}) || lower(output.op) == "softmax";
  const bool has_steps = !rows->count && output.shape.size() == 3 &&
                         !name_has(output, {"multiclass_nms"}) && facts.input_names.size() == 1;
  const bool paddle = from_paddle(facts, output) && !is_text;
  Match match;
  match.decode = ClassFirst{facts, *rows, {}};
  match.reason = "rows of class, score, corners";
  match.fit = paddle && has_steps                       ? Fit::possible
              : paddle                                  ? Fit::certain
              : rows->count && output.shape.size() == 2 ? Fit::certain
                                                        : Fit::against;
  match.picture = picture_of(Family::paddle_detection);
  return match;
}

Match match_yolov7_rows(const ModelFacts& facts) { return match_sevens(facts, true); }
Match match_nas_rows(const ModelFacts& facts) { return match_sevens(facts, false); }

}  // namespace clinfer
