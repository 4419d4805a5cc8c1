// Reads rows of seven as SSD's DetectionOutput makes them: image, label, confidence, x_min, y_min,
// x_max, y_max.
#include "engine/heads/base/common.h"
#include "engine/heads/base/heads.h"

namespace clinfer {
namespace {

struct SsdRows {
  size_t output = 0;
  // True: boxes are shares of the picture; other sources of such rows may use pixels.
  bool by_op = false;
  int width = 0, height = 0;
  Decided units;

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    if (output >= outputs.size()) throw Error{ErrorCode::device_failed, "the output is missing"};
    Floats values(outputs[output]);
    const size_t rows = values.size() / 7;
    float reach = 0;
    size_t used = 0;
    for (; used < rows; ++used) {
      const float* row = values.data() + used * 7;
      if (!(row[0] >= 0)) break;  // a negative image number ends the list
      for (int k = 3; k < 7; ++k)
        if (std::isfinite(row[k])) reach = std::max(reach, std::fabs(row[k]));
    }
    const bool pixels = !by_op && units.settle(unit_seen(reach), Decided::first) == Decided::second;
    const float x_unit = pixels ? 1 : static_cast<float>(width);
    const float y_unit = pixels ? 1 : static_cast<float>(height);
    Candidates candidates(settings);
    for (size_t i = 0; i < used; ++i) {
      const float* row = values.data() + i * 7;
      if (!(row[0] < 1)) continue;
      candidates.expect_probability(row[2]);
      candidates.add(row[3] * x_unit, row[4] * y_unit, row[5] * x_unit, row[6] * y_unit, row[2],
                     row[1], i);
    }
    finish(settings, Suppression::none, candidates, results);
  }
};

// Takes the number of classes from the attribute num_classes, which counts the background as class
// 0; labels need not name it.
void count_classes(const OutputFacts& output, size_t labels, Match& match) {
  const auto classes =
      static_cast<size_t>(std::max<int64_t>(attribute_of(output, "num_classes", 0), 0));
  match.from_one = labels + 1 == classes && attribute_of(output, "background_label_id", 0) == 0;
  match.classes = match.from_one ? labels : classes;
  match.background = attribute_of(output, "background_label_id", 0) >= 0;
}

// Returns whether another output has more channels on the same rows and columns: then an output of
// seven columns is a map of one channel.
bool is_map_beside_maps(const ModelFacts& facts, const OutputFacts& output) {
  const Shape& own = output.shape;
  if (own.size() < 2) return false;
  return std::any_of(facts.outputs.begin(), facts.outputs.end(), [&](const OutputFacts& other) {
    const size_t rank = other.shape.size();
    return rank >= 3 && other.shape[rank - 3] > 1 && other.shape[rank - 2] == own[own.size() - 2] &&
           other.shape[rank - 1] == own.back();
  });
}

}  // namespace

Match match_detection_output(const ModelFacts& facts) {
  for (size_t index = 0; index < facts.outputs.size(); ++index) {
    const OutputFacts& output = facts.outputs[index];
    if (output.shape.empty() || output.shape.back() != 7 || !is_float_output(output)) continue;
    const bool by_op = output.op == "DetectionOutput";
    if (!by_op && (squeeze_front(output.shape).size() > 2 || is_map_beside_maps(facts, output)))
      continue;
    Match match;
    match.decode = SsdRows{index, by_op, facts.width, facts.height, {}};
    match.reason = output.name + " has rows of 7";
    if (by_op) count_classes(output, facts.labels.size(), match);
    match.fit = by_op || (facts.outputs.size() == 1 && output.shape.size() == 4) ? Fit::certain
                : output.shape.size() == 4                                       ? Fit::likely
                                                                                 : Fit::against;
    return match;
  }
  return {Fit::no, "needs an output of rows of 7 numbers ([1,1,N,7])", {}};
}

}  // namespace clinfer
