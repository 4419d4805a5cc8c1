// Reads YAML as exporters write it, by libyaml-cpp: mappings, sequences and scalars of the first
// document. Refuses anchors and aliases.
#pragma once

#include <string>
#include <vector>

namespace clinfer {

// A scalar, a sequence or a mapping. Scalars are texts; null is an empty one.
struct YamlNode {
  struct Member;
  enum class Kind { scalar, sequence, mapping } kind = Kind::scalar;
  std::string text;
  std::vector<YamlNode> items;
  std::vector<Member> members;  // in the order of the file

  // Null: the node is no mapping, or has no such key.
  const YamlNode* find(const std::string& key) const;
  std::string text_of(const std::string& key) const;  // "" if there is no such scalar
};

struct YamlNode::Member {
  std::string key;
  YamlNode value;
};

// Throws Error{bad_argument}, which names the line, for text that is no YAML, too deep or too
// large.
YamlNode parse_yaml(const std::string& text);

}  // namespace clinfer
