// Makes one launch of many: a persistent kernel. Its work-groups stay on the device and compute the
// work-groups of one kernel after the other; between two kernels all of them wait for each other.
// This helps where launches cost more than the kernels' work (NVIDIA: 5.5 us), as for small
// batches. On PoCL's CPU its work-groups, one for each core of a stream, take each kernel's work
// from each other.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/ocl/compiler/programs.h"

namespace clinfer::ocl {

// The place of an argument's tensor: in one of the three buffers of a persistent kernel, at a byte
// offset.
struct ArgumentPlace {
  int buffer = 0;
  int64_t offset = 0;
};

struct PersistentKernel {
  Instantiation program;
  // The launches that the work-groups run: for each one the kernel, the number of its work-groups
  // and its arguments. The persistent kernel's own arguments are the three buffers, this list as a
  // buffer, the counters, and the number of arrivals before this launch. The counters are a buffer
  // of counter_words() uints, initially 0 and kept from launch to launch; the first one counts
  // arrivals.
  std::vector<int32_t> list;
  // For all work-groups: a launch increases the arrivals by this number for each group.
  unsigned barriers = 0;
  size_t items = 0;  // work-items in a work-group
  // Number of launches in the list that need a counter, because several work-groups take the work
  // from each other. 0: they meet at barriers, or there is only one.
  size_t launch_counters = 0;

  size_t counter_words(unsigned groups) const;
};

// Returns whether a persistent kernel without barriers may have several work-groups.
bool shares_work(const DeviceTraits& traits);
// Passed instead of the list's number of words, makes work-groups look for each other: each counts
// itself at kMetCounter if it sees all others within about 0.1 s.
inline constexpr int kMeet = -1;
inline constexpr size_t kMetCounter = 2;

// Estimated microseconds of a launch. Alone it has the costs of launching, but the whole device,
// with several work-groups on a compute unit. As a part of a persistent kernel it takes rounds of
// the one work-group on each compute unit.
struct LaunchTime {
  double alone = 0, as_part = 0;
};
// Estimates the times of a launch. `products`: multiply-adds of the whole launch. The constants are
// fitted to the throughput of six networks on an H200 (f16, batches 1 and 8, two streams), each cut
// in four ways.
LaunchTime launch_time(const KernelSpec& spec, double products, unsigned compute_units);

// Returns why a launch cannot be part of a persistent kernel on this device; "" if it can.
std::string reject_persistent(const KernelSpec& spec, const DeviceTraits& traits);

// Makes a persistent kernel of launches that reject_persistent() accepts, in order. `place` returns
// where an argument (input, output, packed, workspace) of launch i lies. `count` is set to the
// number of launches that fitted.
PersistentKernel make_persistent(
    std::span<const KernelSpec* const> launches,
    const std::function<ArgumentPlace(size_t launch, const Argument& argument)>& place,
    const DeviceTraits& traits, size_t& count);

// A reservation of work-groups. Work-groups that wait for each other have to be on the device
// together. All persistent kernels of this process that may run at the same time reserve no more
// work-groups than the device has compute units, so that one that is not on the device yet always
// finds a free compute unit. Thread-safe.
class GroupShare {
 public:
  // Takes up to `wanted` of the compute units that others have left; takes none if fewer than
  // `least` are left.
  GroupShare(const Device& device, unsigned wanted, unsigned least);
  ~GroupShare();
  GroupShare(const GroupShare&) = delete;
  GroupShare& operator=(const GroupShare&) = delete;
  unsigned groups() const { return groups_; }

 private:
  const std::string device_;
  unsigned groups_ = 0;
};

}  // namespace clinfer::ocl
