// Writes one frame's results with the keys of DL Streamer 2026.2.
#include "gst/publish/dl_streamer_line.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gst/base/json.h"
#include "gst/meta/parameters.h"
#include "gst/meta/run_lengths.h"
#include "gst/publish/tensor_values.h"
#include "gst/publish/unique_keys.h"

namespace clinfer {
namespace {

// Returns DL Streamer's name of a skeleton; "" if it has none.
std::string format_of(Skeleton skeleton) {
  switch (skeleton) {
    case Skeleton::coco17:
      return "body-pose/coco-17";
    case Skeleton::body18:
      return "body-pose/openpose-18";
    case Skeleton::face5:
      return "face-landmarks/centerface-5";
    default:
      return "";
  }
}

// Returns DL Streamer's name of a point: "eye_l" for "left_eye".
std::string point_name(const std::string& name, Skeleton skeleton) {
  if (skeleton == Skeleton::face5 && name == "nose") return "nose_tip";
  for (const std::string side : {"left_", "right_"})
    if (name.starts_with(side)) return name.substr(side.size()) + "_" + side[0];
  return name;
}

// Returns a semantic tag as DL Streamer makes them: the model, and more behind a slash.
std::string semantic_tag(const std::string& model, const std::string& more) {
  return model.empty() || more.empty() ? model + more : model + "/" + more;
}

// Begins a tensor. `name` is that of the GstStructure that DL Streamer keeps it in.
void begin_tensor(JsonWriter& json, const char* precision, const std::string& name) {
  json.begin_object().key("precision").value(precision).key("layout").value("ANY");
  json.key("name").value(name);
}

void write_dims(JsonWriter& json, const std::vector<int>& dims) {
  json.key("dims").begin_array();
  for (const int size : dims) json.value(size);
  json.end_array();
}

// Writes a field that is left out if it is empty.
void write_text(JsonWriter& json, const char* key, const std::string& text) {
  if (!text.empty()) json.key(key).value(text);
}

void write_detection_tensor(JsonWriter& json, const RegionView& region) {
  begin_tensor(json, "UNSPECIFIED", "detection");
  write_text(json, "model_name", region.model);
  if (region.has_detection) {
    json.key("confidence").value(static_cast<float>(region.confidence));
    if (region.label_id) json.key("label_id").value(*region.label_id);
  }
  json.end_object();
}

// Writes points, as shares of the object's box.
void write_points_tensor(JsonWriter& json, const RegionView& region,
                         const std::vector<Point>& points, const std::vector<float>& confidences) {
  const std::string format = format_of(region.skeleton);
  const SkeletonFacts& skeleton = skeleton_of(region.skeleton);
  begin_tensor(json, "FP32", "keypoints");
  write_dims(json, {static_cast<int>(points.size()), 2});
  write_text(json, "semantic_tag", semantic_tag(region.model, format));
  write_text(json, "format", format);
  json.key("type").value("keypoints");
  if (!confidences.empty()) {
    const bool same = std::all_of(confidences.begin(), confidences.end(),
                                  [&](float c) { return c == confidences[0]; });
    json.key("confidence");
    if (same) {
      json.value(confidences[0]);
    } else {
      json.begin_array();
      for (const float confidence : confidences) json.value(confidence);
      json.end_array();
    }
  }
  const float width = region.box.x_max - region.box.x_min,
              height = region.box.y_max - region.box.y_min;
  json.key("data").begin_array();
  for (const Point& point : points) {
    json.value(width > 0 ? (point.x - region.box.x_min) / width : 0.f);
    json.value(height > 0 ? (point.y - region.box.y_min) / height : 0.f);
  }
  json.end_array();
  if (skeleton.points.size() == points.size() && !points.empty()) {
    json.key("point_names").begin_array();
    for (const std::string& name : skeleton.points) json.value(point_name(name, region.skeleton));
    json.end_array();
    if (!skeleton.connections.empty()) {
      json.key("point_connections").begin_array();
      for (const auto& [from, to] : skeleton.connections) json.value(from).value(to);
      json.end_array();
    }
  }
  json.end_object();
}

void write_mask_tensor(JsonWriter& json, const RegionView& region, const FrameFacts& facts) {
  const Raster raster = raster_of(*region.mask, region.box, facts.width, facts.height);
  begin_tensor(json, "FP32", "segmentation");
  write_dims(json, {raster.rect.width, raster.rect.height});
  write_text(json, "semantic_tag", region.model);
  json.key("format").value("instance_segmentation").key("type").value("segmentation");
  json.key("data").begin_array();
  for (const uint8_t pixel : raster.pixels) json.value(pixel != 0 ? 1 : 0);
  json.end_array().end_object();
}

// Writes a map of classes by their numbers. As in DL Streamer, 0 also stands for an unknown class.
void write_classes_tensor(JsonWriter& json, const MapView& map) {
  begin_tensor(json, "I64", "segmentation");
  write_dims(json, {1, map.rows, map.columns});
  write_text(json, "semantic_tag", map.model);
  json.key("format").value("semantic_segmentation").key("type").value("segmentation");
  const auto* values = values_of<uint16_t>(map.values);
  json.key("data").begin_array();
  for (size_t i = 0; values != nullptr && i < count_of<uint16_t>(map.values); ++i)
    json.value(values[i] == kNoClass ? 0 : static_cast<int>(values[i]));
  json.end_array().end_object();
}

void write_raw_tensor(JsonWriter& json, const TensorView& tensor) {
  const TypeName* type = type_named(tensor.type);
  begin_tensor(json, type != nullptr ? type->json : "UNSPECIFIED", "tensor");
  write_dims(json, tensor.dims);
  write_text(json, "semantic_tag", tensor.model);
  write_text(json, "tensor_name", tensor.name);
  json.key("dims_order").value("row-major").key("type").value("tensor");
  if (tensor.data != nullptr) write_values(json.key("data"), tensor.type, tensor.data);
  json.end_object();
}

// Writes all results but classifications.
void write_tensors(JsonWriter& json, const Answers& answers) {
  for (const TensorView& tensor : answers.embeddings) write_raw_tensor(json, tensor);
  for (const TensorView& tensor : answers.tensors) write_raw_tensor(json, tensor);
  for (const MapView& map : answers.maps) {
    if (map.kind == MapKind::classes)
      write_classes_tensor(json, map);
    else
      write_raw_tensor(json, {map.name, "f32", map.model, {map.rows, map.columns}, map.values});
  }
}

// A class or a text, of a model about a region or the whole frame.
struct Answer {
  std::string attribute, label, model;
  std::optional<int> label_id;
  float confidence = 0;
};

std::vector<Answer> answers_of(const Answers& answers) {
  std::vector<Answer> all;
  for (const ClassificationView& one : answers.classifications)
    all.push_back({one.attribute, one.label.empty() ? std::to_string(one.label_id) : one.label,
                   one.model, one.label_id, one.confidence});
  for (const TextView& text : answers.texts)
    all.push_back({"text", text.text, text.model, std::nullopt, text.confidence});
  return all;
}

void write_region_answers(JsonWriter& json, const RegionView& region) {
  UniqueKeys keys(
      json, {"x", "y", "w", "h", "region_id", "parent_id", "id", "roi_type", "detection", "tensors",
             "zone_violations", "tripwire_crossings", "dwell_times"});
  for (const Answer& answer : answers_of(region)) {
    keys.add(answer.attribute).begin_object().key("label").value(answer.label);
    json.key("model").begin_object().key("name").value(answer.model).end_object();
    json.key("confidence").value(answer.confidence);
    if (answer.label_id) json.key("label_id").value(*answer.label_id);
    json.end_object();
  }
}

// Writes the events of one object, by their zone.
void write_events(JsonWriter& json, const RegionView& region, const FrameFacts& facts,
                  const FrameView& frame) {
  if (!region.zones.empty()) {
    json.key("zone_violations").begin_array();
    for (const std::string& zone : region.zones) json.value(zone);
    json.end_array();
  }
  const auto write_those = [&](const char* key, const char* type, const auto& write) {
    bool any = false;
    for (const EventView& event : frame.events) {
      if (event.type != type || !region.track_id || event.track_id != *region.track_id) continue;
      if (!std::exchange(any, true)) json.key(key).begin_array();
      json.begin_object();
      write(event);
      json.end_object();
    }
    if (any) json.end_array();
  };
  write_those("tripwire_crossings", "cross", [&](const EventView& event) {
    json.key("tripwire_id").value(event.zone);
    json.key("direction").value(event.direction == "in" ? 1 : -1);
  });
  write_those("dwell_times", "dwell", [&](const EventView& event) {
    const double seconds = event.seconds.value_or(0);
    json.key("zone_id").value(event.zone).key("dwell_time_sec").value(seconds);
    const double now = static_cast<double>(facts.timestamp.value_or(0)) / GST_SECOND;
    json.key("first_seen_timestamp_sec").value(std::max(now - seconds, 0.));
  });
}

// Writes the rectangle in pixels: of an object that was found with an angle, before it is turned.
void write_rectangle(JsonWriter& json, const RegionView& region, const FrameFacts& facts) {
  Rect rect{region.x, region.y, region.width, region.height};
  if (region.corners) {
    const OrientedBox box = oriented_box(*region.corners, facts.width, facts.height);
    const auto whole = [](float pixels) {
      return std::max(static_cast<int>(std::lround(pixels)), 0);
    };
    rect = {whole(box.x_center - box.width / 2), whole(box.y_center - box.height / 2),
            whole(box.width), whole(box.height)};
  }
  json.key("x").value(rect.x).key("y").value(rect.y);
  json.key("w").value(rect.width).key("h").value(rect.height);
}

void write_region(JsonWriter& json, const RegionView& region, const FrameFacts& facts,
                  const FrameView& frame) {
  json.begin_object();
  write_rectangle(json, region, facts);
  json.key("region_id").value(region.id);
  if (region.parent_id > 0) json.key("parent_id").value(region.parent_id);
  if (region.track_id) json.key("id").value(*region.track_id);
  write_text(json, "roi_type", region.roi_type);
  json.key("detection").begin_object().key("bounding_box").begin_object();
  json.key("x_min").value(region.box.x_min).key("x_max").value(region.box.x_max);
  json.key("y_min").value(region.box.y_min).key("y_max").value(region.box.y_max).end_object();
  if (region.has_detection) {
    json.key("confidence").value(static_cast<float>(region.confidence));
    if (region.label_id) json.key("label_id").value(*region.label_id);
  }
  write_text(json, "label", region.label);
  json.end_object();
  write_region_answers(json, region);
  if (facts.tensor_data) {
    json.key("tensors").begin_array();
    write_detection_tensor(json, region);
    std::vector<Point> points;
    std::vector<float> confidences;
    for (const KeyPoint& point : region.keypoints) {
      points.push_back({point.x, point.y});
      confidences.push_back(point.confidence);
    }
    if (!points.empty()) write_points_tensor(json, region, points, confidences);
    if (!region.landmarks.empty()) write_points_tensor(json, region, region.landmarks, {});
    if (region.mask) write_mask_tensor(json, region, facts);
    write_tensors(json, region);
    json.end_array();
  }
  write_events(json, region, facts, frame);
  json.end_object();
}

// Writes classes of the whole frame as an object of its size.
void write_whole_frame(JsonWriter& json, const FrameView& frame, const FrameFacts& facts) {
  UniqueKeys keys(json, {"x", "y", "w", "h", "tensors"});
  json.begin_object().key("x").value(0).key("y").value(0);
  json.key("w").value(facts.width).key("h").value(facts.height);
  for (const ResultView& result : frame.results)
    for (const Answer& answer : answers_of(result)) {
      keys.add(semantic_tag("classification", answer.model)).begin_object();
      json.key("label").value(answer.label).key("confidence").value(answer.confidence);
      if (answer.label_id) json.key("label_id").value(*answer.label_id);
      json.end_object();
    }
  if (facts.tensor_data) json.key("tensors").begin_array().end_array();
  json.end_object();
}

void write_facts(JsonWriter& json, const FrameFacts& facts) {
  json.key("resolution").begin_object();
  json.key("width").value(facts.width).key("height").value(facts.height).end_object();
  write_text(json, "source", facts.source);
  if (facts.timestamp) json.key("timestamp").value(*facts.timestamp);
  if (!facts.tags.empty()) json.key("tags").raw(facts.tags);
  write_text(json, "system_timestamp", facts.system_timestamp);
  if (facts.sender_ntp_unix_ns)
    json.key("rtp")
        .begin_object()
        .key("sender_ntp_unix_timestamp_ns")
        .value(*facts.sender_ntp_unix_ns)
        .end_object();
}

}  // namespace

std::string dl_streamer_line(const FrameFacts& facts, const FrameView& frame) {
  const auto any_result = [&](const auto& has) {
    return std::any_of(frame.results.begin(), frame.results.end(), has);
  };
  const bool has_answers = any_result([](const ResultView& result) {
    return !result.classifications.empty() || !result.texts.empty();
  });
  const bool has_tensors =
      facts.tensor_data && any_result([](const ResultView& result) {
        return !result.embeddings.empty() || !result.tensors.empty() || !result.maps.empty();
      });
  const bool has_objects = !frame.regions.empty() || has_answers;
  if (!has_objects && !has_tensors && !facts.empty_results) return "";
  JsonWriter json;
  json.begin_object();
  write_facts(json, facts);
  if (has_objects) {
    json.key("objects").begin_array();
    for (const RegionView& region : frame.regions) write_region(json, region, facts, frame);
    if (has_answers) write_whole_frame(json, frame, facts);
    json.end_array();
  }
  if (has_tensors) {
    json.key("tensors").begin_array();
    for (const ResultView& result : frame.results) write_tensors(json, result);
    json.end_array();
  }
  json.end_object();
  return json.text();
}

}  // namespace clinfer
