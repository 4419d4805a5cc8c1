// JSON files beside a model: Hugging Face's, MMDeploy's, and DL Streamer's model-proc.
#include "engine/heads/beside_json.h"

#include <json-glib/json-glib.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "engine/heads/common.h"
#include "engine/heads/json_text.h"
#include "engine/heads/labels.h"

namespace clinfer {
namespace {

JsonObject* object_of(JsonNode* node) {
  return node != nullptr && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : nullptr;
}
JsonArray* array_of(JsonNode* node) {
  return node != nullptr && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : nullptr;
}
JsonNode* member(JsonObject* object, const char* key) {
  return object != nullptr && json_object_has_member(object, key)
             ? json_object_get_member(object, key)
             : nullptr;
}

// Scalars as text: numbers as they are written, true and false; "" for all else.
std::string text_of(JsonNode* node) {
  if (node == nullptr || !JSON_NODE_HOLDS_VALUE(node)) return {};
  switch (json_node_get_value_type(node)) {
    case G_TYPE_STRING:
      return json_node_get_string(node);
    case G_TYPE_BOOLEAN:
      return json_node_get_boolean(node) ? "true" : "false";
    case G_TYPE_INT64:
      return std::to_string(json_node_get_int(node));
    case G_TYPE_DOUBLE: {
      char text[40];
      const auto end = std::to_chars(text, text + sizeof text, json_node_get_double(node));
      return std::string(text, end.ptr);
    }
    default:
      return {};
  }
}
bool is_true(JsonNode* node, bool otherwise) {
  return node != nullptr && JSON_NODE_HOLDS_VALUE(node) ? text_of(node) == "true" : otherwise;
}

// The scalars of an array, or the one scalar.
std::vector<std::string> texts_of(JsonNode* node) {
  std::vector<std::string> texts;
  if (JsonArray* array = array_of(node)) {
    for (guint i = 0; i < json_array_get_length(array); ++i)
      texts.push_back(text_of(json_array_get_element(array, i)));
  } else if (std::string text = text_of(node); !text.empty()) {
    texts.push_back(std::move(text));
  }
  return texts;
}
std::vector<double> numbers_of(JsonNode* node) {
  std::vector<double> numbers;
  for (const std::string& text : texts_of(node))
    numbers.push_back(std::strtod(text.c_str(), nullptr));
  return numbers;
}

std::string list_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}
std::vector<double> scaled(std::vector<double> values, double by) {
  for (double& value : values) value *= by;
  return values;
}

// {"0": "person"} by number.
std::vector<std::string> names_by_number(JsonObject* object) {
  std::vector<std::string> names;
  if (object == nullptr) return names;
  const std::unique_ptr<GList, void (*)(GList*)> keys(json_object_get_members(object), g_list_free);
  for (const GList* key = keys.get(); key != nullptr; key = key->next) {
    const auto* name = static_cast<const char*>(key->data);
    char* end = nullptr;
    const unsigned long number = std::strtoul(name, &end, 10);
    if (end == name || *end != '\0' || number > 1000000) continue;
    if (names.size() <= number) names.resize(number + 1);
    names[number] = text_of(json_object_get_member(object, name));
  }
  return names;
}

void each_object(JsonNode* array, const std::function<void(JsonObject*)>& use) {
  JsonArray* elements = array_of(array);
  for (guint i = 0; elements != nullptr && i < json_array_get_length(elements); ++i)
    if (JsonObject* object = object_of(json_array_get_element(elements, i))) use(object);
}

// ---- model-proc ---------------------------------------------------------------------------------

// The model_type that its converters stand for; "" for those that say nothing of the head.
std::string type_of_converter(const std::string& converter) {
  static const std::vector<std::pair<const char*, const char*>> kConverters = {
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
  JsonObject* params = object_of(member(input, "params"));
  if (params == nullptr) return;
  const std::string resize = text_of(member(params, "resize"));
  const std::string crop = text_of(member(params, "crop"));
  if (!crop.empty())
    facts.set("resize_type", "crop", source);
  else if (resize == "aspect-ratio")
    facts.set("resize_type",
              member(params, "padding") != nullptr ? "fit_to_window_letterbox" : "fit_to_window",
              source);
  else if (!resize.empty())
    facts.set("resize_type", "standard", source);
  if (JsonObject* padding = object_of(member(params, "padding"))) {
    const std::vector<double> value = numbers_of(member(padding, "fill_value"));
    if (!value.empty()) facts.set("pad_value", std::to_string(value[0]), source);
  }
  facts.set("color_space", text_of(member(params, "color_space")), source);
  const std::vector<double> range = numbers_of(member(params, "range"));
  std::vector<double> mean = numbers_of(member(params, "mean"));
  std::vector<double> deviation = numbers_of(member(params, "std"));
  if (range.size() != 2 && mean.empty() && deviation.empty()) return;
  // First to the range, then minus the mean over the deviation.
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
  const std::string converter = text_of(member(output, "converter"));
  const std::string layer = text_of(member(output, "layer_name"));
  const std::string attribute = text_of(member(output, "attribute_name"));
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
  if (text_of(member(output, "method")) == "compound") facts.set("multilabel", "true", source);
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

}  // namespace

void read_huggingface_config(const std::string& text, const std::string& source,
                             BesideFacts& facts) {
  const JsonRoot root = parse_json(text);
  JsonObject* object = object_of(root.get());
  const std::string type = text_of(member(object, "model_type"));
  if (type.empty()) return;
  facts.set("model_type", type, source);
  facts.set_labels(names_by_number(object_of(member(object, "id2label"))), source, true);
  const std::vector<std::string> architectures = texts_of(member(object, "architectures"));
  if (!architectures.empty()) {
    facts.set("architecture", architectures[0], source);
    if (architectures[0].find("ForImageClassification") != std::string::npos)
      facts.set("task", "classification", source);
  }
}

void read_huggingface_picture(const std::string& text, const std::string& source,
                              BesideFacts& facts) {
  const JsonRoot root = parse_json(text);
  JsonObject* object = object_of(root.get());
  if (object == nullptr) return;
  const bool rescaled = is_true(member(object, "do_rescale"), true);
  const std::vector<double> factor = numbers_of(member(object, "rescale_factor"));
  const double unit = !rescaled ? 1 : factor.size() == 1 && factor[0] > 0 ? 1 / factor[0] : 255;
  std::vector<double> mean = {0}, deviation = {1};
  if (is_true(member(object, "do_normalize"), false)) {
    if (const auto stated = numbers_of(member(object, "image_mean")); !stated.empty())
      mean = stated;
    if (const auto stated = numbers_of(member(object, "image_std")); !stated.empty())
      deviation = stated;
  }
  facts.set("mean_values", list_of(scaled(mean, unit)), source);
  facts.set("scale_values", list_of(scaled(deviation, unit)), source);
  facts.set("color_space", "RGB", source);
  if (is_true(member(object, "do_center_crop"), false))
    facts.set("resize_type", "crop", source);
  else
    facts.set("resize_type", "standard", source);
}

namespace {

// The model_type that MMDeploy's last task of a pipeline stands for; "" for those that say nothing
// of the head; nullopt for unknown ones.
std::optional<std::string> type_of_component(const std::string& component) {
  static const std::vector<std::pair<const char*, const char*>> kComponents = {
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

void read_mmdeploy(const std::string& text, const std::string& source, BesideFacts& facts) {
  const JsonRoot root = parse_json(text);
  JsonObject* pipeline = object_of(member(object_of(root.get()), "pipeline"));
  each_object(member(pipeline, "tasks"), [&](JsonObject* task) {
    each_object(member(task, "transforms"), [&](JsonObject* step) {
      const std::string type = text_of(member(step, "type"));
      if (type == "Normalize") {
        facts.set("mean_values", list_of(numbers_of(member(step, "mean"))), source);
        facts.set("scale_values", list_of(numbers_of(member(step, "std"))), source);
        facts.set("color_space", is_true(member(step, "to_rgb"), true) ? "RGB" : "BGR", source);
      } else if (type == "Resize") {
        facts.set("resize_type",
                  is_true(member(step, "keep_ratio"), false) ? "fit_to_window" : "standard",
                  source);
      } else if (type == "Pad") {
        JsonObject* padding = object_of(member(step, "pad_val"));
        const std::vector<double> value =
            numbers_of(padding != nullptr ? member(padding, "img") : member(step, "pad_val"));
        if (!value.empty()) facts.set("pad_value", std::to_string(value[0]), source);
      } else if (type == "CenterCrop") {
        facts.set("resize_type", "crop", source);
      } else if (type == "TopDownAffine") {  // a region with its proportions, black around it
        facts.set("resize_type", "fit_to_window_letterbox", source);
        facts.set("pad_value", "0", source);
      }
    });
    if (const std::string component = text_of(member(task, "component")); !component.empty()) {
      const auto stated = type_of_component(component);
      facts.set("model_type", stated.value_or(""), source);
      if (!stated)
        facts.warnings.push_back(source + ": the component " + component +
                                 " is not known; the head is chosen by the outputs");
    }
    if (JsonObject* params = object_of(member(task, "params"))) {
      facts.set("confidence_threshold", text_of(member(params, "score_thr")), source);
      facts.set("topk", text_of(member(params, "topk")), source);
    }
  });
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
