// Reads faces with a set of outputs for each stride: SCRFD (distances from anchor centres) and
// YuNet (cls, obj, bbox, kps), with five points if there are outputs for them.
#include <algorithm>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/boxes/grids.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

// Outputs [N,M] or [1,N,M] of floats, by their number of columns.
struct LevelOutput {
  size_t output = 0, rows = 0, columns = 0;
};

std::vector<LevelOutput> tables_of(const ModelFacts& facts) {
  std::vector<LevelOutput> tables;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto table = table_of(facts.outputs[i]);
    if (!table) return {};
    tables.push_back({i, table->rows, table->columns});
  }
  return tables;
}

struct ScrfdLevel {
  size_t scores = 0, boxes = 0, rows = 0;
  std::optional<size_t> points;
  size_t columns = 0, anchors = 0;
  float stride = 0;
};

// Finds levels of strides 8, 16, 32 (or up to 128) with one or two anchors in each cell: scores
// [N,1], boxes [N,4] and, in all levels or none, points [N,10].
std::vector<ScrfdLevel> scrfd_levels(const ModelFacts& facts) {
  const std::vector<LevelOutput> tables = tables_of(facts);
  for (const auto& [levels, anchors] : {std::pair<size_t, size_t>{3, 2}, {3, 1}, {5, 1}}) {
    if (tables.size() != levels * 2 && tables.size() != levels * 3) continue;
    std::vector<ScrfdLevel> found;
    for (size_t level = 0; level < levels; ++level) {
      const int stride = 8 << level;
      ScrfdLevel made;
      made.columns = static_cast<size_t>((facts.width + stride - 1) / stride);
      made.anchors = anchors;
      made.stride = static_cast<float>(stride);
      made.rows =
          made.columns * static_cast<size_t>((facts.height + stride - 1) / stride) * anchors;
      int parts = 0;
      for (const LevelOutput& table : tables) {
        if (table.rows != made.rows) continue;
        if (table.columns == 1) made.scores = table.output, parts |= 1;
        if (table.columns == 4) made.boxes = table.output, parts |= 2;
        if (table.columns == 10) made.points = table.output;
      }
      if (parts == 3 && made.points.has_value() == (tables.size() == levels * 3))
        found.push_back(made);
    }
    if (found.size() == levels) return found;
  }
  return {};
}

void decode_scrfd(const std::vector<ScrfdLevel>& levels, std::span<const Tensor> outputs,
                  const DecodeSettings& settings, Suppression suppression, Results& results) {
  Candidates candidates(settings);
  std::vector<Floats> points;
  size_t first = 0;  // the level's first row among all
  std::vector<size_t> starts;
  std::vector<float> buffer;
  const auto center = [](const ScrfdLevel& level, size_t row) {
    const size_t cell = row / level.anchors;
    return Point{static_cast<float>(cell % level.columns) * level.stride,
                 static_cast<float>(cell / level.columns) * level.stride};
  };
  for (const ScrfdLevel& level : levels) {
    const Floats scores(output_of(outputs, level.scores, level.rows));
    const Floats boxes(output_of(outputs, level.boxes, level.rows * 4));
    if (level.points) points.emplace_back(output_of(outputs, *level.points, level.rows * 10));
    for (size_t i = 0; i < level.rows; ++i) {
      const float score = scores[i];
      candidates.expect_probability(score);
      if (!(score >= settings.threshold)) continue;
      const float* side = boxes.run(i * 4, 4, buffer);
      const Point at = center(level, i);
      candidates.add(at.x - side[0] * level.stride, at.y - side[1] * level.stride,
                     at.x + side[2] * level.stride, at.y + side[3] * level.stride, score, 0,
                     first + i);
    }
    starts.push_back(first);
    first += level.rows;
  }
  finish(settings, suppression, candidates, results,
         [&](const Candidate& kept, Detection& detection) {
           if (points.empty()) return;
           size_t l = levels.size() - 1;
           while (starts[l] > kept.row) --l;
           const size_t row = kept.row - starts[l];
           const Point at = center(levels[l], row);
           detection.skeleton = Skeleton::face5;
           for (size_t k = 0; k < 5; ++k)
             detection.landmarks.push_back(
                 {at.x + points[l][row * 10 + 2 * k] * levels[l].stride,
                  at.y + points[l][row * 10 + 2 * k + 1] * levels[l].stride});
         });
}

struct YunetLevel {
  size_t columns = 0, rows = 0;
  float stride = 0;
  size_t classes = 0, objects = 0, boxes = 0;  // indices of outputs
  std::optional<size_t> points;
};

std::vector<YunetLevel> yunet_levels(const ModelFacts& facts) {
  const std::vector<LevelOutput> tables = tables_of(facts);
  std::vector<YunetLevel> levels;
  for (const int stride : {8, 16, 32, 64}) {
    YunetLevel level;
    level.columns = static_cast<size_t>((facts.width + stride - 1) / stride);
    level.rows = static_cast<size_t>((facts.height + stride - 1) / stride);
    level.stride = static_cast<float>(stride);
    int parts = 0;
    for (const LevelOutput& table : tables) {
      if (table.rows != level.columns * level.rows) continue;
      const OutputFacts& output = facts.outputs[table.output];
      // Takes the first of several outputs that are alike.
      const auto take = [&](size_t& place, int part) {
        if ((parts & part) == 0) place = table.output;
        parts |= part;
      };
      if (table.columns == 4) take(level.boxes, 1);
      if (table.columns == 10 && !level.points) level.points = table.output;
      if (table.columns == 1 && name_has(output, {"obj"})) take(level.objects, 2);
      if (table.columns == 1 && name_has(output, {"cls"})) take(level.classes, 4);
    }
    if (parts == 7) levels.push_back(level);
  }
  return levels;
}

void decode_yunet(const std::vector<YunetLevel>& levels, std::span<const Tensor> outputs,
                  const DecodeSettings& settings, Suppression suppression, Results& results) {
  Candidates candidates(settings);
  std::vector<Floats> points;
  std::vector<size_t> starts;
  std::vector<float> buffer;
  size_t first = 0;
  for (const YunetLevel& level : levels) {
    const size_t cells = level.columns * level.rows;
    const Floats classes(output_of(outputs, level.classes, cells));
    const Floats objects(output_of(outputs, level.objects, cells));
    const Floats boxes(output_of(outputs, level.boxes, cells * 4));
    if (level.points) points.emplace_back(output_of(outputs, *level.points, cells * 10));
    for (size_t i = 0; i < cells; ++i) {
      candidates.expect_probability(classes[i]);
      candidates.expect_probability(objects[i]);
      const float score =
          std::sqrt(std::clamp(classes[i], 0.0f, 1.0f) * std::clamp(objects[i], 0.0f, 1.0f));
      if (!(score >= settings.threshold)) continue;
      const float* box = boxes.run(i * 4, 4, buffer);
      candidates.add_centered((static_cast<float>(i % level.columns) + box[0]) * level.stride,
                              (static_cast<float>(i / level.columns) + box[1]) * level.stride,
                              std::exp(box[2]) * level.stride, std::exp(box[3]) * level.stride,
                              score, 0, first + i);
    }
    starts.push_back(first);
    first += cells;
  }
  finish(settings, suppression, candidates, results,
         [&](const Candidate& kept, Detection& detection) {
           if (points.size() != levels.size()) return;
           size_t l = levels.size() - 1;
           while (starts[l] > kept.row) --l;
           const size_t row = kept.row - starts[l];
           const YunetLevel& level = levels[l];
           detection.skeleton = Skeleton::face5;
           for (size_t k = 0; k < 5; ++k)
             detection.landmarks.push_back(
                 {(static_cast<float>(row % level.columns) + points[l][row * 10 + 2 * k]) *
                      level.stride,
                  (static_cast<float>(row / level.columns) + points[l][row * 10 + 2 * k + 1]) *
                      level.stride});
         });
}

}  // namespace

Match match_scrfd(const ModelFacts& facts) {
  if (Match maps = match_scrfd_maps(facts); maps.fit != Fit::no) return maps;
  const std::vector<ScrfdLevel> levels = scrfd_levels(facts);
  if (levels.empty())
    return {Fit::no, "needs scores [N,1], boxes [N,4] and maybe points [N,10] at each level", {}};
  Match match;
  match.decode = [levels, suppression = suppression_of(facts, Family::scrfd)](
                     std::span<const Tensor> outputs, const DecodeSettings& settings,
                     Results& results) {
    decode_scrfd(levels, outputs, settings, suppression, results);
  };
  match.reason = std::to_string(levels.size()) + " levels of scores and distances" +
                 (levels[0].points ? " and five points" : "");
  // With one anchor in each cell, other networks have such outputs as well.
  match.fit = levels[0].anchors == 2 ? Fit::certain : Fit::likely;
  match.picture = picture_of(Family::scrfd);
  match.classes = 1;
  match.class_names = {"face"};
  return match;
}

Match match_yunet(const ModelFacts& facts) {
  const std::vector<YunetLevel> levels = yunet_levels(facts);
  if (levels.empty()) return {Fit::no, "needs cls, obj [1,N,1] and bbox [1,N,4] at each level", {}};
  Match match;
  match.decode = [levels, suppression = suppression_of(facts, Family::yunet)](
                     std::span<const Tensor> outputs, const DecodeSettings& settings,
                     Results& results) {
    decode_yunet(levels, outputs, settings, suppression, results);
  };
  const auto with_points = std::count_if(levels.begin(), levels.end(), [](const YunetLevel& level) {
    return level.points.has_value();
  });
  match.reason = "cls, obj and bbox at " + std::to_string(levels.size()) + " levels" +
                 (with_points == 0 ? "" : ", five points at " + std::to_string(with_points));
  match.fit = Fit::certain;
  match.picture = picture_of(Family::yunet);
  match.classes = 1;
  match.class_names = {"face"};
  return match;
}

}  // namespace clinfer
