// Reads faces in maps at strides 8, 16 and 32 with two anchors in each cell: RetinaFace as
// InsightFace exports it (class probabilities, offsets to square boxes, points), and SCRFD before
// its rows are joined (probabilities, distances from the cell's corner, points).
#include <array>

#include "engine/heads/base/conventions.h"
#include "engine/heads/boxes/grids.h"

namespace clinfer {
namespace {

constexpr size_t kFaceAnchors = 2, kFacePoints = 5;

struct FaceLevel {
  float stride = 0;
  Map scores, boxes;
  std::optional<Map> points;
};

// Returns the maps of three levels with this number of score channels; empty if an output does not
// belong to them.
std::vector<FaceLevel> face_levels(const ModelFacts& facts, size_t score_channels) {
  std::vector<FaceLevel> levels;
  size_t used = 0;
  for (const int stride : {8, 16, 32}) {
    FaceLevel level;
    level.stride = static_cast<float>(stride);
    int parts = 0;
    for (const Map& map : maps_of(facts, stride)) {
      if (map.channels == score_channels)
        level.scores = map, parts |= 1;
      else if (map.channels == kFaceAnchors * 4)
        level.boxes = map, parts |= 2;
      else if (map.channels == kFaceAnchors * kFacePoints * 2)
        level.points = map;
      else
        return {};
      ++used;
    }
    if (parts != 3) return {};
    levels.push_back(level);
  }
  const size_t each = levels[0].points ? 3 : 2;
  return used == facts.outputs.size() && used == each * levels.size() ? levels
                                                                      : std::vector<FaceLevel>();
}

// The source of a candidate.
struct FaceRow {
  size_t level = 0, cell = 0, anchor = 0;
};

struct FaceMaps {
  std::vector<FaceLevel> levels;
  Suppression suppression = Suppression::per_class;
  // True: relative to square anchors, in their sizes; false: distances in strides.
  bool offsets = false;
  Decided squashed;

  // Returns the side of InsightFace's anchors: squares of 512 and 256, 128 and 64, 32 and 16
  // pixels, counted from their first to their last pixel.
  static float side_of(const FaceLevel& level, size_t anchor) {
    return level.stride * (anchor == 0 ? (level.stride == 8    ? 4.0f
                                          : level.stride == 16 ? 8.0f
                                                               : 16.0f)
                                       : (level.stride == 8    ? 2.0f
                                          : level.stride == 16 ? 4.0f
                                                               : 8.0f));
  }
  Point origin(const FaceLevel& level, size_t cell) const {
    const float middle = offsets ? 7.5f : 0;
    return {static_cast<float>(cell % level.boxes.columns) * level.stride + middle,
            static_cast<float>(cell / level.boxes.columns) * level.stride + middle};
  }

  void add(const FaceLevel& level, const Floats& boxes, size_t cell, size_t anchor, float score,
           size_t row, Candidates& candidates) const {
    const Point at = origin(level, cell);
    const auto value = [&](size_t k) { return boxes[level.boxes.at(4 * anchor + k, cell)]; };
    if (!offsets)
      return candidates.add(at.x - value(0) * level.stride, at.y - value(1) * level.stride,
                            at.x + value(2) * level.stride, at.y + value(3) * level.stride, score,
                            0, row);
    const float side = side_of(level, anchor);
    candidates.add_centered(at.x + value(0) * side, at.y + value(1) * side,
                            std::exp(value(2)) * side - 1, std::exp(value(3)) * side - 1, score, 0,
                            row);
  }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    Candidates candidates(settings);
    std::vector<FaceRow> rows;
    std::vector<Floats> points;
    std::vector<Floats> scores;
    bool logits = false;
    for (const FaceLevel& level : levels) {
      scores.emplace_back(output_of(outputs, level.scores.output, level.scores.elements()));
      logits = logits || has_logits(scores.back());
    }
    logits = squashed.settle(logits ? Decided::second : Decided::first, Decided::first) ==
             Decided::second;
    for (size_t l = 0; l < levels.size(); ++l) {
      const FaceLevel& level = levels[l];
      const Floats boxes(output_of(outputs, level.boxes.output, level.boxes.elements()));
      if (level.points)
        points.emplace_back(output_of(outputs, level.points->output, level.points->elements()));
      // With four channels, the first two are the background's.
      const size_t first = level.scores.channels - kFaceAnchors;
      for (size_t anchor = 0; anchor < kFaceAnchors; ++anchor)
        for (size_t cell = 0; cell < level.boxes.cells(); ++cell) {
          const float value = scores[l][level.scores.at(first + anchor, cell)];
          const float score = logits ? sigmoid(value) : value;
          if (!(score >= settings.threshold)) continue;
          add(level, boxes, cell, anchor, score, rows.size(), candidates);
          rows.push_back({l, cell, anchor});
        }
    }
    finish(settings, suppression, candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             if (points.empty()) return;
             const auto [l, cell, anchor] = rows[kept.row];
             const FaceLevel& level = levels[l];
             const Point at = origin(level, cell);
             const float unit = offsets ? side_of(level, anchor) : level.stride;
             const auto value = [&, a = anchor, c = cell, of = l](size_t k) {
               return points[of][level.points->at(2 * kFacePoints * a + k, c)] * unit;
             };
             detection.skeleton = Skeleton::face5;
             for (size_t k = 0; k < kFacePoints; ++k)
               detection.landmarks.push_back({at.x + value(2 * k), at.y + value(2 * k + 1)});
           });
  }
};

Match match_maps(const ModelFacts& facts, bool offsets) {
  const std::vector<FaceLevel> levels =
      face_levels(facts, offsets ? 2 * kFaceAnchors : kFaceAnchors);
  if (levels.empty()) return {};
  const Family family = offsets ? Family::insightface_retinaface : Family::scrfd;
  Match match;
  match.decode = FaceMaps{levels, suppression_of(facts, family), offsets, {}};
  match.reason = std::string("maps of face scores, ") + (offsets ? "offsets" : "distances") +
                 (levels[0].points ? " and five points" : "") + " at strides 8, 16 and 32";
  match.fit = Fit::certain;
  match.picture = picture_of(family);
  match.classes = 1;
  match.class_names = {"face"};
  return match;
}

}  // namespace

Match match_retinaface_maps(const ModelFacts& facts) { return match_maps(facts, true); }

Match match_scrfd_maps(const ModelFacts& facts) { return match_maps(facts, false); }

}  // namespace clinfer
