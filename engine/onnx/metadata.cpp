// Parses small texts in Python's notation, as Ultralytics writes them: [640, 640], {0: 'person',
// ...}.
#include "engine/onnx/metadata.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ir/ir_text.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

constexpr const char* kProps = "metadata_props/";
constexpr size_t kMostLabels = 1 << 16;

std::string value_of(const std::map<std::string, std::string>& info, const std::string& key) {
  const auto found = info.find(kProps + key);
  return found == info.end() ? "" : found->second;
}

// Returns the names of ['person', ...], or by their numbers those of {0: 'person', 1: "plane's"},
// {"0": "person"} and {"person": 0}; a missing one is its number. A text without quotes and
// brackets is a list with commas, or a name a line. Returns none for other texts.
std::vector<std::string> strings_of(const std::string& text) {
  std::vector<std::string> listed;
  std::map<size_t, std::string> numbered;
  std::optional<size_t> number;    // the key before a name
  std::optional<std::string> key;  // the name before its number
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto number_of = [&](const std::string& word) -> std::optional<size_t> {
    if (word.empty() || word.size() > 5 || !std::all_of(word.begin(), word.end(), is_digit))
      return std::nullopt;
    return std::stoul(word);
  };
  const auto is_key = [&](size_t after) {
    const size_t next = text.find_first_not_of(" \t\r\n", after);
    return next != std::string::npos && text[next] == ':';
  };
  for (size_t i = 0; i < text.size() && listed.size() + numbered.size() < kMostLabels; ++i) {
    const char quote = text[i];
    std::string word;
    if (quote == '\'' || quote == '"') {
      for (++i; i < text.size() && text[i] != quote; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        word += text[i];
      }
      if (is_key(i + 1)) {
        number = number_of(word);
        key = number ? std::nullopt : std::optional(word);
      } else if (number) {
        numbered[*std::exchange(number, std::nullopt)] = word;
      } else if (key && number_of(word)) {
        numbered[*number_of(word)] = *std::exchange(key, std::nullopt);
      } else {
        listed.push_back(word);
      }
    } else if (is_digit(quote)) {
      while (i < text.size() && is_digit(text[i])) word += text[i++];
      if (is_key(i))
        number = number_of(word);
      else if (key && number_of(word))
        numbered[*number_of(word)] = *std::exchange(key, std::nullopt);
      --i;
    }
  }
  if (!listed.empty()) return listed;
  if (numbered.empty() && text.find_first_of("'\"[]{}:") == std::string::npos) {
    const char separator = text.find('\n') != std::string::npos ? '\n' : ',';
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, separator);) {
      if (const std::string_view name = trimmed(word); !name.empty()) listed.emplace_back(name);
    }
    return listed.size() > 1 ? listed : std::vector<std::string>();
  }
  for (const auto& [at, name] : numbered) {
    while (listed.size() < at && listed.size() < kMostLabels)
      listed.push_back(std::to_string(listed.size()));
    listed.push_back(name);
  }
  return listed;
}

// Returns PP-OCR's dictionary, which has one character per line, in the form of labels in
// model_info. Replaces the space by a name.
std::string dictionary_of(const std::string& lines) {
  std::istringstream stream(lines);
  std::string list, line;
  while (std::getline(stream, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) line = "<space>";
    list += (list.empty() ? "" : " ") + line;
  }
  return list;
}

// Returns labels in the form of model_info: words separated by spaces, without spaces inside.
std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (std::string label : names) {
    std::replace(label.begin(), label.end(), ' ', '_');
    list += (list.empty() ? "" : " ") + label;
  }
  return list;
}

std::string labels_of(const std::string& names) { return listed(strings_of(names)); }

// Returns the class names of the model's ZipMap, if there is only one.
std::string zipped_labels(const onnx::GraphProto& graph) {
  std::string labels;
  for (const auto& node : graph.node()) {
    if (node.op_type() != "ZipMap") continue;
    if (!labels.empty()) return "";
    for (const auto& a : node.attribute())
      if (a.name() == "classlabels_strings")
        labels = listed({a.strings().begin(), a.strings().end()});
  }
  return labels;
}

}  // namespace

std::map<std::string, std::string> onnx_info(const onnx::ModelProto& model) {
  std::map<std::string, std::string> info;
  for (const auto& entry : model.metadata_props())
    info.emplace(kProps + entry.key(), entry.value());
  const auto say = [&](const std::string& key, const std::string& value) {
    info.emplace("model_info/" + key, value);
  };
  // OpenVINO's training extensions write "model_info labels" where OpenVINO writes
  // "model_info/labels".
  for (const auto& entry : model.metadata_props())
    for (const std::string prefix : {"model_info ", "model_info/"})
      if (entry.key().starts_with(prefix)) say(entry.key().substr(prefix.size()), entry.value());
  if (has_dictionary(info)) {
    say("model_type", "text_recognition");
    say("labels", dictionary_of(value_of(info, "character")));
  }
  if (const std::string labels = zipped_labels(model.graph()); !labels.empty())
    say("labels", labels);
  const std::string task = value_of(info, "task"), names = value_of(info, "names");
  if (task.empty() || value_of(info, "stride").empty()) {
    for (const char* key : {"names", "classes", "CLASSES", "class_names", "labels"})
      if (const std::string labels = labels_of(value_of(info, key)); !labels.empty())
        say("labels", labels);
    return info;
  }
  // Ultralytics' networks take RGB from 0 to 1. For classification pictures are cropped, for
  // RT-DETR stretched, for all others letterboxed on grey.
  say("task", task);
  say("color_space", "RGB");
  say("scale_values", "255");
  if (const std::string labels = labels_of(names); !labels.empty()) say("labels", labels);
  for (const char* key : {"kpt_shape", "end2end"})
    if (const std::string value = value_of(info, key); !value.empty()) say(key, value);
  if (value_of(info, "args").find("'agnostic_nms': True") != std::string::npos)
    say("agnostic_nms", "True");
  if (task == "classify") {
    say("model_type", "Classification");
    say("resize_type", "crop");
    return info;
  }
  const bool stretched = value_of(info, "head") == "RTDETRDecoder" ||
                         value_of(info, "description").find("rtdetr") != std::string::npos;
  say("model_type", "YOLO");
  say("resize_type", stretched ? "standard" : "fit_to_window_letterbox");
  say("pad_value", "114");
  return info;
}

bool has_dictionary(const std::map<std::string, std::string>& info) {
  const std::string text = value_of(info, "character");
  return std::count(text.begin(), text.end(), '\n') > 1;
}

std::optional<std::pair<int64_t, int64_t>> picture_size(
    const std::map<std::string, std::string>& info) {
  const std::string text = value_of(info, "imgsz");
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return {};
  const auto sizes = parse_shape(text.substr(1, text.size() - 2));
  if (!sizes || sizes->size() != 2 || (*sizes)[0] < 1 || (*sizes)[1] < 1) return {};
  return std::pair{(*sizes)[0], (*sizes)[1]};
}

}  // namespace clinfer
