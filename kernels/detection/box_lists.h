// Code shared by kernels that sort boxes by score and suppress those that overlap better ones
// (common/boxes.cl, common/suppress.cl). A work-group processes one list of boxes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

// The value of OpDef::host_reason for such operations, which run on the host of CPU devices.
inline constexpr const char* kListsOnHost =
    "CPU devices: a list is a serial chain, for which work-groups are no help there";

// Parts of the workspace that the launches of an operation share, in units of 8 bytes.
class ListMemory {
 public:
  // Returns the start of a part of `bytes`, for elements of up to 16 bytes.
  int64_t add(int64_t bytes);
  size_t bytes() const { return static_cast<size_t>(units_) * kUnit; }

 private:
  static constexpr int64_t kUnit = 8;
  int64_t units_ = 0;
};

// Returns for how many keys memory is needed to sort `count` keys.
int64_t list_room(int64_t count);

// Returns why the device cannot run the operation, or "". The first `inputs` inputs contain the
// boxes and scores, of which `boxes` are read; outputs are dense rows; `memory` is the operation's
// workspace.
std::string reject_lists(const OpDesc& desc, const DeviceTraits& traits, size_t inputs,
                         int64_t boxes, const ListMemory& memory);

std::vector<TuningPoint> list_space(const OpDesc& desc, const DeviceTraits& traits);
TuningPoint list_heuristic(const OpDesc& desc, const DeviceTraits& traits);
// Sets the work sizes for `groups` work-groups, the local memory, and the defines LOCAL, PART,
// SHORT and WORDS (ints of local memory for the source). SHORT is 0 if local memory is too small
// for choosing and sorting `listed` keys, or if `listed` is 0.
void set_lists(KernelSpec& spec, int64_t groups, const DeviceTraits& traits,
               const TuningPoint& point, size_t words = 1, int64_t listed = 0);

}  // namespace clinfer
