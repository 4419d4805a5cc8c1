// Follows objects of one kind from frame to frame.
#include "gst/track/tracker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gst/track/assignment.h"

namespace clinfer {
namespace {

constexpr double kUnitsPerSecond = 30;  // units of time in Motion

// Least overlaps of a predicted box and an object's box: for objects of high confidence, for those
// of low confidence (often a part of an object, or none), and for tracks that are not confirmed
// yet.
constexpr double kHighOverlap = 0.2;
constexpr double kLowOverlap = 0.5;
constexpr double kNewOverlap = 0.3;
// The largest squared distance in standard deviations: 95 % of an object's boxes are closer
// (chi-square, 4 values).
constexpr double kFarthest = 9.49;
// The camera's motion is estimated from at least this many objects, each of which overlaps its
// prediction by this much.
constexpr size_t kLeastForCamera = 4;
constexpr double kCameraOverlap = 0.3;
// Share of the objects' height; smaller movements are noise of their boxes.
constexpr double kLeastPan = 0.02;
constexpr double kCertain = 3;       // number of units for which a prediction is good
constexpr float kAlone = 1;          // cost of a pair that has nothing in common
constexpr double kLookMemory = 0.9;  // weight of the earlier appearance

bool is_sound(const Observation& object) {
  const Box& box = object.box;
  return std::isfinite(box.x_min) && std::isfinite(box.y_min) && std::isfinite(box.x_max) &&
         std::isfinite(box.y_max) && box.width() > 0 && box.height() > 0 &&
         std::isfinite(object.confidence);
}

// Returns the cosine of two embeddings; -1 if one of them is unknown.
double likeness(std::span<const float> a, std::span<const float> b) {
  if (a.empty() || a.size() != b.size()) return -1;
  double product = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double p = static_cast<double>(a[i]), q = static_cast<double>(b[i]);
    product += p * q, of_a += p * p, of_b += q * q;
  }
  const double cosine = product / std::sqrt(of_a * of_b);
  return std::isfinite(cosine) ? cosine : -1;
}

void mix(std::vector<float>& look, std::span<const float> seen) {
  double norm = 0;
  for (const float value : seen) norm += static_cast<double>(value) * static_cast<double>(value);
  norm = std::sqrt(norm);
  if (seen.empty() || !(norm > 0) || !std::isfinite(norm)) return;
  const bool first = look.size() != seen.size();
  if (first) look.assign(seen.size(), 0);
  for (size_t i = 0; i < look.size(); ++i) {
    const double now = static_cast<double>(seen[i]) / norm;
    look[i] = static_cast<float>(
        first ? now : kLookMemory * static_cast<double>(look[i]) + (1 - kLookMemory) * now);
  }
}

// Sets of rows and columns that are connected by possible pairs. Each is a separate problem, and
// most consist of a single pair.
class Groups {
 public:
  explicit Groups(size_t members) : parent_(members) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t member) {
    while (parent_[member] != member) member = parent_[member] = parent_[parent_[member]];
    return member;
  }
  void join(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

struct PossiblePair {
  size_t row = 0, column = 0;
  float cost = 0;
};

// Chooses the pairs among `possible` with the lowest total cost, where staying alone costs `most`.
template <typename Take>
void choose(const std::vector<PossiblePair>& possible, size_t rows, size_t columns, float most,
            Take&& take) {
  Groups groups(rows + columns);
  for (const PossiblePair& pair : possible) groups.join(pair.row, rows + pair.column);
  std::vector<std::pair<size_t, size_t>> order;  // pairs of a group and an index into `possible`
  for (size_t i = 0; i < possible.size(); ++i) order.emplace_back(groups.find(possible[i].row), i);
  std::sort(order.begin(), order.end());
  std::vector<size_t> place(rows + columns, 0);  // index within its group
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && order[end].first == order[begin].first) ++end;
    if (end - begin == 1) {
      const PossiblePair& only = possible[order[begin].second];
      take(only.row, only.column);
      begin = end;
      continue;
    }
    std::vector<size_t> own_rows, own_columns;
    for (size_t i = begin; i < end; ++i) {
      own_rows.push_back(possible[order[i].second].row);
      own_columns.push_back(possible[order[i].second].column);
    }
    for (std::vector<size_t>* list : {&own_rows, &own_columns}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    for (size_t i = 0; i < own_rows.size(); ++i) place[own_rows[i]] = i;
    for (size_t i = 0; i < own_columns.size(); ++i) place[rows + own_columns[i]] = i;
    std::vector<float> costs(own_rows.size() * own_columns.size(), most);
    for (size_t i = begin; i < end; ++i) {
      const PossiblePair& pair = possible[order[i].second];
      costs[place[pair.row] * own_columns.size() + place[rows + pair.column]] = pair.cost;
    }
    const std::vector<int> chosen = assign(costs, own_rows.size(), own_columns.size(), most);
    for (size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] >= 0) take(own_rows[i], own_columns[static_cast<size_t>(chosen[i])]);
    begin = end;
  }
}

}  // namespace

// The tracks and objects of a frame that are not paired yet.
struct Tracker::Pairing {
  std::span<const Observation> objects;
  std::vector<Box> predicted;                    // the box of each track
  std::vector<std::optional<size_t>> object_of;  // the object that each track got
  std::vector<bool> taken;                       // true for objects that a track got
  double units = 0;                              // time since the last frame
};

void Tracker::advance(double seconds) {
  const double units = std::max(seconds, 0.0) * kUnitsPerSecond;
  for (Track& track : tracks_) {
    track.motion.advance(units);
    track.unseen += std::max(seconds, 0.0);
  }
}

void Tracker::forget() {
  std::erase_if(tracks_, [&](const Track& track) {
    return track.missed > 0 && (track.id == 0 || track.unseen > settings_.lost_time);
  });
}

// Pairs tracks for which is_wanted(index) is true with objects of high, or of low, confidence.
// cost(track index, object index) returns nothing if the two cannot belong together.
template <typename IsWanted, typename Cost>
void Tracker::pair_up(Pairing& pairing, IsWanted&& is_wanted, bool high, Cost&& cost) {
  std::vector<PossiblePair> possible;
  for (size_t t = 0; t < tracks_.size(); ++t) {
    if (pairing.object_of[t] || !is_wanted(tracks_[t])) continue;
    for (size_t o = 0; o < pairing.objects.size(); ++o) {
      if (pairing.taken[o]) continue;
      const double confidence = pairing.objects[o].confidence;
      if (high ? confidence < settings_.high_threshold
               : confidence < settings_.low_threshold || confidence >= settings_.high_threshold)
        continue;
      if (const std::optional<double> value = cost(t, o))
        possible.push_back({t, o, static_cast<float>(std::max(*value, 0.0))});
    }
  }
  choose(possible, tracks_.size(), pairing.objects.size(), kAlone, [&](size_t t, size_t o) {
    pairing.object_of[t] = o;
    pairing.taken[o] = true;
  });
}

// Corrects for the camera's motion. If the camera moves, all objects have moved from their expected
// places by the same distance: the median over those that are found again with certainty. All
// others, including hidden ones, are moved by it.
void Tracker::follow_camera(Pairing& pairing) {
  std::vector<double> right, down, heights;
  for (size_t t = 0; t < tracks_.size(); ++t) {
    if (tracks_[t].missed > 0) continue;
    const Box& expected = pairing.predicted[t];
    double most = kCameraOverlap;
    const Box* found = nullptr;
    for (size_t o = 0; o < pairing.objects.size(); ++o) {
      if (pairing.taken[o] || pairing.objects[o].confidence < settings_.high_threshold) continue;
      const double shared = overlap(expected, pairing.objects[o].box);
      if (shared >= most) most = shared, found = &pairing.objects[o].box;
    }
    if (found == nullptr) continue;
    right.push_back((found->x_min + found->x_max - expected.x_min - expected.x_max) / 2);
    heights.push_back(expected.height());
    down.push_back((found->y_min + found->y_max - expected.y_min - expected.y_max) / 2);
  }
  if (right.size() < kLeastForCamera) return;
  const auto median = [](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  const double x = median(right), y = median(down);
  if (std::hypot(x, y) < kLeastPan * median(heights)) return;
  for (size_t t = 0; t < tracks_.size(); ++t) {
    tracks_[t].motion.move(x, y);
    pairing.predicted[t] = tracks_[t].motion.box();
  }
}

void Tracker::pair_all(Pairing& pairing) {
  const auto look = [&](size_t t, size_t o) {
    return settings_.appearance_threshold > 0
               ? likeness(tracks_[t].look, pairing.objects[o].embedding)
               : -1;
  };
  const auto predicted = [&](double least) {
    return [&, least](size_t t, size_t o) -> std::optional<double> {
      const double shared = overlap(pairing.predicted[t], pairing.objects[o].box);
      if (shared < least) return std::nullopt;
      return 1 - shared;
    };
  };
  // Lowers the requirement with the time between two frames, because predictions become worse.
  const double least_overlap = kHighOverlap / std::clamp(pairing.units / kCertain, 1.0, 2.0);
  const auto has_id = [](const Track& track) { return track.id != 0; };
  // Prefers, among objects that overlap equally, the one that looks the same.
  pair_up(pairing, has_id, true, [&](size_t t, size_t o) -> std::optional<double> {
    const double shared = overlap(pairing.predicted[t], pairing.objects[o].box);
    if (shared < least_overlap) return std::nullopt;
    const double alike = look(t, o);
    if (alike <= -1) return 1 - shared * pairing.objects[o].confidence;
    if (alike >= settings_.appearance_threshold) return 1 - std::max(shared, alike);
    // Rejects another object that took its place while it was out of sight.
    if (tracks_[t].missed > 0) return std::nullopt;
    return 1 - shared / 2;
  });
  pair_up(
      pairing, [](const Track& track) { return track.id != 0 && track.missed == 0; }, false,
      predicted(kLowOverlap));
  pair_up(
      pairing, [](const Track& track) { return track.id == 0; }, true, predicted(kNewOverlap));
  // Finds objects that turned while they were out of sight.
  pair_up(pairing, has_id, true, [&](size_t t, size_t o) -> std::optional<double> {
    const double alike = look(t, o);
    if (alike <= -1 || alike < settings_.appearance_threshold) return std::nullopt;
    return 1 - alike;
  });
  // Finds objects that moved so far between two frames that they overlap no prediction.
  pair_up(
      pairing, [](const Track& track) { return track.missed <= 1; }, true,
      [&](size_t t, size_t o) -> std::optional<double> {
        const double distance = tracks_[t].motion.distance(pairing.objects[o].box);
        const double alike = look(t, o);
        if (distance > kFarthest || (alike > -1 && alike < settings_.appearance_threshold))
          return std::nullopt;
        return distance / (kFarthest * 1.01);
      });
}

void Tracker::see(Track& track, const Observation& object) {
  track.motion.correct(object.box);
  track.observed = object.box;
  track.unseen = 0;
  track.missed = 0;
  ++track.hits;
  if (object.confidence >= settings_.high_threshold) mix(track.look, object.embedding);
  if (track.id == 0 && track.hits >= settings_.min_hits) track.id = next_id_();
}

std::vector<uint64_t> Tracker::update(double seconds, std::span<const Observation> objects) {
  advance(seconds);
  Pairing pairing;
  pairing.objects = objects;
  pairing.units = (seconds + since_update_) * kUnitsPerSecond;
  since_update_ = 0;
  for (const Track& track : tracks_) pairing.predicted.push_back(track.motion.box());
  pairing.object_of.resize(tracks_.size());
  for (const Observation& object : objects) pairing.taken.push_back(!is_sound(object));
  follow_camera(pairing);
  pair_all(pairing);

  std::vector<uint64_t> ids(objects.size(), 0);
  for (size_t t = 0; t < tracks_.size(); ++t) {
    Track& track = tracks_[t];
    if (pairing.object_of[t]) {
      see(track, objects[*pairing.object_of[t]]);
      ids[*pairing.object_of[t]] = track.id;
    } else {
      ++track.missed;
      track.motion.keep_size();
    }
  }
  forget();
  for (size_t o = 0; o < objects.size(); ++o) {
    if (pairing.taken[o] || objects[o].confidence < start_threshold(settings_.high_threshold))
      continue;
    Track& track = tracks_.emplace_back();
    track.motion = Motion(objects[o].box);
    track.observed = objects[o].box;
    track.hits = 1;
    mix(track.look, objects[o].embedding);
    if (begins_ || settings_.min_hits <= 1) track.id = next_id_();
    ids[o] = track.id;
  }
  begins_ = false;
  return ids;
}

void Tracker::skip(double seconds) {
  advance(seconds);
  since_update_ += seconds;
  forget();
}

}  // namespace clinfer
