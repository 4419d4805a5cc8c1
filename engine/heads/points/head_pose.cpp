// Reads the angles of a head: one number each (Open Model Zoo), three in one vector (FSA-Net), a
// rotation matrix (6DRepNet), or bins whose expected value is the angle (Hopenet, WHENet).
#include <algorithm>
#include <array>
#include <charconv>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"

namespace clinfer {
namespace {

constexpr std::array<const char*, 3> kAngles = {"yaw", "pitch", "roll"};

// Adds a number as an attribute, with its text as the label.
void add_angle(size_t angle, double degrees, Results& results) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, degrees, std::chars_format::fixed, 1);
  results.classifications.push_back(
      {kAngles[angle], static_cast<int>(std::lround(degrees)), std::string(text, end.ptr), 1});
}

void add_angles(const std::array<double, 3>& degrees, Results& results) {
  for (const double angle : degrees)
    if (!(std::fabs(angle) <= 360)) {
      results.contradiction = "an angle of the head is not from -360 to 360 degrees";
      return;
    }
  for (size_t k = 0; k < degrees.size(); ++k) add_angle(k, degrees[k], results);
}

// Returns the indices of yaw, pitch and roll among outputs that names such as "angle_y_fc"
// identify.
std::optional<std::array<size_t, 3>> named_angles(const ModelFacts& facts) {
  std::array<std::optional<size_t>, 3> found;
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    for (size_t k = 0; k < kAngles.size(); ++k) {
      const std::string letter = std::string("angle_") + kAngles[k][0];
      if (name_has(facts.outputs[i], {kAngles[k], letter.c_str()}) && !found[k]) found[k] = i;
    }
  if (!found[0] || !found[1] || !found[2]) return std::nullopt;
  return std::array<size_t, 3>{*found[0], *found[1], *found[2]};
}

// Returns the expected bin of a softmax over logits.
double expected_bin(const Floats& logits) {
  float top = -INFINITY;
  for (size_t i = 0; i < logits.size(); ++i) top = std::max(top, logits[i]);
  double sum = 0, weighted = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double share = std::exp(static_cast<double>(logits[i]) - static_cast<double>(top));
    sum += share;
    weighted += share * static_cast<double>(i);
  }
  return weighted / sum;
}

// Computes the angles of a rotation matrix as 6DRepNet does.
std::array<double, 3> angles_of(const Floats& m) {
  constexpr double kDegrees = 57.29577951308232;
  const auto at = [&](size_t row, size_t column) {
    return static_cast<double>(m[3 * row + column]);
  };
  const double across = std::hypot(at(0, 0), at(1, 0));
  return {std::atan2(-at(2, 0), across) * kDegrees, std::atan2(at(2, 1), at(2, 2)) * kDegrees,
          std::atan2(at(1, 0), at(0, 0)) * kDegrees};
}

bool is_called_head_pose(const ModelFacts& facts) {
  const std::string name = lower(facts.name);
  for (const char* word : {"headpose", "head-pose", "head_pose", "fsanet", "fsa-net", "fsa_net",
                           "hopenet", "whenet", "6drepnet", "sixdrepnet"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

Match match_head_pose(const ModelFacts& facts) {
  const char* needs =
      "needs the angles of a head: three numbers, bins of three angles, or a rotation";
  Match match;
  match.class_names = {"face"};
  match.picture = picture_of(Family::head_pose);
  const auto named = named_angles(facts);
  // Beside outputs with such names there may be others, as the features that they were made of.
  std::optional<std::array<size_t, 3>> three = named;
  if (!three && facts.outputs.size() == 3) three = {0, 1, 2};
  const auto all = [&](auto takes) {
    return three && std::all_of(three->begin(), three->end(), [&](size_t i) {
             const OutputFacts& output = facts.outputs[i];
             return is_float_output(output) && takes(vector_size(output.shape));
           });
  };
  if (named && all([](size_t n) { return n == 1; })) {
    match.fit = Fit::certain;
    match.reason = "a number each of yaw, pitch and roll";
    match.picture = picture_of(Family::head_angles);
    match.decode = [named = *named](std::span<const Tensor> outputs, const DecodeSettings&,
                                    Results& results) {
      std::array<double, 3> degrees{};
      for (size_t k = 0; k < 3; ++k)
        degrees[k] = static_cast<double>(Floats(output_of(outputs, named[k], 1))[0]);
      add_angles(degrees, results);
    };
    return match;
  }
  const bool called = is_called_head_pose(facts);
  if (all([](size_t n) { return n >= 60 && n <= 120; })) {
    match.fit = named || called ? Fit::certain : Fit::against;
    if (match.fit == Fit::against) match.doubt = "which nothing says";
    match.reason = "bins of yaw, pitch and roll, three degrees each";
    match.unsure = !named;
    if (!named)
      match.assumptions.push_back(
          "no name says which outputs are yaw, pitch and roll; " + describe(facts) +
          " are read in this order, as Hopenet gives them, and raw tensors are attached beside; "
          "models that name their outputs (yaw, pitch, roll) say it");
    match.decode = [facts, places = *three](std::span<const Tensor> outputs, const DecodeSettings&,
                                            Results& results) {
      std::array<double, 3> degrees{};
      for (size_t k = 0; k < 3; ++k) {
        const size_t bins = vector_size(facts.outputs[places[k]].shape);
        degrees[k] = 3 * (expected_bin(Floats(output_of(outputs, places[k], bins))) -
                          static_cast<double>(bins) / 2);
      }
      add_angles(degrees, results);
    };
    return match;
  }
  if (facts.outputs.size() != 1 || !is_float_output(facts.outputs[0])) return {Fit::no, needs, {}};
  const Shape shape = squeeze_front(facts.outputs[0].shape);
  const bool vector = vector_size(facts.outputs[0].shape) == 3, matrix = shape == Shape{3, 3};
  if (!vector && !matrix) return {Fit::no, needs, {}};
  match.fit = called ? Fit::certain : Fit::against;
  if (match.fit == Fit::against) match.doubt = "which nothing says";
  match.reason = vector ? "yaw, pitch and roll in degrees" : "a rotation matrix";
  if (vector) match.picture = picture_of(Family::fsa_net);
  match.decode = [vector](std::span<const Tensor> outputs, const DecodeSettings&,
                          Results& results) {
    const Floats values(output_of(outputs, 0, vector ? 3 : 9));
    add_angles(vector ? std::array<double, 3>{values[0], values[1], values[2]} : angles_of(values),
               results);
  };
  return match;
}

}  // namespace clinfer
