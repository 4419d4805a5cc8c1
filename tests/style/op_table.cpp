// Prints the operations that are there, from the registry, as the README lists them. Fails where
// two entries claim the same operation: the second one would never be found.
#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/op.h"

int main() {
  std::map<std::string, std::vector<std::string>> where;
  std::set<std::pair<std::string, int>> seen;
  int doubles = 0;
  for (const clinfer::OpDef& op : clinfer::op_registry()) {
    for (const int opset : op.opsets)
      if (!seen.emplace(op.type, opset).second && ++doubles == 1)
        std::cerr << "the registry has two entries for " << op.type << "-" << opset << "\n";
    if (op.type == "Reorder" || op.type == "Quantize" || op.type == "Dequantize" ||
        op.type == "Subgraph")
      continue;  // the engine's own, in no model
    const int first = *std::min_element(op.opsets.begin(), op.opsets.end());
    const std::string runs = !op.families.empty()      ? "device"
                             : !op.host_reason.empty() ? "host: " + op.host_reason
                             : op.expand               ? "expanded"
                                                       : "view";
    where[runs].push_back(op.type + (first > 1 ? " (" + std::to_string(first) + ")" : ""));
  }
  std::vector<std::pair<std::string, std::string>> rows = {
      {"device", "OpenCL kernels"},
      {"expanded", "the kernels of other operations, which they are combinations of"},
      {"view", "no kernel: a view of the same memory, or results written in place"},
  };
  for (const auto& [key, ops] : where)
    if (key.starts_with("host")) rows.emplace_back(key, "the " + key);
  std::cout << "| computed by | operations; in brackets the first opset where it is not 1 |\n| --- "
               "| --- |\n";
  for (const auto& [key, text] : rows) {
    auto found = where.find(key);
    if (found == where.end()) continue;
    std::sort(found->second.begin(), found->second.end());
    std::cout << "| " << text << " | ";
    for (size_t i = 0; i < found->second.size(); ++i)
      std::cout << (i != 0 ? ", " : "") << found->second[i];
    std::cout << " |\n";
  }
  return doubles == 0 ? 0 : 1;
}
