// Reads YAML files beside a model: Ultralytics' metadata.yaml, PaddleDetection's infer_cfg.yml,
// PaddleX's inference.yml, mltu's configs.yaml and Frigate's configuration.
#include <algorithm>
#include <cmath>

#include "engine/heads/base/common.h"
#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/labels.h"
#include "engine/heads/files/yaml.h"
#include "kernels/base/numbers.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

std::vector<std::string> texts_of(const YamlNode* node) {
  std::vector<std::string> texts;
  if (node == nullptr) return texts;
  if (node->kind == YamlNode::Kind::scalar && !node->text.empty()) texts.push_back(node->text);
  for (const YamlNode& item : node->items)
    if (item.kind == YamlNode::Kind::scalar) texts.push_back(item.text);
  return texts;
}

// Parses "0.5", and quotients as in PaddleOCR: "1./255.".
double number_or(const std::string& text, double otherwise) {
  char* end = nullptr;
  const double value = number_at(text.c_str(), &end);
  if (end == text.c_str()) return otherwise;
  while (*end == ' ') ++end;
  if (*end != '/') return value;
  const double divisor = number_at(end + 1);
  return divisor != 0 ? value / divisor : otherwise;
}

std::vector<double> numbers_of(const YamlNode* node) {
  std::vector<double> numbers;
  for (const std::string& text : texts_of(node)) numbers.push_back(number_or(text, 0));
  return numbers;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

bool is_true(const std::string& text) {
  const std::string value = lower(text);
  return value == "true" || value == "yes" || value == "1";
}

std::string size_text(double width, double height) {
  return std::to_string(std::lround(width)) + "x" + std::to_string(std::lround(height));
}

// ---- Paddle: a list of steps, {type: NAME, ...} or {NAME: {...}} -----------------------------------

struct PaddlePicture {
  PictureSteps steps;
  std::string color;  // empty: no step states it
  std::vector<double> mean, scale;
  std::string size;
};

void read_normalisation(const YamlNode& step, PaddlePicture& picture) {
  const bool none = lower(step.text_of("norm_type")) == "none";
  // With is_scale, bytes become shares first; `scale` is the factor of the pixels, before mean and
  // deviation.
  const bool shares = step.find("is_scale") == nullptr || is_true(step.text_of("is_scale"));
  const double factor = step.find("scale") != nullptr ? number_or(step.text_of("scale"), 1. / 255)
                                                      : (shares ? 1. / 255 : 1);
  if (!(factor > 0)) return;
  std::vector<double> mean = numbers_of(step.find("mean")),
                      deviation = numbers_of(step.find("std"));
  if (none || mean.empty()) mean = {0};
  if (none || deviation.empty()) deviation = {1};
  picture.mean = scaled(mean, 1 / factor);
  picture.scale = scaled(deviation, 1 / factor);
}

void read_step(const std::string& type, const YamlNode& step, PaddlePicture& picture) {
  if (type == "DecodeImage") {
    picture.color = step.text_of("img_mode");
  } else if (type == "Resize") {
    const auto size = numbers_of(step.find("target_size"));  // height, width
    if (is_true(step.text_of("keep_ratio")))
      picture.steps.fit(false);
    else
      picture.steps.squash(0, 0);
    if (size.size() == 2) picture.size = size_text(size[1], size[0]);
    if (size.size() == 1) picture.size = size_text(size[0], size[0]);
  } else if (type == "LetterBoxResize") {
    picture.steps.fit(true);
    picture.steps.pad({127.5});
  } else if (type == "PadStride" || type == "Pad") {
    picture.steps.pad({0});
  } else if (type == "ResizeImage") {  // size [width, height], or resize_short
    const auto edge = numbers_of(step.find("resize_short")), size = numbers_of(step.find("size"));
    if (!edge.empty()) picture.steps.shorter_edge(edge[0]);
    if (edge.empty() && !size.empty()) {
      picture.steps.squash(size[0], size.back());
      picture.size = size_text(size[0], size.back());
    }
  } else if (type == "CropImage") {
    const auto size = numbers_of(step.find("size"));
    if (size.empty()) return;
    picture.steps.center_crop(size[0], size.back());
    picture.size = size_text(size[0], size.back());
  } else if (type == "DetResizeForTest") {
    const auto size = numbers_of(step.find("image_shape"));  // height, width
    if (size.size() == 2 && !is_true(step.text_of("keep_ratio"))) {
      picture.steps.squash(size[1], size[0]);
      picture.size = size_text(size[1], size[0]);
    } else {
      picture.steps.fit(false);
      picture.steps.pad({0});
    }
  } else if (type == "RecResizeImg" || type == "OCRReisizeNormImg") {
    if (const auto shape = numbers_of(step.find("image_shape")); shape.size() == 3)
      picture.size = "?x" + std::to_string(std::lround(shape[1]));
    picture.mean = picture.scale = {127.5};
    picture.steps.fit(false);
    picture.steps.pad({127.5});
  } else if (type == "NormalizeImage") {
    read_normalisation(step, picture);
  }
}

void read_steps(const YamlNode& list, PaddlePicture& picture) {
  for (const YamlNode& step : list.items) {
    if (const std::string type = step.text_of("type"); !type.empty())
      read_step(type, step, picture);
    else
      for (const auto& [name, arguments] : step.members) read_step(name, arguments, picture);
  }
}

void state(const PaddlePicture& picture, const std::string& otherwise_color,
           const std::string& source, BesideFacts& facts) {
  facts.set("color_space", picture.color.empty() ? otherwise_color : picture.color, source);
  if (!picture.mean.empty()) {
    facts.set("mean_values", list_of(picture.mean), source);
    facts.set("scale_values", list_of(picture.scale), source);
  }
  facts.set("picture_size", picture.size, source);
  picture.steps.state(source, facts);
}

void read_paddle_detection(const YamlNode& root, const YamlNode& steps, const std::string& source,
                           BesideFacts& facts) {
  facts.set("model_type", "paddle", source);
  facts.set("arch", root.text_of("arch"), source);
  facts.set("confidence_threshold", root.text_of("draw_threshold"), source);
  if (const YamlNode* labels = root.find("label_list"))
    facts.set_labels(labels_of_yaml(*labels), source, true);
  PaddlePicture picture;
  read_steps(steps, picture);
  state(picture, "RGB", source, facts);
}

// Reads PaddleX's post-processing, which tells what the outputs are.
void read_post_process(const YamlNode& post, const std::string& source, BesideFacts& facts) {
  const std::string name = post.text_of("name");
  if (name == "CTCLabelDecode") {
    facts.set("model_type", "text_recognition", source);
    if (const YamlNode* characters = post.find("character_dict"))
      facts.set_labels(texts_of(characters), source, true);
  } else if (name == "DBPostProcess") {
    facts.set("model_type", "text_detection", source);
    facts.set("confidence_threshold", post.text_of("box_thresh"), source);
    facts.set("unclip_ratio", post.text_of("unclip_ratio"), source);
  }
  for (const char* key : {"Topk", "ThreshOutput", "MultiLabelThreshOutput"}) {
    const YamlNode* classes = post.find(key);
    if (classes == nullptr) continue;
    facts.set("task", "classification", source);
    if (std::string(key) == "MultiLabelThreshOutput") facts.set("multilabel", "true", source);
    // Ignores topk: the file only tells how many answers a demonstration prints.
    if (const YamlNode* labels = classes->find("label_list"))
      facts.set_labels(labels_of_yaml(*labels), source, true);
  }
}

void read_ultralytics(const YamlNode& root, const std::string& source, BesideFacts& facts) {
  const std::string task = lower(root.text_of("task"));
  if (task.empty()) return;
  facts.set("task", task, source);
  if (const YamlNode* names = root.find("names"))
    facts.set_labels(labels_of_yaml(*names), source, true);
  if (const YamlNode* shape = root.find("kpt_shape"))
    facts.set("kpt_shape", joined(texts_of(shape)), source);
  if (const auto size = numbers_of(root.find("imgsz")); !size.empty())
    facts.set("picture_size", size_text(size.back(), size[0]), source);
  facts.set("end2end", root.text_of("end2end"), source);
  const YamlNode* arguments = root.find("args");
  if (arguments != nullptr) facts.set("agnostic_nms", arguments->text_of("agnostic_nms"), source);
  facts.set("color_space", "RGB", source);
  facts.set("scale_values", "255", source);
  if (task == "classify") {
    facts.set("model_type", "Classification", source);
    facts.set("resize_type", "crop", source);
    return;
  }
  facts.set("model_type", "YOLO", source);
  // Recognises RT-DETR, which stretches pictures; all others are letterboxed.
  const bool stretched = lower(root.text_of("description")).find("rtdetr") != std::string::npos ||
                         lower(root.text_of("description")).find("rt-detr") != std::string::npos;
  facts.set("resize_type", stretched ? "standard" : "fit_to_window_letterbox", source);
  facts.set("pad_value", "114", source);
}

}  // namespace

void read_ultralytics(const std::string& text, const std::string& source, const BesideContext&,
                      BesideFacts& facts) {
  read_ultralytics(parse_yaml(text), source, facts);
}

BesideFacts read_framework(const std::map<std::string, std::string>& rt_info) {
  const std::string prefix = "framework/";
  YamlNode root;
  root.kind = YamlNode::Kind::mapping;
  for (auto at = rt_info.lower_bound(prefix);
       at != rt_info.end() && at->first.rfind(prefix, 0) == 0; ++at) {
    YamlNode value;
    try {
      value = parse_yaml(at->second);
    } catch (const Error&) {
      value.text = at->second;  // text in any form
    }
    root.members.push_back({at->first.substr(prefix.size()), std::move(value)});
  }
  BesideFacts facts;
  if (root.find("stride") != nullptr) read_ultralytics(root, "rt_info", facts);
  return facts;
}

void read_paddle(const std::string& text, const std::string& source, const BesideContext&,
                 BesideFacts& facts) {
  const YamlNode root = parse_yaml(text);
  if (const YamlNode* steps = root.find("Preprocess"))
    return read_paddle_detection(root, *steps, source, facts);
  const YamlNode* pre = root.find("PreProcess");
  const YamlNode* post = root.find("PostProcess");
  if (pre == nullptr && post == nullptr) return;
  if (post != nullptr) read_post_process(*post, source, facts);
  PaddlePicture picture;
  if (pre != nullptr)
    if (const YamlNode* steps = pre->find("transform_ops")) read_steps(*steps, picture);
  // PaddleOCR reads pictures in BGR, and classifiers get RGB.
  const bool classifies =
      facts.info.count("task") != 0 && facts.info.at("task") == "classification";
  state(picture, classifies ? "RGB" : "BGR", source, facts);
}

// Reads the characters that a recogniser of text was trained with; its CTC has the blank last.
// OpenCV reads its pictures.
void read_mltu(const std::string& text, const std::string& source, const BesideContext&,
               BesideFacts& facts) {
  const YamlNode root = parse_yaml(text);
  if (root.find("vocab") == nullptr || root.find("max_text_length") == nullptr) return;
  std::vector<std::string> characters = texts_of(root.find("vocab"));
  if (characters.size() == 1) {
    std::string_view all = characters[0];
    std::vector<std::string> single;
    for (; is_utf8(all) && !all.empty(); all.remove_prefix(single.back().size())) {
      size_t bytes = 1;
      while (bytes < 4 && utf8_prefix(all, bytes).empty()) ++bytes;
      single.emplace_back(utf8_prefix(all, bytes));
    }
    characters = std::move(single);
  }
  if (characters.empty()) return;
  characters.emplace_back("<blank>");
  facts.set("model_type", "text_recognition", source);
  facts.set("color_space", "BGR", source);
  facts.set_labels(std::move(characters), source, true);
}

// Reads the section `model` if it names this model; missing values have Frigate's defaults.
void read_frigate(const std::string& text, const std::string& source, const BesideContext& context,
                  BesideFacts& facts) {
  // Checks the name first: many files are called so, and some may not be meant for us.
  if (text.find(context.model) == std::string::npos) return;
  const YamlNode root = parse_yaml(text);
  const YamlNode* model = root.find("model");
  if (model == nullptr) return;
  const std::string path = model->text_of("path");
  if (path.substr(path.find_last_of('/') + 1) != context.model) return;
  const std::string order = lower(model->text_of("input_pixel_format"));
  if (order != "yuv") facts.set("color_space", order == "bgr" ? "BGR" : "RGB", source);
  const std::string type = lower(model->text_of("input_dtype"));
  if (type == "float" || type == "float_denorm") {
    facts.set("mean_values", "0", source);
    facts.set("scale_values", type == "float" ? "255" : "1", source);
  }
  const auto width = numbers_of(model->find("width")), height = numbers_of(model->find("height"));
  if (!width.empty() && !height.empty())
    facts.set("picture_size", size_text(width[0], height[0]), source);
  if (const YamlNode* names = model->find("labelmap"))
    facts.set_labels(labels_of_yaml(*names), source, true);
  read_named_labels(model->text_of("labelmap_path"), context, facts);
}

}  // namespace clinfer
