// Code shared by kernels that sort boxes by score and suppress those that overlap better ones
// (common/boxes.cl, common/suppress.cl). A work-group processes one list of boxes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

// The reason for OpDef::host_reason: when such an operation runs on the host.
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

// The number of keys for which memory is needed to sort `count`.
int64_t list_room(int64_t count);

// Reason why the device cannot run the operation, or "". The first `inputs` inputs contain the
// boxes and scores, of which `boxes` are read, and outputs are dense rows. Memory is as the
// operation plans it.
std::string reject_lists(const OpDesc& desc, const DeviceTraits& traits, size_t inputs,
                         int64_t boxes, const ListMemory& memory);

std::vector<TuningPoint> list_space(const OpDesc& desc, const DeviceTraits& traits);
TuningPoint list_heuristic(const OpDesc& desc, const DeviceTraits& traits);
// Sets the work sizes for `groups` work-groups, the local memory, and the defines LOCAL, PART, SHORT
// and WORDS (ints of local memory for the source). SHORT is 0 if local memory does not have room to
// choose and sort `listed` keys, or `listed` is 0.
void set_lists(KernelSpec& spec, int64_t groups, const DeviceTraits& traits,
               const TuningPoint& point, size_t words = 1, int64_t listed = 0);

}  // namespace clinfer
