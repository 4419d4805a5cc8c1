// Reads points of one face, hand or body that fills the picture: vectors of coordinates.
#include <algorithm>
#include <cmath>
#include <set>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/maps.h"
#include "engine/heads/points/keypoints.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

// Networks whose vectors have sizes that no others have. Coordinates are in network pixels.
struct MeshKind {
  size_t elements, points, stride;
  Skeleton skeleton;
  Family family;
  bool squashed = false;  // true if the score beside it is a probability
  const char* of = "face";
  size_t more = 0;  // points of another output that follow these
};

constexpr MeshKind kMeshes[] = {
    {1404, 468, 3, Skeleton::other, Family::facemesh},
    {1434, 478, 3, Skeleton::other, Family::facemesh_irises},
    {63, 21, 3, Skeleton::hand21, Family::hands, true, "hand"},
    {195, 33, 5, Skeleton::body33, Family::blazepose, true, "person"},
    {155, 31, 5, Skeleton::other, Family::upper_body, true, "person"},
    {213, 71, 3, Skeleton::other, Family::irises, false, "eye", 5},
};

float presence(float value, bool squashed) { return squashed ? value : sigmoid(value); }

// Returns the number that tells whether the points are there: by its name, or else the first. Hands
// have a second one, which tells left from right.
std::optional<size_t> score_output(const ModelFacts& facts, size_t points) {
  std::optional<size_t> first;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    if (i == points || count(output.shape) != 1) continue;
    if (name_has(output, {"score", "flag", "presence", "conf"})) return i;
    if (!first && !name_has(output, {"handed"})) first = i;
  }
  return first;
}

Match mesh(const ModelFacts& facts, size_t output, const MeshKind& kind) {
  Match match;
  match.fit = Fit::certain;
  match.picture = picture_of(kind.family);
  match.reason = std::to_string(kind.points) + " points of " + match.picture->family;
  match.class_names = {kind.of};
  const auto score = score_output(facts, output);
  std::optional<size_t> more;  // the iris, in addition to the contour of the eye
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (kind.more != 0 && vector_size(facts.outputs[i].shape) == kind.more * kind.stride) more = i;
  if (more)
    match.reason += " and " + std::to_string(kind.more) + " of " + facts.outputs[*more].name;
  // FaceMesh gives a logit, unless the graph goes on to a sigmoid; others end in a sigmoid.
  const bool squashed = score && facts.outputs[*score].op == "Sigmoid";
  match.decode = [facts, output, kind, score, squashed, more](std::span<const Tensor> outputs,
                                                              const DecodeSettings& settings,
                                                              Results& results) {
    const Floats values(output_of(outputs, output, kind.elements));
    Detection whole;
    const float value = score ? Floats(output_of(outputs, *score, 1))[0] : 1;
    const bool probability = squashed || (kind.squashed && value >= 0 && value <= 1);
    whole.confidence = score ? presence(value, probability) : 1;
    if (!(whole.confidence >= -0.01f && whole.confidence <= 1.01f)) {
      results.contradiction = "the score of the points is not from 0 to 1";
      return;
    }
    whole.skeleton = kind.skeleton;
    const bool sure = kind.stride >= 5;  // x, y, z, visibility, presence
    for (size_t k = 0; k < kind.points; ++k) {
      const size_t at = k * kind.stride;
      if (sure)
        whole.keypoints.push_back({values[at], values[at + 1], sigmoid(values[at + 3])});
      else
        whole.landmarks.push_back({values[at], values[at + 1]});
    }
    if (more) {
      const Floats others(output_of(outputs, *more, kind.more * kind.stride));
      for (size_t k = 0; k < kind.more; ++k)
        whole.landmarks.push_back({others[k * kind.stride], others[k * kind.stride + 1]});
    }
    add_whole(facts, std::move(whole), settings, results);
  };
  return match;
}

// Points of a vector or table of coordinates.
struct Coordinates {
  size_t points = 0, stride = 2;  // x, y, and perhaps z
  size_t rest = 0;                // further numbers after the points
  size_t elements() const { return points * stride + rest; }
};

// Peppa-Facial-Landmark gives 68 points, three angles and four states of the eyes and the mouth.
constexpr Coordinates kPeppa = {68, 2, 7};

// Returns the points of a vector, or of a table [points,2] or [points,3] whose name says that it
// holds points. A vector whose number of elements is that of a well-known number of points in
// three dimensions, and of none in two, has three.
Coordinates coordinates_in(const OutputFacts& output, bool named) {
  static const auto& kKnown = *new const std::set<size_t>{4,  5,  17, 19, 21, 25, 29,  33,  35,
                                                          39, 49, 51, 66, 68, 98, 106, 194, 468};
  if (const size_t elements = vector_size(output.shape); elements != 0) {
    const bool solid = elements % 3 == 0 && elements >= 51 && kKnown.count(elements / 3) != 0 &&
                       (elements % 2 != 0 || kKnown.count(elements / 2) == 0);
    if (elements == kPeppa.elements()) return kPeppa;
    if (solid) return {elements / 3, 3};
    return {elements % 2 == 0 ? elements / 2 : 0, 2};
  }
  const auto table = table_of(output);
  if (!named || !table || (table->columns != 2 && table->columns != 3)) return {};
  return {table->rows, table->columns};
}

// Returns whether a vector may be a mesh: it is none if another output has numbers for each of its
// elements ([1,N,4], [1,4,N], integers [1,N]), or if there are as many labels.
bool may_be_mesh(const ModelFacts& facts, size_t output) {
  const auto elements = static_cast<int64_t>(vector_size(facts.outputs[output].shape));
  return static_cast<int64_t>(facts.labels.size()) != elements &&
         std::none_of(facts.outputs.begin(), facts.outputs.end(), [&](const OutputFacts& other) {
           const bool as_many = std::count(other.shape.begin(), other.shape.end(), elements) != 0;
           return as_many && (count(other.shape) > elements || !is_float(other.type));
         });
}

}  // namespace

Match match_landmarks(const ModelFacts& facts) {
  if (Match maps = match_offset_maps(facts); maps.fit != Fit::no) return maps;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    const size_t vector = vector_size(output.shape);
    const size_t elements =
        vector != 0 ? vector
                    : coordinates_in(output, is_called(facts, output, {"landmark", "landmarks"}))
                          .elements();
    if (has_word(facts.outputs[i], {"world"})) continue;  // metres, not pixels
    for (const MeshKind& kind : kMeshes)
      if (elements == kind.elements && is_float_output(facts.outputs[i]) && may_be_mesh(facts, i)) {
        Match match = mesh(facts, i, kind);
        // MediaPipe's networks also give a score; a short vector alone may be classes.
        const bool named = is_called(facts, facts.outputs[i],
                                     {"landmark", "landmarks", "mesh", "hand", "pose", "iris"});
        if (facts.outputs.size() == 1 && elements < 1000 && !named) {
          match.fit = Fit::against;
          match.doubt = "which nothing says";
        }
        return match;
      }
  }
  // Reads x, y of points as shares of the picture.
  const std::string needs = "needs a vector of coordinates (x, y of each point)";
  std::optional<size_t> found;
  Coordinates form;
  for (size_t i = 0; i < facts.outputs.size() && !found; ++i) {
    form = coordinates_in(facts.outputs[i],
                          is_called(facts, facts.outputs[i], {"landmark", "landmarks"}));
    if (form.points >= 4 && form.elements() <= 2048 && is_float_output(facts.outputs[i])) found = i;
  }
  if (!found || facts.outputs.size() > 2) return {Fit::no, needs, {}};
  const OutputFacts& output = facts.outputs[*found];
  Match match;
  const bool named =
      is_called(facts, output, {"landmark", "landmarks", "keypoints", "alignment", "pfld"});
  // Networks of 112x112 whose only output has as many numbers as faces in well-known data sets have
  // coordinates.
  const bool face = facts.width == 112 && facts.height == 112 && facts.outputs.size() == 1 &&
                    form.stride == 2 && may_be_mesh(facts, *found) && form.rest == 0 &&
                    (form.points == 68 || form.points == 98 || form.points == 106);
  const bool peppa = form.rest != 0 && facts.outputs.size() == 1 && may_be_mesh(facts, *found) &&
                     facts.width == facts.height && (facts.width == 128 || facts.width == 160);
  match.fit = named ? Fit::certain : face || peppa ? Fit::likely : Fit::against;
  match.reason =
      std::to_string(form.points) + (form.stride == 2 ? " points as x, y" : " points as x, y, z");
  if (!named && face)
    match.assumptions.push_back("the " + std::to_string(form.elements()) +
                                " numbers are read as points of a face, as usual for pictures of "
                                "112x112; set post-process where they are something else");
  else if (!named && peppa)
    match.assumptions.push_back(
        "the 143 numbers are read as 68 points of a face, three angles and four states, as "
        "Peppa-Facial-Landmark gives them; set post-process where they are something else");
  else if (!named)
    match.doubt = "which nothing says (a name with \"landmark\")";
  if (face || is_called(facts, output, {"pfld"}))
    match.picture = picture_of(form.points == 68 ? Family::pfld : Family::pfld_bgr);
  if (peppa) match.picture = picture_of(Family::peppa);
  match.decode = [facts, index = *found, form, unit = Decided()](std::span<const Tensor> outputs,
                                                                 const DecodeSettings& settings,
                                                                 Results& results) {
    const Floats values(output_of(outputs, index, form.elements()));
    float reach = 0;
    for (size_t i = 0; i < form.points * form.stride; ++i)
      if (i % form.stride != 2) reach = std::max(reach, std::fabs(values[i]));
    const bool shares = unit.settle(unit_seen(reach), Decided::first) == Decided::first;
    const float width = shares ? static_cast<float>(facts.width) : 1,
                height = shares ? static_cast<float>(facts.height) : 1;
    Detection whole;
    whole.confidence = 1;  // the network gives none
    whole.skeleton = skeleton_for(form.points);
    for (size_t k = 0; k < form.points; ++k)
      whole.landmarks.push_back(
          {values[form.stride * k] * width, values[form.stride * k + 1] * height});
    add_whole(facts, std::move(whole), settings, results);
  };
  return match;
}

}  // namespace clinfer
