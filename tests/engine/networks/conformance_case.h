// One case of the op conformance set: its files, how its outputs are compared, and the comparison
// itself.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/tensor.h"

namespace clinfer {

struct ConformanceCase {
  std::filesystem::path folder;
  std::string op, name;
  double atol = 0, rtol = 0;
  std::string kind;                    // "tensor", "detection", "nms", "rows", "rois", "topk"
  std::map<std::string, double> rule;  // numbers of "compare": "score_atol", "axis", ...
  std::string topk_sort;               // of "topk"
  bool sorted_nms = false;             // attribute sort_result_descending
  std::vector<Tensor> inputs, wanted;

  static ConformanceCase read(const std::filesystem::path& folder);
  // For a device that computes in f16: 1 % of each value plus 1 % of the largest.
  void loosen_for_half();
  // The reason why `got` is not what the case wants, or "".
  std::string compare(const std::vector<Tensor>& got) const;

  double rule_value(const std::string& key) const { return rule.at(key); }
};

// Folders of all cases below `set` (set/<op>/<case>), by op, sorted.
std::map<std::string, std::vector<std::filesystem::path>> find_cases(
    const std::filesystem::path& set);

}  // namespace clinfer
