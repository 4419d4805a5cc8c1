// SSD before its last steps: offsets [1,N,4] and class scores [1,N,C] for the anchors of six grids,
// as TensorFlow's models (300x300, 1917 anchors) and SSD300 (8732 anchors) have them. W. Liu and
// others, "SSD: Single Shot MultiBox Detector", 2016.
#include <algorithm>
#include <array>

#include "engine/heads/common.h"
#include "engine/heads/heads.h"

namespace clinfer {
namespace {

// Centre and size, shares of the picture.
struct Anchor {
  float x = 0, y = 0, width = 0, height = 0;
};

// Shapes of a grid's anchors, centred on each cell.
void add_grid(int side, float centre_step, const std::vector<std::pair<float, float>>& shapes,
              std::vector<Anchor>& anchors) {
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      for (const auto& [width, height] : shapes)
        anchors.push_back({(static_cast<float>(x) + 0.5f) * centre_step,
                           (static_cast<float>(y) + 0.5f) * centre_step, width, height});
}

// TensorFlow's multiple_grid_anchor_generator with the values of its SSD models: scales from 0.2 to
// 0.95, three shapes at the finest grid, six elsewhere.
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

// SSD300's default boxes: sizes in pixels of 300, steps 8 to 300.
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

struct SsdHead {
  ModelFacts facts;
  size_t boxes = 0, scores = 0, classes = 0;
  std::vector<Anchor> anchors;
  bool tensorflow = false;  // y before x
  bool softmax_op = false;
  Decided squashed, normalised;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const size_t n = anchors.size();
    const Floats offsets(output_of(outputs, boxes, n * 4)),
        values(output_of(outputs, scores, n * classes));
    std::vector<float> buffer, box_buffer;
    bool logits_seen = false, sums_to_one = true;
    for (size_t i = 0; i < n; ++i) {
      const float* row = values.run(i * classes, classes, buffer);
      double sum = 0;
      for (size_t k = 0; k < classes; ++k) {
        logits_seen = logits_seen || row[k] < -0.01f || row[k] > 1.01f;
        sum += row[k];
      }
      sums_to_one = sums_to_one && std::fabs(sum - 1) < 0.02;
    }
    const bool logits =
        !softmax_op && squashed.settle(logits_seen ? Decided::second : Decided::first,
                                       Decided::first) == Decided::second;
    // TensorFlow squashes each class by itself, SSD300 by a softmax with the background first.
    const bool softmax =
        softmax_op ||
        normalised.settle(!logits && sums_to_one ? Decided::first : Decided::open,
                          tensorflow ? Decided::second : Decided::first) == Decided::first;
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    Candidates candidates(settings);
    for (size_t i = 0; i < n; ++i) {
      const float* row = values.run(i * classes, classes, buffer);
      size_t best = 1;
      for (size_t k = 2; k < classes; ++k)
        if (row[k] > row[best]) best = k;
      float score = row[best];
      if (logits && softmax) {
        const float top = std::max(score, row[0]);
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
    finish(settings, suppression_of(facts), candidates, results);
  }
};

}  // namespace

Match match_ssd_anchors(const ModelFacts& facts) {
  const char* needs = "needs offsets [1,N,4] and scores [1,N,C] for N = 1917 or 8732 anchors";
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
    if (!table || (table->rows != 1917 && table->rows != 8732)) return {Fit::no, needs, {}};
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
  head.tensorflow = rows == 1917;
  head.anchors = head.tensorflow ? tensorflow_anchors() : ssd300_anchors();
  head.softmax_op =
      facts.outputs[*scores].op == "SoftMax" || facts.outputs[*scores].op == "Softmax";
  Match match;
  const bool offsets = name_has(facts.outputs[*boxes], {"encoding", "loc", "regress", "offset"});
  const bool decoded = !offsets && name_has(facts.outputs[*boxes], {"box"});
  match.fit = offsets ? Fit::certain : decoded ? Fit::possible : Fit::likely;
  if (!offsets)
    match.assumptions.push_back("no name says that " + facts.outputs[*boxes].name +
                                " are offsets to anchors; post-process=boxes-scores reads them as "
                                "boxes");
  match.reason = std::to_string(rows) +
                 (head.tensorflow ? " anchors of TensorFlow's SSD" : " default boxes of SSD300");
  match.from_one = true;
  match.classes = head.classes;
  match.picture = PictureDefaults{head.tensorflow ? "TensorFlow's SSD" : "SSD300"};
  match.picture->mean = {127.5f};
  match.picture->scale = {127.5f};
  if (!head.tensorflow) {
    match.picture->mean = {123.675f, 116.28f, 103.53f};
    match.picture->scale = {58.395f, 57.12f, 57.375f};
  }
  match.decode = head;
  return match;
}

}  // namespace clinfer
