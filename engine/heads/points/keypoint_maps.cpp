// Reads key points of one person: heat maps (HRNet, ViTPose, SimpleBaseline), one axis each (SimCC
// as in RTMPose), and coordinates (MoveNet).
#include <algorithm>
#include <cmath>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/maps.h"
#include "engine/heads/points/keypoints.h"
#include "engine/heads/points/points.h"

namespace clinfer {

void add_whole(const ModelFacts& facts, Detection detection, const DecodeSettings& settings,
               Results& results) {
  if (!(detection.confidence >= settings.threshold)) return;
  const auto is_nowhere = [](const auto& point) {
    return !std::isfinite(point.x) || !std::isfinite(point.y);
  };
  const bool any = !detection.landmarks.empty() || !detection.keypoints.empty();
  if (any && std::ranges::all_of(detection.landmarks, is_nowhere) &&
      std::ranges::all_of(detection.keypoints, is_nowhere))
    return;
  detection.subject = Subject::whole;
  detection.x_max = static_cast<float>(facts.width);
  detection.y_max = static_cast<float>(facts.height);
  results.detections.push_back(std::move(detection));
}

float mean_confidence(const std::vector<KeyPoint>& points) {
  float sum = 0;
  for (const KeyPoint& point : points) sum += point.confidence;
  return points.empty() ? 0 : sum / static_cast<float>(points.size());
}

namespace {

// Returns the confidence of a peak. Heat maps and bins are trained towards 1 at a point; higher
// values are no more certain.
float peak_confidence(float peak) { return std::clamp(peak, 0.0f, 1.0f); }

// Returns the highest cell of one map, shifted by a quarter of a cell towards its higher neighbour,
// as these networks are trained: cell i stands for pixel i * stride.
KeyPoint peak_of(const Floats& values, const MapLayout& layout, size_t c, float x_step,
                 float y_step) {
  size_t best = 0;
  float most = -INFINITY;
  for (size_t cell = 0; cell < layout.cells(); ++cell)
    if (const float v = values[layout.at(c, cell)]; v > most) {
      most = v;
      best = cell;
    }
  const size_t column = best % layout.columns, row = best / layout.columns;
  const auto shift = [&](size_t at, size_t size, size_t step) {
    if (at == 0 || at + 1 >= size) return 0.0f;
    const float before = values[layout.at(c, best - step)],
                after = values[layout.at(c, best + step)];
    return after > before ? 0.25f : after < before ? -0.25f : 0.0f;
  };
  const float x = static_cast<float>(column) + shift(column, layout.columns, 1),
              y = static_cast<float>(row) + shift(row, layout.rows, layout.columns);
  return {x * x_step + 0.5f, y * y_step + 0.5f, peak_confidence(most)};
}

}  // namespace

namespace {

// PoseNet: heat maps of 17 points, as logits or squashed by the graph, and offsets in pixels of a
// point from its cell (17 for y, then 17 for x). Displacements between points, which distinguish
// persons, are not read.
struct PoseNet {
  ModelFacts facts;
  MapLayout heats, offsets;
  bool squashed_op = false;  // true if the operation that makes the heat maps says so
  Decided squashed;          // first: the graph has squashed them

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats heat(output_of(outputs, heats.index, heats.elements()));
    const Floats shift(output_of(outputs, offsets.index, offsets.elements()));
    // Strides are powers of two, whether the size is a multiple of them or one more.
    const auto step = [](int size, size_t cells) {
      if (cells < 2) return 0.0f;
      return std::exp2(
          std::round(std::log2(static_cast<float>(size - 1) / static_cast<float>(cells - 1))));
    };
    const float x_step = step(facts.width, heats.columns), y_step = step(facts.height, heats.rows);
    // Most cells of logits are far below 0.
    bool negative = false;
    for (size_t i = 0; i < heat.size() && !negative; ++i) negative = heat[i] < -0.01f;
    const bool probabilities =
        squashed_op || squashed.settle(negative ? Decided::second : Decided::first,
                                       Decided::second) == Decided::first;
    Detection person;
    person.skeleton = Skeleton::coco17;
    for (size_t c = 0; c < heats.channels; ++c) {
      size_t best = 0;
      for (size_t cell = 1; cell < heats.cells(); ++cell)
        if (heat[heats.at(c, cell)] > heat[heats.at(c, best)]) best = cell;
      const auto coordinate = [&](size_t at, float step_of, size_t axis) {
        return static_cast<float>(at) * step_of +
               shift[offsets.at(axis * heats.channels + c, best)];
      };
      person.keypoints.push_back({coordinate(best % heats.columns, x_step, 1),
                                  coordinate(best / heats.columns, y_step, 0),
                                  probabilities ? peak_confidence(heat[heats.at(c, best)])
                                                : sigmoid(heat[heats.at(c, best)])});
    }
    person.confidence = mean_confidence(person.keypoints);
    add_whole(facts, std::move(person), settings, results);
  }
};

std::optional<Match> match_posenet(const ModelFacts& facts) {
  constexpr size_t kPoints = 17;
  std::optional<MapLayout> heats, offsets;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto layout = map_layout(facts, i);
    if (!layout || !is_float_output(facts.outputs[i])) return std::nullopt;
    if (layout->channels == kPoints && !heats) heats = layout;
    // BodyPix also has long offsets, from every cell of a person to each of its points.
    if (layout->channels == 2 * kPoints && !offsets && !has_word(facts.outputs[i], {"long"}))
      offsets = layout;
  }
  if (!heats || !offsets || heats->cells() != offsets->cells()) return std::nullopt;
  Match match;
  match.fit = Fit::certain;
  match.reason = "heat maps of 17 points and their offsets (PoseNet)";
  match.decode = PoseNet{facts, *heats, *offsets, facts.outputs[heats->index].op == "Sigmoid", {}};
  match.class_names = {"person"};
  match.assumptions.push_back(
      "one person is read from the picture; where there may be more, let a detector of persons run "
      "before it");
  match.picture = picture_of(Family::posenet);
  return match;
}

}  // namespace

Match match_heatmaps(const ModelFacts& facts) {
  if (auto posenet = match_posenet(facts)) return *posenet;
  if (facts.outputs.size() != 1 || !is_float_output(facts.outputs[0]))
    return {Fit::no, "needs one output of heat maps ([1,K,h,w])", {}};
  const auto layout = map_layout(facts, 0);
  if (!layout || layout->channels < 4 || layout->channels > 512)
    return {Fit::no, "needs one output of heat maps ([1,K,h,w])", {}};
  const float x_step = static_cast<float>(facts.width) / static_cast<float>(layout->columns),
              y_step = static_cast<float>(facts.height) / static_cast<float>(layout->rows);
  const bool strided = (x_step == 2 || x_step == 4 || x_step == 8) && y_step == x_step;
  const std::string type = lower(info(facts, "model_type")) + lower(info(facts, "task"));
  const bool named = type.find("pose") != std::string::npos ||
                     type.find("keypoint") != std::string::npos ||
                     is_called(facts, facts.outputs[0],
                               {"heatmap", "heatmaps", "hrnet", "vitpose", "pose", "simplebaseline",
                                "keypoint", "keypoints", "landmarks"});
  const bool usual = layout->channels == 17 || layout->channels == 16 || layout->channels == 21 ||
                     layout->channels == 133;
  Match match;
  match.reason = std::to_string(layout->channels) + " heat maps of " +
                 std::to_string(layout->columns) + "x" + std::to_string(layout->rows);
  match.fit = named                    ? Fit::certain
              : !strided               ? Fit::against
              : layout->channels == 17 ? Fit::likely
              : usual                  ? Fit::possible
                                       : Fit::against;
  if (match.fit == Fit::against) match.doubt = "which nothing says to be points";
  match.decode = [facts, layout = *layout, x_step, y_step](std::span<const Tensor> outputs,
                                                           const DecodeSettings& settings,
                                                           Results& results) {
    const Floats values(output_of(outputs, 0, layout.elements()));
    Detection person;
    person.skeleton = skeleton_for(layout.channels);
    for (size_t c = 0; c < layout.channels; ++c)
      person.keypoints.push_back(peak_of(values, layout, c, x_step, y_step));
    person.confidence = mean_confidence(person.keypoints);
    add_whole(facts, std::move(person), settings, results);
  };
  match.picture = picture_of(Family::heat_maps);
  return match;
}

Match match_simcc(const ModelFacts& facts) {
  const std::string needs = "needs an output for each axis, [1,K,bins of x] and [1,K,bins of y]";
  if (facts.outputs.size() != 2) return {Fit::no, needs, {}};
  const auto x = table_of(facts.outputs[0]), y = table_of(facts.outputs[1]);
  if (!x || !y || x->rows != y->rows || x->rows < 2 || x->rows > 1024) return {Fit::no, needs, {}};
  // Takes x first unless names or sizes say otherwise.
  const auto bins = [](const Table& table, int size) {
    return size > 0 && table.columns >= static_cast<size_t>(size) &&
           table.columns % static_cast<size_t>(size) == 0;
  };
  const bool turned = has_word(facts.outputs[0], {"simcc_y"}) ||
                      (!bins(*x, facts.width) && bins(*y, facts.width) && bins(*x, facts.height));
  const Table across = turned ? *y : *x, down = turned ? *x : *y;
  if (!bins(across, facts.width) || !bins(down, facts.height) ||
      across.columns / static_cast<size_t>(facts.width) !=
          down.columns / static_cast<size_t>(facts.height))
    return {Fit::no, needs, {}};
  const float per_pixel = static_cast<float>(across.columns / static_cast<size_t>(facts.width));
  const bool named = has_word(facts.outputs[0], {"simcc_x", "simcc_y"});
  Match match;
  match.fit = named ? Fit::certain : Fit::likely;
  match.reason = std::to_string(x->rows) + " points, " + std::to_string(across.columns) + " and " +
                 std::to_string(down.columns) + " bins";
  match.decode = [facts, across, down, per_pixel, turned](std::span<const Tensor> outputs,
                                                          const DecodeSettings& settings,
                                                          Results& results) {
    const size_t first = turned ? 1 : 0;
    const Floats bins_x(output_of(outputs, first, across.rows * across.columns)),
        bins_y(output_of(outputs, 1 - first, down.rows * down.columns));
    std::vector<float> buffer;
    const auto peak = [&](const Floats& values, const Table& table, size_t row) {
      const float* v = values.run(row * table.columns, table.columns, buffer);
      const float* most = std::max_element(v, v + table.columns,
                                           [](float a, float b) { return a < b || std::isnan(a); });
      return std::pair(static_cast<float>(most - v), *most);
    };
    Detection person;
    person.skeleton = skeleton_for(across.rows);
    for (size_t k = 0; k < across.rows; ++k) {
      const auto [column, sure_x] = peak(bins_x, across, k);
      const auto [row, sure_y] = peak(bins_y, down, k);
      person.keypoints.push_back({column / per_pixel + 0.5f, row / per_pixel + 0.5f,
                                  peak_confidence(std::min(sure_x, sure_y))});
    }
    person.confidence = mean_confidence(person.keypoints);
    add_whole(facts, std::move(person), settings, results);
  };
  match.picture = picture_of(Family::rtmpose);
  return match;
}

Match match_movenet(const ModelFacts& facts) {
  constexpr size_t kPoints = 17, kRow = 3 * kPoints, kRowWithBox = kRow + 5;
  const std::string needs =
      "needs one output, [1,1,17,3] of a person or [1,6,56] of several: y, x, score";
  if (facts.outputs.size() != 1 || !is_float_output(facts.outputs[0])) return {Fit::no, needs, {}};
  const Shape shape = squeeze_front(facts.outputs[0].shape);
  const bool single = shape == Shape{kPoints, 3};
  const bool several = shape.size() == 2 && shape[1] == kRowWithBox && shape[0] <= 20;
  // [1,56,6] has axes that a converter has swapped, or rows of boxes.
  const bool turned = shape.size() == 2 && shape[0] == kRowWithBox && shape[1] <= 20;
  if (!single && !several && !turned) return {Fit::no, needs, {}};
  const size_t persons = single ? 1 : static_cast<size_t>(shape[turned ? 1 : 0]);
  Match match;
  match.fit = turned ? Fit::possible : single || shape[0] == 6 ? Fit::certain : Fit::likely;
  match.reason = "17 points as y, x, score of " + std::to_string(persons) + " persons";
  match.decode = [facts, persons, single, turned](std::span<const Tensor> outputs,
                                                  const DecodeSettings& settings,
                                                  Results& results) {
    const size_t size = single ? kRow : kRowWithBox;
    const Floats values(output_of(outputs, 0, persons * size));
    const auto value = [&](size_t person, size_t k) {
      return values[turned ? k * persons + person : person * size + k];
    };
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    Candidates candidates(settings);
    std::vector<std::vector<KeyPoint>> points(persons);
    for (size_t p = 0; p < persons; ++p) {
      for (size_t k = 0; k < kPoints; ++k) {
        points[p].push_back(
            {value(p, 3 * k + 1) * width, value(p, 3 * k) * height, value(p, 3 * k + 2)});
        candidates.expect_probability(points[p].back().confidence);
      }
      if (single) {
        candidates.add(0, 0, width, height, mean_confidence(points[p]), 0, p);
        continue;
      }
      candidates.expect_probability(value(p, kRow + 4));
      candidates.add(value(p, kRow + 1) * width, value(p, kRow) * height,
                     value(p, kRow + 3) * width, value(p, kRow + 2) * height, value(p, kRow + 4), 0,
                     p);
    }
    finish(settings, Suppression::none, candidates, results,
           [&](const Candidate& candidate, Detection& detection) {
             if (single) detection.subject = Subject::whole;
             detection.skeleton = Skeleton::coco17;
             detection.keypoints = points[candidate.row];
           });
  };
  match.picture = picture_of(Family::movenet);
  return match;
}

namespace {

// OpenSeeFace: a map of scores for each point, then maps of its offsets down and to the right. Cells
// stand for evenly spread places from the first pixel to the last; an offset is the logit of its
// number, as a share of the picture.
struct OffsetMaps {
  ModelFacts facts;
  MapLayout map;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const size_t points = map.channels / 3;
    const Floats values(output_of(outputs, map.index, map.elements()));
    Detection whole;
    std::vector<KeyPoint> found;
    const auto shift = [&](size_t channel, size_t cell) {
      // The trackers divide by 16 for these sizes.
      constexpr float kFactor = 16, kLeast = 1e-7f;
      return logit(std::clamp(values[map.at(channel, cell)], kLeast, 1 - kLeast)) / kFactor;
    };
    const auto last = [](auto size) { return static_cast<float>(size) - 1; };
    for (size_t k = 0; k < points; ++k) {
      size_t best = 0;
      for (size_t cell = 1; cell < map.cells(); ++cell)
        if (values[map.at(k, cell)] > values[map.at(k, best)]) best = cell;
      const float score = values[map.at(k, best)];
      if (!(score >= -0.5f && score <= 1.5f)) {  // trained towards 0 and 1
        results.contradiction = "a score of a point is far from 0 to 1";
        return;
      }
      const float row = static_cast<float>(best / map.columns) / last(map.rows),
                  column = static_cast<float>(best % map.columns) / last(map.columns);
      found.push_back({last(facts.width) * (column + shift(2 * points + k, best)),
                       last(facts.height) * (row + shift(points + k, best)),
                       peak_confidence(score)});
    }
    whole.confidence = mean_confidence(found);
    for (const KeyPoint& point : found) whole.landmarks.push_back({point.x, point.y});
    whole.skeleton = skeleton_for(points);
    add_whole(facts, std::move(whole), settings, results);
  }
};

}  // namespace

Match match_offset_maps(const ModelFacts& facts) {
  constexpr size_t kPoints = 66;
  const auto map = facts.outputs.size() == 1 && is_float_output(facts.outputs[0])
                       ? map_layout(facts, 0)
                       : std::nullopt;
  if (!map || map->channels != 3 * kPoints || map->rows < 2 || map->columns < 2 ||
      map->rows * 8 != static_cast<size_t>(facts.height) ||
      map->columns * 8 != static_cast<size_t>(facts.width))
    return {Fit::no, "needs maps of scores and offsets of 66 points at stride 8", {}};
  Match match;
  match.fit = Fit::certain;
  match.reason = "scores and offsets of 66 points of a face";
  match.decode = OffsetMaps{facts, *map};
  match.picture = picture_of(Family::face_tracker);
  match.class_names = {"face"};
  return match;
}

}  // namespace clinfer
