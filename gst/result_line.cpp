// One frame's results as one line of JSON.
#include "gst/result_line.h"

#include <algorithm>

#include "gst/json.h"

namespace clinfer {
namespace {

void write_object(JsonWriter& json, const RegionView& region) {
  json.begin_object();
  json.key("detection").begin_object();
  json.key("bounding_box").begin_object();
  json.key("x_min").value(region.box.x_min).key("y_min").value(region.box.y_min);
  json.key("x_max").value(region.box.x_max).key("y_max").value(region.box.y_max);
  json.end_object();
  if (region.has_detection) {
    json.key("confidence").value(static_cast<float>(region.confidence));
    if (region.label_id) json.key("label_id").value(*region.label_id);
  }
  if (!region.label.empty()) json.key("label").value(region.label);
  json.end_object();
  json.key("x").value(region.x).key("y").value(region.y);
  json.key("w").value(region.width).key("h").value(region.height);
  json.key("region_id").value(region.id);
  if (region.parent_id > 0) json.key("parent_id").value(region.parent_id);
  json.key("roi_type").value(region.roi_type);
  json.end_object();
}

void write_classifications(JsonWriter& json, const std::vector<ResultView>& results) {
  json.key("classifications").begin_array();
  for (const ResultView& result : results) {
    for (const Classification& answer : result.classifications) {
      json.begin_object();
      json.key("attribute").value(answer.attribute);
      json.key("label_id").value(answer.label_id);
      if (!answer.label.empty()) json.key("label").value(answer.label);
      json.key("confidence").value(answer.confidence);
      json.key("model").begin_object().key("name").value(result.model).end_object();
      json.end_object();
    }
  }
  json.end_array();
}

void write_tensors(JsonWriter& json, const std::vector<ResultView>& results) {
  json.key("tensors").begin_array();
  for (const ResultView& result : results) {
    for (const ResultView::TensorView& tensor : result.tensors) {
      json.begin_object();
      json.key("layer_name").value(tensor.name).key("precision").value(tensor.type);
      json.key("dims").begin_array();
      for (const int dimension : tensor.dims) json.value(dimension);
      json.end_array();
      json.key("model_name").value(result.model);
      json.end_object();
    }
  }
  json.end_array();
}

}  // namespace

std::string result_line(const FrameFacts& frame, const std::vector<RegionView>& regions,
                        const std::vector<ResultView>& results) {
  JsonWriter json;
  json.begin_object();
  json.key("frame").value(frame.number);
  json.key("objects").begin_array();
  for (const RegionView& region : regions) write_object(json, region);
  json.end_array();
  const auto any = [&](auto&& member) {
    return std::any_of(results.begin(), results.end(),
                       [&](const ResultView& result) { return !member(result).empty(); });
  };
  if (any([](const ResultView& r) -> auto& { return r.classifications; }))
    write_classifications(json, results);
  if (any([](const ResultView& r) -> auto& { return r.tensors; })) write_tensors(json, results);
  json.key("resolution").begin_object();
  json.key("width").value(frame.width).key("height").value(frame.height);
  json.end_object();
  if (frame.timestamp) json.key("timestamp").value(*frame.timestamp);
  if (!results.empty()) {
    const bool ran = std::any_of(results.begin(), results.end(),
                                 [](const ResultView& result) { return result.ran; });
    json.key("inference").value(ran ? "run" : "skipped");
  }
  json.end_object();
  return json.text();
}

}  // namespace clinfer
