// Reads files that Hugging Face's hub keeps beside a model: transformers' config.json and
// preprocessor_config.json, timm's config.json, and OpenCLIP's preprocess_cfg.json.
#include <algorithm>
#include <cmath>

#include "engine/heads/base/common.h"
#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/json_nodes.h"
#include "engine/heads/files/json_text.h"
#include "engine/heads/files/labels.h"

namespace clinfer {
namespace {

const std::vector<double> kDefaultMean = {0.485, 0.456, 0.406};
const std::vector<double> kDefaultStd = {0.229, 0.224, 0.225};

// A size as transformers writes it: a number, [height, width], or an object.
struct Size {
  double edge = 0;               // of the shorter side
  double width = 0, height = 0;  // of both
  explicit operator bool() const { return edge > 0 || (width > 0 && height > 0); }
};
Size size_of(JsonNode* node) {
  Size size;
  if (JsonObject* object = object_of(node)) {
    const auto number = [&](const char* key) {
      const auto values = numbers_of(member(object, key));
      return values.empty() ? 0.0 : values[0];
    };
    size.edge = number("shortest_edge");
    size.width = number("width"), size.height = number("height");
  } else if (const auto values = numbers_of(node); values.size() == 2) {
    size.height = values[0], size.width = values[1];
  } else if (values.size() == 1) {
    size.width = size.height = values[0];
  }
  return size;
}

// Returns shares of 1 as pixel values, rounded.
std::vector<double> bytes_of(std::vector<double> shares) {
  for (double& share : shares) share = std::round(255 * share);
  return shares;
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return name.rfind(word, 0) == 0; });
}

// Return whether classes of transformers crop the centre, and whether they stretch before that,
// unless the file says otherwise.
bool cuts_by_default(const std::string& type) {
  return is_one_of(
      type, {"CLIP", "Bit", "MobileNet", "MobileViT", "Levit", "PoolFormer", "DeiT", "Perceiver",
             "VideoMAE", "Vivit", "ChineseCLIP", "EfficientFormer", "Flava", "Beit"});
}
bool stretches(const std::string& type) {
  return is_one_of(type, {"DeiT", "Beit", "EfficientNet"});
}

void read_size(JsonObject* object, const std::string& type, const std::string& source,
               BesideFacts& facts) {
  if (!is_true(member(object, "do_resize"), true)) return;
  PictureSteps steps;
  Size size = size_of(member(object, "size"));
  const Size crop = size_of(member(object, "crop_size"));
  const auto share = numbers_of(member(object, "crop_pct"));
  const bool has_share = share.size() == 1 && share[0] > 0 && share[0] <= 1;
  const bool cuts =
      is_true(member(object, "do_center_crop"), crop && cuts_by_default(type) && !has_share);
  // Takes a single number for the shorter side if the picture is cropped, else for both sides.
  if (object_of(member(object, "size")) == nullptr && size.width > 0 && size.width == size.height &&
      ((cuts && !stretches(type)) || has_share))
    size = {size.width, 0, 0};
  if (is_one_of(type, {"Perceiver"}) && cuts && size.width > 0) {
    // Crops size / crop_size of the shorter edge first.
    steps.shorter_edge(crop.width);
    steps.center_crop(size.width, size.height);
    return steps.state(source, facts);
  }
  if (const auto longest = numbers_of(member(object_in(object, "size"), "longest_edge"));
      !size && longest.size() == 1) {  // SAM: puts the picture at the top left, then pads it
    const auto mean = numbers_of(member(object, "image_mean"));
    steps.fit(false);
    steps.pad(mean.empty() ? std::vector<double>{0} : bytes_of(mean));
    return steps.state(source, facts);
  }
  if (is_one_of(type, {"Owlv2"})) {  // fills a square at its top left with half of white
    steps.fit(false);
    steps.pad({127.5});
    return steps.state(source, facts);
  }
  if (const auto color = numbers_of(member(object, "background_color")); !color.empty()) {
    steps.fit(true);
    steps.pad(color);
    return steps.state(source, facts);
  }
  const double taken = crop ? std::min(crop.width, crop.height) : size.edge;
  if (has_share && size.edge > 0) {
    // ConvNeXT stretches large pictures.
    if (is_one_of(type, {"ConvNext"}) && size.edge >= 384) {
      steps.squash(size.edge, size.edge);
    } else {
      steps.shorter_edge(std::floor(size.edge / share[0]));
      steps.center_crop(taken > 0 ? taken : size.edge, taken > 0 ? taken : size.edge);
    }
  } else if (size.edge > 0 && cuts) {
    steps.shorter_edge(is_one_of(type, {"Levit"}) ? std::floor(size.edge * 256 / 224) : size.edge);
    steps.center_crop(crop ? crop.width : size.edge, crop ? crop.height : size.edge);
  } else if (size.width > 0 && size.height > 0) {
    const double by = has_share ? share[0] : 1;
    steps.squash(std::floor(size.width / by), std::floor(size.height / by));
    if (cuts || has_share)
      steps.center_crop(crop ? crop.width : size.width, crop ? crop.height : size.height);
  } else if (cuts) {
    steps.center_crop(crop.width, crop.height);
  } else {
    // With the shorter edge alone, pictures have any size, so an input of fixed size is filled.
    steps.squash(0, 0);
  }
  const Size& last = cuts && crop ? crop : size;
  const double width = last.edge > 0 ? last.edge : last.width;
  const double height = last.edge > 0 ? last.edge : last.height;
  const bool any_size = size.edge > 0 && !cuts && !has_share;
  if (width > 0 && height > 0 && !any_size)
    facts.set("picture_size",
              std::to_string(std::lround(width)) + "x" + std::to_string(std::lround(height)),
              source);
  steps.state(source, facts);
}

void read_picture(JsonObject* object, const std::string& source, BesideFacts& facts) {
  if (JsonObject* inner = object_in(object, "image_processor")) object = inner;
  std::string type = text_in(object, "image_processor_type");
  if (type.empty()) type = text_in(object, "feature_extractor_type");
  const bool rescaled = is_true(member(object, "do_rescale"), true);
  const std::vector<double> stated = numbers_of(member(object, "rescale_factor"));
  const double factor = !rescaled ? 1 : stated.size() == 1 && stated[0] > 0 ? stated[0] : 1. / 255;
  const double offset = rescaled && is_true(member(object, "rescale_offset"), false) ? 1 : 0;
  std::vector<double> mean = numbers_of(member(object, "image_mean"));
  std::vector<double> deviation = numbers_of(member(object, "image_std"));
  const std::vector<double> top_deviation = deviation;
  const bool normalises = is_true(member(object, "do_normalize"), !mean.empty());
  if (!normalises || mean.empty()) mean = {0};
  if (!normalises || deviation.empty()) deviation = {1};
  // Computes (pixel * factor - offset - mean) / deviation.
  for (double& value : mean) value += offset;
  // EfficientNet's processor divides by the deviation once more.
  if (is_true(member(object, "include_top"), is_one_of(type, {"EfficientNet"})) &&
      !top_deviation.empty()) {
    deviation.resize(std::max(deviation.size(), top_deviation.size()), deviation[0]);
    for (size_t c = 0; c < deviation.size(); ++c)
      deviation[c] *= top_deviation[std::min(c, top_deviation.size() - 1)];
  }
  facts.set("mean_values", list_of(scaled(mean, 1 / factor)), source);
  facts.set("scale_values", list_of(scaled(deviation, 1 / factor)), source);
  const bool blue_first =
      is_true(member(object, "do_flip_channel_order"), is_one_of(type, {"MobileViT"}));
  facts.set("color_space", blue_first ? "BGR" : "RGB", source);
  read_size(object, type, source, facts);
}

// Reads timm's description of how a picture is cropped.
void read_timm_picture(JsonObject* config, const std::string& source, const BesideContext& context,
                       BesideFacts& facts) {
  std::vector<double> size = numbers_of(member(config, "input_size"));
  std::vector<double> share = numbers_of(member(config, "crop_pct"));
  const std::vector<double> test_size = numbers_of(member(config, "test_input_size"));
  // Crops as in tests if the network was exported at the larger size of tests.
  if (test_size.size() == 3 && context.width > 0 && test_size[2] == context.width &&
      (size.size() != 3 || size[2] != context.width)) {
    size = test_size;
    if (const auto test = numbers_of(member(config, "test_crop_pct")); !test.empty()) share = test;
  }
  if (size.size() != 3) size = {3, 224, 224};
  if (share.size() != 1 || !(share[0] > 0) || !(share[0] <= 1)) share = {0.875};
  const double height = context.height > 0 ? context.height : size[1];
  const double width = context.width > 0 ? context.width : size[2];
  std::vector<double> mean = numbers_of(member(config, "mean"));
  std::vector<double> deviation = numbers_of(member(config, "std"));
  if (mean.empty()) mean = kDefaultMean;
  if (deviation.empty()) deviation = kDefaultStd;
  facts.set("mean_values", list_of(scaled(mean, 255)), source);
  facts.set("scale_values", list_of(scaled(deviation, 255)), source);
  facts.set("color_space", "RGB", source);
  PictureSteps steps;
  const std::string mode = text_in(config, "crop_mode");
  if (mode == "squash") {
    steps.squash(std::floor(width / share[0]), std::floor(height / share[0]));
  } else if (mode == "border") {
    steps.fit(true, std::floor(width / share[0]));
    steps.pad(bytes_of(mean));
  } else {
    steps.shorter_edge(std::floor(std::min(width, height) / share[0]));
  }
  steps.center_crop(width, height);
  facts.set("picture_size",
            std::to_string(std::lround(width)) + "x" + std::to_string(std::lround(height)), source);
  steps.state(source, facts);
}

// Returns the names, or timm's descriptions if the names are numbers of WordNet ("n01440764").
std::vector<std::string> timm_labels(JsonObject* object) {
  std::vector<std::string> names = texts_of(member(object, "label_names"));
  JsonObject* descriptions = object_in(object, "label_descriptions");
  if (descriptions == nullptr) return names;
  for (std::string& name : names)
    if (const std::string text = text_in(descriptions, name.c_str());
        !text.empty() && name.size() == 9 && name[0] == 'n')
      name = text;
  return names;
}

}  // namespace

void read_huggingface_config(const std::string& text, const std::string& source,
                             const BesideContext& context, BesideFacts& facts) {
  const JsonRoot root = parse_json(text);
  JsonObject* object = object_of(root.get());
  JsonObject* pretrained = object_in(object, "pretrained_cfg");
  const bool flat = pretrained == nullptr && !text_in(object, "architecture").empty() &&
                    member(object, "input_size") != nullptr;
  if (pretrained != nullptr || flat) {
    read_timm_picture(flat ? object : pretrained, source, context, facts);
    facts.set_labels(timm_labels(object), source, true);
    if (const auto classes = numbers_of(member(object, "num_classes"));
        !classes.empty() && classes[0] > 0)
      facts.set("task", "classification", source);
  }
  for (const char* key : {"id2label", "label2id"})
    facts.set_labels(labels_by_number(member(object, key)), source, true);
  const std::string type = text_in(object, "model_type");
  if (type.empty()) return;
  facts.set("model_type", type, source);
  const std::vector<std::string> architectures = texts_of(member(object, "architectures"));
  if (!architectures.empty()) {
    facts.set("architecture", architectures[0], source);
    if (architectures[0].find("ForImageClassification") != std::string::npos)
      facts.set("task", "classification", source);
  }
}

void read_huggingface_picture(const std::string& text, const std::string& source,
                              const BesideContext&, BesideFacts& facts) {
  const JsonRoot root = parse_json(text);
  JsonObject* object = object_of(root.get());
  // A file without any of these keys describes a tokenizer, or sound.
  for (const char* key : {"image_processor", "do_resize", "do_rescale", "do_normalize",
                          "rescale_factor", "image_mean", "size"})
    if (member(object, key) != nullptr) return read_picture(object, source, facts);
}

void read_open_clip(const std::string& text, const std::string& source, const BesideContext&,
                    BesideFacts& facts) {
  const JsonRoot root = parse_json(text);
  JsonObject* object = object_of(root.get());
  if (JsonObject* inner = object_in(object, "preprocess_cfg")) object = inner;
  if (member(object, "mean") == nullptr && member(object, "resize_mode") == nullptr) return;
  std::vector<double> mean = numbers_of(member(object, "mean"));
  std::vector<double> deviation = numbers_of(member(object, "std"));
  if (mean.empty()) mean = {0.48145466, 0.4578275, 0.40821073};
  if (deviation.empty()) deviation = {0.26862954, 0.26130258, 0.27577711};
  facts.set("mean_values", list_of(scaled(mean, 255)), source);
  facts.set("scale_values", list_of(scaled(deviation, 255)), source);
  facts.set("color_space", "RGB", source);
  const Size size = size_of(member(object, "size"));
  if (size)
    facts.set(
        "picture_size",
        std::to_string(std::lround(size.width)) + "x" + std::to_string(std::lround(size.height)),
        source);
  PictureSteps steps;
  const std::string mode = text_in(object, "resize_mode");
  if (mode == "squash") {
    steps.squash(size.width, size.height);
  } else if (mode == "longest") {
    const auto fill = numbers_of(member(object, "fill_color"));
    steps.fit(true);
    steps.pad(fill.empty() ? std::vector<double>{0} : fill);
  } else {
    steps.shorter_edge(std::min(size.width, size.height));
    steps.center_crop(size.width, size.height);
  }
  steps.state(source, facts);
}

}  // namespace clinfer
