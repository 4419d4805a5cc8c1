// Persistent kernels: many launches as one. Its work-groups stay on the device and compute the
// work-groups of one kernel after the other; between two kernels all of them meet. Where launches
// cost more than what they compute (NVIDIA: 5.5 us), that is what a small batch waits for. On PoCL's
// CPU its work-groups, one for each core of a stream, take each kernel's work from each other.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/ocl/programs.h"

namespace clinfer::ocl {

// The place of a tensor argument: one of the three buffers of a persistent kernel, and bytes from
// its start.
struct ArgumentPlace {
  int buffer = 0;
  int64_t offset = 0;
};

struct PersistentKernel {
  Instantiation program;
  // The program of the work-groups: for each launch the kernel, the number of its work-groups and
  // its arguments. The kernel's arguments: the three buffers, this list as a buffer, the counters
  // (a buffer of counter_words() uints, 0 at first, kept from launch to launch; the first one counts
  // arrivals), and the number of arrivals before this launch.
  std::vector<int32_t> list;
  unsigned barriers = 0;  // of all work-groups: a launch raises the count by as many for each group
  size_t items = 0;       // work-items of a work-group
  // Room for a counter of each launch in the list, where several work-groups take the work from
  // each other. 0: they meet at barriers, or there is only one.
  size_t launch_counters = 0;

  size_t counter_words(unsigned groups) const;
};

// Returns whether a launch of a persistent kernel without a barrier may have several work-groups.
bool shares_work(const DeviceTraits& traits);
// The number of words in place of the list's that makes work-groups look for each other: each counts
// itself at kMetCounter if it sees all others within about 0.1 s.
inline constexpr int kMeet = -1;
inline constexpr size_t kMetCounter = 2;

// About how many microseconds of the device a launch takes. By itself it costs being launched, but
// has the whole device, several work-groups on a compute unit; as part of a persistent kernel it
// takes rounds of the one work-group that stays there.
struct LaunchTime {
  double alone = 0, as_part = 0;
};
// `products`: multiply-adds of the whole launch. The constants are fitted to the throughput of six
// networks on an H200 (f16, batches 1 and 8, two streams), each cut in four ways.
LaunchTime launch_time(const KernelSpec& spec, double products, unsigned compute_units);

// Says why a launch cannot be part of a persistent kernel on this device; "" where it can.
std::string reject_persistent(const KernelSpec& spec, const DeviceTraits& traits);

// Makes a persistent kernel of launches that reject_persistent() accepts, in order; `place` says
// where an argument (input, output, packed, workspace) of launch i lies. `count`: the number of
// launches that fitted.
PersistentKernel make_persistent(
    std::span<const KernelSpec* const> launches,
    const std::function<ArgumentPlace(size_t launch, const Argument& argument)>& place,
    const DeviceTraits& traits, size_t& count);

// Work-groups that wait for each other have to be on the device together. All persistent kernels of
// this process that may run at a time take no more of them than the device has compute units: then
// one of them that is not there yet always finds a compute unit without any. Thread-safe.
class GroupShare {
 public:
  // Takes up to `wanted` of what the others left of the device; none when that is fewer than
  // `least`.
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
