// Classes in a tree, as OpenVINO Training Extensions' hierarchical classifiers have them: one vector of
// logits, cut into groups of classes that exclude each other and into classes that do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/heads/decoder.h"

namespace clinfer {

struct ClassGroup {
  size_t first = 0;  // logit
  std::vector<std::string> labels;
  std::vector<int> ids;   // of the labels
  bool exclusive = true;  // softmax and the best one; else a sigmoid of each
};

struct ClassTree {
  std::vector<ClassGroup> groups;
  std::vector<std::pair<std::string, std::string>> parents;  // child, parent
  size_t logits = 0;                                         // number of logits in all groups
};

// model_info's hierarchical_config. nullopt where the model has none. Throws Error{bad_argument} on
// one that cannot be.
std::optional<ClassTree> class_tree(const ModelFacts& facts);

// The answers of the groups, best groups first as the model lists them; a class whose parent is not
// an answer is left out. attribute: of the classes without a parent; others have their parent's
// label.
void classify_tree(const ClassTree& tree, const std::string& attribute,
                   const std::vector<float>& logits, float threshold, Results& results);

}  // namespace clinfer
