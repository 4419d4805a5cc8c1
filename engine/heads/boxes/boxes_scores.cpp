// Reads pairs of outputs: boxes [1,N,4], decoded by the graph, and scores [1,N,C] of the same N.
// The values of all N boxes tell whether boxes are corners or centre and size, in shares or pixels,
// whether scores are squashed or raw, and whether the first or the last class is a background.
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/masks.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

struct BoxesAndScores {
  size_t boxes = 0, scores = 0;
  size_t rows = 0, classes = 0;
  bool class_major = false;  // true if scores are [1,C,N]
  // True if boxes [1,4,N] and scores [1,N,4] of four classes fit as well.
  bool either = false;
};

// Returns rows and columns of a matrix whose further dimensions are 1, wherever these are
// ([1,N,1,4]).
bool as_table(const Shape& shape, size_t& rows, size_t& columns) {
  if (shape.size() < 2) return false;
  std::vector<int64_t> counting;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    if (shape[i] != 1) counting.push_back(shape[i]);
  if (counting.size() > 1 || shape.back() < 1) return false;
  rows = counting.empty() ? 1 : static_cast<size_t>(counting[0]);
  columns = static_cast<size_t>(shape.back());
  return shape.back() >= 1 && rows >= 1;
}

std::optional<BoxesAndScores> find_pair(const ModelFacts& facts, size_t box_index) {
  BoxesAndScores pair;
  size_t columns = 0;
  const OutputFacts& boxes = facts.outputs[box_index];
  if (!is_float_output(boxes) || !as_table(boxes.shape, pair.rows, columns) || columns != 4 ||
      pair.rows < 2)
    return std::nullopt;
  if (name_has(boxes, {"score", "conf", "cls", "prob", "anchor", "pred_boxes"}))
    return std::nullopt;
  pair.boxes = box_index;
  int best = 0;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& scores = facts.outputs[i];
    size_t rows = 0;
    if (i == box_index || !is_float_output(scores)) continue;
    bool class_major = false;
    if (!as_table(scores.shape, rows, columns)) continue;
    if (rows != pair.rows) {
      // [1, N] has N scores of one class; [1, C, N] has the classes first.
      if (columns != pair.rows) continue;
      std::swap(rows, columns);
      class_major = true;
    }
    const bool named = name_has(scores, {"score", "conf", "cls", "class", "prob", "logit"});
    // Four values beside each box may be a second box, which lies in memory as the first one does.
    const bool four = columns == 4 && !named;
    const int weight = named ? 3 : !four ? 2 : class_major ? 1 : 0;
    if (weight <= best) continue;
    best = weight;
    pair.either = four;
    pair.scores = i;
    pair.classes = columns;
    pair.class_major = class_major;
  }
  return best > 0 ? std::optional(pair) : std::nullopt;
}

struct ScoreTable {
  const float* values;
  const BoxesAndScores& pair;
  float at(size_t row, size_t column) const {
    return pair.class_major ? values[column * pair.rows + row]
                            : values[row * pair.classes + column];
  }
};

// Evidence from the scores of all rows: whether they are logits or probabilities, whether those of
// a row sum to 1, and in how many rows the first or the last class leads, with a number above 0.
struct ScoreScan {
  bool logits = false, sums_to_one = false;
  size_t first_leads = 0, last_leads = 0;
};
ScoreScan scan_scores(const ScoreTable& scores) {
  const size_t classes = scores.pair.classes;
  ScoreScan scan;
  scan.sums_to_one = classes > 1;
  for (size_t row = 0; row < scores.pair.rows; ++row) {
    double sum = 0;
    size_t lead = 0;
    for (size_t column = 0; column < classes; ++column) {
      const float v = scores.at(row, column);
      if (!std::isfinite(v)) continue;
      if (v < -0.01f || v > 1.01f) scan.logits = true;
      if (v > scores.at(row, lead)) lead = column;
      sum += v;
    }
    if (std::fabs(sum - 1) > 0.02) scan.sums_to_one = false;
    if (!(scores.at(row, lead) > 0)) continue;
    scan.first_leads += lead == 0;
    scan.last_leads += lead + 1 == classes;
  }
  if (scan.logits) scan.sums_to_one = false;
  return scan;
}

// Returns whether the first class or the last one (second) leads in most rows, and so is a
// background, since there are far more boxes than objects.
Decided::Kind background_seen(const ScoreScan& scan, size_t rows) {
  return scan.first_leads * 4 > rows * 3  ? Decided::first
         : scan.last_leads * 4 > rows * 3 ? Decided::second
                                          : Decided::open;
}

// Returns the class that is a background according to its label, or nullopt.
std::optional<size_t> labelled_background(const std::vector<std::string>& labels, size_t classes) {
  for (size_t i = 0; i < labels.size() && i < classes; ++i) {
    if (!labels[i].empty() && is_background(labels[i])) return i;
  }
  return std::nullopt;
}

struct PairHead {
  ModelFacts facts;
  Family family;
  BoxesAndScores pair;
  // True if the operation that makes the scores says so.
  bool softmax_op = false, sigmoid_op = false;
  Decided units, form, squashed, normalised, background_at;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    Floats boxes(output_of(outputs, pair.boxes, pair.rows * 4));
    Floats values(output_of(outputs, pair.scores, pair.rows * pair.classes));
    const ScoreTable scores{values.data(), pair};
    const ScoreScan seen = scan_scores(scores);
    const bool logits = !softmax_op && !sigmoid_op &&
                        squashed.settle(seen.logits ? Decided::second : Decided::first,
                                        Decided::first) == Decided::second;
    const auto labelled = labelled_background(facts.labels, pair.classes);
    const bool softmaxed =
        !logits && !sigmoid_op &&
        (softmax_op || normalised.settle(seen.sums_to_one ? Decided::first : Decided::second,
                                         Decided::second) == Decided::first);
    // Logits for a softmax have a background that leads; those for a sigmoid have none.
    const Decided::Kind place =
        pair.classes > 1 && (logits || softmaxed)
            ? background_at.settle(
                  pair.rows >= 50 ? background_seen(seen, pair.rows) : Decided::open, Decided::open)
            : Decided::open;
    const bool has_background =
        pair.classes > 1 && (softmaxed || labelled || (logits && place != Decided::open));
    const size_t unnamed = place == Decided::second ? pair.classes - 1 : 0;
    const size_t background = has_background ? labelled.value_or(unnamed) : pair.classes;

    size_t ordered = 0;
    float reach = 0;
    for (size_t row = 0; row < pair.rows; ++row) {
      const float* box = boxes.data() + row * 4;
      ordered += box[2] >= box[0] && box[3] >= box[1];
      for (int k = 0; k < 4; ++k)
        if (std::isfinite(box[k])) reach = std::max(reach, std::fabs(box[k]));
    }
    // Boxes that are corners are hardly ever in the wrong order.
    const auto form_seen = ordered * 4 >= pair.rows * 3 ? Decided::first : Decided::second;
    const bool centers =
        form.settle(reach > 0 ? form_seen : Decided::open, Decided::first) == Decided::second;
    const PixelUnits unit = pixel_units(units, reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;

    Candidates candidates(settings);
    size_t likely = 0;
    for (size_t row = 0; row < pair.rows; ++row) {
      size_t best = background == 0 ? 1 : 0;
      for (size_t column = best + 1; column < pair.classes; ++column)
        if (column != background && scores.at(row, column) > scores.at(row, best)) best = column;
      float score = scores.at(row, best);
      if (!logits) candidates.expect_probability(score);
      if (logits && has_background) {
        float top = score, sum = 0;
        for (size_t k = 0; k < pair.classes; ++k) top = std::max(top, scores.at(row, k));
        for (size_t k = 0; k < pair.classes; ++k) sum += std::exp(scores.at(row, k) - top);
        score = std::exp(score - top) / sum;
      } else if (logits) {
        score = sigmoid(score);
      }
      likely += score > 0.5f;
      if (!(score >= settings.threshold)) continue;
      const float* box = boxes.data() + row * 4;
      const float a = box[0] * x_unit, b = box[1] * y_unit, c = box[2] * x_unit,
                  d = box[3] * y_unit;
      const auto label = static_cast<double>(best);
      if (centers)
        candidates.add_centered(a, b, c, d, score, label, row);
      else
        candidates.add(a, b, c, d, score, label, row);
    }
    // There are far more boxes than objects. If logits make most of them objects, they are meant
    // for a softmax, as DETR's are.
    if (logits && pair.rows >= 50 && likely * 4 > pair.rows * 3) {
      results.contradiction =
          std::to_string(likely) + " of " + std::to_string(pair.rows) + " boxes are objects";
      return;
    }
    // Allows labels to leave out the background.
    const bool named = has_background && facts.labels.size() + 1 == pair.classes;
    finish(settings, suppression_of(facts, family), candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             const auto label = static_cast<size_t>(kept.label);
             if (named && label != background)
               detection.label = facts.labels[label - (label > background ? 1 : 0)];
           });
  }
};

}  // namespace

Match match_boxes_scores(const ModelFacts& facts) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const std::optional<BoxesAndScores> pair = find_pair(facts, i);
    if (!pair) continue;
    const OutputFacts &boxes = facts.outputs[i], &scores = facts.outputs[pair->scores];
    // PP-YOLOE gives the classes first. Only YOLOv4 has boxes [1,N,1,4].
    const Family family =
        pair->class_major && boxes.shape.size() < 4 ? Family::pp_yoloe : Family::yolo_apart;
    PairHead head{facts, family, *pair, false, false, {}, {}, {}, {}, {}};
    head.softmax_op = is_softmax(scores);
    head.sigmoid_op = scores.op == "Sigmoid";
    Match match;
    match.decode = head;
    match.reason = "boxes " + boxes.name + ", scores " + scores.name;
    const bool named =
        name_has(boxes, {"box"}) && name_has(scores, {"score", "conf", "class", "cls", "prob"});
    const bool cells =
        pair->rows > 100 && (grid_levels(facts, static_cast<int64_t>(pair->rows), 1) ||
                             grid_levels(facts, static_cast<int64_t>(pair->rows), 3));
    const bool labelled =
        facts.labels.size() == pair->classes || facts.labels.size() + 1 == pair->classes;
    const bool of_scores = head.softmax_op || head.sigmoid_op;
    match.fit = facts.outputs.size() == 2 && !name_has(boxes, {"regress"}) &&
                        (of_scores || (!pair->either && (named || cells || labelled)))
                    ? Fit::likely
                    : Fit::possible;
    // Recognises rows of a second stage, which are no scores.
    const bool features =
        name_has(scores, {"feat", "embed", "hidden", "query"}) || name_has(boxes, {"roi"});
    // Names alone do not distinguish decoded boxes from offsets; heads that know more come first.
    if (named && facts.outputs.size() <= 3 && !name_has(boxes, {"regress"}))
      match.fit = Fit::likely;
    if (features) {
      match.fit = Fit::against;
      match.reason += ": regions and features by their names";
    }
    // A network that gives its anchors leaves it to the reader to move them.
    for (const OutputFacts& other : facts.outputs)
      if (const auto table = table_of(other); table && table->rows == pair->rows &&
                                              table->columns == 4 &&
                                              name_has(other, {"anchor", "prior"})) {
        match.fit = Fit::against;
        match.doubt = "beside " + other.name + ", from which they are offsets";
      }
    // Outputs with one row for each cell and no background class are those of YOLO-NAS and similar
    // networks.
    if (cells) match.picture = picture_of(family);
    match.classes = pair->classes;
    match.background = true;
    return match;
  }
  return {Fit::no, "needs boxes [1,N,4] and scores [1,N,C]", {}};
}

namespace {

// Rows of corners and a score, or of centre, size, angle and a score; a separate output of class
// numbers; masks if there are any.
struct BoxesLabels {
  ModelFacts facts;
  size_t boxes = 0, labels = 0;  // indices of outputs
  bool turned = false;
  std::optional<MaskGrids> masks;
  Decided units;

  static OrientedBox oriented(const float* row) { return {row[0], row[1], row[2], row[3], row[4]}; }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    if (std::max(boxes, labels) >= outputs.size())
      throw Error{ErrorCode::device_failed, "an output is missing"};
    const Floats rows(outputs[boxes]), ids(outputs[labels]);
    const size_t width = turned ? 6 : 5, count = std::min(rows.size() / width, ids.size());
    Candidates candidates(settings);
    std::vector<float> buffer;
    if (turned) {
      for (size_t i = 0; i < count; ++i) {
        const float* row = rows.run(i * width, width, buffer);
        candidates.expect_probability(row[5]);
        if (!(row[5] >= settings.threshold)) continue;
        const Hull hull = hull_of(oriented(row));
        candidates.add(hull.x_min, hull.y_min, hull.x_max, hull.y_max, row[5], ids[i], i);
      }
    } else {
      const RowScan scan = scan_rows(rows, count, width, settings.threshold);
      const PixelUnits unit = pixel_units(units, scan.reach, facts);
      const float x_unit = unit.x, y_unit = unit.y;
      for (const size_t i : scan.likely) {
        const float* row = rows.run(i * width, width, buffer);
        candidates.expect_probability(row[4]);
        candidates.add(row[0] * x_unit, row[1] * y_unit, row[2] * x_unit, row[3] * y_unit, row[4],
                       ids[i], i);
      }
    }
    std::optional<Floats> grids;
    if (masks && masks->output < outputs.size()) grids.emplace(outputs[masks->output]);
    finish(settings, Suppression::none, candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             if (turned)
               detection.oriented_box = oriented(rows.run(kept.row * width, width, buffer));
             if (grids && (kept.row + 1) * masks->rows * masks->columns <= grids->size())
               detection.mask =
                   grid_mask(*masks, *grids, kept.row, false, detection, facts.width, facts.height);
           });
  }
};

}  // namespace

Match match_boxes_labels(const ModelFacts& facts) {
  const bool rotated = lower(info(facts, "model_type")) == "rotated_detection";
  for (size_t b = 0; b < facts.outputs.size(); ++b) {
    const Shape boxes = squeeze_front(facts.outputs[b].shape);
    if (!is_float_output(facts.outputs[b]) || boxes.size() != 2) continue;
    // Requires more than the shape, because end-to-end YOLO has rows of 6 as well.
    const bool turned = boxes[1] == 6 &&
                        (rotated || (facts.outputs[b].name == "dets" && facts.outputs.size() == 2));
    if (boxes[1] != 5 && !turned) continue;
    for (size_t l = 0; l < facts.outputs.size(); ++l) {
      const Shape labels = squeeze_front(facts.outputs[l].shape);
      if (l == b || labels.size() != 1 || labels[0] != boxes[0]) continue;
      if (turned && !rotated && facts.outputs[l].name != "labels") continue;
      BoxesLabels decode;
      decode.facts = facts;
      decode.boxes = b;
      decode.labels = l;
      decode.turned = turned;
      decode.masks = find_mask_grids(facts, static_cast<size_t>(boxes[0]));
      std::string reason = std::string(turned ? "turned boxes " : "boxes ") +
                           facts.outputs[b].name + ", labels " + facts.outputs[l].name;
      if (decode.masks) reason += ", masks " + facts.outputs[decode.masks->output].name;
      return {Fit::certain, reason, decode};
    }
  }
  return {Fit::no, "needs boxes with scores [N,5] and labels [N]", {}};
}

}  // namespace clinfer
