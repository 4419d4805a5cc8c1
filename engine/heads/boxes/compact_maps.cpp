// Reads small detectors on feature maps, as their authors export them: FastestDet (one map),
// YOLO-FastestV2 (two maps of three anchors that share their classes) and DBFace (centres, sides
// and points).
#include <algorithm>
#include <array>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/boxes/grids.h"
#include "engine/heads/network.h"

namespace clinfer {
namespace {

size_t best_channel(const Map& map, const Floats& values, size_t from, size_t cell) {
  size_t best = from;
  for (size_t k = from + 1; k < map.channels; ++k)
    if (values[map.at(k, cell)] > values[map.at(best, cell)]) best = k;
  return best;
}

// One map of objectness, four numbers of the box and a softmax of classes, at stride 16.
struct FastestDet {
  ModelFacts facts;
  Map map;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats values(output_of(outputs, map.output, map.elements()));
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    Candidates candidates(settings);
    for (size_t cell = 0; cell < map.cells(); ++cell) {
      const auto at = [&](size_t k) { return values[map.at(k, cell)]; };
      const size_t best = best_channel(map, values, 5, cell);
      candidates.expect_probability(at(0));
      candidates.expect_probability(at(best));
      const float score =
          std::pow(std::max(at(0), 0.0f), 0.6f) * std::pow(std::max(at(best), 0.0f), 0.4f);
      if (!(score >= settings.threshold)) continue;
      const float x = static_cast<float>(cell % map.columns) + std::tanh(at(1));
      const float y = static_cast<float>(cell / map.columns) + std::tanh(at(2));
      candidates.add_centered(x / static_cast<float>(map.columns) * width,
                              y / static_cast<float>(map.rows) * height, sigmoid(at(3)) * width,
                              sigmoid(at(4)) * height, score, static_cast<double>(best - 5), cell);
    }
    finish(settings, suppression_of(facts, Family::fastestdet), candidates, results);
  }
};

// FastestDet with its last step in the graph: a row for each cell of centre and sides, objectness
// and classes.
struct FastestRows {
  ModelFacts facts;
  Table table;
  Decided units;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats values(output_of(outputs, 0, table.rows * table.columns));
    float reach = 0;
    for (size_t row = 0; row < table.rows; ++row)
      reach = std::max(reach, std::fabs(values[row * table.columns]));
    const PixelUnits unit = pixel_units(units, reach, facts);
    Candidates candidates(settings);
    for (size_t row = 0; row < table.rows; ++row) {
      const auto at = [&](size_t k) { return values[row * table.columns + k]; };
      size_t best = 5;
      for (size_t k = best + 1; k < table.columns; ++k)
        if (at(k) > at(best)) best = k;
      candidates.expect_probability(at(4));
      candidates.expect_probability(at(best));
      const float score = at(4) * at(best);
      if (score >= settings.threshold)
        candidates.add_centered(at(0) * unit.x, at(1) * unit.y, at(2) * unit.x, at(3) * unit.y,
                                score, static_cast<double>(best - 5), row);
    }
    finish(settings, suppression_of(facts, Family::fastestdet), candidates, results);
  }
};

constexpr size_t kLevelAnchors = 3;
// Width and height in pixels of 352x352, those of the finer map first, as published for COCO.
constexpr std::array<float, 12> kFastestSizes = {12.64f,  19.39f,  37.88f,  51.48f,
                                                 55.71f,  138.31f, 126.91f, 78.23f,
                                                 131.57f, 214.55f, 279.92f, 258.87f};

// Maps of four numbers for each anchor, their objectness, and a softmax of classes for all three,
// all of them squashed.
struct FastestV2 {
  ModelFacts facts;
  std::array<Map, 2> maps;  // at strides 16 and 32
  std::vector<float> sizes;
  bool joined = false;  // true if both are in one table with a row for each cell

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    Candidates candidates(settings);
    for (size_t level = 0; level < maps.size(); ++level) {
      const Map& map = maps[level];
      const Floats values(output_of(
          outputs, map.output, joined ? maps[0].elements() + maps[1].elements() : map.elements()));
      const size_t first = joined && level == 1 ? maps[0].elements() : 0;
      const float stride = level == 0 ? 16 : 32;
      for (size_t cell = 0; cell < map.cells(); ++cell) {
        const auto at = [&](size_t k) { return values[first + map.at(k, cell)]; };
        size_t best = 5 * kLevelAnchors;
        for (size_t k = best + 1; k < map.channels; ++k)
          if (at(k) > at(best)) best = k;
        candidates.expect_probability(at(best));
        for (size_t a = 0; a < kLevelAnchors; ++a) {
          candidates.expect_probability(at(4 * kLevelAnchors + a));
          const float score = at(4 * kLevelAnchors + a) * at(best);
          if (!(score >= settings.threshold)) continue;
          const float w = 2 * at(4 * a + 2), h = 2 * at(4 * a + 3);
          const float* size = &sizes[2 * (level * kLevelAnchors + a)];
          candidates.add_centered(
              (static_cast<float>(cell % map.columns) + 2 * at(4 * a) - 0.5f) * stride,
              (static_cast<float>(cell / map.columns) + 2 * at(4 * a + 1) - 0.5f) * stride,
              w * w * size[0], h * h * size[1], score,
              static_cast<double>(best - 5 * kLevelAnchors), cell);
        }
      }
    }
    finish(settings, suppression_of(facts, Family::yolo_fastest_v2), candidates, results);
  }
};

// A heat map of faces, the distances from a cell's corner to the sides, and five points, at stride
// 4.
struct DbFace {
  static constexpr size_t kPoints = 5;
  static constexpr float kStride = 4;
  ModelFacts facts;
  Map heat, sides, points;
  Decided squashed;

  // Returns the network's own exponential, which is linear near 0 and has either sign.
  static float stretched(float v) {
    if (std::fabs(v) < 1) return v * std::exp(1.0f);
    return v > 0 ? std::exp(v) : -std::exp(-v);
  }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats heats(output_of(outputs, heat.output, heat.elements()));
    const Floats distances(output_of(outputs, sides.output, sides.elements()));
    const Floats marks(output_of(outputs, points.output, points.elements()));
    const bool raw = squashed.settle(has_logits(heats) ? Decided::second : Decided::first,
                                     Decided::first) == Decided::second;
    Candidates candidates(settings);
    for (size_t cell = 0; cell < heat.cells(); ++cell) {
      const float value = heats[heat.at(0, cell)], score = raw ? sigmoid(value) : value;
      if (!(score >= settings.threshold)) continue;
      const float x = static_cast<float>(cell % heat.columns),
                  y = static_cast<float>(cell / heat.columns);
      const auto side = [&](size_t k) { return distances[sides.at(k, cell)]; };
      candidates.add((x - side(0)) * kStride, (y - side(1)) * kStride, (x + side(2)) * kStride,
                     (y + side(3)) * kStride, score, 0, cell);
    }
    finish(settings, suppression_of(facts, Family::dbface), candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             const float x = static_cast<float>(kept.row % heat.columns),
                         y = static_cast<float>(kept.row / heat.columns);
             detection.skeleton = Skeleton::face5;
             const auto offset = [&](size_t k) {
               return stretched(4 * marks[points.at(k, kept.row)]);
             };
             for (size_t k = 0; k < kPoints; ++k)  // five x, then five y
               detection.landmarks.push_back(
                   {(x + offset(k)) * kStride, (y + offset(kPoints + k)) * kStride});
           });
  }
};

// Returns the fit of networks whose maps alone do not identify them: by the file's name, by as many
// labels as classes, or by COCO's 80 classes.
Fit fit_by_name(const ModelFacts& facts, std::initializer_list<const char*> words, size_t classes) {
  const std::string name = lower(facts.name);
  for (const char* word : words)
    if (name.find(word) != std::string::npos) return Fit::certain;
  return facts.labels.size() == classes || classes == 80 ? Fit::likely : Fit::against;
}

}  // namespace

Match match_fastestdet(const ModelFacts& facts) {
  const bool alone = facts.outputs.size() == 1;
  const auto map = alone ? map_of(facts, 0, 16) : std::nullopt;
  auto table = alone ? table_of(facts.outputs[0]) : std::nullopt;
  if (table &&
      table->rows != static_cast<size_t>(facts.width / 16) * static_cast<size_t>(facts.height / 16))
    table.reset();
  const size_t channels = map ? map->channels : table ? table->columns : 0;
  if (channels < 6)
    return {Fit::no, "needs one map [1,5+classes,h,w] at stride 16, or a row for each cell", {}};
  Match match;
  match.classes = channels - 5;
  match.fit = fit_by_name(facts, {"fastestdet"}, match.classes);
  match.reason = std::string(map ? "a map of" : "a row for each cell at stride 16 with") +
                 " objectness, boxes and " + std::to_string(match.classes) + " classes";
  if (match.fit == Fit::against) match.doubt = "which nothing says";
  if (map)
    match.decode = FastestDet{facts, *map};
  else
    match.decode = FastestRows{facts, *table, {}};
  match.picture = picture_of(Family::fastestdet);
  return match;
}

Match match_fastest_v2(const ModelFacts& facts) {
  const char* needs =
      "needs maps [1,h,w,15+classes] at strides 16 and 32, or both in one table [N,15+classes]";
  std::vector<Map> fine = maps_of(facts, 16), coarse = maps_of(facts, 32);
  const auto table = facts.outputs.size() == 1 ? table_of(facts.outputs[0]) : std::nullopt;
  if (table) {
    for (const size_t stride : {16, 32}) {
      const auto over = [&](int side) { return static_cast<size_t>(side) / stride; };
      (stride == 16 ? fine : coarse)
          .assign(1, Map{0, table->columns, over(facts.height), over(facts.width), true});
    }
    if (fine[0].cells() + coarse[0].cells() != table->rows) return {Fit::no, needs, {}};
  } else if (facts.outputs.size() != 2) {
    return {Fit::no, needs, {}};
  }
  if (fine.size() != 1 || coarse.size() != 1 || fine[0].channels != coarse[0].channels ||
      fine[0].channels < 5 * kLevelAnchors + 1)
    return {Fit::no, needs, {}};
  Match match;
  match.classes = fine[0].channels - 5 * kLevelAnchors;
  match.fit = fit_by_name(facts, {"fastestv2", "fastest-v2", "fastest_v2"}, match.classes);
  match.reason = std::string(table ? "a table" : "two maps") + " of three anchors and " +
                 std::to_string(match.classes) + " classes";
  if (match.fit == Fit::against) match.doubt = "which nothing says";
  const std::vector<float> stated = info(facts, "anchors").empty()
                                        ? std::vector<float>()
                                        : parse_numbers(info(facts, "anchors"), "anchors");
  const bool own = stated.size() == kFastestSizes.size();
  match.decode =
      FastestV2{facts,
                {fine[0], coarse[0]},
                own ? stated : std::vector<float>(kFastestSizes.begin(), kFastestSizes.end()),
                table.has_value()};
  if (!own)
    match.assumptions.push_back(
        "nothing says which anchors the network was trained with; those published for COCO are "
        "used");
  match.picture = picture_of(Family::yolo_fastest_v2);
  return match;
}

Match match_dbface(const ModelFacts& facts) {
  const char* needs = "needs maps of 1, 4 and 10 channels at a quarter of the input";
  std::optional<Map> heat, sides, points;
  const std::vector<Map> maps = maps_of(facts, 4);
  for (const Map& map : maps) (map.channels == 1 ? heat : map.channels == 4 ? sides : points) = map;
  if (maps.size() != 3 || facts.outputs.size() != 3 || !heat || !sides || !points ||
      points->channels != 2 * DbFace::kPoints)
    return {Fit::no, needs, {}};
  Match match;
  match.fit = Fit::certain;
  match.reason = "heat map, sides and five points at a quarter of the input";
  match.decode = DbFace{facts, *heat, *sides, *points, {}};
  match.classes = 1;
  match.class_names = {"face"};
  match.picture = picture_of(Family::dbface);
  return match;
}

}  // namespace clinfer
