// Reads facts from files beside a model: YAML, labels and .modelinfo. JSON files are read in
// beside_json.cpp.
#include "engine/heads/beside.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/heads/beside_json.h"
#include "engine/heads/common.h"
#include "engine/heads/labels.h"
#include "engine/heads/yaml.h"
#include "kernels/base/files.h"

namespace clinfer {
namespace fs = std::filesystem;
namespace {

constexpr uintmax_t kLargestFile = 16 << 20;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

std::vector<std::string> texts_of(const YamlNode& node) {
  std::vector<std::string> texts;
  if (node.kind == YamlNode::Kind::scalar && !node.text.empty()) texts.push_back(node.text);
  for (const YamlNode& item : node.items)
    if (item.kind == YamlNode::Kind::scalar) texts.push_back(item.text);
  return texts;
}

std::optional<size_t> index_of(const std::string& text) {
  size_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || value > 1000000)
    return std::nullopt;
  return value;
}

// {0: person, 1: car} or [person, car].
std::vector<std::string> names_of(const YamlNode& node) {
  std::vector<std::string> names = texts_of(node);
  for (const auto& [key, value] : node.members) {
    const auto index = index_of(key);
    if (!index) return {};
    if (names.size() <= *index) names.resize(*index + 1);
    names[*index] = value.text;
  }
  return names;
}

bool is_true(const std::string& text) {
  const std::string value = lower(text);
  return value == "true" || value == "yes" || value == "1";
}

// Ultralytics' export folder.
void read_ultralytics(const std::string& text, const std::string& source, BesideFacts& facts) {
  const YamlNode root = parse_yaml(text);
  const std::string task = lower(root.text_of("task"));
  if (task.empty()) return;
  facts.set("task", task, source);
  if (const YamlNode* names = root.find("names")) facts.set_labels(names_of(*names), source, true);
  if (const YamlNode* shape = root.find("kpt_shape"))
    facts.set("kpt_shape", joined(texts_of(*shape)), source);
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
  // RT-DETR is stretched, all others are letterboxed.
  const bool stretched = lower(root.text_of("description")).find("rtdetr") != std::string::npos ||
                         lower(root.text_of("description")).find("rt-detr") != std::string::npos;
  facts.set("resize_type", stretched ? "standard" : "fit_to_window_letterbox", source);
  facts.set("pad_value", "114", source);
}

// PaddleDetection's infer_cfg.yml: steps of preprocessing, label_list, arch.
void read_paddle(const std::string& text, const std::string& source, BesideFacts& facts) {
  const YamlNode root = parse_yaml(text);
  const YamlNode* steps = root.find("Preprocess");
  if (steps == nullptr) return;
  facts.set("model_type", "paddle", source);
  facts.set("arch", root.text_of("arch"), source);
  facts.set("color_space", "RGB", source);
  facts.set("confidence_threshold", root.text_of("draw_threshold"), source);
  if (const YamlNode* labels = root.find("label_list"))
    facts.set_labels(names_of(*labels), source, true);
  for (const YamlNode& step : steps->items) {
    const std::string type = step.text_of("type");
    if (type == "Resize")
      facts.set("resize_type", is_true(step.text_of("keep_ratio")) ? "fit_to_window" : "standard",
                source);
    if (type == "PadStride" || type == "Pad") facts.set("pad_value", "0", source);
    if (type == "LetterBoxResize") facts.set("resize_type", "fit_to_window_letterbox", source);
    if (type != "NormalizeImage") continue;
    const bool scaled = step.find("is_scale") == nullptr || is_true(step.text_of("is_scale"));
    const float unit = scaled ? 255 : 1;
    const bool none = lower(step.text_of("norm_type")) == "none";
    const auto numbers = [&](const char* key, float otherwise) {
      std::vector<std::string> values;
      const YamlNode* node = step.find(key);
      if (node == nullptr || none) return std::to_string(otherwise * unit);
      for (const std::string& value : texts_of(*node))
        values.push_back(std::to_string(std::strtof(value.c_str(), nullptr) * unit));
      return joined(values);
    };
    facts.set("mean_values", numbers("mean", 0), source);
    facts.set("scale_values", numbers("std", 1), source);
  }
}

// item { id: 1 name: 'person' display_name: "Person" } ...
void read_label_map(const std::string& text, const std::string& source, bool sure,
                    BesideFacts& facts) {
  std::vector<std::string> labels;
  for (size_t at = text.find("item"); at != std::string::npos;) {
    const size_t next = text.find("item", at + 4);
    const std::string item = text.substr(at, next == std::string::npos ? next : next - at);
    const auto value_of = [&](const std::string& key) -> std::string {
      for (size_t p = item.find(key); p != std::string::npos; p = item.find(key, p + 1)) {
        if (p != 0 && (std::isalnum(static_cast<unsigned char>(item[p - 1])) || item[p - 1] == '_'))
          continue;
        size_t from = item.find_first_not_of(" \t", p + key.size());
        if (from == std::string::npos || item[from] != ':') continue;
        from = item.find_first_not_of(" \t", from + 1);
        if (from == std::string::npos) return {};
        if (item[from] != '"' && item[from] != '\'')
          return item.substr(from, item.find_first_of(" \t\r\n,}", from) - from);
        const size_t end = item.find(item[from], from + 1);
        return end == std::string::npos ? std::string() : item.substr(from + 1, end - from - 1);
      }
      return {};
    };
    const auto id = index_of(value_of("id"));
    std::string name = value_of("display_name");
    if (name.empty()) name = value_of("name");
    if (id && !name.empty()) {
      if (labels.size() <= *id) labels.resize(*id + 1);
      labels[*id] = name;
    }
    at = next;
  }
  facts.set_labels(std::move(labels), source, sure);
}

// GStreamer's .modelinfo: sections [tensor] with keys; `ranges` are what the input expects.
void read_modelinfo(const std::string& text, const std::string& source, BesideFacts& facts) {
  std::map<std::string, std::string> section;
  const auto take = [&] {
    if (section["dir"] != "input" || section["ranges"].empty()) return;
    std::vector<std::string> means, scales;
    const std::string& ranges = section["ranges"];
    for (size_t at = 0; at < ranges.size();) {
      const size_t end = std::min(ranges.find(';', at), ranges.size());
      const std::string part = ranges.substr(at, end - at);
      at = end + 1;
      const size_t comma = part.find(',');
      if (comma == std::string::npos) continue;
      const float low = std::strtof(part.c_str(), nullptr);
      const float high = std::strtof(part.c_str() + comma + 1, nullptr);
      if (!(high > low)) continue;
      const float scale = 255 / (high - low);
      means.push_back(std::to_string(-low * scale));
      scales.push_back(std::to_string(scale));
    }
    facts.set("mean_values", joined(means), source);
    facts.set("scale_values", joined(scales), source);
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(std::remove(line.begin(), line.end(), '\r'), line.end());
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      take();
      section.clear();
      continue;
    }
    const size_t equals = line.find('=');
    if (equals != std::string::npos) section[line.substr(0, equals)] = line.substr(equals + 1);
  }
  take();
}

// The files of a folder whose names end so; none where it cannot be read.
std::vector<fs::path> files_ending(const fs::path& folder, const fs::path& extension) {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(folder.string()))
    if (fs::path(name).extension() == extension) found.push_back(folder / name);
  return found;
}

// Whether the model is the only one in its folder, so that files without a model's name belong to it.
bool is_alone(const fs::path& model) {
  const fs::path folder = model.parent_path().empty() ? "." : model.parent_path();
  return files_ending(folder, model.extension()).size() <= 1;
}

using Reader = void (*)(const std::string& text, const std::string& source, BesideFacts& facts);

void read_file(const fs::path& path, Reader reader, BesideFacts& facts) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return;
  const std::string name = path.filename().string();
  try {
    reader(file_text(path.string()), name, facts);
  } catch (const Error& problem) {
    facts.warnings.push_back(path.string() + ": " + problem.what() + "; the file is ignored");
  }
}

}  // namespace

void BesideFacts::set(const std::string& key, const std::string& value, const std::string& source) {
  if (value.empty() || info.count(key) != 0) return;
  info[key] = value;
  sources[key] = source;
}

void BesideFacts::set_labels(std::vector<std::string> values, const std::string& source,
                             bool sure) {
  if (values.empty() || !labels.empty()) return;
  labels = std::move(values);
  labels_source = source;
  sure_labels = sure;
}

std::string file_text(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) throw Error{ErrorCode::not_found, error.message()};
  if (bytes > kLargestFile) throw Error{ErrorCode::bad_argument, "is larger than 16 MiB"};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error{ErrorCode::not_found, "cannot be opened"};
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  return text;
}

BesideFacts read_beside(const std::string& model_path) {
  BesideFacts facts;
  const fs::path model(model_path);
  if (model.empty()) return facts;
  const fs::path folder = model.parent_path();
  const std::string stem = model.stem().string();
  const bool alone = is_alone(model);
  // Files with the model's own name first; those with a general one belong to a model that is
  // alone.
  read_file(folder / (stem + ".modelinfo"), read_modelinfo, facts);
  read_file(folder / (model.filename().string() + ".modelinfo"), read_modelinfo, facts);
  if (alone) {
    read_file(folder / "metadata.yaml", read_ultralytics, facts);
    read_file(folder / "config.json", read_huggingface_config, facts);
    read_file(folder / "preprocessor_config.json", read_huggingface_picture, facts);
    read_file(folder / "infer_cfg.yml", read_paddle, facts);
    read_file(folder / "pipeline.json", read_mmdeploy, facts);
  }
  const auto label_map_of_model = [](const std::string& text, const std::string& source,
                                     BesideFacts& to) { read_label_map(text, source, true, to); };
  read_file(folder / (stem + ".pbtxt"), label_map_of_model, facts);
  if (alone)
    for (const char* name : {"label_map.pbtxt", "labelmap.pbtxt"})
      read_file(folder / name, label_map_of_model, facts);
  std::vector<fs::path> lists = {folder / (stem + ".labels"), folder / (stem + ".names"),
                                 folder / (stem + "_labels.txt"), folder / (stem + ".txt")};
  if (alone)
    for (const char* name : {"labels.txt", "classes.txt", "labelmap.txt", "coco.names"})
      lists.push_back(folder / name);
  for (const fs::path& path : lists)
    read_file(
        path,
        [](const std::string& text, const std::string& source, BesideFacts& to) {
          to.set_labels(labels_of_text(text, source), source, false);
        },
        facts);
  return facts;
}

std::string model_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  std::vector<fs::path> found = files_ending(path, ".xml");
  const std::vector<fs::path> onnx = files_ending(path, ".onnx");
  found.insert(found.end(), onnx.begin(), onnx.end());
  if (found.size() == 1) return found[0];
  if (found.empty())
    throw Error{ErrorCode::not_found, path + " is a folder without a model (.xml or .onnx)"};
  throw Error{ErrorCode::not_found, path + " is a folder with " + std::to_string(found.size()) +
                                        " models, among them " + found[0].filename().string() +
                                        " and " + found[1].filename().string() +
                                        "; name one of them"};
}

}  // namespace clinfer
