// What the kernels share that sort boxes by score and suppress those that overlap better ones
// (common/boxes.cl, common/suppress.cl). A work-group has a list of boxes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

// When such an operation runs on the host (OpDef::host_reason).
inline constexpr const char* kListsOnHost =
    "CPU devices: a list is a serial chain, for which work-groups are no help there";

// Parts of the memory that the launches of an operation share, in units of 8 bytes.
class ListMemory {
 public:
  // Where a part of `bytes` starts, for elements of 16 bytes and less.
  int64_t add(int64_t bytes);
  size_t bytes() const { return static_cast<size_t>(units_) * kUnit; }

 private:
  static constexpr int64_t kUnit = 8;
  int64_t units_ = 0;
};

// Keys that there has to be room for to sort `count`.
int64_t list_room(int64_t count);

// Why the device does not do it, or "": the first `inputs` inputs hold the boxes and scores,
// `boxes` of them are looked at, and outputs are dense rows. Memory as the operation plans it.
std::string reject_lists(const OpDesc& desc, const DeviceTraits& traits, size_t inputs,
                         int64_t boxes, const ListMemory& memory);

std::vector<TuningPoint> list_space(const OpDesc& desc, const DeviceTraits& traits);
TuningPoint list_heuristic(const OpDesc& desc, const DeviceTraits& traits);
// Sets the work sizes for `groups` work-groups, the local memory, and the defines LOCAL, PART and
// WORDS: ints of local memory for the source's own use.
void set_lists(KernelSpec& spec, int64_t groups, const DeviceTraits& traits,
               const TuningPoint& point, size_t words = 1);

// A struct of ints, then floats, for a kernel.
Argument list_struct(const std::vector<int64_t>& ints, const std::vector<float>& floats);

}  // namespace clinfer
