// Reads anchor-free heads on feature maps: CenterNet and CenterFace (peaks of a heat map), FCOS,
// and TAO's DetectNet_v2.
#include "engine/heads/boxes/grids.h"

#include <algorithm>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/points/points.h"

namespace clinfer {

std::optional<Map> map_of(const ModelFacts& facts, size_t output, int stride) {
  const Shape& s = facts.outputs[output].shape;
  if (s.size() != 4 || s[0] != 1 || !is_float_output(facts.outputs[output])) return std::nullopt;
  const int64_t rows = (facts.height + stride - 1) / stride;
  const int64_t columns = (facts.width + stride - 1) / stride;
  const auto size = [&](size_t d) { return static_cast<size_t>(s[d]); };
  if (s[2] == rows && s[3] == columns) return Map{output, size(1), size(2), size(3), false};
  if (s[1] == rows && s[2] == columns) return Map{output, size(3), size(1), size(2), true};
  return std::nullopt;
}

std::vector<Map> maps_of(const ModelFacts& facts, int stride) {
  std::vector<Map> maps;
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (const auto map = map_of(facts, i, stride)) maps.push_back(*map);
  // If a map has as many channels as rows and columns, the other maps tell which dimension is last.
  const bool last =
      std::any_of(maps.begin(), maps.end(), [](const Map& map) { return map.channels_last; });
  for (Map& map : maps)
    map.channels_last =
        map.channels_last || (last && map.channels == map.rows && map.rows == map.columns);
  return maps;
}

bool has_logits(const Floats& values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < -0.01f || values[i] > 1.01f) return true;
  return false;
}

namespace {

// Returns whether a value is the largest of its 3 x 3 neighbours in its channel; of equal ones the
// first.
bool is_peak(const Map& map, const Floats& values, size_t channel, size_t x, size_t y) {
  const float value = values[map.at(channel, y * map.columns + x)];
  for (size_t j = y > 0 ? y - 1 : 0; j <= y + 1 && j < map.rows; ++j)
    for (size_t i = x > 0 ? x - 1 : 0; i <= x + 1 && i < map.columns; ++i) {
      const float other = values[map.at(channel, j * map.columns + i)];
      const bool earlier = j < y || (j == y && i < x);
      if (other > value || (earlier && other == value)) return false;
    }
  return true;
}

struct CenterHead {
  ModelFacts facts;
  Map heat, size, offset;
  std::optional<Map> points;
  bool face = false;  // CenterFace: sizes are logarithms, y before x
  float stride = 4;
  Decided squashed;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats heats(output_of(outputs, heat.output, heat.elements()));
    const Floats sizes(output_of(outputs, size.output, size.elements()));
    const Floats offsets(output_of(outputs, offset.output, offset.elements()));
    std::optional<Floats> marks;
    if (points) marks.emplace(output_of(outputs, points->output, points->elements()));
    const bool raw = squashed.settle(has_logits(heats) ? Decided::second : Decided::first,
                                     Decided::first) == Decided::second;
    Candidates candidates(settings);
    const size_t y_axis = face ? 0 : 1, x_axis = 1 - y_axis;
    for (size_t channel = 0; channel < heat.channels; ++channel)
      for (size_t y = 0; y < heat.rows; ++y)
        for (size_t x = 0; x < heat.columns; ++x) {
          const size_t cell = y * heat.columns + x;
          const float value = heats[heat.at(channel, cell)];
          const float score = raw ? sigmoid(value) : value;
          if (!(score >= settings.threshold)) continue;
          if (!face && !is_peak(heat, heats, channel, x, y)) continue;
          float w = sizes[size.at(x_axis, cell)], h = sizes[size.at(y_axis, cell)];
          if (face) w = std::exp(w), h = std::exp(h);
          const float middle = face ? 0.5f : 0;
          candidates.add_centered(
              (static_cast<float>(x) + offsets[offset.at(x_axis, cell)] + middle) * stride,
              (static_cast<float>(y) + offsets[offset.at(y_axis, cell)] + middle) * stride,
              w * stride, h * stride, score, static_cast<double>(channel), cell);
        }
    finish(settings, suppression_of(facts, face ? Family::centerface : Family::centernet),
           candidates, results, [&](const Candidate& kept, Detection& detection) {
             if (!marks) return;
             detection.skeleton = Skeleton::face5;
             const float w = kept.x_max - kept.x_min, h = kept.y_max - kept.y_min;
             for (size_t k = 0; k < 5; ++k)
               detection.landmarks.push_back(
                   {kept.x_min + (*marks)[points->at(2 * k + 1, kept.row)] * w,
                    kept.y_min + (*marks)[points->at(2 * k, kept.row)] * h});
           });
  }
};

// Outputs of one level of FCOS, or of all levels one after the other (torchvision).
struct FcosLevel {
  GridLevel grid;
  Map classes, boxes, centers;  // as maps, or columns of tables with rows 1
  size_t first = 0;             // first cell in a table
};

struct FcosHead {
  ModelFacts facts;
  std::vector<FcosLevel> levels;
  float middle = 0.5f;  // place in a cell, in strides; torchvision's anchors stand on the corners
  Decided squashed;

  Family family() const { return middle == 0 ? Family::torchvision_fcos : Family::fcos; }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    Candidates candidates(settings);
    for (const FcosLevel& level : levels) {
      const Floats classes(output_of(outputs, level.classes.output, level.classes.elements()));
      const Floats boxes(output_of(outputs, level.boxes.output, level.boxes.elements()));
      const Floats centers(output_of(outputs, level.centers.output, level.centers.elements()));
      const bool raw = squashed.settle(has_logits(classes) || has_logits(centers) ? Decided::second
                                                                                  : Decided::open,
                                       Decided::second) == Decided::second;
      const size_t columns = static_cast<size_t>(level.grid.columns);
      for (size_t i = 0; i < columns * static_cast<size_t>(level.grid.rows); ++i) {
        const size_t cell = level.first + i;
        size_t best = 0;
        for (size_t k = 1; k < level.classes.channels; ++k)
          if (classes[level.classes.at(k, cell)] > classes[level.classes.at(best, cell)]) best = k;
        const float a = classes[level.classes.at(best, cell)],
                    b = centers[level.centers.at(0, cell)];
        const float score = std::sqrt(raw ? sigmoid(a) * sigmoid(b) : std::max(a, 0.0f) * b);
        if (!(score >= settings.threshold)) continue;
        const float x = (static_cast<float>(i % columns) + middle) * level.grid.x_step;
        const float y = (static_cast<float>(i / columns) + middle) * level.grid.y_step;
        const auto side = [&](size_t k) {
          return std::max(boxes[level.boxes.at(k, cell)], 0.0f) * level.grid.x_step;
        };
        candidates.add(x - side(0), y - side(1), x + side(2), y + side(3), score,
                       static_cast<double>(best), cell);
      }
    }
    finish(settings, suppression_of(facts, family()), candidates, results);
  }
};

// Finds tables [1,N,C], [1,N,4] and [1,N,1] over all levels.
std::optional<FcosHead> fcos_tables(const ModelFacts& facts) {
  std::optional<size_t> classes, boxes, centers;
  size_t rows = 0, columns = 0;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto table = table_of(facts.outputs[i]);
    if (!table || (rows != 0 && table->rows != rows)) return std::nullopt;
    rows = table->rows;
    if (table->columns == 4 && !boxes && !name_has(facts.outputs[i], {"cls", "class"})) {
      boxes = i;
    } else if (table->columns == 1 && !centers && name_has(facts.outputs[i], {"ctr", "center"})) {
      centers = i;
    } else if (!classes) {
      classes = i;
      columns = table->columns;
    } else {
      return std::nullopt;
    }
  }
  if (!classes || !boxes || !centers) return std::nullopt;
  const auto grids = grid_levels(facts, static_cast<int64_t>(rows), 1);
  if (!grids) return std::nullopt;
  FcosHead head{facts, {}, 0, {}};
  size_t first = 0;
  for (const GridLevel& grid : *grids) {
    const auto map = [&](size_t output, size_t channels) {
      return Map{output, channels, 1, rows, true};
    };
    head.levels.push_back({grid, map(*classes, columns), map(*boxes, 4), map(*centers, 1), first});
    first += static_cast<size_t>(grid.columns) * static_cast<size_t>(grid.rows);
  }
  return head;
}

// Finds maps [1,C,h,w], [1,4,h,w] and [1,1,h,w] at each level.
std::optional<FcosHead> fcos_maps(const ModelFacts& facts) {
  FcosHead head{facts, {}, 0.5f, {}};
  for (const int stride : {4, 8, 16, 32, 64, 128}) {
    FcosLevel level;
    int parts = 0;
    for (const Map& map : maps_of(facts, stride)) {
      const OutputFacts& output = facts.outputs[map.output];
      if (map.channels == 4 && name_has(output, {"reg", "box"}))
        level.boxes = map, parts |= 1;
      else if (map.channels == 1 && name_has(output, {"ctr", "center"}))
        level.centers = map, parts |= 2;
      else if (name_has(output, {"cls", "class", "logit", "score"}))
        level.classes = map, parts |= 4;
    }
    if (parts != 7) continue;
    level.grid = {static_cast<int>(level.boxes.columns), static_cast<int>(level.boxes.rows),
                  static_cast<float>(stride), static_cast<float>(stride)};
    head.levels.push_back(level);
  }
  if (head.levels.size() < 2 || head.levels.size() * 3 != facts.outputs.size()) return std::nullopt;
  return head;
}

struct DetectNetHead {
  ModelFacts facts;
  Map cover, boxes;
  int stride = 16;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    constexpr float kNorm = 35;  // TAO's unit for boxes, in pixels
    const Floats covers(output_of(outputs, cover.output, cover.elements()));
    const Floats values(output_of(outputs, boxes.output, boxes.elements()));
    Candidates candidates(settings);
    for (size_t channel = 0; channel < cover.channels; ++channel)
      for (size_t cell = 0; cell < cover.rows * cover.columns; ++cell) {
        const float score = covers[cover.at(channel, cell)];
        candidates.expect_probability(score);
        if (!(score >= settings.threshold)) continue;
        const float x =
            static_cast<float>(cell % cover.columns) * static_cast<float>(stride) + 0.5f;
        const float y =
            static_cast<float>(cell / cover.columns) * static_cast<float>(stride) + 0.5f;
        const auto side = [&](size_t k) { return values[boxes.at(4 * channel + k, cell)] * kNorm; };
        candidates.add(x - side(0), y - side(1), x + side(2), y + side(3), score,
                       static_cast<double>(channel), cell);
      }
    finish(settings, suppression_of(facts, Family::detectnet), candidates, results);
  }
};

}  // namespace

Match match_centernet(const ModelFacts& facts) {
  const std::vector<Map> maps = maps_of(facts, 4);
  std::optional<Map> heat, size, offset;
  for (const Map& map : maps) {
    const OutputFacts& output = facts.outputs[map.output];
    if (has_word(output, {"hm", "heatmap", "heat"}) && !heat)
      heat = map;
    else if (has_word(output, {"wh", "size"}) && map.channels == 2 && !size)
      size = map;
    else if (has_word(output, {"reg", "offset", "off"}) && map.channels == 2 && !offset)
      offset = map;
  }
  // One class, with ten channels in another map, means a face and its points.
  const bool face =
      heat && heat->channels == 1 &&
      std::any_of(maps.begin(), maps.end(), [](const Map& map) { return map.channels == 10; });
  const bool named = heat && size && offset && !face;
  if (!named && maps.size() == facts.outputs.size()) {
    // Uses the network's order: heat map, in some exports its maximum over neighbours, sizes,
    // offsets.
    const bool twice = maps.size() == 4 && maps[0].channels == maps[1].channels;
    if (maps.size() == 3 || twice)
      heat = maps[0], size = maps[maps.size() - 2], offset = maps[maps.size() - 1];
  }
  if (!heat || !size || !offset || face || size->channels != 2 || offset->channels != 2)
    return {Fit::no, "needs a heat map, sizes and offsets [1,2,h/4,w/4]", {}};
  CenterHead head{facts, *heat, *size, *offset, {}, false, 4, {}};
  Match match;
  match.decode = head;
  match.reason = "heat map, sizes and offsets at a quarter of the input";
  match.fit = named ? Fit::certain : heat->channels == 80 ? Fit::likely : Fit::possible;
  match.picture = picture_of(Family::centernet);
  match.classes = heat->channels;
  return match;
}

Match match_centerface(const ModelFacts& facts) {
  std::optional<Map> heat, points;
  std::vector<Map> pairs;
  for (const Map& map : maps_of(facts, 4)) {
    if (map.channels == 1 && !heat)
      heat = map;
    else if (map.channels == 10 && !points)
      points = map;
    else if (map.channels == 2)
      pairs.push_back(map);
  }
  if (!heat || pairs.size() != 2 || !points || facts.outputs.size() != 4)
    return {Fit::no, "needs maps of 1, 2, 2 and 10 channels at a quarter of the input", {}};
  // Sizes come before offsets, and points last; converters may reverse the order, or lose it. If
  // all names are numbers, these give the order.
  const bool numbered =
      std::all_of(facts.outputs.begin(), facts.outputs.end(),
                  [](const OutputFacts& output) { return number_of(output.name).has_value(); });
  const auto rank = [&](const Map& map) {
    return numbered ? *number_of(facts.outputs[map.output].name) : uint64_t{map.output};
  };
  if (rank(pairs[1]) < rank(pairs[0])) std::swap(pairs[0], pairs[1]);
  const OutputFacts &a = facts.outputs[pairs[0].output], &b = facts.outputs[pairs[1].output];
  const bool in_order = rank(*heat) < rank(pairs[0]) && rank(pairs[1]) < rank(*points);
  const bool turned_round = rank(*points) < rank(pairs[0]) && rank(pairs[1]) < rank(*heat);
  const auto of_sizes = {"wh", "size", "scale"}, of_offsets = {"off", "reg"};
  const bool named = name_has(a, of_sizes) || name_has(b, of_sizes) || name_has(a, of_offsets) ||
                     name_has(b, of_offsets);
  const bool swapped =
      named ? name_has(a, of_offsets) || name_has(b, of_sizes) : !in_order && turned_round;
  if (swapped) std::swap(pairs[0], pairs[1]);
  CenterHead head{facts, *heat, pairs[0], pairs[1], points, true, 4, {}};
  Match match;
  match.decode = head;
  match.reason = "heat map, sizes, offsets and five points at a quarter of the input";
  match.fit = Fit::certain;
  match.unsure = !named && !in_order && !turned_round;
  if (match.unsure)
    match.assumptions.push_back(
        "no name says which of the outputs " + a.name + " and " + b.name +
        " are sizes and which are offsets; " + facts.outputs[pairs[0].output].name +
        " is read as sizes, and raw tensors are attached beside; models that list their outputs in "
        "the order heat map, sizes, offsets, points say it");
  match.picture = picture_of(Family::centerface);
  match.classes = 1;
  match.class_names = {"face"};
  return match;
}

Match match_fcos(const ModelFacts& facts) {
  auto head = fcos_tables(facts);
  if (!head) head = fcos_maps(facts);
  if (!head) return {Fit::no, "needs classes, distances and centerness at each level", {}};
  Match match;
  match.reason =
      "classes, distances and centerness of " + std::to_string(head->levels.size()) + " levels";
  match.classes = head->levels[0].classes.channels;
  match.fit = Fit::certain;
  match.picture = picture_of(head->family());
  match.decode = *head;
  return match;
}

Match match_detectnet(const ModelFacts& facts) {
  for (const int stride : {16, 8, 32}) {
    const std::vector<Map> maps = maps_of(facts, stride);
    if (maps.size() != 2 || facts.outputs.size() != 2) continue;
    const size_t boxes = maps[0].channels == 4 * maps[1].channels ? 0 : 1;
    const Map &box = maps[boxes], &cover = maps[1 - boxes];
    if (box.channels != 4 * cover.channels) continue;
    const bool named = name_has(facts.outputs[cover.output], {"cov"}) ||
                       name_has(facts.outputs[box.output], {"bbox"});
    DetectNetHead head{facts, cover, box, stride};
    Match match;
    match.decode = head;
    match.reason = "coverage and boxes at stride " + std::to_string(stride);
    match.fit = named ? Fit::certain : Fit::possible;
    match.picture = picture_of(Family::detectnet);
    match.classes = cover.channels;
    return match;
  }
  return {Fit::no, "needs coverage [1,C,h,w] and boxes [1,4*C,h,w] at stride 16", {}};
}

}  // namespace clinfer
