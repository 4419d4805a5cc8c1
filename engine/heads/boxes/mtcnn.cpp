// Reads MTCNN's three networks, each a file of its own. P-Net finds faces of about 12 pixels in a
// picture of any size. R-Net and O-Net tell whether a region is a face, how its box is to move, and
// where five points are.
#include <algorithm>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/boxes/grids.h"

namespace clinfer {
namespace {

// Returns whether a network counts columns first: it gets the picture with rows and columns
// exchanged, and gives x and y of the picture. So do the authors' Caffe networks, and those of
// TensorFlow and Keras that have their weights. PyTorch's ports, and Keras' that keep Caffe's names
// of layers, exchange the weights instead.
bool takes_columns_first(const ModelFacts& facts) {
  const bool names_of_caffe =
      std::any_of(facts.outputs.begin(), facts.outputs.end(), [](const OutputFacts& output) {
        return output.name.rfind("conv4-2", 0) == 0 || output.name.rfind("conv5-2", 0) == 0 ||
               output.name.rfind("conv6-2", 0) == 0;
      });
  return names_of_caffe != facts.channels_last;
}

// Returns a point of the picture in the network's pixels.
Point placed(float x, float y, bool columns_first) {
  return columns_first ? Point{y, x} : Point{x, y};
}

void settle_picture(const ModelFacts& facts, Family family, Match& match) {
  match.picture = picture_of(family);
  match.picture->transposed = takes_columns_first(facts);
  match.class_names = {"face"};
  match.classes = 1;
  if (!facts.channels_last) return;
  match.unsure = true;
  match.assumptions.push_back(
      std::string("MTCNN's networks of TensorFlow and Keras take pictures ") +
      (match.picture->transposed ? "whose rows and columns are exchanged, and so does this one"
                                 : "as they are where they name their layers as Caffe's, as this "
                                   "one does") +
      "; raw tensors are attached beside; a file with the channels first, as PyTorch exports it, "
      "says it");
}

// Sizes of P-Net's cells: a cell looks at a square of kCell pixels; cells are kStep apart.
constexpr int kCell = 12, kStep = 2;

int64_t cells_of(int side) {
  return (side - 2 + kStep - 1) / kStep - 4;  // a window of 3, a pooling, two windows of 3
}

// Returns P-Net's cells, [1,C,h,w] or [1,h,w,C].
std::optional<Map> proposals(const ModelFacts& facts, size_t output, int64_t channels) {
  const Shape& s = facts.outputs[output].shape;
  const int64_t rows = cells_of(facts.height), columns = cells_of(facts.width);
  if (!is_float_output(facts.outputs[output]) || s.size() != 4 || s[0] != 1 || rows < 1 ||
      columns < 1)
    return std::nullopt;
  const bool first = s[1] == channels && s[2] == rows && s[3] == columns;
  const bool last = s[3] == channels && s[1] == rows && s[2] == columns;
  if (!first && !last) return std::nullopt;
  return Map{output, static_cast<size_t>(channels), static_cast<size_t>(rows),
             static_cast<size_t>(columns), !first};
}

struct Proposals {
  ModelFacts facts;
  Map scores, offsets;
  bool columns_first = false;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats score(output_of(outputs, scores.output, scores.elements()));
    const Floats move(output_of(outputs, offsets.output, offsets.elements()));
    const size_t face = convention_of(Family::mtcnn_proposals).background == Background::first;
    Candidates candidates(settings);
    for (size_t cell = 0; cell < scores.cells(); ++cell) {
      const float probability = score[scores.at(face, cell)];
      candidates.expect_probability(probability);
      if (!(probability >= settings.threshold)) continue;
      const auto corner = [&](size_t k) {
        const Point by =
            placed(move[offsets.at(k, cell)], move[offsets.at(k + 1, cell)], columns_first);
        const float at = k == 0 ? 0.0f : 1.0f;
        return Point{static_cast<float>(cell % scores.columns * kStep) + (at + by.x) * kCell,
                     static_cast<float>(cell / scores.columns * kStep) + (at + by.y) * kCell};
      };
      const Point from = corner(0), to = corner(2);
      candidates.add(from.x, from.y, to.x, to.y, probability, 0, cell);
    }
    finish(settings, suppression_of(facts, Family::mtcnn_proposals), candidates, results);
  }
};

struct Refinement {
  ModelFacts facts;
  size_t scores = 0, offsets = 0;  // outputs
  std::optional<size_t> points;
  bool columns_first = false;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats probability(output_of(outputs, scores, 2)), move(output_of(outputs, offsets, 4));
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    const size_t face = convention_of(Family::mtcnn).background == Background::first;
    const Point from = placed(move[0], move[1], columns_first),
                to = placed(move[2], move[3], columns_first);
    Candidates candidates(settings);
    candidates.expect_probability(probability[0]);
    candidates.expect_probability(probability[1]);
    candidates.add(from.x * width, from.y * height, (1 + to.x) * width, (1 + to.y) * height,
                   probability[face], 0);
    finish(settings, suppression_of(facts, Family::mtcnn), candidates, results,
           [&](const Candidate&, Detection& detection) {
             detection.subject = Subject::refined;
             if (!points) return;
             const Floats values(output_of(outputs, *points, 10));
             detection.skeleton = Skeleton::face5;
             for (size_t k = 0; k < 5; ++k) {  // five x, then five y
               const Point at = placed(values[k], values[k + 5], columns_first);
               detection.landmarks.push_back({at.x * width, at.y * height});
             }
           });
  }
};

}  // namespace

Match match_mtcnn_proposals(const ModelFacts& facts) {
  std::optional<Map> scores, offsets;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    if (const auto map = proposals(facts, i, 2); map && !scores) scores = map;
    if (const auto map = proposals(facts, i, 4); map && !offsets) offsets = map;
  }
  if (facts.outputs.size() != 2 || !scores || !offsets)
    return {
        Fit::no, "needs probabilities [1,2,h,w] and offsets [1,4,h,w] of squares of 12 pixels", {}};
  Match match;
  match.fit = Fit::certain;
  match.reason = "probabilities and offsets of squares of 12 pixels, 2 apart";
  match.decode = Proposals{facts, *scores, *offsets, takes_columns_first(facts)};
  settle_picture(facts, Family::mtcnn_proposals, match);
  match.assumptions.push_back(
      "P-Net finds faces of about 12 pixels of its input; reshape=WIDTHxHEIGHT with 12/N of the "
      "frame's sides finds those of N pixels");
  return match;
}

Match match_mtcnn(const ModelFacts& facts) {
  const std::string needs = "needs probabilities [1,2], offsets [1,4] and perhaps points [1,10]";
  std::optional<size_t> scores, offsets, points;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const size_t n = vector_size(facts.outputs[i].shape);
    (n == 2 ? scores : n == 4 ? offsets : points) = i;
    if ((n != 2 && n != 4 && n != 10) || !is_float_output(facts.outputs[i]))
      return {Fit::no, needs, {}};
  }
  if (!scores || !offsets || facts.outputs.size() != (points ? 3u : 2u))
    return {Fit::no, needs, {}};
  Match match;
  match.fit = facts.width == facts.height && (facts.width == 24 || facts.width == 48) ? Fit::certain
                                                                                      : Fit::likely;
  match.reason = points ? "a face, its offsets and five points" : "a face and its offsets";
  match.decode = Refinement{facts, *scores, *offsets, points, takes_columns_first(facts)};
  settle_picture(facts, Family::mtcnn, match);
  return match;
}

}  // namespace clinfer
