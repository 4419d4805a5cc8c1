// Writes one frame's results as one line of JSON.
#include "gst/publish/result_line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "gst/base/json.h"
#include "gst/meta/parameters.h"
#include "gst/meta/run_lengths.h"
#include "gst/publish/tensor_values.h"
#include "gst/publish/unique_keys.h"

namespace clinfer {
namespace {

void write_model(JsonWriter& json, const std::string& model) {
  if (!model.empty()) json.key("model").begin_object().key("name").value(model).end_object();
}

void write_held(JsonWriter& json, bool held) {
  if (held) json.key("held").raw("true");
}

// Returns the keys of an object that do not depend on networks.
std::set<std::string> own_keys() {
  return {"detection",    "x",         "y",     "w",     "h",         "region_id", "parent_id",
          "id",           "predicted", "zones", "mask",  "keypoints", "landmarks", "roi_type",
          "segmentation", "tensors",   "maps",  "events"};
}

void write_tensors(JsonWriter& json, const std::vector<TensorView>& tensors, bool data) {
  if (tensors.empty()) return;
  json.key("tensors").begin_array();
  for (const TensorView& tensor : tensors) {
    const TypeName* type = type_named(tensor.type);
    json.begin_object();
    json.key("name").value(tensor.name).key("layer_name").value(tensor.name);
    json.key("model_name").value(tensor.model);
    json.key("precision").value(type != nullptr ? type->json : "UNSPECIFIED");
    json.key("layout").value("ANY");
    json.key("dims").begin_array();
    for (const int dimension : tensor.dims) json.value(dimension);
    json.end_array();
    if (data && tensor.data != nullptr) write_values(json.key("data"), tensor.type, tensor.data);
    json.end_object();
  }
  json.end_array();
}

void write_runs(JsonWriter& json, const std::vector<uint32_t>& counts) {
  json.key("counts").begin_array();
  for (const uint32_t count : counts) json.value(static_cast<int64_t>(count));
  json.end_array();
}

void write_size(JsonWriter& json, int width, int height) {
  json.key("size").begin_array().value(height).value(width).end_array();
}

void write_segmentation(JsonWriter& json, const MapView& map, int width, int height) {
  json.begin_object();
  json.key("name").value(map.name);
  write_model(json, map.model);
  write_size(json, width, height);
  json.key("classes").begin_array();
  for (const ClassShare& part : class_shares(map, width, height)) {
    json.begin_object().key("label_id").value(part.label_id);
    const auto id = static_cast<size_t>(part.label_id);
    if (id < map.labels.size() && !map.labels[id].empty()) json.key("label").value(map.labels[id]);
    json.key("share").value(static_cast<float>(part.share));
    write_runs(json, part.counts);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_value_map(JsonWriter& json, const MapView& map, bool data) {
  const float* values = values_of<float>(map.values);
  const size_t count = values != nullptr ? count_of<float>(map.values) : 0;
  double sum = 0;
  size_t known = 0;
  float least = std::numeric_limits<float>::infinity(), most = -least;
  for (size_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) continue;
    ++known;
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
    sum += static_cast<double>(values[i]);
  }
  static constexpr const char* kKinds[] = {"segmentation", "depth", "saliency", "anomaly"};
  json.begin_object();
  json.key("name").value(map.name);
  json.key("kind").value(kKinds[static_cast<size_t>(map.kind)]);
  write_model(json, map.model);
  json.key("rows").value(map.rows).key("columns").value(map.columns);
  json.key("area").begin_object();
  json.key("x_min").value(map.area.x_min).key("y_min").value(map.area.y_min);
  json.key("x_max").value(map.area.x_max).key("y_max").value(map.area.y_max);
  json.end_object();
  json.key("minimum").value(least).key("maximum").value(most);
  json.key("mean").value(static_cast<float>(sum / static_cast<double>(known)));
  if (data) write_values(json.key("data"), "f32", map.values);
  json.end_object();
}

// Writes maps of a picture or region: one of classes as `segmentation`, others in `maps`.
void write_maps(JsonWriter& json, UniqueKeys& keys, const std::vector<MapView>& maps,
                const FrameFacts& facts) {
  std::vector<const MapView*> others;
  bool first = true;
  for (const MapView& map : maps) {
    if (map.kind != MapKind::classes) {
      others.push_back(&map);
      continue;
    }
    if (first)
      json.key("segmentation");
    else
      keys.add("segmentation");
    first = false;
    write_segmentation(json, map, facts.width, facts.height);
  }
  if (others.empty()) return;
  json.key("maps").begin_array();
  for (const MapView* map : others) write_value_map(json, *map, facts.tensor_data);
  json.end_array();
}

void write_answers(JsonWriter& json, UniqueKeys& keys, const Answers& answers) {
  for (const ClassificationView& answer : answers.classifications) {
    keys.add(answer.attribute).begin_object();
    json.key("label_id").value(answer.label_id);
    if (!answer.label.empty()) json.key("label").value(answer.label);
    json.key("confidence").value(answer.confidence);
    write_model(json, answer.model);
    write_held(json, answer.held);
    json.end_object();
  }
  for (const TextView& text : answers.texts) {
    keys.add("text").begin_object();
    json.key("label").value(text.text).key("confidence").value(text.confidence);
    write_model(json, text.model);
    write_held(json, text.held);
    json.end_object();
  }
  for (const TensorView& embedding : answers.embeddings) {
    keys.add("embedding").begin_object();
    json.key("name").value(embedding.name);
    write_model(json, embedding.model);
    write_held(json, embedding.held);
    json.key("dims").begin_array();
    for (const int dimension : embedding.dims) json.value(dimension);
    json.end_array();
    write_values(json.key("data"), embedding.type, embedding.data);
    json.end_object();
  }
}

void write_detection(JsonWriter& json, const RegionView& region, const FrameFacts& facts) {
  json.key("detection").begin_object();
  json.key("bounding_box").begin_object();
  json.key("x_min").value(region.box.x_min).key("y_min").value(region.box.y_min);
  json.key("x_max").value(region.box.x_max).key("y_max").value(region.box.y_max);
  json.end_object();
  if (region.corners) {
    const OrientedBox box = oriented_box(*region.corners, facts.width, facts.height);
    json.key("oriented_box").begin_object();
    json.key("x_center").value(box.x_center).key("y_center").value(box.y_center);
    json.key("width").value(box.width).key("height").value(box.height);
    json.key("rotation").value(box.rotation).end_object();
  }
  if (region.has_detection) {
    json.key("confidence").value(static_cast<float>(region.confidence));
    if (region.label_id) json.key("label_id").value(*region.label_id);
  }
  if (!region.label.empty()) json.key("label").value(region.label);
  write_held(json, region.held);
  json.end_object();
}

void write_points(JsonWriter& json, const RegionView& region) {
  const std::vector<std::string>& names = skeleton_of(region.skeleton).points;
  if (!region.keypoints.empty()) {
    json.key("keypoints").begin_array();
    for (size_t i = 0; i < region.keypoints.size(); ++i) {
      const KeyPoint& point = region.keypoints[i];
      json.begin_object().key("x").value(point.x).key("y").value(point.y);
      json.key("confidence").value(point.confidence);
      if (i < names.size()) json.key("name").value(names[i]);
      json.end_object();
    }
    json.end_array();
  }
  if (region.landmarks.empty()) return;
  json.key("landmarks").begin_array();
  for (size_t i = 0; i < region.landmarks.size(); ++i) {
    json.begin_object().key("x").value(region.landmarks[i].x).key("y").value(region.landmarks[i].y);
    if (region.keypoints.empty() && i < names.size()) json.key("name").value(names[i]);
    json.end_object();
  }
  json.end_array();
}

void write_region(JsonWriter& json, const RegionView& region, const FrameFacts& facts) {
  UniqueKeys keys(json, own_keys());
  json.begin_object();
  write_detection(json, region, facts);
  json.key("x").value(region.x).key("y").value(region.y);
  json.key("w").value(region.width).key("h").value(region.height);
  json.key("region_id").value(region.id);
  if (region.parent_id > 0) json.key("parent_id").value(region.parent_id);
  if (region.track_id) json.key("id").value(*region.track_id);
  if (region.predicted) json.key("predicted").raw("true");
  json.key("roi_type").value(region.roi_type);
  if (!region.zones.empty()) {
    json.key("zones").begin_array();
    for (const std::string& zone : region.zones) json.value(zone);
    json.end_array();
  }
  write_points(json, region);
  if (region.mask) {
    json.key("mask").begin_object();
    write_size(json, facts.width, facts.height);
    write_runs(json, run_lengths(raster_of(*region.mask, region.box, facts.width, facts.height),
                                 facts.width, facts.height));
    json.end_object();
  }
  write_answers(json, keys, region);
  write_maps(json, keys, region.maps, facts);
  write_tensors(json, region.tensors, facts.tensor_data);
  json.end_object();
}

// Writes the answers about the whole frame as an object of the frame's size.
void write_whole_frame(JsonWriter& json, const std::vector<ResultView>& results,
                       const FrameFacts& facts) {
  UniqueKeys keys(json, own_keys());
  json.begin_object();
  json.key("x").value(0).key("y").value(0);
  json.key("w").value(facts.width).key("h").value(facts.height);
  for (const ResultView& result : results) write_answers(json, keys, result);
  json.end_object();
}

void write_zones(JsonWriter& json, const FrameView& frame) {
  if (!frame.zones.empty()) {
    json.key("zones").begin_array();
    for (const ZoneView& zone : frame.zones) {
      json.begin_object().key("name").value(zone.name);
      if (zone.is_line)
        json.key("in").value(zone.in).key("out").value(zone.out);
      else
        json.key("inside")
            .value(zone.inside)
            .key("entered")
            .value(zone.in)
            .key("left")
            .value(zone.out);
      json.end_object();
    }
    json.end_array();
  }
  if (frame.events.empty()) return;
  json.key("events").begin_array();
  for (const EventView& event : frame.events) {
    json.begin_object().key("type").value(event.type).key("zone").value(event.zone);
    if (!event.direction.empty()) json.key("direction").value(event.direction);
    json.key("id").value(event.track_id);
    if (!event.label.empty()) json.key("label").value(event.label);
    if (event.seconds) json.key("seconds").value(*event.seconds);
    json.end_object();
  }
  json.end_array();
}

// If several elements saw the frame, reports the outcome of the one that did most.
Outcome outcome_of(const std::vector<ResultView>& results) {
  for (const Outcome outcome : {Outcome::run, Outcome::held, Outcome::late})
    for (const ResultView& result : results)
      if (result.outcome == outcome) return outcome;
  return Outcome::skipped;
}

}  // namespace

std::string result_line(const FrameFacts& facts, const FrameView& frame) {
  JsonWriter json;
  json.begin_object();
  json.key("frame").value(facts.number);
  json.key("objects").begin_array();
  for (const RegionView& region : frame.regions) write_region(json, region, facts);
  if (std::any_of(frame.results.begin(), frame.results.end(), [](const ResultView& result) {
        return !result.classifications.empty() || !result.texts.empty() ||
               !result.embeddings.empty();
      }))
    write_whole_frame(json, frame.results, facts);
  json.end_array();
  UniqueKeys keys(json, own_keys());
  std::vector<MapView> maps;
  std::vector<TensorView> tensors;
  for (const ResultView& result : frame.results) {
    maps.insert(maps.end(), result.maps.begin(), result.maps.end());
    tensors.insert(tensors.end(), result.tensors.begin(), result.tensors.end());
  }
  write_maps(json, keys, maps, facts);
  write_tensors(json, tensors, facts.tensor_data);
  write_zones(json, frame);
  json.key("resolution").begin_object();
  json.key("width").value(facts.width).key("height").value(facts.height);
  json.end_object();
  if (!facts.source.empty()) json.key("source").value(facts.source);
  if (facts.timestamp) json.key("timestamp").value(*facts.timestamp);
  if (!facts.system_timestamp.empty()) json.key("system_timestamp").value(facts.system_timestamp);
  if (facts.sender_ntp_unix_ns)
    json.key("rtp")
        .begin_object()
        .key("sender_ntp_unix_timestamp_ns")
        .value(*facts.sender_ntp_unix_ns)
        .end_object();
  if (!facts.tags.empty()) json.key("tags").raw(facts.tags);
  if (!frame.results.empty()) json.key("inference").value(name_of(outcome_of(frame.results)));
  json.end_object();
  return json.text();
}

}  // namespace clinfer
