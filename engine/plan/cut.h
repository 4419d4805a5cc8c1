// Cuts launches that would occupy a device for long into parts, so that a caller who cancels waits
// for one part only. The parts are work-groups of the same launch, started one part after the
// other.
#pragma once

#include <array>

#include "kernels/kernel.h"

namespace clinfer {

// The wanted duration of a part, for which a caller who cancels may have to wait.
inline constexpr double kSecondsOfPart = 0.1;
// The duration of the longest launch that is not cut, if all such launches of an inference take no
// more than a second.
inline constexpr double kSecondsOfLaunch = 2 * kSecondsOfPart;

// The parts into which one launch is cut, along one dimension of its work-groups.
struct Cut {
  size_t dimension = 0;
  size_t groups = 0;  // along the dimension; 0: the launch is not cut
  size_t first = 0;   // groups of the first part; the sizes of others follow from its duration
  size_t most = 0;    // upper limit of a part's groups
  explicit operator bool() const { return groups != 0; }
};

// Returns the duration of an operation in seconds on the slowest device of its kind.
double assumed_seconds(const OpDesc& desc, const DeviceTraits& traits);

// Returns how to cut a launch that takes `seconds`; no cut if that is at most `longest`, or if the
// launch cannot be cut. A kernel that is cut has to be compiled from can_be_cut().
Cut cut_of(const KernelSpec& spec, double seconds, double longest = kSecondsOfLaunch);

// Returns the kernel with macros that make OpenCL's work-item functions answer for the whole launch
// also in a part of it. Without them only get_global_id() includes the global offset.
KernelSpec can_be_cut(KernelSpec spec);

// Offset and size, in work-items, of the part that has `count` groups from group `first` on.
struct Part {
  std::array<size_t, 3> offset{}, global{};
};
Part part_of(const KernelSpec& spec, const Cut& cut, size_t first, size_t count);

}  // namespace clinfer
