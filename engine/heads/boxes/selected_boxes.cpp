// Reads boxes and scores of all anchors together with the numbers of those that a suppression
// inside the graph has picked, as ONNX's NonMaxSuppression gives them: rows of image, class, box.
// YOLOv3 of the ONNX model zoo has these, and other detectors that were converted from Keras or end
// in that operation.
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"

namespace clinfer {
namespace {

struct Selection {
  size_t boxes = 0, scores = 0, picked = 0;
  size_t rows = 0, classes = 0;
};

std::optional<Selection> find_selection(const ModelFacts& facts) {
  Selection found;
  std::optional<size_t> picked, boxes;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    const Shape shape = squeeze_front(output.shape);
    if (shape.size() != 2 && output.shape.size() != 2) continue;
    if (!is_float(output.type) && output.shape.back() == 3 && !picked) picked = i;
    if (is_float_output(output) && shape.size() == 2 && shape[1] == 4 && !boxes) boxes = i;
  }
  if (!picked || !boxes) return {};
  found.picked = *picked;
  found.boxes = *boxes;
  found.rows = static_cast<size_t>(squeeze_front(facts.outputs[*boxes].shape)[0]);
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const Shape& shape = facts.outputs[i].shape;
    if (i == *boxes || !is_float_output(facts.outputs[i]) || shape.size() < 2 ||
        static_cast<size_t>(shape.back()) != found.rows)
      continue;
    // Three numbers for three boxes with a score each are their classes.
    if (found.rows == 3 && count(shape) == 3 && count(facts.outputs[*picked].shape) == 3) return {};
    found.scores = i;
    found.classes = static_cast<size_t>(count(shape)) / found.rows;
    return found;
  }
  return {};
}

struct SelectionHead {
  ModelFacts facts;
  Selection found;
  bool y_first = false;
  Decided units;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats boxes(output_of(outputs, found.boxes, found.rows * 4)),
        scores(output_of(outputs, found.scores, found.rows * found.classes));
    if (found.picked >= outputs.size())
      throw Error{ErrorCode::device_failed, "an output is missing"};
    const std::vector<int64_t> picked = outputs[found.picked].to_ints();
    float reach = 0;
    for (size_t i = 0; i < boxes.size(); ++i)
      if (std::isfinite(boxes[i])) reach = std::max(reach, std::fabs(boxes[i]));
    const PixelUnits unit = pixel_units(units, reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    Candidates candidates(settings);
    for (size_t i = 0; i + 3 <= picked.size(); i += 3) {
      const int64_t image = picked[i], label = picked[i + 1], row = picked[i + 2];
      if (image < 0) break;  // the remaining rows are unused
      if (image != 0) continue;
      if (label < 0 || row < 0 || label >= static_cast<int64_t>(found.classes) ||
          row >= static_cast<int64_t>(found.rows)) {
        results.contradiction = "a picked row names class " + std::to_string(label) + " and box " +
                                std::to_string(row) + ", which there are not";
        return;
      }
      const auto at = static_cast<size_t>(row);
      const float score = scores[static_cast<size_t>(label) * found.rows + at];
      candidates.expect_probability(score);
      const size_t x = y_first ? 1 : 0, y = 1 - x;
      candidates.add(boxes[4 * at + x] * x_unit, boxes[4 * at + y] * y_unit,
                     boxes[4 * at + 2 + x] * x_unit, boxes[4 * at + 2 + y] * y_unit, score,
                     static_cast<double>(label), at);
    }
    finish(settings, Suppression::none, candidates, results);
  }
};

}  // namespace

Match match_selected_boxes(const ModelFacts& facts) {
  const auto found = find_selection(facts);
  if (!found)
    return {
        Fit::no, "needs boxes [1,N,4], scores [1,C,N] and integers [K,3] that pick among them", {}};
  const OutputFacts& boxes = facts.outputs[found->boxes];
  // Keras' YOLO gets the picture's size, and gives its boxes in it, y before x.
  const bool keras =
      name_has(boxes, {"yolonms", "yolo_nms"}) ||
      std::any_of(facts.input_names.begin(), facts.input_names.end(), [](const std::string& name) {
        return name.find("image_shape") != std::string::npos;
      });
  SelectionHead head{facts, *found, keras, {}};
  Match match;
  match.fit = Fit::certain;
  match.reason = "boxes " + boxes.name + ", scores " + facts.outputs[found->scores].name +
                 ", picked by " + facts.outputs[found->picked].name +
                 (keras ? "; Keras' YOLO: y before x" : "");
  match.classes = found->classes;
  match.decode = head;
  if (keras) {
    match.picture = picture_of(Family::keras_yolo);
  } else {
    match.assumptions.push_back(
        "the boxes " + boxes.name +
        " are read as x, y, x, y, as PyTorch's exporters hand them to NonMaxSuppression");
  }
  return match;
}

}  // namespace clinfer
