// Reads YAML as exporters write it, by libyaml-cpp: mappings, sequences and scalars of the first
// document. Anchors and aliases are refused.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace clinfer {

// A scalar, a sequence or a mapping; scalars are texts, null is an empty one.
struct YamlNode {
  enum class Kind { scalar, sequence, mapping } kind = Kind::scalar;
  std::string text;
  std::vector<YamlNode> items;
  std::vector<std::pair<std::string, YamlNode>> members;  // in the order of the file

  const YamlNode* find(const std::string& key) const;  // null: no mapping, or no such key
  std::string text_of(const std::string& key) const;   // "" where there is no such scalar
};

// Throws Error{bad_argument} that names the line: of what is no YAML, too deep or too large.
YamlNode parse_yaml(const std::string& text);

}  // namespace clinfer
