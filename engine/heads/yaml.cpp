// Reads the part of YAML that exporters write.
#include "engine/heads/yaml.h"

#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr int kDeepest = 32;

struct Line {
  size_t indent = 0, number = 0;
  std::string text;  // without indent, comment and blanks at the end
};

[[noreturn]] void refuse(size_t line, const std::string& why,
                         SourcePlace place = SourcePlace::here()) {
  throw Error{ErrorCode::bad_argument, "line " + std::to_string(line) + " " + why, place};
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The end of the quoted text that starts at `at`; npos where it has none.
size_t quote_end(const std::string& text, size_t at) {
  const char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '\'' && i + 1 < text.size() && text[i + 1] == '\'')
        ++i;
      else
        return i;
    }
  }
  return std::string::npos;
}

std::string without_comment(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t';
    if (text[i] == '#' && starts) return text.substr(0, i);
    const bool opens = starts || text[i - 1] == '[' || text[i - 1] == '{' || text[i - 1] == ',';
    if ((text[i] == '"' || text[i] == '\'') && opens) {
      const size_t end = quote_end(text, i);
      if (end == std::string::npos) return text;
      i = end;
    }
  }
  return text;
}

std::string unquoted(const std::string& text) {
  if (text.size() < 2 || (text[0] != '"' && text[0] != '\'')) return text;
  std::string plain;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[0] == '\'' && text[i] == '\'') ++i;
    if (text[0] == '"' && text[i] == '\\' && i + 2 < text.size()) {
      ++i;
      plain += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
      continue;
    }
    plain += text[i];
  }
  return plain;
}

// Values in one line: [a, b], {a: b}, scalars.
class Flow {
 public:
  Flow(const std::string& text, size_t line) : text_(text), line_(line) {}

  YamlNode whole() {
    YamlNode node = value(0, "");
    blanks();
    if (at_ != text_.size()) refuse(line_, "goes on where its value has ended");
    return node;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool takes(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string scalar(const std::string& stops) {
    blanks();
    const size_t from = at_;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const size_t end = quote_end(text_, at_);
      if (end == std::string::npos) refuse(line_, "has a quote without an end");
      at_ = end + 1;
      return unquoted(text_.substr(from, at_ - from));
    }
    while (at_ < text_.size() && stops.find(text_[at_]) == std::string::npos) ++at_;
    return trimmed(text_.substr(from, at_ - from));
  }
  YamlNode value(int depth, const std::string& stops) {
    if (depth > kDeepest) refuse(line_, "is nested too deep");
    YamlNode node;
    if (takes('[')) {
      node.kind = YamlNode::Kind::sequence;
      while (!takes(']')) {
        node.items.push_back(value(depth + 1, ",]"));
        if (!takes(',') && (blanks(), at_ >= text_.size() || text_[at_] != ']'))
          refuse(line_, "has a list without an end");
      }
    } else if (takes('{')) {
      node.kind = YamlNode::Kind::mapping;
      while (!takes('}')) {
        const std::string key = scalar(":,}");
        if (!takes(':')) refuse(line_, "has a key without a value");
        node.members.emplace_back(key, value(depth + 1, ",}"));
        if (!takes(',') && (blanks(), at_ >= text_.size() || text_[at_] != '}'))
          refuse(line_, "has a mapping without an end");
      }
    } else {
      node.text = scalar(stops);
    }
    return node;
  }

  const std::string& text_;
  size_t line_, at_ = 0;
};

class Blocks {
 public:
  explicit Blocks(std::vector<Line> lines) : lines_(std::move(lines)) {}

  YamlNode whole() {
    if (lines_.empty()) return {};
    YamlNode node = block(lines_[0].indent, 0);
    if (next_ != lines_.size()) refuse(lines_[next_].number, "is indented unlike the lines before");
    return node;
  }

 private:
  static bool is_item(const std::string& text) { return text == "-" || text.rfind("- ", 0) == 0; }

  // Where the key of "key: value" ends, or npos.
  static size_t key_end(const std::string& text) {
    size_t i = 0;
    if (text[0] == '"' || text[0] == '\'') {
      i = quote_end(text, 0);
      if (i == std::string::npos) return i;
      ++i;
    } else if (text[0] == '[' || text[0] == '{') {
      return std::string::npos;
    }
    for (; i < text.size(); ++i)
      if (text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) return i;
    return std::string::npos;
  }

  YamlNode inline_value(const std::string& text, size_t number) {
    if (!text.empty() && std::string("&*!|>%@`").find(text[0]) != std::string::npos)
      refuse(number, "has a form of YAML that is not read here: " + text);
    return Flow(text, number).whole();
  }

  // A value with the lines below that are indented further: long texts and lists are broken there.
  std::string continued(std::string text, size_t indent) {
    while (next_ < lines_.size() && lines_[next_].indent > indent)
      text += ' ' + lines_[next_++].text;
    return text;
  }

  YamlNode block(size_t indent, int depth) {
    if (depth > kDeepest) refuse(lines_[next_].number, "is nested too deep");
    return is_item(lines_[next_].text) ? sequence(indent, depth) : mapping(indent, depth);
  }

  YamlNode sequence(size_t indent, int depth) {
    YamlNode node;
    node.kind = YamlNode::Kind::sequence;
    while (next_ < lines_.size() && lines_[next_].indent == indent && is_item(lines_[next_].text)) {
      Line& line = lines_[next_];
      const size_t from = line.text.find_first_not_of(" ", 1);
      if (from == std::string::npos) {  // the item is the block below
        ++next_;
        node.items.push_back(below(indent + 1, depth));
        continue;
      }
      const std::string rest = line.text.substr(from);
      if (is_item(rest) || key_end(rest) != std::string::npos) {
        line.indent += from;  // the item is a block that starts in this line
        line.text = rest;
        node.items.push_back(block(line.indent, depth + 1));
      } else {
        const size_t number = line.number;
        ++next_;
        node.items.push_back(inline_value(continued(rest, indent), number));
      }
    }
    return node;
  }

  YamlNode mapping(size_t indent, int depth) {
    YamlNode node;
    node.kind = YamlNode::Kind::mapping;
    while (next_ < lines_.size() && lines_[next_].indent == indent &&
           !is_item(lines_[next_].text)) {
      const Line& line = lines_[next_];
      const size_t end = key_end(line.text);
      if (end == std::string::npos) refuse(line.number, "is no `key: value`: " + line.text);
      const std::string key = unquoted(trimmed(line.text.substr(0, end)));
      const std::string rest = trimmed(line.text.substr(end + 1));
      const size_t number = line.number;
      ++next_;
      if (!rest.empty()) {
        node.members.emplace_back(key, inline_value(continued(rest, indent), number));
      } else if (next_ < lines_.size() && lines_[next_].indent == indent &&
                 is_item(lines_[next_].text)) {
        node.members.emplace_back(key, sequence(indent, depth + 1));
      } else {
        node.members.emplace_back(key, below(indent + 1, depth));
      }
    }
    return node;
  }

  // The block of lines indented by `least` or more; an empty scalar where there is none.
  YamlNode below(size_t least, int depth) {
    if (next_ >= lines_.size() || lines_[next_].indent < least) return {};
    return block(lines_[next_].indent, depth + 1);
  }

  std::vector<Line> lines_;
  size_t next_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  for (const auto& [name, node] : members)
    if (name == key) return &node;
  return nullptr;
}

std::string YamlNode::text_of(const std::string& key) const {
  const YamlNode* node = find(key);
  return node != nullptr && node->kind == Kind::scalar ? node->text : std::string();
}

YamlNode parse_yaml(const std::string& text) {
  std::vector<Line> lines;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = without_comment(text.substr(at, end - at));
    at = end + 1;
    ++number;
    const size_t indent = line.find_first_not_of(" ");
    const std::string content = trimmed(line);
    if (content.empty()) continue;
    if (line[indent] == '\t') refuse(number, "is indented by a tab");
    if (content == "---" && lines.empty()) continue;
    if (content == "---" || content == "...") refuse(number, "starts another document");
    lines.push_back({indent, number, content});
  }
  return Blocks(std::move(lines)).whole();
}

}  // namespace clinfer
