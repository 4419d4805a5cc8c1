// Reads detectors with separate outputs for boxes, scores and class numbers. Most contain their
// suppression, often with a count, as those from TensorFlow, torchvision, TensorRT's plug-ins,
// RT-DETR's deploy form and YOLO-NAS; DeepStream-Yolo's exporters leave it out.
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/masks.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

struct Triple {
  size_t boxes = 0, scores = 0, labels = 0, rows = 0;
  std::optional<size_t> count, points, point_scores;
  std::optional<MaskGrids> masks;
  size_t named = 0;      // number of outputs among boxes, scores and labels whose names say so
  bool by_type = false;  // true if class numbers are integers
};

bool is_count_name(const OutputFacts& output) {
  return has_word(output, {"num", "count", "valid", "n"}) ||
         name_has(output, {"num_det", "numdet"});
}
bool is_score_name(const OutputFacts& output) {
  return name_has(output, {"score", "conf", "prob"});
}
bool is_label_name(const OutputFacts& output) {
  return name_has(output, {"label", "class", "cls"}) && !is_score_name(output);
}
bool is_box_name(const OutputFacts& output) { return name_has(output, {"box", "dets"}); }
// Returns whether names say that the outputs precede a graph's non-maximum suppression.
bool is_raw_name(const OutputFacts& output) {
  return has_word(output, {"raw"}) || name_has(output, {"anchor", "multiclass"});
}

// Decides which of the vectors of `rows` elements beside the boxes are scores, and which are class
// numbers.
bool assign_vectors(const ModelFacts& facts, const std::vector<size_t>& vectors, Triple& triple) {
  std::optional<size_t> scores, labels;
  for (const size_t i : vectors) {
    const OutputFacts& output = facts.outputs[i];
    if (!is_float(output.type)) {
      if (labels) return false;
      labels = i;
      triple.by_type = true;
      triple.named += is_label_name(output);
    }
  }
  for (const size_t i : vectors) {
    const OutputFacts& output = facts.outputs[i];
    if (!is_float(output.type)) continue;
    if (!labels && is_label_name(output)) {
      labels = i;
      ++triple.named;
    } else if (!scores && is_score_name(output)) {
      scores = i;
      ++triple.named;
    }
  }
  // Without names, takes boxes, classes, scores: the order of TensorFlow and its Lite form.
  for (const size_t i : vectors) {
    if (i == scores || i == labels) continue;
    if (!labels)
      labels = i;
    else if (!scores)
      scores = i;
  }
  if (!scores || !labels) return false;
  triple.scores = *scores;
  triple.labels = *labels;
  return true;
}

std::optional<Triple> find_triple(const ModelFacts& facts) {
  for (size_t b = 0; b < facts.outputs.size(); ++b) {
    const auto table = table_of(facts.outputs[b]);
    if (!table || table->columns != 4 || is_raw_name(facts.outputs[b])) continue;
    Triple triple;
    triple.boxes = b;
    triple.rows = table->rows;
    triple.named = is_box_name(facts.outputs[b]);
    std::vector<size_t> vectors;
    for (size_t i = 0; i < facts.outputs.size(); ++i) {
      const OutputFacts& output = facts.outputs[i];
      const size_t size = vector_size(output.shape);
      if (i == b || is_raw_name(output)) continue;
      if (size == 1 && triple.rows != 1 && !triple.count) triple.count = i;
      if (size == triple.rows && (triple.rows != 1 || !is_count_name(output))) vectors.push_back(i);
      const Shape points = squeeze_front(output.shape);
      if (points.size() == 3 && static_cast<size_t>(points[0]) == triple.rows && points[2] == 3 &&
          (points[1] == 17 || name_has(output, {"keypoint", "joint", "pose"})) && !triple.points)
        triple.points = i;
      if (points.size() == 2 && static_cast<size_t>(points[0]) == triple.rows &&
          name_has(output, {"keypoints_score"}) && !triple.point_scores)
        triple.point_scores = i;
    }
    if (vectors.size() < 2 || !assign_vectors(facts, vectors, triple)) continue;
    triple.masks = find_mask_grids(facts, triple.rows);
    return triple;
  }
  return std::nullopt;
}

struct TripleHead {
  ModelFacts facts;
  Triple triple;
  bool y_first = false;
  Decided units;
  bool classes_may_swap = false;  // true if no name tells which vector holds the classes
  Decided order;                  // first: as assigned
  Suppression suppression = Suppression::none;
  Decided form;  // for boxes before their suppression; first: corners

  size_t used(std::span<const Tensor> outputs) const {
    if (!triple.count || outputs[*triple.count].empty()) return triple.rows;
    const Floats count(outputs[*triple.count]);
    if (count.size() != 1 || !std::isfinite(count[0])) return triple.rows;
    return static_cast<size_t>(std::clamp(count[0], 0.0f, static_cast<float>(triple.rows)));
  }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    if (outputs.size() < facts.outputs.size())
      throw Error{ErrorCode::device_failed, "an output is missing"};
    const Floats boxes(outputs[triple.boxes]), first(outputs[triple.scores]),
        second(outputs[triple.labels]);
    const size_t rows = std::min({used(outputs), boxes.size() / 4, first.size(), second.size()});
    bool swapped = false;
    if (classes_may_swap) {
      bool scores_whole = true, labels_whole = true;
      for (size_t i = 0; i < rows; ++i) {
        scores_whole = scores_whole && first[i] == std::floor(first[i]);
        labels_whole = labels_whole && second[i] == std::floor(second[i]);
      }
      const Decided::Kind seen = scores_whole == labels_whole ? Decided::open
                                 : labels_whole               ? Decided::first
                                                              : Decided::second;
      swapped = order.settle(seen, Decided::first) == Decided::second;
    }
    const Floats &scores = swapped ? second : first, &labels = swapped ? first : second;
    float reach = 0;
    size_t used_rows = 0, ordered = 0;
    bool turned_round = false;
    std::vector<float> buffer;
    for (size_t i = 0; i < rows; ++i) {
      const float* box = boxes.run(i * 4, 4, buffer);
      float reach_of_box = 0;
      for (int k = 0; k < 4; ++k)
        if (std::isfinite(box[k])) reach_of_box = std::max(reach_of_box, std::fabs(box[k]));
      reach = std::max(reach, reach_of_box);
      const bool is_ordered = box[2] > box[0] && box[3] > box[1];
      used_rows += reach_of_box > 0;
      ordered += reach_of_box > 0 && is_ordered;
      turned_round = turned_round || (!is_ordered && scores[i] >= settings.threshold);
    }
    // Objects are corners; candidates may be centre and size, few of which are ordered as corners
    // are.
    const auto form_seen = used_rows == 0                                ? Decided::open
                           : turned_round || ordered * 4 < used_rows * 3 ? Decided::second
                                                                         : Decided::first;
    const bool centers = suppression != Suppression::none &&
                         form.settle(form_seen, Decided::first) == Decided::second;
    const PixelUnits unit = pixel_units(units, reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    Candidates candidates(settings);
    for (size_t i = 0; i < rows; ++i) {
      const float* box = boxes.run(i * 4, 4, buffer);
      const size_t x = y_first ? 1 : 0, y = 1 - x;
      candidates.expect_probability(scores[i]);
      const float a = box[x] * x_unit, b = box[y] * y_unit, c = box[2 + x] * x_unit,
                  d = box[2 + y] * y_unit;
      if (centers)
        candidates.add_centered(a, b, c, d, scores[i], labels[i], i);
      else
        candidates.add(a, b, c, d, scores[i], labels[i], i);
    }
    std::optional<Floats> masks, points;
    if (triple.masks) masks.emplace(outputs[triple.masks->output]);
    if (triple.points) points.emplace(outputs[*triple.points]);
    const bool logits = triple.masks && mask_logits(*masks);
    const auto complete = [&](const Candidate& kept, Detection& detection) {
      if (masks && (kept.row + 1) * triple.masks->rows * triple.masks->columns <= masks->size())
        detection.mask = grid_mask(*triple.masks, *masks, kept.row, logits, detection, facts.width,
                                   facts.height);
      if (!points) return;
      const size_t each = points->size() / std::max<size_t>(triple.rows, 1);
      const PointShape shape{each / 3, 3, skeleton_for(each / 3)};
      add_points(
          shape, [&](size_t k) { return (*points)[kept.row * each + k]; }, x_unit, y_unit,
          detection);
    };
    finish(settings, suppression, candidates, results, complete);
  }

  static bool mask_logits(const Floats& masks) {
    for (size_t i = 0; i < masks.size(); ++i)
      if (masks[i] < -0.01f || masks[i] > 1.01f) return true;
    return false;
  }
};

// The framework whose form this is, by names and types.
enum class Origin { tensorflow, lite, torchvision, nvidia, nas, other };

Origin origin_of(const ModelFacts& facts, const Triple& triple) {
  const OutputFacts &boxes = facts.outputs[triple.boxes], &labels = facts.outputs[triple.labels];
  if (name_has(boxes, {"tflite_detection", "postprocess", "post_process"})) return Origin::lite;
  const bool float_labels = is_float(labels.type);
  if (name_has(boxes, {"detection_boxes"}))
    return float_labels ? Origin::tensorflow : Origin::nvidia;
  const bool nms_plugin = name_has(boxes, {"nms"});  // TensorRT: x before y
  // The count is a float as well; TensorRT's is an integer.
  if (float_labels && triple.named == 0 && triple.count &&
      is_float(facts.outputs[*triple.count].type) && !nms_plugin)
    return Origin::lite;
  if (name_has(boxes, {"pred_boxes"}) && triple.count) return Origin::nas;
  if (triple.by_type && boxes.shape.size() == 2 && labels.shape.size() == 1 && !triple.count)
    return Origin::torchvision;
  return Origin::other;
}

// Returns whether the model suppresses boxes, if it states that or its form tells: a count of
// objects, the name of an operation, or queries, each of which is an object of its own.
std::optional<bool> suppresses(const ModelFacts& facts, const Triple& triple, Origin origin) {
  for (const char* key : {"nms", "end2end"})
    if (const std::string stated = lower(info(facts, key)); !stated.empty())
      return stated == "true" || stated == "1" || stated == "yes";
  if (origin != Origin::other || triple.count || triple.masks || triple.points) return true;
  if (name_has(facts.outputs[triple.boxes], {"nms"})) return true;
  const auto rows = static_cast<int64_t>(triple.rows);
  for (const int per_cell : {1, 2, 3})
    if (grid_levels(facts, rows, per_cell)) return false;
  for (const std::string& input : facts.input_names)
    if (input.find("orig") != std::string::npos && input.find("size") != std::string::npos)
      return true;
  const std::string type = lower(info(facts, "model_type"));
  for (const char* queries : {"detr", "d-fine", "d_fine", "dfine", "deim"})
    if (type.find(queries) != std::string::npos) return true;
  return std::nullopt;
}

}  // namespace

Match match_boxes_scores_labels(const ModelFacts& facts) {
  const auto triple = find_triple(facts);
  if (!triple) return {Fit::no, "needs boxes [1,N,4], scores [1,N] and class numbers [1,N]", {}};
  TripleHead head;
  head.facts = facts;
  head.triple = *triple;
  head.classes_may_swap = triple->named == 0 && !triple->by_type;
  Match match;
  match.reason = "boxes " + facts.outputs[triple->boxes].name + ", scores " +
                 facts.outputs[triple->scores].name + ", classes " +
                 facts.outputs[triple->labels].name;
  const bool named_labels = is_label_name(facts.outputs[triple->labels]);
  match.fit = triple->named == 3 || name_has(facts.outputs[triple->boxes], {"nms"}) ? Fit::certain
              : triple->by_type || triple->count || (triple->named == 2 && named_labels)
                  ? Fit::likely
                  : Fit::possible;
  match.picture = picture_of(Family::suppressed);
  const Origin origin = origin_of(facts, *triple);
  const auto suppressed = suppresses(facts, *triple, origin);
  if (!suppressed.value_or(false)) {
    head.suppression = suppression_of(facts, Family::deepstream_yolo);
    if (suppressed) {
      match.reason += "; a row for each cell, before suppression";
      match.picture = picture_of(Family::deepstream_yolo);
    } else {
      match.assumptions.push_back(
          "nothing says whether the boxes " + facts.outputs[triple->boxes].name +
          " are suppressed: those of one class that overlap are taken for one object; "
          "iou-threshold=1 keeps them all");
    }
  }
  switch (origin) {
    case Origin::tensorflow:
      head.y_first = true;
      match.from_one = true;
      match.fit = Fit::certain;
      match.reason += "; TensorFlow's: y before x, classes from 1";
      match.picture = picture_of(Family::tensorflow);
      break;
    case Origin::nvidia:
      head.y_first = true;
      match.reason += "; EfficientNMS: y before x";
      match.assumptions.push_back(
          "the boxes " + facts.outputs[triple->boxes].name +
          " are read as y, x, y, x, as TensorFlow's names say; post-process=boxes-scores-labels "
          "reads them as x, y, x, y");
      break;
    case Origin::lite:
      head.y_first = true;
      match.fit = std::max(match.fit, triple->count ? Fit::likely : Fit::possible);
      match.reason += "; TensorFlow Lite's: y before x";
      match.unsure = triple->named == 0;
      if (match.unsure)
        match.assumptions.push_back(
            "no name says in which order the boxes " + facts.outputs[triple->boxes].name +
            " have their sides; they are read as y, x, y, x, as TensorFlow Lite writes them, and "
            "raw "
            "tensors are attached beside; models that name their outputs (boxes, scores, classes) "
            "say it");
      match.picture = picture_of(Family::tensorflow_lite);
      // Its label maps begin with ???, or a background, which the numbers of classes leave out.
      if (!facts.labels.empty() && is_background(facts.labels[0]))
        match.classes = facts.labels.size() - 1;
      break;
    case Origin::torchvision:
      match.from_one = true;
      match.picture = picture_of(Family::torchvision);
      break;
    case Origin::nas:
      match.picture = picture_of(triple->points ? Family::yolo_nas_pose : Family::yolo_nas);
      break;
    case Origin::other:
      match.unsure = triple->named == 0;
      if (match.unsure)
        match.assumptions.push_back(
            "no name says in which order the boxes " + facts.outputs[triple->boxes].name +
            " have their sides; they are read as x, y, x, y, and raw tensors are attached beside; "
            "models that name their outputs (boxes, scores, classes) say it");
      break;
  }
  if (triple->masks) match.reason += ", masks " + facts.outputs[triple->masks->output].name;
  if (triple->points) match.reason += ", key points " + facts.outputs[*triple->points].name;
  match.decode = head;
  return match;
}

}  // namespace clinfer
