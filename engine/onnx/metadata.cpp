// Small texts in Python's notation, as Ultralytics writes them: [640, 640], {0: 'person', ...}.
#include "engine/onnx/metadata.h"

#include <algorithm>
#include <vector>

#include "engine/ir/ir_text.h"

namespace clinfer {

namespace {

constexpr const char* kProps = "metadata_props/";
constexpr size_t kMostLabels = 1 << 16;

std::string value_of(const std::map<std::string, std::string>& info, const std::string& key) {
  const auto found = info.find(kProps + key);
  return found == info.end() ? "" : found->second;
}

// The strings of {0: 'person', 1: "plane's"} or ['person', ...] in their order; nothing where it is
// something else.
std::vector<std::string> strings_of(const std::string& text) {
  std::vector<std::string> strings;
  for (size_t i = 0; i < text.size() && strings.size() < kMostLabels; ++i) {
    const char quote = text[i];
    if (quote != '\'' && quote != '"') continue;
    std::string word;
    for (++i; i < text.size() && text[i] != quote; ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      word += text[i];
    }
    strings.push_back(word);
  }
  return strings;
}

// Labels as model_info lists them: words without spaces.
std::string labels_of(const std::string& names) {
  std::string list;
  for (std::string label : strings_of(names)) {
    std::replace(label.begin(), label.end(), ' ', '_');
    list += (list.empty() ? "" : " ") + label;
  }
  return list;
}

}  // namespace

std::map<std::string, std::string> onnx_info(const onnx::ModelProto& model) {
  std::map<std::string, std::string> info;
  for (const auto& entry : model.metadata_props())
    info.emplace(kProps + entry.key(), entry.value());
  const std::string task = value_of(info, "task"), names = value_of(info, "names");
  if (task.empty() || value_of(info, "stride").empty()) return info;
  // As of Ultralytics: RGB of 0 to 1, letterboxed on grey unless whole pictures are classified.
  const auto say = [&](const char* key, const std::string& value) {
    info.emplace(std::string("model_info/") + key, value);
  };
  say("model_type", "YOLO");
  say("reverse_input_channels", "YES");
  say("pad_value", "114");
  say("scale_values", "255.0");
  if (task != "classify") say("resize_type", "fit_to_window_letterbox");
  if (const std::string labels = labels_of(names); !labels.empty()) say("labels", labels);
  return info;
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
