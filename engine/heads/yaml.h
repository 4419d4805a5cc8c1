// Reads the part of YAML that exporters write: block and flow mappings and sequences of plain and
// quoted scalars. Anchors, tags, multi-line scalars and several documents are refused.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace clinfer {

// A scalar, a sequence or a mapping; scalars are texts.
struct YamlNode {
  enum class Kind { scalar, sequence, mapping } kind = Kind::scalar;
  std::string text;
  std::vector<YamlNode> items;
  std::vector<std::pair<std::string, YamlNode>> members;  // in the order of the file

  const YamlNode* find(const std::string& key) const;  // null: no mapping, or no such key
  std::string text_of(const std::string& key) const;   // "" where there is no such scalar
};

// Throws Error{bad_argument} that names the line.
YamlNode parse_yaml(const std::string& text);

}  // namespace clinfer
