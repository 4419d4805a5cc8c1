// Reads distances given as distributions: NanoDet and PicoDet (scores and 8 bins for each side at
// each level), and YOLO v8's maps as they leave the network (16 bins and class scores in one).
#include <algorithm>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/boxes/grids.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

// Rows [1,N,M] or [N,M] grouped by N, the largest N (finest level) first.
struct LevelOutputs {
  int64_t cells = 0;
  std::vector<size_t> outputs;
};

std::vector<LevelOutputs> group_by_cells(const ModelFacts& facts) {
  std::vector<LevelOutputs> levels;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const Shape& shape = facts.outputs[i].shape;
    if (!table_of(facts.outputs[i]) || shape.size() > 3) return {};
    const int64_t cells = shape[shape.size() - 2];
    auto found = std::find_if(levels.begin(), levels.end(),
                              [&](const LevelOutputs& level) { return level.cells == cells; });
    if (found == levels.end()) found = levels.insert(levels.end(), LevelOutputs{cells, {}});
    found->outputs.push_back(i);
  }
  std::sort(levels.begin(), levels.end(),
            [](const LevelOutputs& a, const LevelOutputs& b) { return a.cells > b.cells; });
  return levels;
}

// Returns the grid of a level of `cells` cells, with one of the usual strides.
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
  size_t scores = 0, distances = 0;  // indices of outputs; the same one if both are in one row
  size_t classes = 0, bins = 0;
  // Of a row, in elements.
  size_t score_width = 0, score_at = 0, distance_width = 0, distance_at = 0;
  float center = 0.5f;  // position of a cell's reference point
};

// Returns the expected value of a distribution given by logits: the distance in steps. A single
// number is the distance itself.
float expected(const float* logits, size_t bins) {
  if (bins == 1) return logits[0];
  float top = logits[0], sum = 0, mean = 0;
  for (size_t k = 1; k < bins; ++k) top = std::max(top, logits[k]);
  for (size_t k = 0; k < bins; ++k) {
    const float weight = std::exp(logits[k] - top);
    sum += weight;
    mean += weight * static_cast<float>(k);
  }
  return mean / sum;
}

void decode_nanodet(const std::vector<NanodetLevel>& levels, const Decided& squashed,
                    Suppression suppression, std::span<const Tensor> outputs,
                    const DecodeSettings& settings, Results& results) {
  Candidates candidates(settings);
  bool seen_logits = false;
  for (const NanodetLevel& level : levels) {
    const size_t cells =
        static_cast<size_t>(level.grid.columns) * static_cast<size_t>(level.grid.rows);
    const Floats scores(output_of(outputs, level.scores, cells * level.score_width));
    for (size_t i = 0; i < cells && !seen_logits; ++i)
      for (size_t k = 0; k < level.classes; ++k) {
        const float v = scores[i * level.score_width + level.score_at + k];
        seen_logits = seen_logits || v < -0.01f || v > 1.01f;
      }
  }
  const bool logits = squashed.settle(seen_logits ? Decided::second : Decided::first,
                                      Decided::first) == Decided::second;
  for (const NanodetLevel& level : levels) {
    const size_t cells =
        static_cast<size_t>(level.grid.columns) * static_cast<size_t>(level.grid.rows);
    Floats scores(output_of(outputs, level.scores, cells * level.score_width));
    const Floats distances(output_of(outputs, level.distances, cells * level.distance_width));
    std::vector<float> buffer;
    for (size_t i = 0; i < cells; ++i) {
      const float* row = scores.data() + i * level.score_width + level.score_at;
      size_t best = 0;
      for (size_t k = 1; k < level.classes; ++k)
        if (row[k] > row[best]) best = k;
      if (!logits) candidates.expect_probability(row[best]);
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
      candidates.add(x - left, y - top, x + right, y + bottom, score, static_cast<double>(best), i);
    }
  }
  finish(settings, suppression, candidates, results);
}

// Finds pairs of scores [1,N,C] and distances [1,N,4*bins] at each level.
std::vector<NanodetLevel> nanodet_pairs(const ModelFacts& facts) {
  std::vector<NanodetLevel> levels;
  int64_t box_columns = 0, class_columns = 0;
  for (const LevelOutputs& group : group_by_cells(facts)) {
    const auto grid = grid_of(facts, group.cells);
    if (!grid || group.outputs.size() != 2) return {};
    size_t scores = group.outputs[0], distances = group.outputs[1];
    auto columns = [&](size_t i) { return facts.outputs[i].shape.back(); };
    // Distances have 8 bins for each side in the published networks; names decide if both could be
    // distances.
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

}  // namespace

Match match_nanodet(const ModelFacts& facts) {
  Match match;
  const std::vector<NanodetLevel> levels = nanodet_pairs(facts);
  if (levels.size() >= 2) {
    // PicoDet has four levels.
    const Family family = levels.size() > 3 ? Family::picodet : Family::nanodet;
    match.picture = picture_of(family);
    match.decode = [levels, suppression = suppression_of(facts, family), squashed = Decided()](
                       std::span<const Tensor> outputs, const DecodeSettings& settings,
                       Results& results) {
      decode_nanodet(levels, squashed, suppression, outputs, settings, results);
    };
    match.fit = Fit::certain;
    match.reason =
        "scores and distance distributions at " + std::to_string(levels.size()) + " levels";
    match.classes = levels[0].classes;
    return match;
  }
  // Reads one output with a row for each cell: NanoDet-Plus' classes and then distances, with
  // reference points at the cells' corners and four levels; or distances in steps as numbers, and
  // then classes, with reference points in the cells' middle and three levels.
  const auto table = facts.outputs.size() == 1 ? table_of(facts.outputs[0]) : std::nullopt;
  const auto grids = table && table->columns > 4
                         ? grid_levels(facts, static_cast<int64_t>(table->rows), 1)
                         : std::nullopt;
  const bool numbers = grids && grids->size() == 3;
  if (!grids || grids->front().x_step != 8 ||
      !(numbers || (grids->size() == 4 && table->columns > 32)))
    return {Fit::no, "needs scores [1,N,C] and distances [1,N,32] at two or more levels", {}};
  const Family family = numbers ? Family::nanodet : Family::nanodet_plus;
  match.picture = picture_of(family);
  match.decode = [grids = *grids, table = *table, numbers,
                  suppression = suppression_of(facts, family),
                  squashed = Decided()](std::span<const Tensor> outputs,
                                        const DecodeSettings& settings, Results& results) {
    const Tensor& all = output_of(outputs, 0, table.rows * table.columns);
    const auto* elements = static_cast<const std::byte*>(all.raw());
    const size_t width = table.columns;
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
      level.bins = numbers ? 1 : 8;
      level.classes = width - 4 * level.bins;
      level.score_width = level.distance_width = width;
      (numbers ? level.score_at : level.distance_at) = numbers ? 4 : level.classes;
      level.center = numbers ? 0.5f : 0;
      parts.push_back(level);
    }
    decode_nanodet(parts, squashed, suppression, slices, settings, results);
  };
  if (numbers) {
    // Levels that are joined row by row hold what the network gives before its last step.
    const bool joined = table->columns == 5 && facts.outputs[0].op == "Concat" &&
                        attribute_of(facts.outputs[0], "axis", 0) == 1;
    match.classes = table->columns - 4;
    match.fit = joined ? Fit::likely : Fit::against;
    match.reason = "distances in steps and " + std::to_string(match.classes) + " classes";
    if (!joined) match.doubt = "which nothing says";
    return match;
  }
  match.classes = table->columns - 32;
  const bool labelled = facts.labels.size() == match.classes || table->columns == 112;
  match.fit = labelled ? Fit::certain : Fit::possible;
  match.reason = "classes and distance distributions";
  return match;
}

namespace {

constexpr size_t kBins = 16, kSides = 4 * kBins;

// A level of YOLO v8 before distances are computed: distributions and class scores in one map, or
// in one each, possibly with the sums of the scores in a third.
struct SplitLevel {
  Map sides, classes;
  size_t first = 0, count = 0;  // channels of the classes
  float step = 0;
};

// Returns nullopt if the maps of a stride are no level.
std::optional<SplitLevel> split_level(const std::vector<Map>& maps, float step) {
  if (maps.size() == 1 && maps[0].channels > kSides)
    return SplitLevel{maps[0], maps[0], kSides, maps[0].channels - kSides, step};
  if (maps.size() < 2 || maps.size() > 3) return std::nullopt;
  std::optional<Map> sides, classes;
  for (const Map& map : maps) {
    if (map.channels == kSides && !sides)
      sides = map;
    else if (!classes || (classes->channels == 1 && map.channels > 1))
      classes = map;  // the map before it held the sums
    else if (map.channels != 1)
      return std::nullopt;
  }
  if (!sides || !classes) return std::nullopt;
  return SplitLevel{*sides, *classes, 0, classes->channels, step};
}

std::vector<SplitLevel> split_levels(const ModelFacts& facts) {
  std::vector<SplitLevel> levels;
  size_t used = 0;
  for (const int stride : {8, 16, 32, 64}) {
    const std::vector<Map> maps = maps_of(facts, stride);
    if (maps.empty()) continue;
    const auto level = split_level(maps, static_cast<float>(stride));
    if (!level || (!levels.empty() && level->count != levels[0].count)) return {};
    levels.push_back(*level);
    used += maps.size();
  }
  return levels.size() >= 3 && used == facts.outputs.size() ? levels : std::vector<SplitLevel>();
}

// Takes key points, as model_info states them, off the classes of maps that hold everything.
PointShape take_points(const ModelFacts& facts, std::vector<SplitLevel>& levels) {
  const PointShape points = stated_points(facts);
  const bool joined = std::all_of(levels.begin(), levels.end(), [](const SplitLevel& level) {
    return level.sides.output == level.classes.output;
  });
  if (points.count == 0 || levels.empty() || !joined || levels[0].count <= points.elements())
    return {};
  for (SplitLevel& level : levels) level.count -= points.elements();
  return points;
}

void decode_split(const std::vector<SplitLevel>& levels, const PointShape& points,
                  const Decided& squashed, Suppression suppression, std::span<const Tensor> outputs,
                  const DecodeSettings& settings, Results& results) {
  std::vector<Floats> scores;
  bool seen_logits = false;
  for (const SplitLevel& level : levels) {
    scores.emplace_back(output_of(outputs, level.classes.output, level.classes.elements()));
    for (size_t k = 0; k < level.count; ++k)
      for (size_t i = 0; i < level.classes.cells() && !seen_logits; ++i) {
        const float v = scores.back()[level.classes.at(level.first + k, i)];
        seen_logits = v < -0.01f || v > 1.01f;
      }
  }
  const bool logits = squashed.settle(seen_logits ? Decided::second : Decided::first,
                                      Decided::first) == Decided::second;
  Candidates candidates(settings);
  std::vector<std::pair<size_t, size_t>> places;  // level and cell of each candidate's row
  for (size_t l = 0; l < levels.size(); ++l) {
    const SplitLevel& level = levels[l];
    const Floats sides(output_of(outputs, level.sides.output, level.sides.elements()));
    for (size_t i = 0; i < level.classes.cells(); ++i) {
      const auto score_of = [&](size_t k) {
        return scores[l][level.classes.at(level.first + k, i)];
      };
      size_t best = 0;
      for (size_t k = 1; k < level.count; ++k)
        if (score_of(k) > score_of(best)) best = k;
      const float score = logits ? sigmoid(score_of(best)) : score_of(best);
      if (!(score >= settings.threshold)) continue;
      float bins[kSides];
      for (size_t k = 0; k < kSides; ++k) bins[k] = sides[level.sides.at(k, i)];
      const auto distance = [&](size_t side) { return expected(bins + side * kBins, kBins); };
      const float x = static_cast<float>(i % level.sides.columns) + 0.5f;
      const float y = static_cast<float>(i / level.sides.columns) + 0.5f;
      candidates.add((x - distance(0)) * level.step, (y - distance(1)) * level.step,
                     (x + distance(2)) * level.step, (y + distance(3)) * level.step, score,
                     static_cast<double>(best), places.size());
      places.emplace_back(l, i);
    }
  }
  if (points.count == 0) return finish(settings, suppression, candidates, results);
  finish(settings, suppression, candidates, results, [&](const Candidate& kept, Detection& found) {
    const auto [l, cell] = places[kept.row];
    const Map& map = levels[l].classes;
    // Places are halves of cells from the cell's own corner.
    const auto column = [&, l = l, cell = cell](size_t k) {
      const float value = scores[l][map.at(levels[l].first + levels[l].count + k, cell)];
      const size_t axis = k % points.dimensions;
      if (axis == 2) return sigmoid(value);
      const size_t from = axis == 0 ? cell % map.columns : cell / map.columns;
      return (2 * value + static_cast<float>(from)) * levels[l].step;
    };
    found.skeleton = points.skeleton;
    for (size_t k = 0; k < points.count; ++k) {
      const size_t at = k * points.dimensions;
      found.keypoints.push_back(
          {column(at), column(at + 1), points.dimensions == 3 ? column(at + 2) : 1.0f});
    }
  });
}

}  // namespace

Match match_yolov8_maps(const ModelFacts& facts) {
  std::vector<SplitLevel> levels = split_levels(facts);
  const PointShape points = take_points(facts, levels);
  if (levels.empty())
    return {Fit::no,
            "needs maps [1,64+classes,h,w] at strides 8, 16, 32, or [1,64,h,w] and [1,classes,h,w]",
            {}};
  Match match;
  match.decode =
      [levels, points, squashed = Decided(), suppression = suppression_of(facts, Family::yolo)](
          std::span<const Tensor> outputs, const DecodeSettings& settings, Results& results) {
        decode_split(levels, points, squashed, suppression, outputs, settings, results);
      };
  match.classes = levels[0].count;
  const bool apart = levels[0].sides.output != levels[0].classes.output;
  const size_t labels = facts.labels.size();
  // No other family has separate maps of 64 channels.
  match.fit = apart                                                             ? Fit::certain
              : labels == match.classes || (labels == 0 && match.classes == 80) ? Fit::likely
              : labels == 0                                                     ? Fit::possible
                                                                                : Fit::against;
  match.reason = "distributions of 16 bins a side and " + std::to_string(match.classes) +
                 " class scores in maps" + (apart ? " of their own" : "") +
                 (points.count == 0 ? std::string()
                                    : ", with " + std::to_string(points.count) + " key points");
  match.picture = picture_of(Family::yolo);
  return match;
}

}  // namespace clinfer
