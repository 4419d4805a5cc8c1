// Reads SSD before its last steps: offsets [1,N,4] and class scores [1,N,C] for the anchors of some
// grids, as in TensorFlow's models (300x300, 1917 anchors), SSD300 (8732 anchors) and AIZOO's
// detector of face masks (260x260, 5972 anchors); or for the anchors [1,N,4] that the network
// itself gives, as STMicroelectronics' do. W. Liu and others, "SSD: Single Shot MultiBox
// Detector", 2016.
#include <algorithm>
#include <array>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"

namespace clinfer {
namespace {

// Centre and size in shares of the picture.
struct Anchor {
  float x = 0, y = 0, width = 0, height = 0;
};

// Adds a grid's anchors: boxes of these shapes, centred on each cell.
void add_grid(int side, float centre_step, const std::vector<std::pair<float, float>>& shapes,
              std::vector<Anchor>& anchors) {
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      for (const auto& [width, height] : shapes)
        anchors.push_back({(static_cast<float>(x) + 0.5f) * centre_step,
                           (static_cast<float>(y) + 0.5f) * centre_step, width, height});
}

// Returns the anchors of TensorFlow's multiple_grid_anchor_generator with the values of its SSD
// models: scales from 0.2 to 0.95, three shapes at the finest grid, six elsewhere.
std::vector<Anchor> tensorflow_anchors() {
  constexpr std::array kSides = {19, 10, 5, 3, 2, 1};
  std::array<float, kSides.size() + 1> scales{};
  for (size_t i = 0; i < kSides.size(); ++i) scales[i] = 0.2f + 0.15f * static_cast<float>(i);
  scales.back() = 1;
  std::vector<Anchor> anchors;
  for (size_t i = 0; i < kSides.size(); ++i) {
    std::vector<std::pair<float, float>> shapes;
    const auto add = [&](float scale, float ratio) {
      shapes.emplace_back(scale * std::sqrt(ratio), scale / std::sqrt(ratio));
    };
    if (i == 0) {
      add(0.1f, 1);
      add(scales[0], 2);
      add(scales[0], 0.5f);
    } else {
      for (const float ratio : {1.0f, 2.0f, 0.5f, 3.0f, 1.0f / 3}) add(scales[i], ratio);
      add(std::sqrt(scales[i] * scales[i + 1]), 1);
    }
    add_grid(kSides[i], 1.0f / static_cast<float>(kSides[i]), shapes, anchors);
  }
  return anchors;
}

// Returns SSD300's default boxes: sizes in pixels of 300, steps 8 to 300.
std::vector<Anchor> ssd300_anchors() {
  struct Grid {
    int side, step, ratios;
    float size, next;
  };
  constexpr std::array<Grid, 6> kGrids = {{{38, 8, 1, 30, 60},
                                           {19, 16, 2, 60, 111},
                                           {10, 32, 2, 111, 162},
                                           {5, 64, 2, 162, 213},
                                           {3, 100, 1, 213, 264},
                                           {1, 300, 1, 264, 315}}};
  std::vector<Anchor> anchors;
  for (const Grid& grid : kGrids) {
    const float size = grid.size / 300, between = std::sqrt(grid.size * grid.next) / 300;
    std::vector<std::pair<float, float>> shapes = {{size, size}, {between, between}};
    for (int ratio = 2; ratio <= grid.ratios + 1; ++ratio) {
      const float root = std::sqrt(static_cast<float>(ratio));
      shapes.emplace_back(size * root, size / root);
      shapes.emplace_back(size / root, size * root);
    }
    add_grid(grid.side, static_cast<float>(grid.step) / 300, shapes, anchors);
  }
  return anchors;
}

// Returns AIZOO's anchors: squares of two sizes, and two flatter shapes of the first size.
std::vector<Anchor> aizoo_anchors() {
  struct Grid {
    int side;
    float size, next;
  };
  constexpr std::array<Grid, 5> kGrids = {{{33, 0.04f, 0.056f},
                                           {17, 0.08f, 0.11f},
                                           {9, 0.16f, 0.22f},
                                           {5, 0.32f, 0.45f},
                                           {3, 0.64f, 0.72f}}};
  std::vector<Anchor> anchors;
  for (const Grid& grid : kGrids) {
    std::vector<std::pair<float, float>> shapes = {{grid.size, grid.size}, {grid.next, grid.next}};
    for (const float ratio : {0.62f, 0.42f})
      shapes.emplace_back(grid.size * std::sqrt(ratio), grid.size / std::sqrt(ratio));
    add_grid(grid.side, 1.0f / static_cast<float>(grid.side), shapes, anchors);
  }
  return anchors;
}

enum class Kind { tensorflow, ssd300, aizoo };
constexpr size_t kTensorflowAnchors = 1917, kSsd300Anchors = 8732, kAizooAnchors = 5972;

struct SsdHead {
  ModelFacts facts;
  Family convention = Family::ssd300;
  size_t boxes = 0, scores = 0, classes = 0;
  std::vector<Anchor> anchors;
  Kind family = Kind::ssd300;
  bool softmax_op = false;
  Decided squashed, normalised, background_at;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const size_t n = anchors.size();
    const Floats offsets(output_of(outputs, boxes, n * 4)),
        values(output_of(outputs, scores, n * classes));
    const bool tensorflow = family == Kind::tensorflow;  // y before x
    std::vector<float> buffer, box_buffer;
    bool logits_seen = false, sums_to_one = true;
    size_t first_leads = 0, last_leads = 0;
    for (size_t i = 0; i < n; ++i) {
      const float* row = values.run(i * classes, classes, buffer);
      double sum = 0;
      for (size_t k = 0; k < classes; ++k) {
        logits_seen = logits_seen || row[k] < -0.01f || row[k] > 1.01f;
        sum += row[k];
      }
      sums_to_one = sums_to_one && std::fabs(sum - 1) < 0.02;
      const auto lead = std::max_element(row, row + classes) - row;
      first_leads += lead == 0;
      last_leads += static_cast<size_t>(lead) + 1 == classes;
    }
    const bool logits =
        !softmax_op && squashed.settle(logits_seen ? Decided::second : Decided::first,
                                       Decided::first) == Decided::second;
    // TensorFlow squashes each class by a sigmoid, with the background first; AIZOO too, without a
    // background. SSD300 has a softmax with the background first, or last in OpenMMLab.
    const bool softmax =
        softmax_op || normalised.settle(!logits && sums_to_one ? Decided::first : Decided::open,
                                        family == Kind::ssd300 ? Decided::first
                                                               : Decided::second) == Decided::first;
    const auto place = tensorflow                ? Decided::first
                       : last_leads * 4 > n * 3  ? Decided::second
                       : first_leads * 4 > n * 3 ? Decided::first
                                                 : Decided::open;
    const bool is_last = background_at.settle(place, Decided::first) == Decided::second;
    const size_t background = convention_of(convention).background == Background::none ? classes
                              : is_last                                                ? classes - 1
                                                                                       : 0;
    const size_t first = background == 0 ? 1 : 0;
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    Candidates candidates(settings);
    for (size_t i = 0; i < n; ++i) {
      const float* row = values.run(i * classes, classes, buffer);
      size_t best = first;
      for (size_t k = first + 1; k < classes; ++k)
        if (k != background && row[k] > row[best]) best = k;
      float score = row[best];
      if (logits && softmax) {
        const float top = std::max(score, row[background]);
        float sum = 0;
        for (size_t k = 0; k < classes; ++k) sum += std::exp(row[k] - top);
        score = std::exp(score - top) / sum;
      } else if (logits) {
        score = sigmoid(score);
      }
      if (!(score >= settings.threshold)) continue;
      const float* offset = offsets.run(i * 4, 4, box_buffer);
      const size_t x = tensorflow ? 1 : 0, y = 1 - x;
      const Anchor& anchor = anchors[i];
      candidates.add_centered((anchor.x + offset[x] * 0.1f * anchor.width) * width,
                              (anchor.y + offset[y] * 0.1f * anchor.height) * height,
                              anchor.width * std::exp(offset[2 + x] * 0.2f) * width,
                              anchor.height * std::exp(offset[2 + y] * 0.2f) * height, score,
                              static_cast<double>(best), i);
    }
    finish(settings, suppression_of(facts, convention), candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             const auto label = static_cast<size_t>(kept.label);
             if (is_last && label < facts.labels.size()) detection.label = facts.labels[label];
           });
  }
};

// Offsets of both corners from those of the anchor in its sides, and probabilities of classes with
// the background first.
struct OwnAnchorsHead {
  ModelFacts facts;
  size_t offsets = 0, scores = 0, anchors = 0, rows = 0, classes = 0;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats moves(output_of(outputs, offsets, rows * 4)),
        values(output_of(outputs, scores, rows * classes)),
        corners(output_of(outputs, anchors, rows * 4));
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    Candidates candidates(settings);
    for (size_t i = 0; i < rows; ++i) {
      size_t best = 1;
      for (size_t k = 2; k < classes; ++k)
        if (values[i * classes + k] > values[i * classes + best]) best = k;
      const float score = values[i * classes + best];
      candidates.expect_probability(score);
      if (!(score >= settings.threshold)) continue;
      const auto corner = [&](size_t k) { return corners[i * 4 + k]; };
      const auto moved = [&](size_t k) {
        return corner(k) + moves[i * 4 + k] * (corner(k % 2 + 2) - corner(k % 2));
      };
      candidates.add(moved(0) * width, moved(1) * height, moved(2) * width, moved(3) * height,
                     score, static_cast<double>(best), i);
    }
    finish(settings, suppression_of(facts, Family::st_ssd), candidates, results);
  }
};

// Finds the three outputs of STMicroelectronics' SSD by their names.
Match match_own_anchors(const ModelFacts& facts) {
  OwnAnchorsHead head;
  head.facts = facts;
  size_t found = 0;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    const auto table = table_of(output);
    if (!table || (i > 0 && table->rows != head.rows)) return {};
    head.rows = table->rows;
    if (table->columns == 4 && name_has(output, {"anchors_concat"})) {
      head.anchors = i;
      found |= 1;
    } else if (table->columns == 4 && name_has(output, {"bboxes_concat"})) {
      head.offsets = i;
      found |= 2;
    } else if (table->columns >= 2 && name_has(output, {"classes_softmax"})) {
      head.scores = i;
      head.classes = table->columns;
      found |= 4;
    }
  }
  if (found != 7 || facts.outputs.size() != 3) return {};
  Match match;
  match.fit = Fit::certain;
  match.reason = std::to_string(head.rows) + " anchors that the network gives";
  match.classes = head.classes;
  match.background = true;
  match.from_one = true;
  match.decode = head;
  match.picture = picture_of(Family::st_ssd);
  return match;
}

}  // namespace

Match match_ssd_anchors(const ModelFacts& facts) {
  if (Match own = match_own_anchors(facts); own.fit != Fit::no) return own;
  const char* needs = "needs offsets [1,N,4] and scores [1,N,C] for N = 1917, 8732 or 5972 anchors";
  SsdHead head;
  head.facts = facts;
  std::optional<size_t> boxes, scores;
  size_t rows = 0;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    Shape shape = facts.outputs[i].shape;
    if (shape.size() == 4 && shape[2] == 1) shape.erase(shape.begin() + 2);  // [1,N,1,4]
    OutputFacts output = facts.outputs[i];
    output.shape = shape;
    const auto table = table_of(output);
    if (!table || (table->rows != kTensorflowAnchors && table->rows != kSsd300Anchors &&
                   table->rows != kAizooAnchors))
      return {Fit::no, needs, {}};
    rows = table->rows;
    if (table->columns == 4 && !boxes) {
      boxes = i;
    } else if (!scores) {
      scores = i;
      head.classes = table->columns;
    }
  }
  if (!boxes || !scores || head.classes < 2 || facts.outputs.size() != 2)
    return {Fit::no, needs, {}};
  head.boxes = *boxes;
  head.scores = *scores;
  head.family = rows == kTensorflowAnchors ? Kind::tensorflow
                : rows == kAizooAnchors    ? Kind::aizoo
                                           : Kind::ssd300;
  head.convention = head.family == Kind::tensorflow ? Family::tensorflow_ssd
                    : head.family == Kind::aizoo    ? Family::aizoo
                                                    : Family::ssd300;
  head.anchors = head.family == Kind::tensorflow ? tensorflow_anchors()
                 : head.family == Kind::aizoo    ? aizoo_anchors()
                                                 : ssd300_anchors();
  head.softmax_op = is_softmax(facts.outputs[*scores]);
  Match match;
  const bool offsets = name_has(facts.outputs[*boxes], {"encoding", "loc", "regress", "offset"});
  const bool decoded = !offsets && name_has(facts.outputs[*boxes], {"box"});
  match.fit = offsets ? Fit::certain : decoded ? Fit::possible : Fit::likely;
  if (!offsets)
    match.assumptions.push_back("no name says that " + facts.outputs[*boxes].name +
                                " are offsets to anchors; post-process=boxes-scores reads them as "
                                "boxes");
  match.reason = std::to_string(rows) + " anchors of " + convention_of(head.convention).name;
  match.classes = head.classes;
  match.decode = head;
  match.picture = picture_of(head.convention);
  if (head.family == Kind::aizoo) {
    match.class_names = {"mask", "no mask"};
    return match;
  }
  match.from_one = true;
  match.background = true;
  return match;
}

}  // namespace clinfer
