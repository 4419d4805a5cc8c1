// Reads offsets to prior boxes, with variances as in SSD: RetinaFace, UltraFace before its last
// step, RetinaNet, EfficientDet, and MediaPipe's detectors (BlazeFace, palms, persons).
#include <algorithm>
#include <array>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/boxes/grids.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

// Centre and size in network pixels.
struct Prior {
  float x = 0, y = 0, width = 0, height = 0;
};

struct PriorLevel {
  int stride = 0;
  std::vector<float> sizes;  // of square boxes, in network pixels
};

// Returns priors cell by cell, the boxes of a cell in the order of their sizes. `center`: of a
// cell, in steps.
std::vector<Prior> square_priors(const ModelFacts& facts, const std::vector<PriorLevel>& levels) {
  std::vector<Prior> priors;
  for (const PriorLevel& level : levels) {
    const int columns = (facts.width + level.stride - 1) / level.stride;
    const int rows = (facts.height + level.stride - 1) / level.stride;
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x)
        for (const float size : level.sizes)
          priors.push_back({(static_cast<float>(x) + 0.5f) * static_cast<float>(level.stride),
                            (static_cast<float>(y) + 0.5f) * static_cast<float>(level.stride), size,
                            size});
  }
  return priors;
}

const std::vector<PriorLevel> kRetinaFace = {{8, {16, 32}}, {16, {64, 128}}, {32, {256, 512}}};
const std::vector<PriorLevel> kUltraFace = {
    {8, {10, 16, 24}}, {16, {32, 48}}, {32, {64, 96}}, {64, {128, 192, 256}}};

// Returns the priors of YuNet's first form, whose maps are halved by rounding down.
std::vector<Prior> yunet_priors(const ModelFacts& facts) {
  std::vector<Prior> priors;
  int columns = (facts.width + 1) / 2 / 2, rows = (facts.height + 1) / 2 / 2;
  for (const PriorLevel& level : kUltraFace) {
    columns /= 2, rows /= 2;
    const auto step = static_cast<float>(level.stride);
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x)
        for (const float size : level.sizes)
          priors.push_back({(static_cast<float>(x) + 0.5f) * step,
                            (static_cast<float>(y) + 0.5f) * step, size, size});
  }
  return priors;
}

// Returns the priors of a face network with `rows` rows; empty if it is unknown.
std::vector<Prior> face_priors(const ModelFacts& facts, size_t rows) {
  if (std::vector<Prior> priors = yunet_priors(facts); priors.size() == rows) return priors;
  for (const auto* levels : {&kRetinaFace, &kUltraFace}) {
    std::vector<Prior> priors = square_priors(facts, *levels);
    if (priors.size() == rows) return priors;
  }
  return {};
}

// Decodes a box as SSD encodes it: offsets of the centre in sizes of the prior times 0.1,
// logarithms of sizes times 0.2.
Prior ssd_decoded(const Prior& prior, const float* offset) {
  return {prior.x + offset[0] * 0.1f * prior.width, prior.y + offset[1] * 0.1f * prior.height,
          prior.width * std::exp(offset[2] * 0.2f), prior.height * std::exp(offset[3] * 0.2f)};
}

struct FaceOutputs {
  size_t rows = 0;
  std::optional<size_t> boxes, scores, points, overlaps;
  size_t point_count = 5;  // five for a face, four for a plate
  bool joined = false;     // YuNet's first form: boxes and points in one output [N,14]
};

FaceOutputs find_face_outputs(const ModelFacts& facts) {
  FaceOutputs found;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto table = table_of(facts.outputs[i]);
    if (!table || (found.rows != 0 && table->rows != found.rows)) return {};
    found.rows = table->rows;
    std::optional<size_t>* place = table->columns == 4    ? &found.boxes
                                   : table->columns == 14 ? &found.boxes
                                   : table->columns == 2  ? &found.scores
                                   : table->columns == 1  ? &found.overlaps
                                   : table->columns >= 6 && table->columns % 2 == 0 ? &found.points
                                                                                    : nullptr;
    if (place == nullptr || *place) return {};
    *place = i;
    if (place == &found.points) found.point_count = table->columns / 2;
    if (table->columns == 14) found.joined = true;
  }
  return found;
}

struct FaceHead {
  ModelFacts facts;
  Family family;
  FaceOutputs parts;
  std::vector<Prior> priors;
  int first_label = 0;      // label of the first class that is no background
  size_t classes = 2;       // including the background
  Decided larger, smaller;  // first: priors are as many times larger, or smaller, as kSizes says

  // Detectors of plates are trained with priors from 16, 24 or 12 pixels on, which no shape tells.
  // Many priors see the same plate, and only by the right sizes do their boxes agree.
  static constexpr std::array<float, 3> kSizes = {1, 1.5f, 0.75f};
  float size_of_priors(const Floats& boxes, const std::vector<size_t>& likely, size_t best) const {
    constexpr size_t kEnough = 8;
    constexpr double kSurely = 0.6;  // of the spread by other sizes
    if (parts.point_count != 4) return 1;
    std::array<double, kSizes.size()> spread{};
    size_t near = 0;
    std::vector<float> buffer;
    const auto box_of = [&](size_t i, float size) {
      Prior prior = priors[i];
      prior.width *= size;
      prior.height *= size;
      return ssd_decoded(prior, boxes.run(i * 4, 4, buffer));
    };
    for (const size_t i : likely) {
      const Prior seen = box_of(best, 1), other = box_of(i, 1);
      if (i == best || std::fabs(other.x - seen.x) > seen.width ||
          std::fabs(other.y - seen.y) > seen.height)
        continue;
      ++near;
      for (size_t k = 0; k < kSizes.size(); ++k) {
        const Prior a = box_of(best, kSizes[k]), b = box_of(i, kSizes[k]);
        spread[k] += (std::fabs(a.x - b.x) + std::fabs(a.width - b.width)) / a.width +
                     (std::fabs(a.y - b.y) + std::fabs(a.height - b.height)) / a.height;
      }
    }
    std::array<size_t, kSizes.size()> order = {0, 1, 2};
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return spread[a] < spread[b]; });
    const bool sure = near >= kEnough && spread[order[0]] < kSurely * spread[order[1]];
    const auto is = [&](size_t k) {
      return !sure ? Decided::open : order[0] == k ? Decided::first : Decided::second;
    };
    if (larger.settle(is(1), Decided::second) == Decided::first) return kSizes[1];
    return smaller.settle(is(2), Decided::second) == Decided::first ? kSizes[2] : 1;
  }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const size_t n = priors.size(), width = parts.joined ? 14 : 4;
    const Floats boxes(output_of(outputs, *parts.boxes, n * width));
    const Floats scores(output_of(outputs, *parts.scores, n * classes));
    std::optional<Floats> points, overlaps;
    const size_t numbers = 2 * parts.point_count;
    if (parts.points) points.emplace(output_of(outputs, *parts.points, n * numbers));
    if (parts.overlaps) overlaps.emplace(output_of(outputs, *parts.overlaps, n));
    Candidates candidates(settings);
    std::vector<float> buffer;
    const size_t first = convention_of(family).background == Background::first ? 1 : 0;
    const auto class_of = [&](size_t i) {
      size_t best = first;
      for (size_t k = first + 1; k < classes; ++k)
        if (scores[classes * i + k] > scores[classes * i + best]) best = k;
      return best;
    };
    std::vector<size_t> likely;
    size_t surest = 0;
    for (size_t i = 0; i < n && parts.point_count == 4; ++i) {
      if (scores[classes * i + class_of(i)] > scores[classes * surest + class_of(surest)])
        surest = i;
      if (scores[classes * i + class_of(i)] >= settings.threshold) likely.push_back(i);
    }
    const float size = size_of_priors(boxes, likely, surest);
    const auto prior_of = [&](size_t i) {
      Prior prior = priors[i];
      prior.width *= size;
      prior.height *= size;
      return prior;
    };
    for (size_t i = 0; i < n; ++i) {
      const size_t best = class_of(i);
      const float p = scores[classes * i + best];
      candidates.expect_probability(p);
      const float score =
          overlaps ? std::sqrt(std::clamp(p, 0.0f, 1.0f) * std::clamp((*overlaps)[i], 0.0f, 1.0f))
                   : p;
      if (!(score >= settings.threshold)) continue;
      const Prior box = ssd_decoded(prior_of(i), boxes.run(i * width, 4, buffer));
      candidates.add_centered(box.x, box.y, box.width, box.height, score,
                              first_label + static_cast<double>(best - 1), i);
    }
    finish(settings, suppression_of(facts, family), candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             if (!points && !parts.joined) return;
             detection.skeleton = skeleton_for(parts.point_count);
             const Prior prior = prior_of(kept.row);
             for (size_t k = 0; k < parts.point_count; ++k) {
               const auto at = [&](size_t axis) {
                 return parts.joined ? boxes[kept.row * 14 + 4 + 2 * k + axis]
                                     : (*points)[kept.row * numbers + 2 * k + axis];
               };
               detection.landmarks.push_back(
                   {prior.x + at(0) * 0.1f * prior.width, prior.y + at(1) * 0.1f * prior.height});
             }
           });
  }
};

// ---- RetinaNet and EfficientDet: nine boxes a cell at strides 8 to 128 --------------------------

enum class Nine { torchvision, keras, efficientdet };

std::vector<Prior> nine_priors(const ModelFacts& facts, Nine kind) {
  std::vector<Prior> priors;
  for (int level = 3; level <= 7; ++level) {
    const int stride = 1 << level;
    const int columns = (facts.width + stride - 1) / stride;
    const int rows = (facts.height + stride - 1) / stride;
    std::vector<Prior> cell;
    const float base = 4.0f * static_cast<float>(stride);
    if (kind == Nine::efficientdet) {
      for (int octave = 0; octave < 3; ++octave)
        for (const auto& [w, h] : {std::pair{1.0f, 1.0f}, {1.4f, 0.7f}, {0.7f, 1.4f}}) {
          const float size = base * std::pow(2.0f, static_cast<float>(octave) / 3);
          cell.push_back({0, 0, size * w, size * h});
        }
    } else {
      for (const float ratio : {0.5f, 1.0f, 2.0f})
        for (int octave = 0; octave < 3; ++octave) {
          float size = base * std::pow(2.0f, static_cast<float>(octave) / 3);
          if (kind == Nine::torchvision) size = std::floor(size);
          float w = size / std::sqrt(ratio), h = size * std::sqrt(ratio);
          if (kind == Nine::torchvision)
            w = 2 * std::nearbyint(w / 2), h = 2 * std::nearbyint(h / 2);
          cell.push_back({0, 0, w, h});
        }
    }
    const float center = kind == Nine::torchvision ? 0 : 0.5f;
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x)
        for (Prior box : cell) {
          box.x = (static_cast<float>(x) + center) * static_cast<float>(stride);
          box.y = (static_cast<float>(y) + center) * static_cast<float>(stride);
          priors.push_back(box);
        }
  }
  return priors;
}

struct NineHead {
  ModelFacts facts;
  Family family;
  Nine kind;
  size_t boxes = 0, scores = 0, classes = 0;
  std::vector<Prior> priors;
  bool logits = false;  // according to names; otherwise the first inference decides
  Decided squashed;     // first: probabilities

  Prior decoded(const Prior& prior, const float* d) const {
    if (kind == Nine::efficientdet)
      return {prior.x + d[1] * prior.width, prior.y + d[0] * prior.height,
              prior.width * std::exp(std::min(d[3], 20.0f)),
              prior.height * std::exp(std::min(d[2], 20.0f))};
    if (kind == Nine::torchvision)
      return {prior.x + d[0] * prior.width, prior.y + d[1] * prior.height,
              prior.width * std::exp(std::min(d[2], 4.135f)),
              prior.height * std::exp(std::min(d[3], 4.135f))};
    // Adds offsets of the corners, with a deviation of 0.2.
    const float left = prior.x + prior.width * (0.2f * d[0] - 0.5f);
    const float top = prior.y + prior.height * (0.2f * d[1] - 0.5f);
    const float right = prior.x + prior.width * (0.2f * d[2] + 0.5f);
    const float bottom = prior.y + prior.height * (0.2f * d[3] + 0.5f);
    return {(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
  }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const size_t n = priors.size();
    const Floats offsets(output_of(outputs, boxes, n * 4));
    const Floats values(output_of(outputs, scores, n * classes));
    std::vector<float> buffer, box_buffer;
    Decided::Kind seen = logits ? Decided::second : Decided::open;
    for (size_t i = 0; i < n * classes && seen == Decided::open; ++i)
      if (values[i] < -0.01f || values[i] > 1.01f) seen = Decided::second;
    if (seen == Decided::open) seen = Decided::first;
    const bool raw = squashed.settle(seen, Decided::first) == Decided::second;
    Candidates candidates(settings);
    for (size_t i = 0; i < n; ++i) {
      const float* row = values.run(i * classes, classes, buffer);
      size_t best = 0;
      for (size_t k = 1; k < classes; ++k)
        if (row[k] > row[best]) best = k;
      if (!raw) candidates.expect_probability(row[best]);
      const float score = raw ? sigmoid(row[best]) : row[best];
      if (!(score >= settings.threshold)) continue;
      const Prior box = decoded(priors[i], offsets.run(i * 4, 4, box_buffer));
      candidates.add_centered(box.x, box.y, box.width, box.height, score, static_cast<double>(best),
                              i);
    }
    finish(settings, suppression_of(facts, family), candidates, results);
  }
};

// Matches offsets [1,N,4] and scores [1,N,C] by names; N must be nine boxes for each cell.
Match match_nine(const ModelFacts& facts, bool efficientdet) {
  std::optional<size_t> boxes, scores;
  Table table;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto found = table_of(facts.outputs[i]);
    if (!found) continue;
    if (found->columns == 4 && !boxes && !name_has(facts.outputs[i], {"anchor", "score"})) {
      boxes = i;
      table.rows = found->rows;
    } else if (!scores && !name_has(facts.outputs[i], {"anchor", "box", "regress"})) {
      scores = i;
      table.columns = found->columns;
    }
  }
  if (!boxes || !scores ||
      count(facts.outputs[*scores].shape) != static_cast<int64_t>(table.rows * table.columns))
    return {Fit::no, "needs offsets [1,N,4] and scores [1,N,C] of nine boxes a cell", {}};
  const OutputFacts &box = facts.outputs[*boxes], &score = facts.outputs[*scores];
  const bool tv = name_has(score, {"cls_logits"}) || name_has(box, {"bbox_regression"});
  const bool named = tv || name_has(box, {"regress"}) || name_has(score, {"classification"});
  const std::string name = lower(facts.name), type = lower(info(facts, "model_type"));
  const bool efficient = name.find("efficientdet") != std::string::npos ||
                         type.find("efficientdet") != std::string::npos ||
                         (!tv && table.columns == 90);
  const Nine kind = efficientdet ? Nine::efficientdet : tv ? Nine::torchvision : Nine::keras;
  const Family family = tv                    ? Family::torchvision_retinanet
                        : efficientdet        ? Family::efficientdet
                        : facts.channels_last ? Family::keras_retinanet
                                              : Family::retinanet;
  NineHead head{facts, family, kind, *boxes, *scores, table.columns, nine_priors(facts, kind),
                tv,    {}};
  if (head.priors.size() != table.rows)
    return {Fit::no, "N is not nine boxes for each cell of strides 8 to 128", {}};
  Match match;
  match.decode = head;
  match.reason = "offsets " + box.name + " and scores " + score.name + " of nine boxes a cell";
  match.fit = efficient != efficientdet ? Fit::against : named ? Fit::certain : Fit::possible;
  match.picture = picture_of(family);
  match.classes = table.columns;
  return match;
}

// ---- MediaPipe's detectors ----------------------------------------------------------------------

struct BlazeForm {
  int size;                                 // of the input; 0: any
  std::vector<std::pair<int, int>> levels;  // pairs of stride and boxes in a cell
};
// Numbers of boxes in a cell at each stride; levels of one stride are joined.
const std::vector<BlazeForm> kBlazeForms = {
    {128, {{8, 2}, {16, 6}}},           // faces and persons, 896
    {256, {{16, 2}, {32, 6}}},          // faces from afar, 896
    {192, {{4, 1}}},                    // full range, 2304
    {192, {{8, 2}, {16, 6}}},           // palms, 2016
    {256, {{8, 2}, {16, 2}, {32, 6}}},  // palms, 2944
    {224, {{8, 2}, {16, 2}, {32, 6}}},  // persons, 2254
    {128, {{8, 2}, {16, 2}, {32, 6}}},
};

std::vector<Prior> blaze_priors(const ModelFacts& facts, size_t rows) {
  for (const BlazeForm& form : kBlazeForms) {
    if (facts.width != form.size || facts.height != form.size) continue;
    std::vector<Prior> priors;
    for (const auto& [stride, boxes] : form.levels) {
      const int cells = form.size / stride;
      for (int y = 0; y < cells; ++y)
        for (int x = 0; x < cells; ++x)
          for (int k = 0; k < boxes; ++k)
            priors.push_back({(static_cast<float>(x) + 0.5f) * static_cast<float>(stride),
                              (static_cast<float>(y) + 0.5f) * static_cast<float>(stride), 1, 1});
    }
    if (priors.size() == rows) return priors;
  }
  return {};
}

// Parts of one table, in the order of the priors; some exports have the levels in separate outputs.
struct Parts {
  std::vector<std::pair<size_t, size_t>> outputs;  // indices and numbers of rows
  size_t rows = 0, columns = 0;
  void add(size_t output, const Table& table) {
    outputs.push_back({output, table.rows});
    rows += table.rows;
    columns = table.columns;
  }
};

struct BlazeHead {
  ModelFacts facts;
  Family family = Family::blazeface;
  Parts boxes, scores;
  std::vector<Prior> priors;
  float side = 0;  // offsets are in pixels of an input of this size
  Decided squashed;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    std::vector<float> offsets, values;
    for (const auto& [index, rows] : boxes.outputs) {
      const std::vector<float> part = output_of(outputs, index, rows * boxes.columns).to_floats();
      offsets.insert(offsets.end(), part.begin(), part.end());
    }
    for (const auto& [index, rows] : scores.outputs) {
      const std::vector<float> part = output_of(outputs, index, rows).to_floats();
      values.insert(values.end(), part.begin(), part.end());
    }
    Decided::Kind seen = Decided::first;
    for (const float v : values)
      if (v < -0.01f || v > 1.01f) seen = Decided::second;
    const bool raw = squashed.settle(seen, Decided::second) == Decided::second;
    Candidates candidates(settings);
    for (size_t i = 0; i < priors.size(); ++i) {
      const float score = raw ? sigmoid(values[i]) : values[i];
      candidates.expect_probability(score);
      if (!(score >= settings.threshold)) continue;
      const float* d = offsets.data() + i * boxes.columns;
      candidates.add_centered(priors[i].x + d[0], priors[i].y + d[1], d[2], d[3], score, 0, i);
    }
    finish(settings, suppression_of(facts, family), candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             const float* d = offsets.data() + kept.row * boxes.columns + 4;
             for (size_t k = 0; 2 * k + 5 < boxes.columns; ++k)
               detection.landmarks.push_back(
                   {priors[kept.row].x + d[2 * k], priors[kept.row].y + d[2 * k + 1]});
           });
  }
};

}  // namespace

Match match_retinaface(const ModelFacts& facts) {
  if (Match maps = match_retinaface_maps(facts); maps.fit != Fit::no) return maps;
  const FaceOutputs parts = find_face_outputs(facts);
  if (!parts.boxes || !parts.scores || !(parts.points || parts.joined))
    return {Fit::no, "needs boxes [1,N,4], scores [1,N,2] and points [1,N,2K]", {}};
  const Family family = parts.joined ? Family::yunet_rows : Family::retinaface;
  FaceHead head{facts, family, parts, face_priors(facts, parts.rows), 0, 2, {}, {}};
  if (head.priors.empty())
    return {Fit::no, "N is not that of known priors at strides 8, 16, 32 (, 64)", {}};
  Match match;
  match.decode = head;
  match.reason = "offsets, scores and " + std::to_string(parts.point_count) + " points of " +
                 std::to_string(parts.rows) + " priors";
  match.fit = parts.point_count == 5 ? Fit::certain : Fit::likely;
  if (parts.point_count == 5) match.class_names = {"face"};
  if (parts.point_count == 4) {
    match.unsure = true;
    match.assumptions.push_back(
        "nothing says how large the priors of plates are: from 16 pixels on, until boxes of one "
        "plate agree by 24 or 12 only; raw tensors are attached beside");
  }
  match.picture = picture_of(family);
  match.classes = 1;
  return match;
}

Match match_ultraface(const ModelFacts& facts) {
  // There may be several classes of faces, such as those with masks.
  FaceOutputs parts;
  size_t classes = 0;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto table = table_of(facts.outputs[i]);
    if (!table || facts.outputs.size() != 2) continue;
    parts.rows = table->rows;
    const bool boxes = table->columns == 4 && !name_has(facts.outputs[i], {"score", "conf"});
    (boxes ? parts.boxes : parts.scores) = i;
    if (!boxes) classes = table->columns;
  }
  if (!parts.boxes || !parts.scores || classes < 2 || classes > 16 ||
      table_of(facts.outputs[*parts.boxes])->rows != table_of(facts.outputs[*parts.scores])->rows)
    return {Fit::no, "needs boxes [1,N,4] and scores [1,N,C] of two classes or more", {}};
  std::vector<Prior> priors = square_priors(facts, kUltraFace);
  if (priors.size() != parts.rows) return {Fit::no, "N is not that of UltraFace's priors", {}};
  // The published file contains its last step: corners as shares. Corners are in order there, while
  // offsets have either sign.
  Match pair = match_boxes_scores(facts);
  FaceHead raw{facts, Family::ultraface, parts, std::move(priors), 1, classes, {}, {}};
  Match match;
  match.decode = [raw, pair, form = Decided()](std::span<const Tensor> outputs,
                                               const DecodeSettings& settings, Results& results) {
    const Floats boxes(output_of(outputs, *raw.parts.boxes, raw.parts.rows * 4));
    size_t ordered = 0;
    for (size_t i = 0; i < raw.parts.rows; ++i)
      ordered += boxes[4 * i + 2] > boxes[4 * i] && boxes[4 * i + 3] > boxes[4 * i + 1];
    const auto seen = ordered * 10 >= raw.parts.rows * 9 ? Decided::first : Decided::second;
    if (form.settle(seen, Decided::first) == Decided::first)
      pair.decode(outputs, settings, results);
    else
      raw(outputs, settings, results);
  };
  match.reason = "boxes and face scores of " + std::to_string(parts.rows) + " priors";
  if (classes == 2) match.class_names = {"background", "face"};
  match.fit = Fit::certain;
  match.picture = picture_of(Family::ultraface);
  return match;
}

Match match_retinanet(const ModelFacts& facts) { return match_nine(facts, false); }
Match match_efficientdet(const ModelFacts& facts) { return match_nine(facts, true); }

Match match_blaze(const ModelFacts& facts) {
  const char* needs =
      "needs boxes with points [1,N,4+2K] and scores [1,N,1] of MediaPipe's anchors";
  BlazeHead head;
  head.facts = facts;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto table = table_of(facts.outputs[i]);
    if (!table) return {Fit::no, needs, {}};
    Parts& parts = table->columns == 1 ? head.scores : head.boxes;
    if (parts.rows != 0 && parts.columns != table->columns) return {Fit::no, needs, {}};
    parts.add(i, *table);
  }
  if (head.boxes.rows == 0 || head.boxes.rows != head.scores.rows || head.boxes.columns < 8 ||
      head.boxes.columns > 32 || head.boxes.columns % 2 != 0)
    return {Fit::no, needs, {}};
  // Sorts the finest level first.
  for (Parts* parts : {&head.boxes, &head.scores})
    std::stable_sort(parts->outputs.begin(), parts->outputs.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
  head.priors = blaze_priors(facts, head.boxes.rows);
  if (head.priors.empty()) return {Fit::no, needs, {}};
  if (head.boxes.columns == 18 && facts.width == 192) head.family = Family::palms;
  Match match;
  match.decode = head;
  match.reason = "boxes and " + std::to_string((head.boxes.columns - 4) / 2) + " points of " +
                 std::to_string(head.boxes.rows) + " anchors";
  match.fit = Fit::certain;
  // A face has six points, a palm seven, a person four.
  match.class_names = {head.boxes.columns == 16   ? "face"
                       : head.boxes.columns == 18 ? "palm"
                                                  : "person"};
  match.picture = picture_of(head.family);
  match.classes = 1;
  return match;
}

}  // namespace clinfer
