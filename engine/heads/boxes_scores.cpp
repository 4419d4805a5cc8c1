// Pairs of outputs: boxes [1,N,4] decoded by the graph, and scores [1,N,C] of the same N.
// Corners or centre and size, shares or pixels, squashed scores or raw ones: told apart by the
// values, over all N boxes.
#include <algorithm>

#include "engine/heads/common.h"
#include "engine/heads/heads.h"

namespace clinfer {
namespace {

struct Pair {
  size_t boxes = 0, scores = 0;
  size_t rows = 0, classes = 0;
  bool class_major = false;  // scores are [1,C,N]
};

// Rows and columns of [..., N, M] with leading ones; [N] alone counts as one column where `flat`.
bool as_table(const Shape& shape, size_t& rows, size_t& columns) {
  if (shape.size() < 2) return false;
  for (size_t i = 0; i + 2 < shape.size(); ++i)
    if (shape[i] != 1) return false;
  const int64_t r = shape[shape.size() - 2], c = shape.back();
  if (r < 1 || c < 1) return false;
  rows = static_cast<size_t>(r);
  columns = static_cast<size_t>(c);
  return true;
}

std::optional<Pair> find_pair(const ModelFacts& facts, size_t box_index) {
  Pair pair;
  size_t columns = 0;
  const OutputFacts& boxes = facts.outputs[box_index];
  if (!is_float_output(boxes) || !as_table(boxes.shape, pair.rows, columns) || columns != 4)
    return std::nullopt;
  if (name_has(boxes, {"score", "conf", "cls", "prob"})) return std::nullopt;
  pair.boxes = box_index;
  int best = 0;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& scores = facts.outputs[i];
    size_t rows = 0;
    if (i == box_index || !is_float_output(scores)) continue;
    bool class_major = false;
    if (!as_table(scores.shape, rows, columns)) continue;
    if (rows != pair.rows) {
      // [1, N] is N scores of one class; [1, C, N] has the classes first.
      if (columns != pair.rows) continue;
      std::swap(rows, columns);
      class_major = true;
    }
    const bool named = name_has(scores, {"score", "conf", "cls", "class", "prob", "logit"});
    const bool other_boxes = columns == 4 && !named;
    const int weight = named ? 3 : other_boxes ? 0 : 2;
    if (weight <= best) continue;
    best = weight;
    pair.scores = i;
    pair.classes = columns;
    pair.class_major = class_major;
  }
  return best > 0 ? std::optional(pair) : std::nullopt;
}

enum class ScoreKind { probabilities, softmaxed, logits };

struct ScoreTable {
  const float* values;
  const Pair& pair;
  float at(size_t row, size_t column) const {
    return pair.class_major ? values[column * pair.rows + row]
                            : values[row * pair.classes + column];
  }
};

ScoreKind kind_of(const ScoreTable& scores) {
  bool sums_to_one = scores.pair.classes > 1;
  for (size_t row = 0; row < scores.pair.rows; ++row) {
    double sum = 0;
    for (size_t column = 0; column < scores.pair.classes; ++column) {
      const float v = scores.at(row, column);
      if (!std::isfinite(v)) continue;
      if (v < -0.01f || v > 1.01f) return ScoreKind::logits;
      sum += v;
    }
    if (std::fabs(sum - 1) > 0.02) sums_to_one = false;
  }
  return sums_to_one ? ScoreKind::softmaxed : ScoreKind::probabilities;
}

// The class that means "nothing here": by its label, else the first.
size_t background_of(const std::vector<std::string>& labels, size_t classes) {
  for (size_t i = 0; i < labels.size() && i < classes; ++i) {
    const std::string label = lower(labels[i]);
    if (label.find("background") != std::string::npos || label == "bg" || label == "no-object" ||
        label == "no_object")
      return i;
  }
  return 0;
}

void decode_pair(const ModelFacts& facts, const Pair& pair, std::span<const Tensor> outputs,
                 const DecodeSettings& settings, Results& results) {
  Floats boxes(output_of(outputs, pair.boxes, pair.rows * 4));
  Floats values(output_of(outputs, pair.scores, pair.rows * pair.classes));
  const ScoreTable scores{values.data(), pair};
  const ScoreKind kind = kind_of(scores);
  const std::string& op = facts.outputs[pair.scores].op;
  const bool has_background =
      pair.classes > 1 &&
      (kind == ScoreKind::softmaxed || op == "SoftMax" || op == "Softmax" ||
       (kind == ScoreKind::logits && !facts.labels.empty() &&
        background_of(facts.labels, pair.classes) < std::min(facts.labels.size(), pair.classes) &&
        lower(facts.labels[background_of(facts.labels, pair.classes)]).find("background") !=
            std::string::npos));
  const size_t background =
      has_background ? background_of(facts.labels, pair.classes) : pair.classes;

  size_t inverted = 0;
  float reach = 0;
  for (size_t row = 0; row < pair.rows; ++row) {
    const float* box = boxes.data() + row * 4;
    if (!(box[2] >= box[0]) || !(box[3] >= box[1])) ++inverted;
    for (int k = 0; k < 4; ++k)
      if (std::isfinite(box[k])) reach = std::max(reach, std::fabs(box[k]));
  }
  const bool centers = inverted * 4 > pair.rows;  // corners are hardly ever the wrong way round
  const float x_unit = reach <= 2 ? static_cast<float>(facts.width) : 1;
  const float y_unit = reach <= 2 ? static_cast<float>(facts.height) : 1;

  std::vector<Detection> found;
  std::vector<float> row_scores(pair.classes);
  for (size_t row = 0; row < pair.rows; ++row) {
    for (size_t column = 0; column < pair.classes; ++column)
      row_scores[column] = scores.at(row, column);
    if (kind == ScoreKind::logits && has_background) {
      const float top = *std::max_element(row_scores.begin(), row_scores.end());
      float sum = 0;
      for (float& v : row_scores) sum += v = std::exp(v - top);
      for (float& v : row_scores) v /= sum;
    } else if (kind == ScoreKind::logits) {
      for (float& v : row_scores) v = sigmoid(v);
    }
    const float* box = boxes.data() + row * 4;
    const float half_w = box[2] / 2, half_h = box[3] / 2;
    const float x_min = centers ? box[0] - half_w : box[0],
                x_max = centers ? box[0] + half_w : box[2];
    const float y_min = centers ? box[1] - half_h : box[1],
                y_max = centers ? box[1] + half_h : box[3];
    for (size_t column = 0; column < pair.classes; ++column)
      if (column != background)
        add_detection(settings, x_min * x_unit, y_min * y_unit, x_max * x_unit, y_max * y_unit,
                      row_scores[column], static_cast<int64_t>(column), found);
  }
  finish_detections(settings, true, found, results);
}

}  // namespace

Match match_boxes_scores(const ModelFacts& facts) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const std::optional<Pair> pair = find_pair(facts, i);
    if (!pair) continue;
    auto decode = [facts, pair = *pair](std::span<const Tensor> outputs,
                                        const DecodeSettings& settings, Results& results) {
      decode_pair(facts, pair, outputs, settings, results);
    };
    return {
        facts.outputs.size() == 2 ? Fit::certain : Fit::possible,
        "boxes " + facts.outputs[pair->boxes].name + ", scores " + facts.outputs[pair->scores].name,
        decode};
  }
  return {Fit::no, "needs boxes [1,N,4] and scores [1,N,C]", {}};
}

Match match_boxes_labels(const ModelFacts& facts) {
  for (size_t b = 0; b < facts.outputs.size(); ++b) {
    const Shape boxes = squeeze_front(facts.outputs[b].shape);
    if (!is_float_output(facts.outputs[b]) || boxes.size() != 2 || boxes[1] != 5) continue;
    for (size_t l = 0; l < facts.outputs.size(); ++l) {
      const Shape labels = squeeze_front(facts.outputs[l].shape);
      if (l == b || labels.size() != 1 || labels[0] != boxes[0]) continue;
      const float width = static_cast<float>(facts.width);
      const float height = static_cast<float>(facts.height);
      auto decode = [=](std::span<const Tensor> outputs, const DecodeSettings& settings,
                        Results& results) {
        if (std::max(b, l) >= outputs.size())
          throw Error{ErrorCode::device_failed, "an output is missing"};
        const Floats rows(outputs[b]), ids(outputs[l]);
        const size_t count = std::min(rows.size() / 5, ids.size());
        const RowScan scan = scan_rows(rows, count, 5, settings.threshold);
        const float x_unit = scan.reach <= 2 ? width : 1, y_unit = scan.reach <= 2 ? height : 1;
        std::vector<Detection> found;
        std::vector<float> buffer;
        for (const size_t i : scan.likely) {
          const float* row = rows.run(i * 5, 5, buffer);
          if (!(ids[i] >= 0 && ids[i] < 1e6f)) continue;
          add_detection(settings, row[0] * x_unit, row[1] * y_unit, row[2] * x_unit,
                        row[3] * y_unit, row[4], static_cast<int64_t>(ids[i]), found);
        }
        finish_detections(settings, false, found, results);
      };
      return {Fit::certain, "boxes " + facts.outputs[b].name + ", labels " + facts.outputs[l].name,
              decode};
    }
  }
  return {Fit::no, "needs boxes with scores [N,5] and labels [N]", {}};
}

Match match_end_to_end(const ModelFacts& facts) {
  if (facts.outputs.size() != 1) return {Fit::no, "needs one output [1,N,6] and no other", {}};
  const Shape shape = squeeze_front(facts.outputs[0].shape);
  if (shape.size() != 2 || shape[1] != 6 || !is_float_output(facts.outputs[0]))
    return {Fit::no, "needs one output [1,N,6]", {}};
  const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
  auto decode = [=](std::span<const Tensor> outputs, const DecodeSettings& settings,
                    Results& results) {
    if (outputs.empty()) throw Error{ErrorCode::device_failed, "the output is missing"};
    const Floats values(outputs[0]);
    const size_t rows = values.size() / 6;
    const RowScan scan = scan_rows(values, rows, 6, settings.threshold);
    const float x_unit = scan.reach <= 2 ? width : 1, y_unit = scan.reach <= 2 ? height : 1;
    std::vector<Detection> found;
    std::vector<float> buffer;
    for (const size_t i : scan.likely) {
      const float* row = values.run(i * 6, 6, buffer);
      if (!(row[5] >= 0 && row[5] < 1e6f)) continue;
      add_detection(settings, row[0] * x_unit, row[1] * y_unit, row[2] * x_unit, row[3] * y_unit,
                    row[4], static_cast<int64_t>(row[5]), found);
    }
    finish_detections(settings, false, found, results);
  };
  // The same shape could be a YOLO head of one class; that one has as many rows as cells.
  const bool cells = grid_levels(facts, shape[0], 1) || grid_levels(facts, shape[0], 3);
  return {cells ? Fit::possible : Fit::certain, "rows of 6: corners, score, label", decode};
}

}  // namespace clinfer
