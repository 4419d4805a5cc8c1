// Reads rows of objects whose columns the output's name lists, as PINTO's model zoo exports
// detectors with their suppression: "batchno_classid_score_x1y1x2y2".
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

struct Columns {
  std::optional<size_t> image, label, score, box, points;
  bool centers = false, y_first = false;
  size_t point_count = 0, count = 0;  // numbers of columns
};

// Returns the columns that a name lists, if there are `count`; else nullopt.
std::optional<Columns> columns_of(const std::string& name, size_t count) {
  Columns columns;
  const std::string text = lower(name);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("_-: ", at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    const auto is = [&](std::initializer_list<const char*> words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    std::optional<size_t>* place = is({"batchno", "batchid", "imageid"})          ? &columns.image
                                   : is({"classid", "classno", "labelid"})        ? &columns.label
                                   : is({"score", "conf", "confidence"})          ? &columns.score
                                   : is({"landms", "landmarks", "keypoints"})     ? &columns.points
                                   : is({"x1y1x2y2", "xyxy", "y1x1y2x2", "yxyx"}) ? &columns.box
                                   : is({"cxcywh"})                               ? &columns.box
                                                                                  : nullptr;
    if (place == nullptr || *place) return std::nullopt;
    *place = columns.count;
    if (place == &columns.box) {
      columns.y_first = word[0] == 'y';
      columns.centers = word[0] == 'c';
      columns.count += 4;
    } else if (place == &columns.points) {
      if (count <= columns.count || (count - columns.count) % 2 != 0) return std::nullopt;
      columns.point_count = (count - columns.count) / 2;
      columns.count = count;
    } else {
      ++columns.count;
    }
  }
  if (!columns.score || !columns.box || columns.count != count) return std::nullopt;
  return columns;
}

struct NamedRows {
  ModelFacts facts;
  size_t output = 0;
  Columns columns;
  Decided units;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    if (output >= outputs.size()) throw Error{ErrorCode::device_failed, "the output is missing"};
    const Floats values(outputs[output]);
    const size_t width = columns.count, rows = values.size() / width, box = *columns.box;
    float reach = 0;
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < 4; ++k)
        if (const float v = values[i * width + box + k]; std::isfinite(v))
          reach = std::max(reach, std::fabs(v));
    const PixelUnits unit = pixel_units(units, reach, facts);
    const float x_unit = unit.x, y_unit = unit.y;
    const size_t x = box + (columns.y_first ? 1 : 0), y = box + (columns.y_first ? 0 : 1);
    Candidates candidates(settings);
    std::vector<float> buffer;
    for (size_t i = 0; i < rows; ++i) {
      const float* row = values.run(i * width, width, buffer);
      // Skips rows of another image, or of none.
      if (columns.image && !(row[*columns.image] >= 0 && row[*columns.image] < 1)) continue;
      const float score = row[*columns.score];
      candidates.expect_probability(score);
      const float a = row[x] * x_unit, b = row[y] * y_unit, c = row[x + 2] * x_unit,
                  d = row[y + 2] * y_unit;
      const double label = columns.label ? static_cast<double>(row[*columns.label]) : 0;
      if (columns.centers)
        candidates.add_centered(a, b, c, d, score, label, i);
      else
        candidates.add(a, b, c, d, score, label, i);
    }
    finish(settings, Suppression::none, candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             if (!columns.points) return;
             const float* row =
                 values.run(kept.row * width + *columns.points, 2 * columns.point_count, buffer);
             detection.skeleton = skeleton_for(columns.point_count);
             for (size_t k = 0; k < columns.point_count; ++k)
               detection.landmarks.push_back({row[2 * k] * x_unit, row[2 * k + 1] * y_unit});
           });
  }
};

}  // namespace

bool lists_columns(const OutputFacts& output, size_t columns) {
  return columns_of(output.name, columns).has_value();
}

Match match_named_rows(const ModelFacts& facts) {
  const char* needs = "needs one output [N,C] whose name lists its columns";
  if (facts.outputs.size() != 1) return {Fit::no, needs, {}};
  const auto table = table_of(facts.outputs[0]);
  if (!table) return {Fit::no, needs, {}};
  const auto columns = columns_of(facts.outputs[0].name, table->columns);
  if (!columns) return {Fit::no, needs, {}};
  Match match;
  match.fit = Fit::certain;
  match.reason = "rows of " + facts.outputs[0].name;
  match.decode = NamedRows{facts, 0, *columns, {}};
  // The rows are a converter's; the file's name may still tell the network.
  const std::string name = lower(facts.name);
  match.picture = picture_of(name.find("yolox") != std::string::npos  ? Family::yolox
                             : name.find("yolo") != std::string::npos ? Family::yolo
                                                                      : Family::suppressed);
  return match;
}

}  // namespace clinfer
