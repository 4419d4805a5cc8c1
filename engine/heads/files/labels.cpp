// Reads names of classes from a property, a file, or the model.
#include "engine/heads/files/labels.h"

#include <json-glib/json-glib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "engine/heads/base/common.h"
#include "engine/heads/files/json_nodes.h"
#include "engine/heads/files/json_text.h"
#include "engine/heads/files/text_lines.h"
#include "engine/heads/files/yaml.h"
#include "kernels/base/error.h"
#include "kernels/base/system/files.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

// Members that may hold lists of names.
constexpr const char* kKeys[] = {"names",       "labels",   "label_list",  "classes",
                                 "class_names", "id2label", "label_names", "categories",
                                 "label_map",   "label2id", "characters",  "charset"};

constexpr size_t kMostLabels = 1000000;

std::optional<size_t> label_index(const std::string& text) {
  size_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || value > kMostLabels)
    return std::nullopt;
  return value;
}

// Adds the name if `number` is a number, and returns whether it is.
bool add_numbered(const std::string& number, const std::string& name,
                  std::vector<std::string>& labels) {
  const auto index = label_index(number);
  if (!index) return false;
  if (labels.size() <= *index) labels.resize(*index + 1);
  labels[*index] = name;
  return true;
}

std::vector<std::string> labels_in_yaml(const YamlNode& root) {
  for (const char* key : kKeys)
    if (const YamlNode* names = root.find(key))
      if (auto labels = labels_of_yaml(*names); !labels.empty()) return labels;
  return labels_of_yaml(root);
}

// Returns whether the text ends as a list or map in brackets does.
bool closes(const std::string& text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  return last != std::string::npos && (text[last] == '}' || text[last] == ']') && last > 2;
}

// Recognises item { id: 1 name: 'person' display_name: "Person" } ...
bool is_label_map(const std::string& text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  if (at == std::string::npos || text.compare(at, 4, "item") != 0) return false;
  const size_t next = text.find_first_not_of(" \t\r\n:", at + 4);
  return next != std::string::npos && text[next] == '{';
}

std::vector<std::string> labels_of_label_map(const std::string& text) {
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
    std::string name = value_of("display_name");
    if (name.empty()) name = value_of("name");
    if (!name.empty()) add_numbered(value_of("id"), name, labels);
    at = next;
  }
  return labels;
}

// Splits "0  person", "1: car", "2,bus" into number and name; returns nullopt for other lines.
std::optional<std::pair<size_t, std::string>> numbered(const std::string& line) {
  const size_t digits = line.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string::npos) return std::nullopt;
  size_t at = line.find_first_not_of(" \t", digits);
  if (at == std::string::npos) return std::nullopt;
  if (line[at] == ':' || line[at] == ',' || line[at] == '=')
    at = line.find_first_not_of(" \t", at + 1);
  else if (at == digits)
    return std::nullopt;
  const auto number = label_index(line.substr(0, digits));
  if (!number || at == std::string::npos) return std::nullopt;
  return std::pair{*number, line.substr(at)};
}

// Returns the names of lines if all of them begin with different numbers; else none.
std::vector<std::string> labels_of_numbered(const std::vector<std::string>& lines) {
  std::vector<std::string> labels;
  std::set<size_t> numbers;
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    const auto found = numbered(line);
    if (!found || !numbers.insert(found->first).second) return {};
    add_numbered(std::to_string(found->first), found->second, labels);
  }
  // Names may begin with numbers ("2 wheels"), so a list must start at 0 or 1.
  if (numbers.empty() || *numbers.begin() > 1) return {};
  return labels;
}

// Returns whether the first of two lines of a table names its columns: "id,name".
bool has_columns_named(const std::string& first, const std::string& second) {
  const std::string name = lower(first.substr(0, first.find(',')));
  return first.find(',') != std::string::npos && (name == "id" || name == "index") &&
         numbered(second);
}

std::vector<std::string> labels_of_lines(const std::string& text, bool& numbered) {
  std::vector<std::string> labels;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    labels.emplace_back(line == " " ? line : trimmed(line));
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.size() > 2 && has_columns_named(labels[0], labels[1])) labels.erase(labels.begin());
  if (auto names = labels_of_numbered(labels); !names.empty()) {
    numbered = true;
    return names;
  }
  if (labels.size() == 1 && labels[0].find(';') != std::string::npos) {
    std::vector<std::string> names;
    for (size_t at = 0; at < labels[0].size();) {
      const size_t end = std::min(labels[0].find(';', at), labels[0].size());
      names.emplace_back(trimmed(labels[0].substr(at, end - at)));
      at = end + 1;
    }
    return names;
  }
  return labels;
}

void check_text(const std::string& text, const std::string& file) {
  if (static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) > kMostLabels)
    throw Error{ErrorCode::bad_argument,
                file + " has more than " + std::to_string(kMostLabels) + " lines"};
  if (const size_t line = line_that_is_no_text(text); line != 0)
    throw Error{ErrorCode::bad_argument,
                file + " line " + std::to_string(line) + " is not UTF-8 text"};
}

}  // namespace

std::vector<std::string> parse_labels(const std::string& text) {
  std::string list(trimmed(text));
  if (list.size() >= 2 && list.front() == '<' && list.back() == '>')
    list = list.substr(1, list.size() - 2);
  std::vector<std::string> labels;
  if (trimmed(list).empty()) return labels;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    labels.emplace_back(trimmed(list.substr(at, end - at)));
    at = end + 1;
  }
  return labels;
}

std::vector<std::string> parse_model_labels(const std::string& text) {
  std::vector<std::string> labels;
  size_t at = text.find_first_not_of(" \t\r\n");
  while (at != std::string::npos) {
    const size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    labels.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(" \t\r\n", end);
  }
  return labels;
}

bool is_blank_name(const std::string& label) {
  const std::string text = lower(label);
  return text == "blank" || text == "<blank>" || text == "[blank]" || text == "<ctc>" ||
         text == "<blk>";
}

std::vector<std::string> labels_of_yaml(const YamlNode& names) {
  std::vector<std::string> labels;
  if (names.kind == YamlNode::Kind::sequence) {
    for (const YamlNode& item : names.items)
      labels.push_back(item.kind == YamlNode::Kind::mapping ? item.text_of("name") : item.text);
    return labels;
  }
  for (const auto& [key, value] : names.members)
    if (!add_numbered(key, value.text, labels) && !add_numbered(value.text, key, labels)) return {};
  return labels;
}

std::vector<std::string> labels_by_number(JsonNode* object) {
  std::vector<std::string> labels;
  bool all = true;
  each_member(object_of(object), [&](const std::string& key, JsonNode* value) {
    const std::vector<std::string> texts = texts_of(value);  // ["n01440764", "tench"]
    const std::string name = texts.empty() ? "" : texts.back();
    all &= add_numbered(key, name, labels) || add_numbered(name, key, labels);
  });
  return all ? labels : std::vector<std::string>();
}

std::vector<std::string> labels_of_json(JsonNode* names) {
  std::vector<std::string> labels;
  if (JsonArray* array = array_of(names)) {
    for (guint i = 0; i < json_array_get_length(array); ++i) {
      JsonNode* const item = json_array_get_element(array, i);
      JsonObject* const object = object_of(item);
      std::string name = text_of(item);
      for (const char* key : {"name", "label", "display_name", "class"})
        if (name.empty()) name = text_in(object, key);
      std::string number = text_in(object, "id");
      if (number.empty()) number = text_in(object, "index");
      if (number.empty() || !add_numbered(number, name, labels)) labels.push_back(name);
    }
    return labels;
  }
  JsonObject* const object = object_of(names);
  for (const char* key : kKeys)
    if (JsonNode* inner = member(object, key))
      if (labels = labels_of_json(inner); !labels.empty()) return labels;
  return labels_by_number(names);
}

std::vector<std::string> labels_of_text(const std::string& text, const std::string& file,
                                        bool* numbered) {
  bool ignored = false;
  bool& has_numbers = numbered != nullptr ? *numbered : ignored;
  check_text(text, file);
  const std::string ending = lower(std::filesystem::path(file).extension().string());
  const size_t first = text.find_first_not_of(" \t\r\n");
  const char opens = first == std::string::npos ? '\0' : text[first];
  try {
    if (ending == ".json") {
      const JsonRoot root = parse_json(text);
      return labels_of_json(root.get());
    }
    // Python prints {0: 'person'}, which is YAML.
    if (ending == ".yaml" || ending == ".yml" || ((opens == '{' || opens == '[') && closes(text)))
      return labels_in_yaml(parse_yaml(text));
    if (ending == ".pbtxt" || is_label_map(text)) {
      has_numbers = true;
      return labels_of_label_map(text);
    }
  } catch (const Error& problem) {
    throw Error{ErrorCode::bad_argument, file + ": " + problem.what(), problem.place()};
  }
  return labels_of_lines(text, has_numbers);
}

std::vector<std::string> read_labels(const std::string& path, bool* numbered) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0)
    throw Error{ErrorCode::not_found, "labels-file " + path + ": " + system_reason(errno)};
  if (!S_ISREG(status.st_mode))
    throw Error{ErrorCode::not_found, "labels-file " + path + " is not a file"};
  if (static_cast<uintmax_t>(status.st_size) > kLargestFile)
    throw Error{ErrorCode::bad_argument, "labels-file " + path + " is larger than 16 MiB"};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error{ErrorCode::not_found, "labels-file " + path + ": " + system_reason(errno)};
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  std::vector<std::string> labels = labels_of_text(text, "labels-file " + path, numbered);
  if (labels.empty()) throw Error{ErrorCode::bad_argument, "labels-file " + path + " has no names"};
  return labels;
}

}  // namespace clinfer
