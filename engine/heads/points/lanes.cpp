// Reads lanes of a road. Ultra-Fast-Lane-Detection has, for some rows and each lane, scores of
// places across the picture, the last of which means that the lane does not cross the row (Z. Qin
// and others, "Ultra Fast Structure-aware Deep Lane Detection", 2020). LSTR has coefficients of
// curves (R. Liu and others, "End-to-end Lane Shape Prediction with Transformers", 2021). A lane is
// an object whose points are its line.
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"

namespace clinfer {
namespace {

// Rows are in pixels of 288, from the top.
struct LaneForm {
  int64_t places, rows;
  float first, step;
  const char* data;
};
constexpr float kStatedHeight = 288;
constexpr size_t kFewestLanePoints = 3;  // a line with fewer is dropped
constexpr LaneForm kForms[] = {{100, 56, 64, 4, "TuSimple"}, {200, 18, 121, 9.765f, "CULane"}};

struct LaneHead {
  ModelFacts facts;
  LaneForm form;
  size_t lanes = 0;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const auto places = static_cast<size_t>(form.places), rows = static_cast<size_t>(form.rows);
    const Floats values(output_of(outputs, 0, (places + 1) * rows * lanes));
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    for (size_t lane = 0; lane < lanes; ++lane) {
      Detection line;
      line.x_min = width, line.y_min = height;
      double sure = 0;
      for (size_t row = 0; row < rows; ++row) {
        const auto at = [&](size_t place) {
          return static_cast<double>(values[(place * rows + row) * lanes + lane]);
        };
        double top = at(0), sum = 0, weighted = 0;
        for (size_t place = 1; place <= places; ++place) top = std::max(top, at(place));
        if (!std::isfinite(top) || top == at(places)) continue;
        for (size_t place = 0; place < places; ++place) {
          const double share = std::exp(at(place) - top);
          sum += share;
          weighted += share * static_cast<double>(place);
        }
        // Places are spread from the first to the last column and count from 1; a point is the last
        // pixel before its place, as the authors draw it.
        const double step = (static_cast<double>(width) - 1) / static_cast<double>(places - 1);
        const auto x = static_cast<float>((weighted / sum + 1) * step - 1);
        const float y =
            (form.first + form.step * static_cast<float>(row)) / kStatedHeight * height - 1;
        if (!std::isfinite(x)) continue;
        sure += sum / (sum + std::exp(at(places) - top));
        line.landmarks.push_back({x, y});
        line.x_min = std::min(line.x_min, x), line.x_max = std::max(line.x_max, x);
        line.y_min = std::min(line.y_min, y), line.y_max = std::max(line.y_max, y);
      }
      if (line.landmarks.size() < kFewestLanePoints) continue;
      line.confidence = static_cast<float>(sure / static_cast<double>(line.landmarks.size()));
      line.x_max = std::max(line.x_max, line.x_min + 1);  // a line straight up
      line.label_id = static_cast<int>(lane);
      line.label = "lane";
      line.skeleton = Skeleton::other;
      if (line.confidence >= settings.threshold) results.detections.push_back(std::move(line));
    }
  }
};

// Logits of "no lane" and "lane", and for each query the rows between which the lane runs and six
// coefficients of its curve, all in shares of the picture.
struct CurveHead {
  static constexpr size_t kNumbers = 8, kPoints = 50;
  ModelFacts facts;
  size_t logits = 0, curves = 0, queries = 0;  // indices of outputs; number of lanes at most

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats scores(output_of(outputs, logits, queries * 2));
    const Floats numbers(output_of(outputs, curves, queries * kNumbers));
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    for (size_t query = 0; query < queries; ++query) {
      const float sure = sigmoid(scores[2 * query + 1] - scores[2 * query]);
      if (!(sure >= settings.threshold)) continue;
      const auto c = [&](size_t k) { return numbers[query * kNumbers + k]; };
      Detection line;
      line.x_min = width, line.y_min = height;
      for (size_t i = 0; i < kPoints; ++i) {
        const float y = c(0) + (c(1) - c(0)) * static_cast<float>(i) / (kPoints - 1);
        const float from = y - c(3);  // the horizon, where lanes meet
        const float x = c(2) / (from * from) + c(4) / from + c(5) + c(6) * y - c(7);
        if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) continue;
        const Point point{x * width, y * height};
        line.landmarks.push_back(point);
        line.x_min = std::min(line.x_min, point.x), line.x_max = std::max(line.x_max, point.x);
        line.y_min = std::min(line.y_min, point.y), line.y_max = std::max(line.y_max, point.y);
      }
      if (line.landmarks.size() < kFewestLanePoints) continue;
      line.confidence = sure;
      line.x_max = std::max(line.x_max, line.x_min + 1);  // a line straight up
      line.y_max = std::max(line.y_max, line.y_min + 1);
      line.label = "lane";
      line.skeleton = Skeleton::other;
      results.detections.push_back(std::move(line));
    }
    std::stable_sort(
        results.detections.begin(), results.detections.end(),
        [](const Detection& a, const Detection& b) { return a.confidence > b.confidence; });
  }
};

// Finds LSTR's outputs by their names; its exports also have those of the decoder's first layers
// and weights.
Match match_curves(const ModelFacts& facts) {
  std::optional<size_t> logits, curves;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto table = table_of(facts.outputs[i]);
    if (!table) continue;
    if (table->columns == 2 && !logits && name_has(facts.outputs[i], {"logit"})) logits = i;
    if (table->columns == CurveHead::kNumbers && !curves && name_has(facts.outputs[i], {"curve"}))
      curves = i;
  }
  if (!logits || !curves ||
      table_of(facts.outputs[*logits])->rows != table_of(facts.outputs[*curves])->rows)
    return {};
  Match match;
  match.fit = Fit::certain;
  const size_t queries = table_of(facts.outputs[*curves])->rows;
  match.reason = "curves of up to " + std::to_string(queries) + " lanes";
  match.decode = CurveHead{facts, *logits, *curves, queries};
  match.picture = picture_of(Family::lane_curves);
  match.class_names = {"lane"};
  return match;
}

}  // namespace

Match match_lanes(const ModelFacts& facts) {
  if (Match curves = match_curves(facts); curves.fit != Fit::no) return curves;
  const char* needs =
      "needs scores of places [1,101,56,lanes] or [1,201,18,lanes], or pred_logits [1,N,2] and "
      "pred_curves [1,N,8]";
  if (facts.outputs.size() != 1 || !is_float_output(facts.outputs[0])) return {Fit::no, needs, {}};
  const Shape shape = squeeze_front(facts.outputs[0].shape);
  for (const LaneForm& form : kForms) {
    if (shape.size() != 3 || shape[0] != form.places + 1 || shape[1] != form.rows || shape[2] > 8)
      continue;
    Match match;
    match.fit = Fit::certain;
    match.reason = std::to_string(shape[2]) + " lanes in " + std::to_string(form.rows) +
                   " rows, as trained on " + form.data;
    match.decode = LaneHead{facts, form, static_cast<size_t>(shape[2])};
    match.picture = picture_of(Family::lanes);
    match.class_names = {"lane"};
    return match;
  }
  return {Fit::no, needs, {}};
}

}  // namespace clinfer
