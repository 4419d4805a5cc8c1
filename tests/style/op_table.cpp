// Prints the operations that are there, from the registry, as docs/operations.md lists them; with the word
// "host", those that run on the host, as kernels/README.md lists them. Fails where two entries
// claim the same operation: the second one would never be found.
#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/op.h"

namespace {

using Groups = std::map<std::string, std::vector<std::string>>;

std::string list_of(std::vector<std::string> ops) {
  std::sort(ops.begin(), ops.end());
  std::string text;
  for (const std::string& op : ops) text += (text.empty() ? "" : ", ") + op;
  return text;
}

void print_host_table(const Groups& always, const Groups& sometimes) {
  std::cout << "| operations | on the host | because |\n| --- | --- | --- |\n";
  for (const auto& [groups, when] :
       {std::pair{&always, "always"}, std::pair{&sometimes, "where every family refuses"}})
    for (const auto& [reason, ops] : *groups)
      std::cout << "| " << list_of(ops) << " | " << when << " | " << reason << " |\n";
}

}  // namespace

int main(int argc, char** argv) {
  Groups always, sometimes;
  std::map<std::string, std::vector<std::string>> where;
  std::set<std::pair<std::string, int>> seen;
  int doubles = 0;
  for (const clinfer::OpDef& op : clinfer::op_registry()) {
    for (const int opset : op.opsets)
      if (!seen.emplace(op.type, opset).second && ++doubles == 1)
        std::cerr << "the registry has two entries for " << op.type << "-" << opset << "\n";
    if (op.type == "Reorder" || op.type == "Quantize" || op.type == "Dequantize" ||
        op.type == "ToFloat8" || op.type == "CompressedMatMul" || op.type == "SoftMaxMean" ||
        op.type == "FusedConvolution" || op.type == "Attention" ||
        op.type == "DeformableAttention" || op.type == "Subgraph" || op.type == "DeviceLoop")
      continue;  // the engine's own, in no model
    const int first = *std::min_element(op.opsets.begin(), op.opsets.end());
    if (!op.host_reason.empty())
      (op.families.empty() ? always : sometimes)[op.host_reason].push_back(op.type);
    const std::string runs = !op.families.empty()      ? "device"
                             : !op.host_reason.empty() ? "host: " + op.host_reason
                             : op.expand               ? "expanded"
                                                       : "view";
    where[runs].push_back(op.type + (first > 1 ? " (" + std::to_string(first) + ")" : ""));
  }
  if (argc > 1 && std::string(argv[1]) == "host") {
    print_host_table(always, sometimes);
    return doubles == 0 ? 0 : 1;
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
    std::cout << "| " << text << " | " << list_of(found->second) << " |\n";
  }
  return doubles == 0 ? 0 : 1;
}
