// Classes in a tree, as OpenVINO Training Extensions' hierarchical classifiers have them: one
// vector of logits, cut into groups of classes that exclude each other and into classes that do
// not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/heads/base/decoder.h"

namespace clinfer {

struct ClassGroup {
  size_t first = 0;  // index of the first logit
  std::vector<std::string> labels;
  std::vector<int> ids;   // indices of the labels
  bool exclusive = true;  // true: softmax and the best one; false: a sigmoid for each
};

struct ClassTree {
  std::vector<ClassGroup> groups;
  std::vector<std::pair<std::string, std::string>> parents;  // pairs of child and parent
  size_t logits = 0;                                         // number of logits of all groups
};

// Reads model_info's hierarchical_config. Returns nullopt if the model has none. Throws
// Error{bad_argument} for an invalid one.
std::optional<ClassTree> class_tree(const ModelFacts& facts);

// Adds the answers of the groups in the model's order, without classes whose parent is not an
// answer. `attribute`: for classes without a parent; others have their parent's label.
void classify_tree(const ClassTree& tree, const std::string& attribute,
                   const std::vector<float>& logits, float threshold, Results& results);

}  // namespace clinfer
