// Reads MMDeploy's pipeline.json, and DL Streamer's model-proc.
#include <json-glib/json-glib.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "engine/heads/base/common.h"
#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/json_nodes.h"
#include "engine/heads/files/json_text.h"
#include "engine/heads/files/labels.h"

namespace clinfer {
namespace {

// ---- model-proc ---------------------------------------------------------------------------------

// Returns the model_type that a converter implies; "" for those that say nothing about the head.
std::string type_of_converter(const std::string& converter) {
  static const auto& kConverters = *new const std::vector<std::pair<const char*, const char*>>{
      {"detection_output", "detection_output"},
      {"tensor_to_bbox_ssd", "detection_output"},
      {"boxes_labels", "boxes_labels"},
      {"boxes_scores", "boxes_scores"},
      {"yolo_v2", "yolov3"},
      {"tensor_to_bbox_yolo_v2", "yolov3"},
      {"yolo_v3", "yolov3"},
      {"tensor_to_bbox_yolo_v3", "yolov3"},
      {"yolo_v4", "yolov4"},
      {"tensor_to_bbox_yolo_v4", "yolov4"},
      {"yolo_v4_csp", "yolov4"},
      {"yolo_v5", "yolov5"},
      {"tensor_to_bbox_yolo_v5", "yolov5"},
      {"yolo_v7", "yolov7"},
      {"yolo_v8", "yolov8"},
      {"yolo_v8_obb", "yolov8"},
      {"yolo_v8_pose", "yolov8"},
      {"yolo_v8_seg", "yolov8"},
      {"yolo_v10", "yolov10"},
      {"yolo_x", "yolox"},
      {"label", "label"},
      {"tensor_to_label", "label"},
      {"text", "label"},
      {"tensor_to_text", "label"},
  };
  for (const auto& [name, type] : kConverters)
    if (converter == name) return type;
  return {};
}

void read_proc_input(JsonObject* input, const std::string& source, BesideFacts& facts) {
  JsonObject* params = object_in(input, "params");
  if (params == nullptr) return;
  const std::string resize = text_in(params, "resize");
  const std::string crop = text_in(params, "crop");
  if (!crop.empty())
    facts.set("resize_type", "crop", source);
  else if (resize == "aspect-ratio")
    facts.set("resize_type",
              member(params, "padding") != nullptr ? "fit_to_window_letterbox" : "fit_to_window",
              source);
  else if (!resize.empty())
    facts.set("resize_type", "standard", source);
  if (JsonObject* padding = object_in(params, "padding")) {
    const std::vector<double> value = numbers_of(member(padding, "fill_value"));
    facts.set("pad_value", list_of(value), source);
  }
  facts.set("color_space", text_in(params, "color_space"), source);
  const std::vector<double> range = numbers_of(member(params, "range"));
  std::vector<double> mean = numbers_of(member(params, "mean"));
  std::vector<double> deviation = numbers_of(member(params, "std"));
  if (range.size() != 2 && mean.empty() && deviation.empty()) return;
  // Maps to the range first, then subtracts the mean and divides by the deviation.
  const double low = range.size() == 2 ? range[0] : 0, high = range.size() == 2 ? range[1] : 255;
  if (!(high > low)) throw Error{ErrorCode::bad_argument, "input_preproc: range is empty"};
  const double unit = 255 / (high - low);
  if (mean.empty()) mean.assign(std::max<size_t>(deviation.size(), 1), 0);
  if (deviation.empty()) deviation.assign(mean.size(), 1);
  for (double& value : mean) value = (value - low) * unit;
  facts.set("mean_values", list_of(mean), source);
  facts.set("scale_values", list_of(scaled(deviation, unit)), source);
}

void read_proc_output(JsonObject* output, const std::string& source, const std::string& folder,
                      bool several, BesideFacts& facts, std::vector<std::string>& grouped) {
  const std::string converter = text_in(output, "converter");
  const std::string layer = text_in(output, "layer_name");
  const std::string attribute = text_in(output, "attribute_name");
  const std::string type = type_of_converter(converter);
  if (!type.empty()) facts.set("model_type", type, source);
  if (converter.rfind("yolo_v8_", 0) == 0) {
    const std::string task = converter.substr(8);
    facts.set("task", task == "seg" ? "segment" : task, source);
  }
  if (type.empty() && !converter.empty() && converter != "raw_data_copy")
    facts.warnings.push_back(source + ": the converter " + converter +
                             " is not known; the head is chosen by the outputs");
  for (const char* key : {"confidence_threshold", "iou_threshold"})
    facts.set(key, text_of(member(output, key)), source);
  if (text_in(output, "method") == "compound") facts.set("multilabel", "true", source);
  if (!attribute.empty()) facts.set("attribute_name/" + layer, attribute, source);
  if (converter == "text" || converter == "tensor_to_text") {
    std::string scale = "1";
    for (const char* key : {"text_scale", "tensor_to_text_scale"})
      if (const std::string stated = text_of(member(output, key)); !stated.empty()) scale = stated;
    facts.set("number_scale/" + layer, scale, source);
  }
  JsonNode* labels = member(output, "labels");
  std::vector<std::string> names = texts_of(labels);
  if (array_of(labels) == nullptr && names.size() == 1)  // a file
    names = read_labels((std::filesystem::path(folder) / names[0]).string());
  if (names.empty()) return;
  if (!several) {
    facts.set_labels(names, source, true);
    return;
  }
  names[0] = layer + ": " + names[0];
  grouped.insert(grouped.end(), names.begin(), names.end());
}

// Returns the model_type that the last task of an MMDeploy pipeline implies; "" for tasks that say
// nothing about the head; nullopt for unknown ones.
std::optional<std::string> type_of_component(const std::string& component) {
  static const auto& kComponents = *new const std::vector<std::pair<const char*, const char*>>{
      {"ResizeBBox", "boxes_labels"},
      {"ResizeInstanceMask", "boxes_labels"},
      {"ResizeRBBox", "rotated_detection"},
      {"BaseDenseHead", "boxes_scores"},
      {"LinearClsHead", "classification"},
      {"MultiLabelLinearClsHead", "classification"},
      {"ResizeMask", "segmentation"},
      {"TextDetHead", "text_detection"},
      {"DBHead", "text_detection"},
      {"CTCConvertor", "text_recognition"},
      {"SimCCLabelDecode", "keypoint_detection"},
      {"TopdownHeatmapSimpleHeadDecode", "keypoint_detection"},
      {"TopdownHeatmapBaseHeadDecode", "keypoint_detection"},
      {"DeepposeRegressionHeadDecode", ""},
      {"TensorToImg", ""},
  };
  for (const auto& [name, type] : kComponents)
    if (component == name) return type;
  return std::nullopt;
}

}  // namespace

namespace {

// Reads MMCV's Resize: size [width, height] with or without keeping proportions; -1 for a side that
// follows from the other; a single number is the shorter edge.
void read_resize(JsonObject* step, PictureSteps& steps, const std::string& source,
                 BesideFacts& facts) {
  std::vector<double> size = numbers_of(member(step, "size"));
  for (const char* key : {"scale", "img_scale"})
    if (size.empty()) size = numbers_of(member(step, key));
  const bool edge = text_in(step, "type") == "ResizeEdge" || size.size() == 1 ||
                    (size.size() == 2 && (size[0] <= 0 || size[1] <= 0));
  const bool keeps = is_true(member(step, "keep_ratio"), edge);
  if (edge && keeps && !size.empty())
    return steps.shorter_edge(*std::max_element(size.begin(), size.end()));
  if (keeps)
    steps.fit(false);
  else
    steps.squash(size.empty() ? 0 : size[0], size.empty() ? 0 : size.back());
  if (size.size() == 2 && size[0] > 0 && size[1] > 0)
    facts.set("picture_size", list_of({size[0]}) + "x" + list_of({size[1]}), source);
}

void read_transform(JsonObject* step, PictureSteps& steps, const std::string& source,
                    BesideFacts& facts) {
  const std::string type = text_in(step, "type");
  if (type == "Normalize") {
    const bool turns = is_true(member(step, "to_rgb"), true);
    const auto mean = numbers_of(member(step, "mean")), scale = numbers_of(member(step, "std"));
    steps.normalize(mean, scale, turns);
    facts.set("mean_values", list_of(mean), source);
    facts.set("scale_values", list_of(scale), source);
    facts.set("color_space", turns ? "RGB" : "BGR", source);
  } else if (type == "Resize" || type == "ResizeEdge") {
    read_resize(step, steps, source, facts);
  } else if (type == "LetterResize" || type == "YOLOv5KeepRatioResize") {
    steps.fit(true);
  } else if (type == "CenterCrop") {  // a number, or [height, width]
    const std::vector<double> size = numbers_of(member(step, "crop_size"));
    if (size.empty()) return;
    steps.center_crop(size.back(), size[0]);
    facts.set("picture_size", list_of({size.back()}) + "x" + list_of({size[0]}), source);
  } else if (type == "TopDownAffine") {  // a region with its proportions, on black
    steps.fit(true);
    steps.pad({0});
  }
  if (type != "Pad" && type != "LetterResize") return;
  JsonObject* padding = object_in(step, "pad_val");
  std::vector<double> value =
      numbers_of(padding != nullptr ? member(padding, "img") : member(step, "pad_val"));
  if (value.empty() && type == "Pad") value = {0};
  if (!value.empty()) steps.pad(value);
}

}  // namespace

void read_mmdeploy(const std::string& text, const std::string& source, const BesideContext&,
                   BesideFacts& facts) {
  const JsonRoot root = parse_json(text);
  PictureSteps steps;
  each_object(member(object_in(object_of(root.get()), "pipeline"), "tasks"), [&](JsonObject* task) {
    each_object(member(task, "transforms"),
                [&](JsonObject* step) { read_transform(step, steps, source, facts); });
    if (const std::string component = text_in(task, "component"); !component.empty()) {
      const auto stated = type_of_component(component);
      facts.set("model_type", stated.value_or(""), source);
      if (!stated)
        facts.warnings.push_back(source + ": the component " + component +
                                 " is not known; the head is chosen by the outputs");
    }
    if (JsonObject* params = object_in(task, "params")) {
      facts.set("confidence_threshold", text_in(params, "score_thr"), source);
      facts.set("topk", text_in(params, "topk"), source);
    }
  });
  steps.state(source, facts);
}

BesideFacts read_model_proc(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string source = file.filename().string();
  BesideFacts facts;
  try {
    const JsonRoot root = parse_json(file_text(path));
    JsonObject* object = object_of(root.get());
    if (object == nullptr || (member(object, "input_preproc") == nullptr &&
                              member(object, "output_postproc") == nullptr))
      throw Error{ErrorCode::bad_argument, "has neither input_preproc nor output_postproc"};
    each_object(member(object, "input_preproc"),
                [&](JsonObject* input) { read_proc_input(input, source, facts); });
    JsonArray* outputs = array_of(member(object, "output_postproc"));
    const bool several = outputs != nullptr && json_array_get_length(outputs) > 1;
    std::vector<std::string> grouped;
    each_object(member(object, "output_postproc"), [&](JsonObject* output) {
      read_proc_output(output, source, file.parent_path().string(), several, facts, grouped);
    });
    facts.set_labels(std::move(grouped), source, true);
  } catch (const Error& error) {
    throw Error{error.code(), "model-proc " + path + ": " + error.what(), error.place()};
  }
  return facts;
}

}  // namespace clinfer
