// One frame's results as one line of JSON.
#include "gst/publish/result_line.h"

#include <set>

#include "gst/base/json.h"

namespace clinfer {
namespace {

void write_answer(JsonWriter& json, const ClassificationView& answer) {
  json.key("label_id").value(answer.label_id);
  if (!answer.label.empty()) json.key("label").value(answer.label);
  json.key("confidence").value(answer.confidence);
  json.key("model").begin_object().key("name").value(answer.model).end_object();
}

void write_tensors(JsonWriter& json, const std::vector<TensorView>& tensors) {
  if (tensors.empty()) return;
  json.key("tensors").begin_array();
  for (const TensorView& tensor : tensors) {
    json.begin_object();
    json.key("layer_name").value(tensor.name).key("precision").value(tensor.type);
    json.key("dims").begin_array();
    for (const int dimension : tensor.dims) json.value(dimension);
    json.end_array();
    json.key("model_name").value(tensor.model);
    json.end_object();
  }
  json.end_array();
}

void write_object(JsonWriter& json, const RegionView& region) {
  // Each classification is a member under its attribute's name, told apart where names meet.
  std::set<std::string> used = {"detection", "x",         "y",        "w",      "h",
                                "region_id", "parent_id", "roi_type", "tensors"};
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
  for (const ClassificationView& answer : region.classifications) {
    std::string name = answer.attribute;
    for (int number = 2; !used.insert(name).second; ++number)
      name = answer.attribute + "_" + std::to_string(number);
    json.key(name).begin_object();
    write_answer(json, answer);
    json.end_object();
  }
  write_tensors(json, region.tensors);
  json.end_object();
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
  std::vector<ClassificationView> classifications;
  std::vector<TensorView> tensors;
  for (const ResultView& result : results) {
    classifications.insert(classifications.end(), result.classifications.begin(),
                           result.classifications.end());
    tensors.insert(tensors.end(), result.tensors.begin(), result.tensors.end());
  }
  if (!classifications.empty()) {
    json.key("classifications").begin_array();
    for (const ClassificationView& answer : classifications) {
      json.begin_object().key("attribute").value(answer.attribute);
      write_answer(json, answer);
      json.end_object();
    }
    json.end_array();
  }
  write_tensors(json, tensors);
  json.key("resolution").begin_object();
  json.key("width").value(frame.width).key("height").value(frame.height);
  json.end_object();
  if (frame.timestamp) json.key("timestamp").value(*frame.timestamp);
  if (!results.empty()) {
    // Of several elements the one that did most speaks for the frame.
    Outcome outcome = results[0].outcome;
    for (const ResultView& result : results)
      if (result.outcome == Outcome::run) outcome = Outcome::run;
    json.key("inference").value(name_of(outcome));
  }
  json.end_object();
  return json.text();
}

}  // namespace clinfer
