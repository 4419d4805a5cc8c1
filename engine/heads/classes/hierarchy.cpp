// Reads classes in a tree.
#include "engine/heads/classes/hierarchy.h"

#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/files/json_nodes.h"
#include "engine/heads/files/json_text.h"

namespace clinfer {
namespace {

constexpr int64_t kMostLogits = 100000;

[[noreturn]] void refuse(const std::string& what, SourcePlace place = SourcePlace::here()) {
  throw Error{ErrorCode::bad_argument, "model_info hierarchical_config: " + what, place};
}

int64_t number(JsonNode* node) {
  const std::optional<int64_t> value = integer_of(node);
  if (!value) refuse("a number is missing");
  return std::clamp<int64_t>(*value, -1, kMostLogits);
}

std::vector<std::string> strings(JsonNode* node) {
  std::vector<std::string> all;
  for (JsonNode* element : elements_of(node)) {
    std::optional<std::string> label = string_of(element);
    if (!label) refuse("a label is no text");
    all.push_back(std::move(*label));
  }
  return all;
}

std::vector<std::vector<std::string>> lists(JsonNode* node) {
  std::vector<std::vector<std::string>> all;
  for (JsonNode* element : elements_of(node)) all.push_back(strings(element));
  return all;
}

ClassGroup group_of(const std::vector<std::string>& labels, size_t first, bool exclusive,
                    JsonNode* ids) {
  ClassGroup group{first, labels, {}, exclusive};
  for (const std::string& label : labels)
    group.ids.push_back(static_cast<int>(number(member(object_of(ids), label.c_str()))));
  return group;
}

// Applies softmax or sigmoid to a group's logits.
std::vector<float> shares_of(const ClassGroup& group, const std::vector<float>& logits) {
  std::vector<float> p(
      logits.begin() + static_cast<std::ptrdiff_t>(group.first),
      logits.begin() + static_cast<std::ptrdiff_t>(group.first + group.labels.size()));
  if (!group.exclusive) {
    for (float& v : p) v = sigmoid(v);
    return p;
  }
  const float top = *std::max_element(p.begin(), p.end());
  float sum = 0;
  for (float& v : p) sum += v = std::exp(v - top);
  for (float& v : p) v /= sum;
  return p;
}

}  // namespace

std::optional<ClassTree> class_tree(const ModelFacts& facts) {
  const std::string text = info(facts, "hierarchical_config");
  if (lower(info(facts, "hierarchical")) != "true" || text.empty()) return std::nullopt;
  const JsonRoot root = [&] {
    try {
      return parse_json(text);
    } catch (const Error& error) {
      refuse(std::string("is no JSON: ") + error.what(), error.place());
    }
  }();
  JsonNode* heads = member(object_of(root.get()), "cls_heads_info");
  const auto groups = lists(member(object_of(heads), "all_groups"));
  const auto exclusive = static_cast<size_t>(
      std::max<int64_t>(number(member(object_of(heads), "num_multiclass_heads")), 0));
  JsonNode* ids = member(object_of(heads), "label_to_idx");
  if (exclusive > groups.size()) refuse("it has fewer groups than heads");
  ClassTree tree;
  for (const std::vector<std::string>& labels : groups) {
    if (labels.empty()) refuse("a group has no labels");
    tree.groups.push_back(group_of(labels, tree.logits, tree.groups.size() < exclusive, ids));
    tree.logits += labels.size();
  }
  for (const auto& edge : lists(member(object_of(root.get()), "label_tree_edges")))
    if (edge.size() == 2) tree.parents.emplace_back(edge[0], edge[1]);
  if (tree.logits == 0) refuse("it has no groups");
  return tree;
}

void classify_tree(const ClassTree& tree, const std::string& attribute,
                   const std::vector<float>& logits, float threshold, Results& results) {
  std::vector<Classification> found;
  for (const ClassGroup& group : tree.groups) {
    const std::vector<float> p = shares_of(group, logits);
    const auto add = [&](size_t i) {
      found.push_back({attribute, group.ids[i], group.labels[i], p[i]});
    };
    if (group.exclusive)
      add(static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin()));
    else
      for (size_t i = 0; i < p.size(); ++i)
        if (p[i] >= threshold) add(i);
  }
  const auto parent_of = [&](const std::string& label) -> const std::string* {
    for (const auto& [child, parent] : tree.parents)
      if (child == label) return &parent;
    return nullptr;
  };
  // Removes classes that lack their parent, then those that lack the removed ones; each round
  // removes at least one.
  for (bool all_there = false; !all_there;) {
    const std::vector<Classification> before = found;
    all_there = std::erase_if(found, [&](const Classification& answer) {
                  const std::string* parent = parent_of(answer.label);
                  return parent != nullptr &&
                         std::none_of(before.begin(), before.end(),
                                      [&](const auto& other) { return other.label == *parent; });
                }) == 0;
  }
  for (Classification& answer : found) {
    if (const std::string* parent = parent_of(answer.label)) answer.attribute = *parent;
    results.classifications.push_back(std::move(answer));
  }
}

}  // namespace clinfer
