// Prints the operations that are there, from the registry, as the README lists them.
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/op.h"

int main() {
  std::map<std::string, std::vector<std::string>> where;
  for (const clinfer::OpDef& op : clinfer::op_registry()) {
    std::string versions;
    for (const int opset : op.opsets) versions += (versions.empty() ? "" : ",") + std::to_string(opset);
    const char* runs = !op.families.empty()   ? "device"
                       : !op.host_reason.empty() ? "host"
                       : op.view != nullptr      ? "view"
                                                 : "load";
    where[runs].push_back(op.type + "-" + versions);
  }
  const std::pair<const char*, const char*> rows[] = {
      {"device", "OpenCL kernels"},
      {"view", "no work: another view of the same memory"},
      {"load", "computed while the model is loaded"},
      {"host", "on the host"},
  };
  std::cout << "| where it runs | operations, with the opsets understood |\n| --- | --- |\n";
  for (const auto& [key, text] : rows) {
    auto found = where.find(key);
    if (found == where.end()) continue;
    std::sort(found->second.begin(), found->second.end());
    std::cout << "| " << text << " | ";
    for (size_t i = 0; i < found->second.size(); ++i)
      std::cout << (i != 0 ? ", " : "") << found->second[i];
    std::cout << " |\n";
  }
}
