// Turns the regions of a frame into boxes for the trackers, and back.
#include "gst/track/frame_tracker.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/heads/files/labels.h"

namespace clinfer {
namespace {

// Returns whether the network that finds these objects was run on this frame. Elements other than
// clinfer do not tell that, and count as run on every frame.
Outcome outcome_for(const FrameView& frame, const std::string& model) {
  std::optional<Outcome> outcome;
  for (const ResultView& result : frame.results)
    if (!model.empty() && result.model == model && outcome != Outcome::run)
      outcome = result.outcome;
  return outcome.value_or(Outcome::run);
}

// Returns whether a region is an object to track. Parts of the picture that the user chose are
// none, and objects that another element tracks keep its ids.
bool is_object(const RegionView& region, const std::vector<std::string>& wanted) {
  if (region.track_id || (!region.has_detection && region.roi_type == "region")) return false;
  return is_among(region, wanted);
}

Box pixels(const PictureBox& box, int width, int height) {
  return {static_cast<double>(box.x_min) * width, static_cast<double>(box.y_min) * height,
          static_cast<double>(box.x_max) * width, static_cast<double>(box.y_max) * height};
}

std::span<const float> embedding_of(const RegionView& region) {
  for (const TensorView& embedding : region.embeddings)
    if (const float* values = values_of<float>(embedding.data);
        embedding.type == "f32" && values != nullptr)
      return {values, count_of<float>(embedding.data)};
  return {};
}

}  // namespace

std::vector<TrackedObject> FrameTracker::track(const FrameView& frame,
                                               const TrackSettings& settings, double seconds,
                                               int width, int height, uint64_t time) {
  if (width_ == 0) {
    width_ = width;
    height_ = height;
  }
  width = width_, height = height_;
  const std::vector<std::string> wanted = parse_labels(settings.object_class);
  TrackerSettings core;
  core.high_threshold = settings.high_threshold;
  core.low_threshold = settings.low_threshold;
  core.min_hits = settings.min_hits;
  core.lost_time = settings.lost_time / 1000.0;
  core.appearance_threshold = settings.appearance_threshold;
  for (auto& [key, kind] : kinds_) {
    kind.regions.clear();
    kind.tracker.set(core);
  }
  for (size_t i = 0; i < frame.regions.size(); ++i) {
    const RegionView& region = frame.regions[i];
    if (!is_object(region, wanted)) continue;
    const Key key{region.model, settings.per_class ? region.roi_type : std::string()};
    auto found = kinds_.find(key);
    if (found == kinds_.end())
      found = kinds_
                  .emplace(key, Kind{Tracker(
                                         core, [this] { return ++last_id_; }, begins_),
                                     {},
                                     {}})
                  .first;
    found->second.regions.push_back(i);
  }
  std::vector<TrackedObject> tracked;
  for (auto& [key, kind] : kinds_) {
    const Outcome outcome = outcome_for(frame, key.first);
    if (outcome == Outcome::run) {
      update(kind, frame, settings, seconds, width, height, time, tracked);
    } else {
      kind.tracker.skip(seconds);
      if (outcome == Outcome::held)
        repeat(kind, frame, width, height, time, tracked);
      else if (settings.predict)
        predict(kind, settings, width, height, time, tracked);
    }
    std::erase_if(kind.known, [&tracks = kind.tracker.tracks()](const auto& known) {
      return std::none_of(tracks.begin(), tracks.end(),
                          [&](const Track& track) { return track.id == known.first; });
    });
  }
  begins_ = false;
  std::erase_if(kinds_, [](const auto& kind) { return kind.second.tracker.tracks().empty(); });
  return tracked;
}

void FrameTracker::update(Kind& kind, const FrameView& frame, const TrackSettings& settings,
                          double seconds, int width, int height, uint64_t time,
                          std::vector<TrackedObject>& tracked) {
  // Takes those with the highest confidence if there are too many. Regions that no network found
  // count as certain.
  const auto confidence = [&](size_t i) {
    const RegionView& region = frame.regions[i];
    return region.has_detection ? region.confidence : 1;
  };
  std::vector<size_t>& regions = kind.regions;
  if (regions.size() > settings.max_objects) {
    std::stable_sort(regions.begin(), regions.end(),
                     [&](size_t a, size_t b) { return confidence(a) > confidence(b); });
    regions.resize(settings.max_objects);
  }
  std::vector<Observation> objects;
  for (const size_t i : regions)
    objects.push_back({pixels(frame.regions[i].box, width, height), confidence(i),
                       embedding_of(frame.regions[i])});
  const std::vector<uint64_t> ids = kind.tracker.update(seconds, objects);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == 0) {
      if (objects[i].confidence < start_threshold(settings.high_threshold)) ++unsure_;
      continue;
    }
    const RegionView& region = frame.regions[regions[i]];
    Known& known = kind.known.try_emplace(ids[i], Known{{}, time}).first->second;
    RegionView& view = known.view;
    view.roi_type = region.roi_type;
    view.has_roi = region.has_roi;
    view.has_detection = region.has_detection;
    view.box = region.box;
    view.confidence = region.confidence;
    view.label_id = region.label_id;
    view.label = region.label;
    view.model = region.model;
    tracked.push_back({ids[i], regions[i], {}, known.first_seen, time});
  }
}

// Adds the objects that were there when they were last looked for, at their predicted places.
void FrameTracker::predict(Kind& kind, const TrackSettings&, int width, int height, uint64_t time,
                           std::vector<TrackedObject>& tracked) const {
  for (const Track& track : kind.tracker.tracks()) {
    const auto known = kind.known.find(track.id);
    if (track.missed > 0 || known == kind.known.end()) continue;
    TrackedObject object{track.id, {}, known->second.view, known->second.first_seen, time};
    const Box box = track.motion.box();
    object.expected.box = {
        static_cast<float>(box.x_min / width), static_cast<float>(box.y_min / height),
        static_cast<float>(box.x_max / width), static_cast<float>(box.y_max / height)};
    tracked.push_back(std::move(object));
  }
}

// Adds the objects of an earlier frame that `hold-results` repeats, with their boxes.
void FrameTracker::repeat(const Kind& kind, const FrameView& frame, int width, int height,
                          uint64_t time, std::vector<TrackedObject>& tracked) const {
  constexpr double kSame = 0.999;
  for (const size_t i : kind.regions) {
    const Box box = pixels(frame.regions[i].box, width, height);
    for (const Track& track : kind.tracker.tracks()) {
      const auto known = kind.known.find(track.id);
      if (track.missed > 0 || known == kind.known.end() || overlap(track.observed, box) < kSame)
        continue;
      tracked.push_back({track.id, i, {}, known->second.first_seen, time});
      break;
    }
  }
}

size_t FrameTracker::tracks() const {
  size_t count = 0;
  for (const auto& [key, kind] : kinds_) count += kind.known.size();
  return count;
}

}  // namespace clinfer
