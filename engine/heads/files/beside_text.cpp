// Reads files with sections beside a model: DeepStream's nvinfer configuration, which TAO writes
// beside its exports, and GStreamer's .modelinfo.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/heads/base/common.h"
#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/labels.h"
#include "engine/heads/files/yaml.h"
#include "kernels/base/numbers.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

using Section = std::map<std::string, std::string>;

// Parses [name] and key=value; comments begin with #.
std::vector<std::pair<std::string, Section>> sections_of(const std::string& text) {
  std::vector<std::pair<std::string, Section>> sections(1);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line(trimmed(std::string_view(text).substr(at, end - at)));
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      sections.push_back({line.substr(1, line.find(']') - 1), {}});
    } else if (const size_t equals = line.find('='); equals != std::string::npos) {
      sections.back().second[std::string(trimmed(line.substr(0, equals)))] =
          trimmed(line.substr(equals + 1));
    }
  }
  return sections;
}

// Returns the sections of DeepStream's YAML form.
std::vector<std::pair<std::string, Section>> sections_of(const YamlNode& root) {
  std::vector<std::pair<std::string, Section>> sections;
  for (const auto& [name, node] : root.members) {
    Section section;
    for (const auto& [key, value] : node.members) section[key] = value.text;
    sections.push_back({name, section});
  }
  return sections;
}

// Parses numbers separated by ';'.
std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    if (const std::string part(trimmed(text.substr(at, end - at))); !part.empty())
      numbers.push_back(number_at(part.c_str()));
    at = end + 1;
  }
  return numbers;
}

std::string value_of(const Section& section, const char* key) {
  const auto found = section.find(key);
  return found == section.end() ? std::string() : found->second;
}

// Returns whether the configuration belongs to another model, according to the files that it names.
bool is_of_another(const Section& property, const BesideContext& context) {
  for (const char* key : {"onnx-file", "model-file", "tlt-encoded-model", "uff-file"}) {
    const std::string named = value_of(property, key);
    if (named.empty()) continue;
    const std::filesystem::path file = std::filesystem::path(named).filename();
    return file.stem().string() != std::filesystem::path(context.model).stem().string();
  }
  return !context.alone;
}

void read_nvinfer_picture(const Section& property, const std::string& source, BesideFacts& facts) {
  const std::string factor_text = value_of(property, "net-scale-factor");
  const double factor = factor_text.empty() ? 1 : number_at(factor_text.c_str());
  std::vector<double> offsets = numbers_in(value_of(property, "offsets"));
  if (offsets.empty()) offsets = {0};
  if (factor > 0) {
    facts.set("mean_values", list_of(offsets), source);
    facts.set("scale_values", list_of({1 / factor}), source);
  }
  const std::string format = value_of(property, "model-color-format");
  if (format != "2") facts.set("color_space", format == "1" ? "BGR" : "RGB", source);
  PictureSteps steps;
  if (value_of(property, "maintain-aspect-ratio") == "1") {
    steps.fit(value_of(property, "symmetric-padding") == "1");
    steps.pad({0});
  } else {
    steps.squash(0, 0);
  }
  steps.state(source, facts);
  const std::vector<double> dims = numbers_in(value_of(property, "infer-dims"));  // C;H;W
  if (dims.size() == 3)
    facts.set("picture_size",
              std::to_string(std::lround(dims[2])) + "x" + std::to_string(std::lround(dims[1])),
              source);
}

}  // namespace

void read_named_labels(const std::string& named, const BesideContext& context, BesideFacts& facts) {
  if (named.empty()) return;
  const std::filesystem::path path(named), folder(context.folder);
  for (const auto& place : {folder / path, folder / path.filename()}) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(place, error)) continue;
    bool numbered = false;
    std::vector<std::string> names = read_labels(place.string(), &numbered);
    const std::string source = place.filename().string();
    if (numbered && facts.labels.empty() && !names.empty())
      facts.set("labels_numbered", "true", source);
    facts.set_labels(std::move(names), source, true);
    return;
  }
}

void read_nvinfer(const std::string& text, const std::string& source, const BesideContext& context,
                  BesideFacts& facts) {
  const std::string ending = lower(std::filesystem::path(source).extension().string());
  const bool yaml = ending == ".yaml" || ending == ".yml";
  // Many files have such a name; this format is recognised by a key that no other format has.
  if (text.find("net-scale-factor") == std::string::npos &&
      text.find("model-color-format") == std::string::npos &&
      text.find("labelfile-path") == std::string::npos)
    return;
  const auto sections = yaml ? sections_of(parse_yaml(text)) : sections_of(text);
  for (const auto& [name, section] : sections) {
    if (name != "property") continue;
    if (is_of_another(section, context)) return;
    read_nvinfer_picture(section, source, facts);
    if (value_of(section, "network-type") == "1") facts.set("task", "classification", source);
    read_named_labels(value_of(section, "labelfile-path"), context, facts);
  }
  for (const auto& [name, section] : sections) {
    if (name != "class-attrs-all" && name != "property") continue;
    for (const auto& [key, fact] : {std::pair{"pre-cluster-threshold", "confidence_threshold"},
                                    {"classifier-threshold", "confidence_threshold"},
                                    {"nms-iou-threshold", "iou_threshold"}})
      facts.set(fact, value_of(section, key), source);
  }
}

// Reads a .modelinfo, where `ranges` state what the input expects.
void read_modelinfo(const std::string& text, const std::string& source, const BesideContext&,
                    BesideFacts& facts) {
  for (const auto& [name, section] : sections_of(text)) {
    if (value_of(section, "dir") != "input") continue;
    std::vector<double> means, scales;
    const std::string ranges = value_of(section, "ranges");
    for (size_t at = 0; at < ranges.size();) {
      const size_t end = std::min(ranges.find(';', at), ranges.size());
      const std::string part = ranges.substr(at, end - at);
      at = end + 1;
      const size_t comma = part.find(',');
      if (comma == std::string::npos) continue;
      const double low = number_at(part.c_str());
      const double high = number_at(part.c_str() + comma + 1);
      if (!(high > low)) continue;
      const double scale = 255 / (high - low);
      means.push_back(-low * scale);
      scales.push_back(scale);
    }
    facts.set("mean_values", list_of(means), source);
    facts.set("scale_values", list_of(scales), source);
  }
}

}  // namespace clinfer
