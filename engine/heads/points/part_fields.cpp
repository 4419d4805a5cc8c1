// Reads key points of several persons at once, as OpenPose finds them: a heat map for each kind of
// point, and for each bone a field of vectors that lead from one end to the other. Z. Cao and
// others, "Realtime Multi-Person 2D Pose Estimation using Part Affinity Fields", 2017.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/maps.h"

namespace clinfer {
namespace {

constexpr size_t kBodyPoints = 18, kFields = 38;
constexpr size_t kMostPeaks = 128;  // peaks of one kind; more are noise
constexpr float kLeastPeak = 0.1f;
constexpr int kSamples = 10;
// Share of the samples whose field leads along the bone.
constexpr float kLeastAlong = 0.05f, kLeastShare = 0.8f;
constexpr size_t kFewestBodyPoints = 3;
constexpr float kLeastMean = 0.2f;  // average score of a person's points

struct Bone {
  size_t from, to, field;  // `field`: channel of x; y follows
};

constexpr Bone kBones[] = {{1, 2, 12},  {1, 5, 20},   {2, 3, 14},  {3, 4, 16},  {5, 6, 22},
                           {6, 7, 24},  {1, 8, 0},    {8, 9, 2},   {9, 10, 4},  {1, 11, 6},
                           {11, 12, 8}, {12, 13, 10}, {1, 0, 28},  {0, 14, 30}, {14, 16, 34},
                           {0, 15, 32}, {15, 17, 36}, {2, 16, 18}, {5, 17, 26}};
constexpr size_t kBonesThatMakePersons = 17;  // the last two only connect existing points

struct Peak {
  float x = 0, y = 0, score = 0;  // in cells
};

struct Person {
  std::array<int, kBodyPoints> peak;  // -1: no peak
  float score = 0;
  size_t count = 0;
};

// Finds cells higher than their four neighbours, and places peaks between cells by a parabola
// through them.
std::vector<Peak> peaks_of(const Floats& values, const MapLayout& layout, size_t c) {
  const auto at = [&](size_t column, size_t row) {
    return values[layout.at(c, row * layout.columns + column)];
  };
  const auto vertex = [](float before, float here, float after) {
    const float bend = before - 2 * here + after;
    return bend < 0 ? std::clamp(0.5f * (before - after) / bend, -0.5f, 0.5f) : 0.0f;
  };
  std::vector<Peak> peaks;
  for (size_t row = 0; row < layout.rows; ++row)
    for (size_t column = 0; column < layout.columns; ++column) {
      const float here = at(column, row);
      if (!(here > kLeastPeak) || !std::isfinite(here)) continue;
      const float left = column > 0 ? at(column - 1, row) : 0,
                  right = column + 1 < layout.columns ? at(column + 1, row) : 0,
                  up = row > 0 ? at(column, row - 1) : 0,
                  down = row + 1 < layout.rows ? at(column, row + 1) : 0;
      // If two neighbours are equal, the first one is the peak.
      if (here <= left || here < right || here <= up || here < down) continue;
      peaks.push_back({static_cast<float>(column) + vertex(left, here, right),
                       static_cast<float>(row) + vertex(up, here, down), here});
    }
  std::sort(peaks.begin(), peaks.end(),
            [](const Peak& a, const Peak& b) { return a.score > b.score; });
  if (peaks.size() > kMostPeaks) peaks.resize(kMostPeaks);
  return peaks;
}

// Returns how well the field leads from one peak to the other; negative if it does not.
float affinity(const Floats& fields, const MapLayout& layout, size_t field, const Peak& from,
               const Peak& to) {
  const float dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
  if (!(length > 1e-3f)) return -1;
  float sum = 0;
  int along = 0;
  for (int i = 0; i < kSamples; ++i) {
    const float t = static_cast<float>(i) / (kSamples - 1);
    const auto cell = [](float v, size_t size) {
      return static_cast<size_t>(std::clamp(std::lround(v), 0L, static_cast<long>(size) - 1));
    };
    const size_t place =
        cell(from.y + t * dy, layout.rows) * layout.columns + cell(from.x + t * dx, layout.columns);
    const float value =
        (fields[layout.at(field, place)] * dx + fields[layout.at(field + 1, place)] * dy) / length;
    if (!(value > kLeastAlong)) continue;
    sum += value;
    ++along;
  }
  if (static_cast<float>(along) < kLeastShare * kSamples) return -1;
  return sum / static_cast<float>(along) +
         std::min(0.5f * static_cast<float>(layout.rows) / length - 1, 0.0f);
}

struct Link {
  size_t from, to;
  float score;
};

// Returns the best links of one bone, none of which shares an end with another.
std::vector<Link> links_of(const Floats& fields, const MapLayout& layout, const Bone& bone,
                           const std::vector<Peak>& from, const std::vector<Peak>& to) {
  std::vector<Link> all, kept;
  for (size_t i = 0; i < from.size(); ++i)
    for (size_t j = 0; j < to.size(); ++j)
      if (const float score = affinity(fields, layout, bone.field, from[i], to[j]); score > 0)
        all.push_back({i, j, score});
  std::stable_sort(all.begin(), all.end(),
                   [](const Link& a, const Link& b) { return a.score > b.score; });
  std::vector<bool> used_from(from.size()), used_to(to.size());
  for (const Link& link : all) {
    if (used_from[link.from] || used_to[link.to]) continue;
    used_from[link.from] = used_to[link.to] = true;
    kept.push_back(link);
  }
  return kept;
}

using Peaks = std::array<std::vector<Peak>, kBodyPoints>;

// Adds a bone's links to the persons that have one of its ends, or makes persons of them.
void grow(std::vector<Person>& persons, const Peaks& peaks, const Bone& bone,
          const std::vector<Link>& links, bool makes_persons) {
  for (const Link& link : links) {
    const int from = static_cast<int>(link.from), to = static_cast<int>(link.to);
    Person* with_from = nullptr;
    Person* with_to = nullptr;
    for (Person& person : persons) {
      if (person.peak[bone.from] == from) with_from = &person;
      if (person.peak[bone.to] == to) with_to = &person;
    }
    const float score_from = peaks[bone.from][link.from].score,
                score_to = peaks[bone.to][link.to].score;
    if (with_from && with_to && with_from != with_to) {
      bool apart = true;  // true if no point occurs twice
      for (size_t k = 0; k < kBodyPoints; ++k)
        apart &= with_from->peak[k] < 0 || with_to->peak[k] < 0;
      if (!apart) continue;
      for (size_t k = 0; k < kBodyPoints; ++k)
        if (with_to->peak[k] >= 0) with_from->peak[k] = with_to->peak[k];
      with_from->score += with_to->score + link.score;
      with_from->count += with_to->count;
      persons.erase(persons.begin() + (with_to - persons.data()));
    } else if (with_from && !with_to) {
      if (with_from->peak[bone.to] >= 0) continue;
      with_from->peak[bone.to] = to;
      with_from->score += score_to + link.score;
      ++with_from->count;
    } else if (with_to && !with_from) {
      if (with_to->peak[bone.from] >= 0) continue;
      with_to->peak[bone.from] = from;
      with_to->score += score_from + link.score;
      ++with_to->count;
    } else if (!with_from && makes_persons) {
      Person person;
      person.peak.fill(-1);
      person.peak[bone.from] = from;
      person.peak[bone.to] = to;
      person.score = score_from + score_to + link.score;
      person.count = 2;
      persons.push_back(person);
    }
  }
}

void decode_fields(const ModelFacts& facts, const MapLayout& fields_layout,
                   const MapLayout& heat_layout, std::span<const Tensor> outputs,
                   const DecodeSettings& settings, Results& results) {
  const Floats fields(output_of(outputs, fields_layout.index, fields_layout.elements())),
      heat(output_of(outputs, heat_layout.index, heat_layout.elements()));
  Peaks peaks;
  for (size_t k = 0; k < kBodyPoints; ++k) peaks[k] = peaks_of(heat, heat_layout, k);
  std::vector<Person> persons;
  for (size_t b = 0; b < std::size(kBones); ++b) {
    const Bone& bone = kBones[b];
    grow(persons, peaks, bone,
         links_of(fields, fields_layout, bone, peaks[bone.from], peaks[bone.to]),
         b < kBonesThatMakePersons);
  }
  const float x_step = static_cast<float>(facts.width) / static_cast<float>(heat_layout.columns),
              y_step = static_cast<float>(facts.height) / static_cast<float>(heat_layout.rows);
  Candidates candidates(settings);
  std::vector<std::vector<KeyPoint>> points;
  for (const Person& person : persons) {
    if (person.count < kFewestBodyPoints ||
        person.score < kLeastMean * static_cast<float>(person.count))
      continue;
    std::vector<KeyPoint> own(kBodyPoints);
    float sure = 0, x_min = INFINITY, y_min = INFINITY, x_max = 0, y_max = 0;
    for (size_t k = 0; k < kBodyPoints; ++k) {
      if (person.peak[k] < 0) continue;
      const Peak& peak = peaks[k][static_cast<size_t>(person.peak[k])];
      own[k] = {(peak.x + 0.5f) * x_step, (peak.y + 0.5f) * y_step, std::min(peak.score, 1.0f)};
      sure += own[k].confidence;
      x_min = std::min(x_min, own[k].x);
      y_min = std::min(y_min, own[k].y);
      x_max = std::max(x_max, own[k].x);
      y_max = std::max(y_max, own[k].y);
    }
    candidates.add(x_min, y_min, x_max, y_max, sure / static_cast<float>(person.count), 0,
                   points.size());
    points.push_back(std::move(own));
  }
  finish(settings, Suppression::none, candidates, results,
         [&](const Candidate& candidate, Detection& detection) {
           detection.skeleton = Skeleton::body18;
           detection.keypoints = points[candidate.row];
         });
}

}  // namespace

Match match_part_fields(const ModelFacts& facts) {
  std::optional<MapLayout> fields, heat;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto layout = map_layout(facts, i);
    if (!layout || !is_float_output(facts.outputs[i])) continue;
    // Takes the last of several stages, which is the finest.
    if (layout->channels == kFields) fields = layout;
    if (layout->channels == kBodyPoints || layout->channels == kBodyPoints + 1) heat = layout;
  }
  if (!fields || !heat || fields->rows != heat->rows || fields->columns != heat->columns)
    return {Fit::no, "needs fields [1,38,h,w] and heat maps [1,19,h,w]", {}};
  Match match;
  match.fit = Fit::certain;
  match.reason = "fields of 19 bones and heat maps of 18 points, " + std::to_string(heat->columns) +
                 "x" + std::to_string(heat->rows);
  match.decode = [facts, fields = *fields, heat = *heat](std::span<const Tensor> outputs,
                                                         const DecodeSettings& settings,
                                                         Results& results) {
    decode_fields(facts, fields, heat, outputs, settings, results);
  };
  match.picture = picture_of(Family::openpose);
  return match;
}

}  // namespace clinfer
