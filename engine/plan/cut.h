// Launches that would keep a device for long are cut into parts, so that a caller who cancels one waits
// for a part only. The parts are work-groups of the same launch, started one part after the other.
#pragma once

#include <array>

#include "kernels/kernel.h"

namespace clinfer {

// The time that one part of cut work should take: a caller who cancels waits for so long.
inline constexpr double kSecondsOfPart = 0.1;
// The time of the longest launch that is not cut, if those of an inference take no more than a second.
inline constexpr double kSecondsOfLaunch = 2 * kSecondsOfPart;

// The cut of one launch: along which dimension of its work-groups, and into what.
struct Cut {
  size_t dimension = 0;
  size_t groups = 0;  // along the dimension; 0: the launch is not cut
  size_t first = 0;   // groups of the first part; that of others follows from its time
  size_t most = 0;    // groups of any part
  explicit operator bool() const { return groups != 0; }
};

// The time of an operation, in seconds, if the device is as slow as devices of its kind are at least.
double assumed_seconds(const OpDesc& desc, const DeviceTraits& traits);

// The cut of a launch that takes so many seconds; none where that is at most `longest`, or where the
// launch cannot be cut. A kernel that is cut has to be compiled from can_be_cut().
Cut cut_of(const KernelSpec& spec, double seconds, double longest = kSecondsOfLaunch);

// A kernel whose functions of the OpenCL language tell of the whole launch also in a part of it: those
// know the global offset in get_global_id() alone.
KernelSpec can_be_cut(KernelSpec spec);

// The offset and the size, in work-items, of the part of `count` groups from group `first` on.
struct Part {
  std::array<size_t, 3> offset{}, global{};
};
Part part_of(const KernelSpec& spec, const Cut& cut, size_t first, size_t count);

}  // namespace clinfer
