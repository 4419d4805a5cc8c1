// Reads vectors that represent a person, a face or a picture.
#include <algorithm>
#include <cmath>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/maps.h"

namespace clinfer {
namespace {

constexpr size_t kShortest = 32, kLongest = 8192;

// Returns the size of a float vector that is neither a set of probabilities nor a row of
// characters.
size_t embedding_size(const OutputFacts& output) {
  const size_t elements = vector_size(output.shape);
  const bool other = is_softmax(output) || output.op == "LogSoftmax" || output.op == "Sigmoid" ||
                     output.op.rfind("CTCGreedyDecoder", 0) == 0;
  return is_float_output(output) && !other && elements >= kShortest && elements <= kLongest
             ? elements
             : 0;
}

// Returns whether the output has class scores, or rows of boxes, which a vector beside it explains.
bool is_answer(const OutputFacts& output) {
  const Shape shape = squeeze_front(output.shape);
  return is_called_scores(output) ||
         (shape.size() == 2 && shape[0] > 1 && shape[1] >= 4 && shape[1] <= 7);
}

bool is_power_of_two(size_t n) { return (n & (n - 1)) == 0; }

// Returns how networks of this size take their picture: persons are twice or three times as high as
// wide, and exporters exchange the sides at times; faces have the sides of ArcFace and FaceNet.
std::optional<PictureDefaults> picture_of_size(int width, int height) {
  const int longer = std::max(width, height), shorter = std::min(width, height);
  if (longer == 2 * shorter || height == 3 * width) return picture_of(Family::person_reid);
  if (width == height && (width == 112 || width == 160))
    return picture_of(Family::face_recognition);
  return std::nullopt;
}

}  // namespace

Match match_embedding(const ModelFacts& facts) {
  std::vector<size_t> found;
  bool named = false, usual = true, all = true;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    const size_t elements = embedding_size(output);
    const bool is_named =
        is_called(facts, output,
                  {"embedding", "embeddings", "embed", "embeds", "feature", "features", "feat",
                   "reid", "reidentification", "osnet", "arcface", "facenet", "cosface",
                   "sphereface", "w600k", "glint", "clip", "descriptor", "recognition"}) &&
        elements != 0;
    if (elements == 0) {
      all = false;
      continue;
    }
    found.push_back(i);
    named |= is_named;
    usual &= is_power_of_two(elements) || elements % 128 == 0;
  }
  if (found.empty())
    return {Fit::no, "needs a vector of " + std::to_string(kShortest) + " or more floats", {}};
  Match match;
  // Labels belong to classes: of this output, or of shorter ones beside it.
  const bool labelled = !facts.labels.empty() &&
                        (!all || facts.labels.size() == vector_size(facts.outputs[found[0]].shape));
  const bool beside = std::any_of(facts.outputs.begin(), facts.outputs.end(), is_answer);
  // Beside rows or maps, a vector is more likely an intermediate of another head.
  const bool alone =
      std::none_of(facts.outputs.begin(), facts.outputs.end(), [](const OutputFacts& output) {
        return embedding_size(output) == 0 && vector_size(output.shape) == 0;
      });
  match.fit = labelled || beside ? Fit::against
              : named            ? (alone ? Fit::certain : Fit::possible)
              : usual && all     ? Fit::likely
                                 : Fit::against;
  match.reason = "a vector of " + std::to_string(vector_size(facts.outputs[found[0]].shape)) +
                 " numbers" + (match.fit == Fit::against ? ", which may be anything" : "");
  match.decode = [facts, found](std::span<const Tensor> outputs, const DecodeSettings&,
                                Results& results) {
    for (const size_t i : found) {
      Floats values(output_of(outputs, i, vector_size(facts.outputs[i].shape)));
      const float* v = values.data();
      Embedding embedding{facts.outputs[i].name, {v, v + values.size()}};
      if (!std::all_of(embedding.values.begin(), embedding.values.end(),
                       [](float value) { return std::isfinite(value); })) {
        results.contradiction = "a vector has numbers that are not finite";
        return;
      }
      results.embeddings.push_back(std::move(embedding));
    }
  };
  if (found.size() == 1 && all) match.picture = picture_of_size(facts.width, facts.height);
  return match;
}

}  // namespace clinfer
