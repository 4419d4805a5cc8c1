// Parses YAML by the events of libyaml-cpp, so that everything that is built has limits.
#include "engine/heads/files/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "engine/heads/files/text_lines.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr size_t kDeepest = 64, kMostNodes = 1 << 20;

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why,
                         SourcePlace place = SourcePlace::here()) {
  throw Error{
      ErrorCode::bad_argument,
      (mark.is_null() ? std::string() : "line " + std::to_string(mark.line + 1) + " ") + why,
      place};
}

class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(YamlNode& root) : root_(root) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, anchor, {}); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, "has an alias"); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    if (value.find('\0') != value.npos) refuse(mark, "has a zero character");
    if (expects_key()) {
      if (anchor != 0) refuse(mark, "has an anchor");
      open_.back().key = value;
      open_.back().has_key = true;
      return;
    }
    YamlNode node;
    node.text = value;
    add(mark, anchor, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::sequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::mapping);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A sequence or mapping that has not ended. Until then its node stays in place, because siblings
  // come later.
  struct Level {
    YamlNode* node = nullptr;
    std::string key;
    bool has_key = false;
  };

  bool expects_key() const {
    return !open_.empty() && open_.back().node->kind == YamlNode::Kind::mapping &&
           !open_.back().has_key;
  }

  YamlNode* add(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode node) {
    if (anchor != 0) refuse(mark, "has an anchor");
    if (++nodes_ > kMostNodes) refuse(mark, "has too many values");
    if (open_.empty()) {
      root_ = std::move(node);
      return &root_;
    }
    Level& level = open_.back();
    if (level.node->kind == YamlNode::Kind::sequence)
      return &level.node->items.emplace_back(std::move(node));
    if (!level.has_key) {  // the key is null or a mapping itself
      level.has_key = true;
      level.key.clear();
      if (node.kind == YamlNode::Kind::scalar) return nullptr;
      refuse(mark, "has a key that is no scalar");
    }
    level.has_key = false;
    return &level.node->members
                .emplace_back(YamlNode::Member{std::move(level.key), std::move(node)})
                .value;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    if (open_.size() >= kDeepest) refuse(mark, "is nested too deeply");
    YamlNode node;
    node.kind = kind;
    open_.push_back({add(mark, anchor, std::move(node)), {}, false});
  }

  YamlNode& root_;
  std::vector<Level> open_;
  size_t nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

std::string YamlNode::text_of(const std::string& key) const {
  const YamlNode* node = find(key);
  return node != nullptr && node->kind == Kind::scalar ? node->text : std::string();
}

YamlNode parse_yaml(const std::string& text) {
  if (text.size() > kLargestFile) throw Error{ErrorCode::bad_argument, "is larger than 16 MiB"};
  if (const size_t line = line_that_is_no_text(text); line != 0)
    throw Error{ErrorCode::bad_argument, "line " + std::to_string(line) + " is not UTF-8 text"};
  YamlNode root;
  Builder builder(root);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& problem) {
    refuse(problem.mark, problem.msg);
  }
  return root;
}

}  // namespace clinfer
