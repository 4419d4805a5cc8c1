// Anchor-free heads with a set of outputs a level: NanoDet (distance distributions) and YuNet
// (faces).
#include <algorithm>

#include "engine/heads/common.h"
#include "engine/heads/heads.h"

namespace clinfer {
namespace {

// Rows [1,N,M] grouped by N, largest N (finest level) first.
struct LevelOutputs {
  int64_t cells = 0;
  std::vector<size_t> outputs;
};

std::vector<LevelOutputs> group_by_cells(const ModelFacts& facts) {
  std::vector<LevelOutputs> levels;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const Shape& shape = facts.outputs[i].shape;
    if (shape.size() != 3 || shape[0] != 1 || !is_float_output(facts.outputs[i])) return {};
    auto found = std::find_if(levels.begin(), levels.end(),
                              [&](const LevelOutputs& level) { return level.cells == shape[1]; });
    if (found == levels.end()) found = levels.insert(levels.end(), LevelOutputs{shape[1], {}});
    found->outputs.push_back(i);
  }
  std::sort(levels.begin(), levels.end(),
            [](const LevelOutputs& a, const LevelOutputs& b) { return a.cells > b.cells; });
  return levels;
}

// The grid of a level of `cells` cells, by the strides in use.
std::optional<GridLevel> grid_of(const ModelFacts& facts, int64_t cells) {
  for (int stride : {4, 8, 16, 32, 64, 128}) {
    const int columns = (facts.width + stride - 1) / stride;
    const int rows = (facts.height + stride - 1) / stride;
    if (static_cast<int64_t>(columns) * rows == cells)
      return GridLevel{columns, rows, static_cast<float>(stride), static_cast<float>(stride)};
  }
  return std::nullopt;
}

struct NanodetLevel {
  GridLevel grid;
  size_t scores = 0, distances = 0;  // outputs; the same one where both lie in one row
  size_t classes = 0, bins = 0;
  size_t score_width = 0, distance_width = 0, distance_at = 0;  // of a row, elements
  float center = 0.5f;                                          // of a cell's reference point
};

// Expected value of a distribution given by logits: the distance in steps.
float expected(const float* logits, size_t bins) {
  float top = logits[0], sum = 0, mean = 0;
  for (size_t k = 1; k < bins; ++k) top = std::max(top, logits[k]);
  for (size_t k = 0; k < bins; ++k) {
    const float weight = std::exp(logits[k] - top);
    sum += weight;
    mean += weight * static_cast<float>(k);
  }
  return mean / sum;
}

void decode_nanodet(const std::vector<NanodetLevel>& levels, std::span<const Tensor> outputs,
                    const DecodeSettings& settings, Results& results) {
  std::vector<Detection> found;
  for (const NanodetLevel& level : levels) {
    const size_t cells =
        static_cast<size_t>(level.grid.columns) * static_cast<size_t>(level.grid.rows);
    Floats scores(output_of(outputs, level.scores, cells * level.score_width));
    const Floats distances(output_of(outputs, level.distances, cells * level.distance_width));
    std::vector<float> buffer;
    bool logits = false;
    for (size_t i = 0; i < cells && !logits; ++i)
      for (size_t k = 0; k < level.classes; ++k) {
        const float v = scores.data()[i * level.score_width + k];
        logits = logits || v < -0.01f || v > 1.01f;
      }
    for (size_t i = 0; i < cells; ++i) {
      const float* row = scores.data() + i * level.score_width;
      size_t best = 0;
      for (size_t k = 1; k < level.classes; ++k)
        if (row[k] > row[best]) best = k;
      const float score = logits ? sigmoid(row[best]) : row[best];
      if (!(score >= settings.threshold)) continue;
      const float x =
          (static_cast<float>(i % static_cast<size_t>(level.grid.columns)) + level.center) *
          level.grid.x_step;
      const float y =
          (static_cast<float>(i / static_cast<size_t>(level.grid.columns)) + level.center) *
          level.grid.y_step;
      const float* side =
          distances.run(i * level.distance_width + level.distance_at, 4 * level.bins, buffer);
      const float left = expected(side, level.bins) * level.grid.x_step;
      const float top = expected(side + level.bins, level.bins) * level.grid.y_step;
      const float right = expected(side + 2 * level.bins, level.bins) * level.grid.x_step;
      const float bottom = expected(side + 3 * level.bins, level.bins) * level.grid.y_step;
      add_detection(settings, x - left, y - top, x + right, y + bottom, score,
                    static_cast<int64_t>(best), found);
    }
  }
  finish_detections(settings, true, found, results);
}

// Pairs of scores [1,N,C] and distances [1,N,4*bins] at each level.
std::vector<NanodetLevel> nanodet_pairs(const ModelFacts& facts) {
  std::vector<NanodetLevel> levels;
  int64_t box_columns = 0, class_columns = 0;
  for (const LevelOutputs& group : group_by_cells(facts)) {
    const auto grid = grid_of(facts, group.cells);
    if (!grid || group.outputs.size() != 2) return {};
    size_t scores = group.outputs[0], distances = group.outputs[1];
    auto columns = [&](size_t i) { return facts.outputs[i].shape[2]; };
    // Distances have 8 bins a side in the published networks; by name where both could be either.
    auto is_distance = [&](size_t i) { return columns(i) == 32; };
    if (is_distance(scores) &&
        (!is_distance(distances) || name_has(facts.outputs[scores], {"dis", "reg", "box"})))
      std::swap(scores, distances);
    if (!is_distance(distances)) return {};
    if (box_columns == 0) box_columns = columns(distances), class_columns = columns(scores);
    if (columns(distances) != box_columns || columns(scores) != class_columns) return {};
    NanodetLevel level;
    level.grid = *grid;
    level.scores = scores;
    level.distances = distances;
    level.classes = static_cast<size_t>(class_columns);
    level.bins = static_cast<size_t>(box_columns / 4);
    level.score_width = level.classes;
    level.distance_width = static_cast<size_t>(box_columns);
    levels.push_back(level);
  }
  return levels;
}

struct YunetLevel {
  GridLevel grid;
  size_t classes = 0, objects = 0, boxes = 0;  // outputs
};

void decode_yunet(const std::vector<YunetLevel>& levels, std::span<const Tensor> outputs,
                  const DecodeSettings& settings, Results& results) {
  std::vector<Detection> found;
  for (const YunetLevel& level : levels) {
    const size_t columns = static_cast<size_t>(level.grid.columns);
    const size_t cells = columns * static_cast<size_t>(level.grid.rows);
    const Floats classes(output_of(outputs, level.classes, cells));
    const Floats objects(output_of(outputs, level.objects, cells));
    const Floats boxes(output_of(outputs, level.boxes, cells * 4));
    std::vector<float> buffer;
    for (size_t i = 0; i < cells; ++i) {
      const float score =
          std::sqrt(std::clamp(classes[i], 0.0f, 1.0f) * std::clamp(objects[i], 0.0f, 1.0f));
      if (!(score >= settings.threshold)) continue;
      const float* box = boxes.run(i * 4, 4, buffer);
      const float x = (static_cast<float>(i % columns) + box[0]) * level.grid.x_step;
      const float y = (static_cast<float>(i / columns) + box[1]) * level.grid.y_step;
      const float half_w = std::exp(box[2]) * level.grid.x_step / 2;
      const float half_h = std::exp(box[3]) * level.grid.y_step / 2;
      add_detection(settings, x - half_w, y - half_h, x + half_w, y + half_h, score, 0, found);
    }
  }
  finish_detections(settings, true, found, results);
}

}  // namespace

Match match_nanodet(const ModelFacts& facts) {
  std::vector<NanodetLevel> levels = nanodet_pairs(facts);
  Fit fit = Fit::certain;
  std::string reason = "scores and distance distributions at each level";
  if (levels.size() < 2 && facts.outputs.size() == 1 && facts.outputs[0].shape.size() == 3 &&
      facts.outputs[0].shape[2] > 32) {
    // NanoDet-Plus: one output, classes then distances, reference points at the cells' corners.
    levels.clear();
    const Shape& shape = facts.outputs[0].shape;
    const auto grids = grid_levels(facts, shape[1], 1);
    if (grids && grids->size() == 4 && grids->front().x_step == 8) {
      const size_t width = static_cast<size_t>(shape[2]);
      auto decode = [grids = *grids, width, total = static_cast<size_t>(count(shape))](
                        std::span<const Tensor> outputs, const DecodeSettings& settings,
                        Results& results) {
        const Tensor& all = output_of(outputs, 0, total);
        const auto* elements = static_cast<const std::byte*>(all.raw());
        std::vector<Tensor> slices;
        std::vector<NanodetLevel> parts;
        size_t at = 0;
        for (const GridLevel& grid : grids) {
          const int64_t cells = static_cast<int64_t>(grid.columns) * grid.rows;
          slices.push_back(Tensor::view(all.type(), {cells, static_cast<int64_t>(width)},
                                        elements + at * size_of(all.type()), nullptr));
          at += static_cast<size_t>(cells) * width;
          NanodetLevel level;
          level.grid = grid;
          level.scores = level.distances = slices.size() - 1;
          level.classes = width - 32;
          level.bins = 8;
          level.score_width = level.distance_width = width;
          level.distance_at = width - 32;
          level.center = 0;
          parts.push_back(level);
        }
        decode_nanodet(parts, slices, settings, results);
      };
      const bool labelled = facts.labels.size() == width - 32 || width == 112;
      return {labelled ? Fit::certain : Fit::possible, "classes and distance distributions",
              decode};
    }
  }
  if (levels.size() < 2)
    return {Fit::no, "needs scores [1,N,C] and distances [1,N,32] at two or more levels", {}};
  auto decode = [levels](std::span<const Tensor> outputs, const DecodeSettings& settings,
                         Results& results) { decode_nanodet(levels, outputs, settings, results); };
  return {fit, reason, decode};
}

Match match_yunet(const ModelFacts& facts) {
  std::vector<YunetLevel> levels;
  for (const LevelOutputs& group : group_by_cells(facts)) {
    const auto grid = grid_of(facts, group.cells);
    std::optional<size_t> classes, objects, boxes;
    for (size_t i : group.outputs) {
      const OutputFacts& output = facts.outputs[i];
      if (output.shape[2] == 4) boxes = i;
      if (output.shape[2] == 1 && name_has(output, {"obj"})) objects = i;
      if (output.shape[2] == 1 && name_has(output, {"cls"})) classes = i;
    }
    if (!grid || !classes || !objects || !boxes) {
      levels.clear();
      break;
    }
    levels.push_back({*grid, *classes, *objects, *boxes});
  }
  if (levels.empty()) return {Fit::no, "needs cls, obj [1,N,1] and bbox [1,N,4] at each level", {}};
  auto decode = [levels](std::span<const Tensor> outputs, const DecodeSettings& settings,
                         Results& results) { decode_yunet(levels, outputs, settings, results); };
  return {Fit::certain, "cls, obj and bbox at each level", decode};
}

}  // namespace clinfer
