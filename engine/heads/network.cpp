// From the model, its rt_info and the options to its use.
#include "engine/heads/network.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "engine/heads/common.h"
#include "engine/heads/labels.h"

namespace clinfer {
namespace {

constexpr int64_t kLargestSide = 16384;

// Channels, height and width of an image input, or channels 0.
struct ImageShape {
  int channels = 0, height = 0, width = 0;
  bool nhwc = false;
};

ImageShape image_shape(const Port& port) {
  const Shape& s = port.shape;
  auto is_channels = [](int64_t d) { return d == 1 || d == 3; };
  auto fits = [](int64_t d) { return d >= 1 && d <= kLargestSide; };
  if (s.size() != 4) return {};
  if (is_channels(s[1]) && fits(s[2]) && fits(s[3]) && s[2] * s[3] > 1)
    return {static_cast<int>(s[1]), static_cast<int>(s[2]), static_cast<int>(s[3]), false};
  if (is_channels(s[3]) && fits(s[1]) && fits(s[2]) && s[1] * s[2] > 1)
    return {static_cast<int>(s[3]), static_cast<int>(s[1]), static_cast<int>(s[2]), true};
  return {};
}

std::string describe_inputs(const Model& model) {
  std::string text;
  for (const Port& port : model.inputs())
    text += (text.empty() ? "" : ", ") + port.name + " " + to_string(port.shape);
  return text;
}

// What a further input is, going by its name and size: picture size for detectors, sequence marks
// for recognisers.
Tensor constant_input(const Port& port, const ImageShape& image, const Model& model) {
  const int64_t n = count(port.shape);
  const std::string name = lower(port.name);
  auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  const float height = static_cast<float>(image.height), width = static_cast<float>(image.width);
  std::vector<float> values;
  if (has("info") && (n == 3 || n == 6)) {
    values.assign(static_cast<size_t>(n), 1.0f);
    values[0] = height;
    values[1] = width;
  } else if (has("shape") && n == 2) {
    values = {height, width};
  } else if (has("scale") && n == 2) {
    values = {1, 1};
  } else if (has("seq") && n >= 1 && n <= 4096) {
    values.assign(static_cast<size_t>(n), 1.0f);
    values[0] = 0;
  } else {
    throw Error{ErrorCode::unsupported, model.path() + ": nothing is known to feed input " +
                                            port.name + " " + to_string(port.shape) +
                                            " with; inputs are " + describe_inputs(model)};
  }
  return Tensor::of<float>(ElementType::f32, port.shape, values);
}

// The part of rt_info below model_info.
std::map<std::string, std::string> model_info_of(const Model& model) {
  const std::string prefix = "model_info/";
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : model.rt_info())
    if (key.rfind(prefix, 0) == 0) found[key.substr(prefix.size())] = value;
  return found;
}

std::string value_of(const std::map<std::string, std::string>& values,
                     std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto found = values.find(key); found != values.end() && !found->second.empty())
      return found->second;
  return {};
}

bool truth(const std::string& text) {
  const std::string value = lower(text);
  return value == "true" || value == "yes" || value == "1";
}

// True when the converter was told `option`, so that the graph already does it.
bool converted_with(const Model& model, const std::string& option) {
  for (const char* place : {"conversion_parameters/", "MO_config/", "cli_parameters/"}) {
    const auto found = model.rt_info().find(place + option);
    if (found == model.rt_info().end()) continue;
    const std::string value = lower(found->second);
    if (!value.empty() && value != "none" && value != "()" && value != "[]" && value != "{}" &&
        value != "false" && value != "0")
      return true;
  }
  return false;
}

// Numbers for `channels` channels from the property, else from model_info, else `otherwise`.
std::vector<float> per_channel(const std::string& property, const std::string& of_model,
                               const char* name, int channels, float otherwise) {
  const bool set = !property.empty();
  std::vector<float> values =
      parse_numbers(set ? property : of_model, set ? name : std::string("model_info ") + name);
  if (values.empty()) return {otherwise};
  if (values.size() != 1 && values.size() != static_cast<size_t>(channels)) {
    throw Error{ErrorCode::bad_argument,
                std::string(name) + " has " + std::to_string(values.size()) +
                    " numbers where 1 or " + std::to_string(channels) + " are needed"};
  }
  return values;
}

FrameTransform transform_of(const Model& model,
                            const std::map<std::string, std::string>& model_info,
                            const ImageShape& image, const ModelOptions& options) {
  FrameTransform transform;
  transform.nhwc = image.nhwc;
  const bool embedded = truth(value_of(model_info, {"embedded_processing"}));

  const std::string resize = lower(value_of(model_info, {"resize_type"}));
  transform.resize = ResizeMode::stretch;
  if (options.resize_mode == ResizeChoice::letterbox ||
      (options.resize_mode == ResizeChoice::automatic && resize.rfind("fit_to_window", 0) == 0)) {
    transform.resize = ResizeMode::letterbox;
    transform.pad_value = 114;
    transform.centered = options.resize_mode == ResizeChoice::letterbox
                             ? resize != "fit_to_window"
                             : resize == "fit_to_window_letterbox";
    const std::vector<float> pad =
        parse_numbers(value_of(model_info, {"pad_value"}), "model_info pad_value");
    if (!pad.empty()) transform.pad_value = std::clamp(pad[0], 0.0f, 255.0f);
  } else if (options.resize_mode == ResizeChoice::crop ||
             (options.resize_mode == ResizeChoice::automatic && resize == "crop")) {
    transform.resize = ResizeMode::crop;
  }

  if (image.channels == 1) {
    if (options.color_format == ColorChoice::bgr || options.color_format == ColorChoice::rgb)
      throw Error{ErrorCode::bad_argument,
                  "color-format: the model's input has 1 channel, use gray"};
    transform.color = ColorOrder::gray;
  } else {
    if (options.color_format == ColorChoice::gray)
      throw Error{ErrorCode::bad_argument, "color-format=gray: the model's input has 3 channels"};
    const bool reversed = !embedded && !converted_with(model, "reverse_input_channels") &&
                          truth(value_of(model_info, {"reverse_input_channels"}));
    const std::string space = lower(value_of(model_info, {"color_space"}));
    const bool rgb = options.color_format == ColorChoice::rgb ||
                     (options.color_format == ColorChoice::automatic &&
                      (space.empty() ? reversed : space == "rgb"));
    transform.color = rgb ? ColorOrder::rgb : ColorOrder::bgr;
  }

  const bool mean_done = embedded || converted_with(model, "mean_values");
  const bool scale_done =
      embedded || converted_with(model, "scale_values") || converted_with(model, "scale");
  transform.mean =
      per_channel(options.mean, mean_done ? "" : value_of(model_info, {"mean_values", "mean"}),
                  "mean", image.channels, 0);
  transform.scale =
      per_channel(options.scale, scale_done ? "" : value_of(model_info, {"scale_values", "scale"}),
                  "scale", image.channels, 1);
  if (std::count(transform.scale.begin(), transform.scale.end(), 0.0f) != 0)
    throw Error{ErrorCode::bad_argument, "scale must not be 0"};
  return transform;
}

// Converters often number their layers; a tensor name says more then.
void prefer_words(OutputFacts& output) {
  const auto is_number = [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!is_number(output.name)) return;
  for (std::string& alias : output.aliases) {
    if (is_number(alias)) continue;
    std::swap(alias, output.name);
    return;
  }
}

// A number of model_info between 0 and 1, or `otherwise`.
float share_of(const std::map<std::string, std::string>& model_info,
               std::initializer_list<const char*> keys, float otherwise) {
  const std::string text = value_of(model_info, keys);
  const std::vector<float> value = parse_numbers(text, *keys.begin());
  return value.size() == 1 && value[0] >= 0 && value[0] <= 1 ? value[0] : otherwise;
}

}  // namespace

std::vector<float> parse_numbers(const std::string& text, const std::string& what) {
  std::vector<float> values;
  size_t at = 0;
  auto skip = [&](const char* set) { at = std::min(text.find_first_not_of(set, at), text.size()); };
  skip(" \t[(<");
  while (at < text.size() && text[at] != ']' && text[at] != ')' && text[at] != '>') {
    float value = 0;
    const auto end = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (end.ec != std::errc() || !std::isfinite(value))
      throw Error{ErrorCode::bad_argument,
                  what + ": '" + text + "' is not a number or a list of numbers like 1.5,2,3"};
    values.push_back(value);
    at = static_cast<size_t>(end.ptr - text.data());
    skip(" \t,");
  }
  return values;
}

Network describe_network(std::shared_ptr<const Model> model, const ModelOptions& options) {
  Network network;
  network.model = std::move(model);
  const Model& m = *network.model;
  network.name = std::filesystem::path(m.path()).stem().string();

  std::vector<size_t> images;
  for (size_t i = 0; i < m.inputs().size(); ++i)
    if (image_shape(m.inputs()[i]).channels != 0) images.push_back(i);
  if (images.size() != 1) {
    throw Error{ErrorCode::unsupported,
                m.path() +
                    (images.empty() ? ": no input takes a picture ([N,3,H,W] or [N,H,W,3]"
                                      ", 1 or 3 channels); inputs are "
                                    : ": more than one input takes a picture; inputs are ") +
                    describe_inputs(m)};
  }
  network.image_input = images[0];
  const ImageShape image = image_shape(m.inputs()[images[0]]);
  network.width = image.width;
  network.height = image.height;
  network.channels = image.channels;
  for (size_t i = 0; i < m.inputs().size(); ++i)
    if (i != network.image_input)
      network.constants.emplace_back(i, constant_input(m.inputs()[i], image, m));

  ModelFacts facts;
  facts.model_info = model_info_of(m);
  network.transform = transform_of(m, facts.model_info, image, options);

  if (!options.labels_file.empty())
    network.labels = read_labels(options.labels_file);
  else if (!options.labels.empty())
    network.labels = parse_labels(options.labels);
  else
    network.labels = parse_model_labels(value_of(facts.model_info, {"labels"}));

  facts.width = image.width;
  facts.height = image.height;
  facts.labels = network.labels;
  for (size_t i = 0; i < m.outputs().size(); ++i) {
    const Port& port = m.outputs()[i];
    Shape shape = port.shape;
    if (!shape.empty() && m.inputs()[network.image_input].shape[0] > 1 &&
        shape[0] == m.inputs()[network.image_input].shape[0])
      shape[0] = 1;  // one frame an inference, whatever batch the file states
    facts.outputs.push_back({port.name, port.tensor_names, port.type, shape, m.output_op(i),
                             m.output_op_attributes(i)});
    prefer_words(facts.outputs.back());
  }
  network.head = choose_head(facts, options.post_process);

  network.model_defaults.threshold = share_of(facts.model_info, {"confidence_threshold"}, 0.5f);
  network.model_defaults.iou_threshold = share_of(facts.model_info, {"iou_threshold"}, 0.45f);
  return network;
}

Network describe_network(const ModelOptions& options) {
  if (options.model.empty()) throw Error{ErrorCode::bad_argument, "no model: set model=FILE.xml"};
  return describe_network(Model::read(options.model), options);
}

}  // namespace clinfer
