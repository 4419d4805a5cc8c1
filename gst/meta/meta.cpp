// Attaches results to buffers, and reads them.
#include "gst/meta/meta.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/heads/files/labels.h"
#include "gst/meta/analytics.h"
#include "gst/meta/parameters.h"

namespace clinfer {
namespace {

// ---- from the network's pixels to the picture ---------------------------------------------------

PointMap affine_of(const Placement& placement, const Rect& visible) {
  if (placement.angle == 0) {
    // In an order of operations that maps the edge of a margin to the very edge of the frame.
    const auto axis = [](float margin, float scale, float origin, int start, int size) {
      const double by = static_cast<double>(scale) / size;
      return std::pair(
          by, (static_cast<double>(origin) - start) / size - static_cast<double>(margin) * by);
    };
    const auto [x_scale, x0] =
        axis(placement.left, placement.x_scale, placement.origin_x, visible.x, visible.width);
    const auto [y_scale, y0] =
        axis(placement.top, placement.y_scale, placement.origin_y, visible.y, visible.height);
    return placement.transposed ? PointMap{0, x_scale, x0, y_scale, 0, y0}
                                : PointMap{x_scale, 0, x0, 0, y_scale, y0};
  }
  const PointMap map = to_frame(placement);
  return {map.xx / visible.width,  map.xy / visible.width,  (map.x0 - visible.x) / visible.width,
          map.yx / visible.height, map.yy / visible.height, (map.y0 - visible.y) / visible.height};
}

std::array<Point, 4> corners_of(const OrientedBox& box) {
  const float c = std::cos(box.rotation), s = std::sin(box.rotation);
  std::array<Point, 4> corners;
  for (size_t i = 0; i < 4; ++i) {
    const float x = (i == 0 || i == 3 ? -0.5f : 0.5f) * box.width,
                y = (i < 2 ? -0.5f : 0.5f) * box.height;
    corners[i] = {box.x_center + x * c - y * s, box.y_center + x * s + y * c};
  }
  return corners;
}

// Makes a region with the network's coordinates.
RegionView region_of(const Detection& detection, const std::vector<std::string>& labels,
                     const std::string& model) {
  RegionView view;
  view.has_detection = true;
  view.box = {detection.x_min, detection.y_min, detection.x_max, detection.y_max};
  view.confidence = static_cast<double>(detection.confidence);
  view.label_id = detection.label_id;
  view.label = detection.label;
  const auto id = static_cast<size_t>(detection.label_id);
  if (view.label.empty() && detection.label_id >= 0 && id < labels.size()) view.label = labels[id];
  view.roi_type = view.label.empty() ? std::to_string(detection.label_id) : view.label;
  view.model = model;
  if (detection.oriented_box) view.corners = corners_of(*detection.oriented_box);
  view.skeleton = detection.skeleton;
  view.keypoints = detection.keypoints;
  view.landmarks = detection.landmarks;
  if (const auto& mask = detection.mask) {
    view.mask.emplace();
    view.mask->columns = mask->columns;
    view.mask->rows = mask->rows;
    view.mask->area = {mask->x_min, mask->y_min, mask->x_max, mask->y_max};
    view.mask->level = mask->level;
    view.mask->values = bytes_of(mask->values, mask);
  }
  return view;
}

MapView map_of(const PictureMap& map, const std::string& model) {
  MapView view;
  view.name = map.name;
  view.model = model;
  view.kind = map.kind;
  view.columns = map.columns;
  view.rows = map.rows;
  view.area = {map.x_min, map.y_min, map.x_max, map.y_max};
  view.labels = map.labels;
  view.values = map.kind == MapKind::classes ? bytes_of(map.classes) : bytes_of(map.values);
  return view;
}

TensorView tensor_of(const NamedTensor& tensor, const std::string& model) {
  TensorView view;
  view.name = tensor.name;
  view.type = name_of(tensor.value.type());
  view.model = model;
  for (const int64_t dimension : tensor.value.shape())
    view.dims.push_back(static_cast<int>(dimension));
  view.data = Bytes(g_bytes_new(tensor.value.raw(), tensor.value.bytes()), g_bytes_unref);
  return view;
}

Answers answers_of(const Results& results, const std::string& model) {
  Answers answers;
  for (const Classification& answer : results.classifications)
    answers.classifications.push_back({answer, model});
  for (const RecognizedText& text : results.texts) answers.texts.push_back({text, model});
  for (const Embedding& embedding : results.embeddings)
    answers.embeddings.push_back({embedding.name,
                                  "f32",
                                  model,
                                  {static_cast<int>(embedding.values.size())},
                                  bytes_of(embedding.values)});
  for (const PictureMap& map : results.maps) answers.maps.push_back(map_of(map, model));
  for (const NamedTensor& tensor : results.tensors)
    answers.tensors.push_back(tensor_of(tensor, model));
  return answers;
}

void mark_held(Answers& answers) {
  for (ClassificationView& answer : answers.classifications) answer.held = true;
  for (TextView& text : answers.texts) text.held = true;
  for (TensorView& embedding : answers.embeddings) embedding.held = true;
}

void append(Answers& to, const Answers& from) {
  const auto add = [](auto& list, const auto& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  add(to.classifications, from.classifications);
  add(to.texts, from.texts);
  add(to.embeddings, from.embeddings);
  add(to.maps, from.maps);
  add(to.tensors, from.tensors);
}

// ---- reading results from a buffer --------------------------------------------------------------

template <typename Visit>
void for_each_roi(GstBuffer* buffer, Visit&& visit) {
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
             buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
    visit(reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta));
}

Rect visible_in(GstBuffer* buffer, int width, int height) {
  const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
  return {crop != nullptr ? static_cast<int>(crop->x) : 0,
          crop != nullptr ? static_cast<int>(crop->y) : 0, width, height};
}

// Returns the record relative to the part of the frame that is visible now: an element in between
// may have cropped the frame in place. Regions that are no longer visible get an empty box.
std::optional<Record> visible_record(GstBuffer* buffer, const Rect& visible) {
  std::optional<Record> record = read_record(buffer);
  if (!record || gst_buffer_get_video_crop_meta(buffer) == nullptr) return record;
  record->source = nullptr;
  const PointMap affine = between(record->picture, visible);
  for (RecordedRegion& region : record->regions)
    if (!move_region(region.view, affine, visible.width, visible.height)) region.view.box = {};
  for (ResultView& result : record->results) move_answers(result, affine);
  for (ZoneView& zone : record->zones) move_zone(zone, affine);
  return record;
}

RegionView view_of(const GstVideoRegionOfInterestMeta* roi, int width, int height) {
  RegionView view;
  const auto limited = [](guint value) {
    return static_cast<int>(std::min<guint>(value, G_MAXINT / 4));
  };
  view.x = limited(roi->x);
  view.y = limited(roi->y);
  view.width = limited(roi->w);
  view.height = limited(roi->h);
  view.id = roi->id;
  view.parent_id = roi->parent_id;
  if (const char* type = g_quark_to_string(roi->roi_type)) view.roi_type = type;
  if (width > 0 && height > 0)
    view.box = {static_cast<float>(view.x) / static_cast<float>(width),
                static_cast<float>(view.y) / static_cast<float>(height),
                static_cast<float>(view.x + view.width) / static_cast<float>(width),
                static_cast<float>(view.y + view.height) / static_cast<float>(height)};
  return view;
}

struct FoundRegion {
  RegionView view;
  GstVideoRegionOfInterestMeta* roi = nullptr;  // null: the object is in GstAnalytics only
  std::optional<size_t> recorded;               // index into the record's regions
  bool moved = false;                           // after it was recorded
};

// Indices of a record's regions by their ids.
class RecordIndex {
 public:
  explicit RecordIndex(const std::optional<Record>& record) : record_(record) {
    if (!record) return;
    for (size_t i = 0; i < record->regions.size(); ++i) {
      const RegionView& view = record->regions[i].view;
      by_id_.emplace(view.id, i);
      if (view.analytics_id >= 0) by_analytics_id_.emplace(view.analytics_id, i);
    }
  }
  std::optional<size_t> by_id(int id, const std::string& type) const {
    return find(by_id_, id, type);
  }
  std::optional<size_t> by_analytics_id(int id, const std::string& type) const {
    return find(by_analytics_id_, id, type);
  }

 private:
  std::optional<size_t> find(const std::multimap<int, size_t>& regions, int id,
                             const std::string& type) const {
    const auto [first, last] = regions.equal_range(id);
    for (auto at = first; at != last; ++at)
      if (record_->regions[at->second].view.roi_type == type) return at->second;
    return std::nullopt;
  }

  const std::optional<Record>& record_;
  std::multimap<int, size_t> by_id_, by_analytics_id_;
};

// Gives a region the rectangle of `to`: another element, such as a tracker, has moved it.
void move_to(const RegionView& to, FoundRegion& found) {
  found.view.x = to.x, found.view.y = to.y;
  found.view.width = to.width, found.view.height = to.height;
  found.view.box = to.box;
  found.moved = true;
}

// Joins a region of interest with its record.
FoundRegion found_with(GstVideoRegionOfInterestMeta* roi, const std::optional<Record>& record,
                       const RecordIndex& known, const Rect& visible, bool cropped) {
  FoundRegion found{view_of(roi, visible.width, visible.height), roi, {}};
  const Names* parameters = nullptr;
  if (roi->id != 0) found.recorded = known.by_id(roi->id, found.view.roi_type);
  if (found.recorded) {
    const RecordedRegion& region = record->regions[*found.recorded];
    parameters = &region.parameters;
    const RegionView rectangle = found.view;
    found.view = region.view;
    if (!cropped && !is_same_object(rectangle, region.view)) move_to(rectangle, found);
  }
  for (const GList* item = roi->params; item != nullptr; item = item->next) {
    const auto* parameter = static_cast<const GstStructure*>(item->data);
    if (parameters == nullptr ||
        std::find(parameters->begin(), parameters->end(),
                  std::string_view(gst_structure_get_name(parameter))) == parameters->end())
      read_parameter(parameter, found.view);
  }
  if (!found.view.has_detection) found.view.label = found.view.roi_type;
  return found;
}

// Adds classes of other elements, which are in GstAnalytics only.
void add_new_classes(std::vector<ClassificationView>& known,
                     const std::vector<ClassificationView>& answers) {
  const auto name = [](const ClassificationView& answer) {
    return answer.label.empty() ? std::to_string(answer.label_id) : answer.label;
  };
  for (const ClassificationView& answer : answers)
    if (std::none_of(known.begin(), known.end(),
                     [&](const auto& other) { return name(other) == answer.label; }))
      known.push_back(answer);
}

// Adds to `view` what GstAnalytics says of its object beyond what is known.
void add_related(RegionView& view, const AnalyticsObject& object) {
  view.analytics_id = object.view.analytics_id;
  if (!view.track_id) view.track_id = object.view.track_id;
  if (!view.mask) view.mask = object.view.mask;
  add_new_classes(view.classifications, object.view.classifications);
}

struct FoundOnFrame {
  std::vector<FoundRegion> regions;
  Answers whole;  // from GstAnalytics
};

FoundOnFrame find_regions(GstBuffer* buffer, const std::optional<Record>& record,
                          const Rect& visible) {
  FoundOnFrame frame;
  std::vector<FoundRegion>& list = frame.regions;
  int last_id = 0;
  const bool cropped = gst_buffer_get_video_crop_meta(buffer) != nullptr;
  const RecordIndex known(record);
  for_each_roi(buffer, [&](GstVideoRegionOfInterestMeta* roi) {
    FoundRegion found = found_with(roi, record, known, visible, cropped);
    if (!(found.view.box.x_max > found.view.box.x_min) && found.recorded) return;
    last_id = std::max({last_id, found.view.id, found.view.parent_id});
    list.push_back(std::move(found));
  });
  if (record)
    for (const RecordedRegion& region : record->regions)
      last_id = std::max({last_id, region.view.id, region.view.parent_id});
  AnalyticsContents analytics = read_analytics(buffer, visible.width, visible.height);
  frame.whole = std::move(analytics.whole);
  const size_t regions = list.size();
  std::vector<bool> taken(regions, false);
  std::map<int, size_t> by_analytics_id;
  for (size_t i = 0; i < regions; ++i)
    if (list[i].view.analytics_id >= 0) by_analytics_id.emplace(list[i].view.analytics_id, i);
  std::map<int, int> ids;  // of regions, by analytics_id
  std::vector<std::pair<size_t, int>> parts;
  for (AnalyticsObject& object : analytics.objects) {
    RegionView& view = object.view;
    size_t same = regions;
    if (const auto at = by_analytics_id.find(view.analytics_id);
        at != by_analytics_id.end() && !taken[at->second] &&
        list[at->second].view.roi_type == view.roi_type)
      same = at->second;
    std::optional<size_t> recorded;
    if (same == regions) recorded = known.by_analytics_id(view.analytics_id, view.roi_type);
    if (recorded) {
      const RegionView& kept = record->regions[*recorded].view;
      // The object's region was removed, or is no longer visible.
      if (kept.has_roi || !(kept.box.x_max > kept.box.x_min)) continue;
      FoundRegion found{kept, nullptr, recorded};
      if (!cropped && !is_same_object(view, kept)) move_to(view, found);
      add_related(found.view, object);
      ids[view.analytics_id] = found.view.id;
      list.push_back(std::move(found));
      continue;
    }
    for (size_t i = 0; same == regions && i < regions; ++i)
      if (!taken[i] && list[i].view.analytics_id < 0 && is_same_object(list[i].view, view)) {
        same = i;
        break;
      }
    if (same == regions) {
      view.id = ++last_id;
      view.has_roi = false;
      ids[view.analytics_id] = view.id;
      if (object.parent >= 0) parts.emplace_back(list.size(), object.parent);
      list.push_back({std::move(view)});
      continue;
    }
    taken[same] = true;
    ids[view.analytics_id] = list[same].view.id;
    add_related(list[same].view, object);
  }
  for (const auto& [part, whole] : parts)
    if (const auto parent = ids.find(whole); parent != ids.end())
      list[part].view.parent_id = parent->second;
  for (size_t i = 0; i < regions; ++i)
    if (!taken[i]) list[i].view.analytics_id = -1;
  return frame;
}

// ---- attaching ----------------------------------------------------------------------------------

// Finds ids for new regions; next() is greater than all ids on the buffer.
class Ids {
 public:
  explicit Ids(GstBuffer* buffer, const std::optional<Record>& record) {
    for_each_roi(buffer, [&](const GstVideoRegionOfInterestMeta* roi) {
      ++uses_[roi->id];
      last_ = std::max({last_, roi->id, roi->parent_id});
    });
    if (!record) return;
    for (const RecordedRegion& region : record->regions)
      last_ = std::max({last_, region.view.id, region.view.parent_id});
  }
  int next() { return ++last_; }
  bool is_unique(int id) const {
    const auto found = uses_.find(id);
    return id > 0 && found != uses_.end() && found->second == 1;
  }

 private:
  std::map<int, int> uses_;
  int last_ = 0;
};

void set_rectangle(GstVideoRegionOfInterestMeta* roi, const RegionView& view) {
  roi->x = static_cast<guint>(view.x), roi->y = static_cast<guint>(view.y);
  roi->w = static_cast<guint>(view.width), roi->h = static_cast<guint>(view.height);
}

GstVideoRegionOfInterestMeta* add_roi(GstBuffer* buffer, const RegionView& view) {
  GstVideoRegionOfInterestMeta* roi = gst_buffer_add_video_region_of_interest_meta(
      buffer, view.roi_type.c_str(), static_cast<guint>(view.x), static_cast<guint>(view.y),
      static_cast<guint>(view.width), static_cast<guint>(view.height));
  roi->id = view.id;
  roi->parent_id = view.parent_id;
  return roi;
}

class Attachment {
 public:
  Attachment(GstBuffer* buffer, const Rect& visible)
      : buffer_(buffer), visible_(visible), record_(visible_record(buffer, visible)) {}

  // Returns the regions, which add() need not search again.
  const std::vector<FoundRegion>& find() {
    if (!found_) found_ = find_regions(buffer_, record_, visible_).regions;
    return *found_;
  }
  const std::optional<Record>& record() const { return record_; }

  void add(const FrameResult& result, const std::vector<std::string>& labels) {
    if (std::any_of(result.parts.begin(), result.parts.end(),
                    [](const PartResult& part) { return part.region.has_value(); }))
      find();
    begin();
    roi_meta_ = result.roi_meta;
    size_t objects = 0;
    for (const PartResult& part : result.parts) objects += part.results.detections.size();
    reserve_analytics(buffer_, objects);
    ResultView whole;
    whole.outcome = result.outcome;
    whole.model = result.model;
    for (const PartResult& part : result.parts) {
      const PointMap affine = affine_of(part.placement, visible_);
      Answers answers = answers_of(part.results, result.model);
      if (part.held) mark_held(answers);
      move_answers(answers, affine);
      if (!part.region) {
        add_objects(part, affine, nullptr, result.model, labels);
        add_analytics_answers(buffer_, nullptr, answers, width(), height());
        append(whole, answers);
      } else if (*part.region < found_->size()) {
        FoundRegion& found = (*found_)[*part.region];
        refine(part, affine, labels, found);
        append(found.view, answers);
        if (roi_meta_) found.view.has_roi = true;
        if (write(found, Stored::no))
          add_analytics_answers(buffer_, &found.view, answers, width(), height());
        add_objects(part, affine, &found.view, result.model, labels);
      }  // otherwise the copy of the buffer lost it
    }
    record_->results.push_back(std::move(whole));
    if (has_better_boxes_) renew_analytics();
    write_record(buffer_, *record_);
  }

  void add(const std::vector<TrackedObject>& objects) {
    find();
    begin();
    for (const TrackedObject& object : objects) {
      if (!object.region) {
        RegionView view = object.expected;
        if (!move_region(view, {}, width(), height())) continue;
        view.predicted = true;
        view.track_id = object.id;
        add_object(view);
        add_track(view, object);
      } else if (*object.region < found_->size()) {
        FoundRegion& found = (*found_)[*object.region];
        // GstAnalytics gets the track together with its times.
        found.view.track_id = std::nullopt;
        join_analytics(found);
        found.view.track_id = object.id;
        write(found, Stored::but_for_new);
        add_track(found.view, object);
      }
    }
    write_record(buffer_, *record_);
  }

  // Returns the objects' ids.
  std::vector<int> add(const std::vector<RegionView>& objects) {
    begin();
    reserve_analytics(buffer_, objects.size());
    std::vector<int> new_ids;
    for (RegionView object : objects) {
      add_object(object);
      new_ids.push_back(object.id);
    }
    write_record(buffer_, *record_);
    return new_ids;
  }

  void add(const ZoneResult& result) {
    find();
    begin();
    for (const auto& [region, zones] : result.objects) {
      if (region >= found_->size()) continue;
      FoundRegion& found = (*found_)[region];
      const bool is_first = found.view.zones.empty();
      found.view.zones.insert(found.view.zones.end(), zones.begin(), zones.end());
      write(found, is_first ? Stored::but_for_new : Stored::no);
    }
    record_->zones.insert(record_->zones.end(), result.zones.begin(), result.zones.end());
    record_->events.insert(record_->events.end(), result.events.begin(), result.events.end());
    write_record(buffer_, *record_);
  }

 private:
  int width() const { return visible_.width; }
  int height() const { return visible_.height; }

  void begin() {
    if (!record_) record_.emplace();
    const Rect& before = record_->picture;
    if (before.x != visible_.x || before.y != visible_.y || before.width != visible_.width ||
        before.height != visible_.height)
      record_->source = nullptr;
    record_->picture = visible_;
  }

  // Makes it when the first new id is needed, because most frames need none.
  Ids& ids() {
    if (!ids_) ids_.emplace(buffer_, record_);
    return *ids_;
  }

  void add_track(const RegionView& view, const TrackedObject& object) {
    add_analytics_track(buffer_, view, object.id, object.first_seen, object.now, width(), height());
  }

  // Adds the object as a new region, which gets its id.
  void add_object(RegionView& view) {
    view.id = ids().next();
    if (view.has_roi) add_parameters(add_roi(buffer_, view), view, visible_);
    // Keeps the track back, which GstAnalytics gets together with its times.
    const std::optional<uint64_t> track = std::exchange(view.track_id, std::nullopt);
    add_analytics_objects(buffer_, {&view}, width(), height());
    view.track_id = track;
    record_->regions.push_back({view, {}, Stored::no});
  }

  void add_objects(const PartResult& part, const PointMap& affine, const RegionView* parent,
                   const std::string& model, const std::vector<std::string>& labels) {
    for (const Detection& detection : part.results.detections) {
      // A result about the region itself.
      if (parent != nullptr && detection.subject != Subject::found) continue;
      RegionView view = region_of(detection, labels, model);
      if (!move_region(view, affine, width(), height())) continue;
      if (parent != nullptr) view.parent_id = parent->id;
      view.held = part.held;
      view.has_roi = roi_meta_;
      add_object(view);
      if (parent != nullptr) add_analytics_parent(buffer_, view, *parent, width(), height());
    }
  }

  // Adds to a region what was found about it: points and a mask replace those that it had, and a
  // better box replaces its own.
  void refine(const PartResult& part, const PointMap& affine,
              const std::vector<std::string>& labels, FoundRegion& found) {
    for (const Detection& detection : part.results.detections) {
      if (detection.subject == Subject::found) continue;
      RegionView better = region_of(detection, labels, {});
      if (!move_region(better, affine, width(), height())) continue;
      RegionView& view = found.view;
      Names replaced;
      if (!better.keypoints.empty()) {
        view.keypoints = std::move(better.keypoints);
        view.skeleton = better.skeleton;
        replaced.emplace_back(kKeyPoints);
      }
      if (!better.landmarks.empty()) {
        view.landmarks = std::move(better.landmarks);
        if (view.keypoints.empty()) view.skeleton = better.skeleton;
        replaced.emplace_back(kLandmarks);
      }
      if (better.mask) {
        view.mask = std::move(better.mask);
        add_analytics_mask(buffer_, view, width(), height());
        replaced.emplace_back(kMask);
      }
      if (detection.subject == Subject::refined) {
        view.x = better.x, view.y = better.y;
        view.width = better.width, view.height = better.height;
        view.box = better.box;
        view.corners = better.corners;
        view.confidence = better.confidence;
        has_better_boxes_ = has_analytics();
        replaced.emplace_back(kDetection);
        if (found.roi != nullptr) set_rectangle(found.roi, view);
      }
      if (found.roi != nullptr) remove_parameters(found.roi, replaced);
    }
  }

  // Adds an object that is a region of interest only to GstAnalytics, with all that is known.
  // Returns false if it was there or cannot be.
  bool join_analytics(FoundRegion& found) {
    if (!has_analytics() || found.view.analytics_id >= 0) return false;
    add_analytics_objects(buffer_, {&found.view}, width(), height());
    return true;
  }

  // Writes all objects to GstAnalytics again, because a box cannot be changed there.
  void renew_analytics() {
    std::vector<RegionView*> views;
    std::vector<bool> is_found(record_->regions.size());
    for (FoundRegion& found : *found_) {
      views.push_back(&found.view);
      if (found.recorded) is_found[*found.recorded] = true;
    }
    for (size_t i = 0; i < is_found.size(); ++i)
      if (!is_found[i]) views.push_back(&record_->regions[i].view);
    replace_analytics_objects(buffer_, views, width(), height());
    for (const FoundRegion& found : *found_)
      if (found.recorded)
        record_->regions[*found.recorded].view.analytics_id = found.view.analytics_id;
    for (RecordedRegion& region : record_->regions) region.stored = Stored::no;
    add_analytics_answers_again(buffer_, record_->results, width(), height());
  }

  // Writes the new parts of a region's view, and an id if it had none. `stored`: which parts the
  // record has already, provided that nothing else has changed the region. Returns whether its
  // object was in GstAnalytics, so that new answers are still to be added there.
  bool write(FoundRegion& found, Stored stored) {
    const bool joins = join_analytics(found);
    if (found.roi == nullptr) {
      if (!found.recorded) found.view.id = ids().next();
      if (found.view.has_roi) found.roi = add_roi(buffer_, found.view);
    } else if (!found.recorded && !ids().is_unique(found.roi->id)) {
      // Gives it an id of its own: other elements leave 0 or start counting again, and results need
      // regions that can be told apart.
      found.roi->id = found.view.id = ids().next();
    }
    if (found.roi != nullptr) add_parameters(found.roi, found.view, visible_);
    keep(found, stored);
    return !joins;
  }

  void keep(FoundRegion& found, Stored stored) {
    if (!found.recorded) {
      found.recorded = record_->regions.size();
      record_->regions.push_back({found.view, {}, Stored::no});
      return;
    }
    RecordedRegion& recorded = record_->regions[*found.recorded];
    const bool is_same = recorded.stored == Stored::all && !found.moved &&
                         recorded.view.has_roi == found.view.has_roi &&
                         recorded.view.analytics_id == found.view.analytics_id;
    recorded.stored = is_same ? stored : Stored::no;
    recorded.view = found.view;
  }

  GstBuffer* buffer_;
  Rect visible_;
  std::optional<Record> record_;
  std::optional<Ids> ids_;
  std::optional<std::vector<FoundRegion>> found_;
  bool roi_meta_ = true;           // new objects become regions of interest, too
  bool has_better_boxes_ = false;  // than GstAnalytics has
};

// Returns what GstAnalytics says of the picture beyond our own results.
ResultView others_of(const std::vector<ResultView>& results, Answers whole) {
  ResultView others;
  others.outcome = Outcome::run;
  std::vector<ClassificationView> known;
  bool has_classes = false;
  for (const ResultView& result : results) {
    known.insert(known.end(), result.classifications.begin(), result.classifications.end());
    for (const MapView& map : result.maps)
      has_classes = has_classes || map.kind == MapKind::classes;
  }
  const size_t own = known.size();
  add_new_classes(known, whole.classifications);
  others.classifications.assign(known.begin() + static_cast<ptrdiff_t>(own), known.end());
  if (!has_classes) others.maps = std::move(whole.maps);
  return others;
}

// Returns whether objects of another element are regions of interest only.
bool is_roi_only(const std::vector<FoundRegion>& regions) {
  return has_analytics() &&
         std::any_of(regions.begin(), regions.end(), [](const FoundRegion& found) {
           return found.roi != nullptr && !found.recorded && found.view.analytics_id < 0;
         });
}

}  // namespace

std::optional<PictureBox> to_picture(const Detection& detection, const Placement& placement,
                                     const Rect& visible) {
  if (visible.width <= 0 || visible.height <= 0) return std::nullopt;
  RegionView view;
  view.box = {detection.x_min, detection.y_min, detection.x_max, detection.y_max};
  if (!move_region(view, affine_of(placement, visible), visible.width, visible.height))
    return std::nullopt;
  return view.box;
}

bool is_among(const RegionView& region, const std::vector<std::string>& labels) {
  const std::string& label = region.label.empty() ? region.roi_type : region.label;
  return labels.empty() || std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::vector<InferenceRegion> regions_to_infer(const FrameView& frame, const Rect& visible,
                                              const std::string& object_class) {
  const std::vector<std::string> wanted = parse_labels(object_class);
  std::vector<InferenceRegion> regions;
  const std::vector<RegionView>& all = frame.regions;
  for (size_t nth = 0; nth < all.size(); ++nth) {
    const RegionView& view = all[nth];
    if (!is_among(view, wanted)) continue;
    const int left = std::min(view.x, visible.width), top = std::min(view.y, visible.height);
    const int right = std::min(view.x + view.width, visible.width);
    const int bottom = std::min(view.y + view.height, visible.height);
    if (right > left && bottom > top)
      regions.push_back({nth,
                         {visible.x + left, visible.y + top, right - left, bottom - top},
                         view.track_id,
                         view.landmarks});
  }
  return regions;
}

void attach_result(GstBuffer* buffer, const FrameResult& result,
                   const std::vector<std::string>& labels) {
  Attachment(buffer, result.visible).add(result, labels);
}

std::vector<int> attach_objects(GstBuffer* buffer, const Rect& visible,
                                const std::vector<RegionView>& objects) {
  return Attachment(buffer, visible).add(objects);
}

class FrameResults::Contents : public Attachment {
 public:
  using Attachment::Attachment;
  FrameView view;
};

FrameResults::FrameResults(GstBuffer* buffer, const Rect& visible)
    : contents_(std::make_unique<Contents>(buffer, visible)) {
  FrameView& view = contents_->view;
  for (const FoundRegion& found : contents_->find()) view.regions.push_back(found.view);
  view.has_roi_only = is_roi_only(contents_->find());
  if (const std::optional<Record>& record = contents_->record()) {
    view.results = record->results;
    view.zones = record->zones;
    view.events = record->events;
  }
}

FrameResults::~FrameResults() = default;

const FrameView& FrameResults::view() const { return contents_->view; }

void FrameResults::attach(const std::vector<TrackedObject>& objects) {
  if (!objects.empty()) contents_->add(objects);
}

void FrameResults::attach(const ZoneResult& zones) { contents_->add(zones); }

FrameView read_frame(GstBuffer* buffer, int width, int height) {
  const Rect visible = visible_in(buffer, width, height);
  std::optional<Record> record = visible_record(buffer, visible);
  FrameView frame;
  FoundOnFrame found = find_regions(buffer, record, visible);
  frame.has_roi_only = is_roi_only(found.regions);
  for (FoundRegion& region : found.regions) frame.regions.push_back(std::move(region.view));
  if (record) {
    frame.results = std::move(record->results);
    frame.zones = std::move(record->zones);
    frame.events = std::move(record->events);
  }
  if (ResultView others = others_of(frame.results, std::move(found.whole)); !others.empty())
    frame.results.push_back(std::move(others));
  return frame;
}

std::vector<RegionView> read_regions(GstBuffer* buffer, int width, int height) {
  return read_frame(buffer, width, height).regions;
}

std::vector<ResultView> read_results(GstBuffer* buffer) {
  std::optional<Record> record = read_record(buffer);
  return record ? std::move(record->results) : std::vector<ResultView>{};
}

}  // namespace clinfer
