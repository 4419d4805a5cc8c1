// The families that take an operation, and the reasons of the others.
#pragma once

#include <set>
#include <string>

#include "kernels/kernel.h"

namespace clinfer::test {

// The reasons for which the families of the operation reject it; "" if one of them takes it.
inline std::set<std::string> refusals(const OpDesc& desc, const DeviceTraits& traits) {
  std::set<std::string> reasons;
  for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
    reasons.insert(family->reject(desc, traits));
  return reasons;
}

}  // namespace clinfer::test
