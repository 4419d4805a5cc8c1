// Makes one launch of many on a CPU: a persistent kernel. Its work-groups compute the work-groups of
// one kernel after the other. On PoCL it has a work-group for each core of a stream; these take each
// kernel's work from each other.
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
  // buffer, its number of words, and the counters: a buffer of counter_words() uints, initially 0
  // and 0 again after each launch.
  std::vector<int32_t> list;
  // Number of launches in the list that need a counter, because several work-groups take the work
  // from each other. 0: there is only one.
  size_t launch_counters = 0;

  size_t counter_words(unsigned groups) const;
};

// Returns whether a persistent kernel may have several work-groups.
bool shares_work(const DeviceTraits& traits);
// Passed instead of the list's number of words, makes work-groups look for each other: each counts
// itself at kMetCounter if it sees all others within about 0.1 s.
inline constexpr int kMeet = -1;
inline constexpr size_t kMetCounter = 2;

// Returns why a launch cannot be part of a persistent kernel on this device; "" if it can.
std::string reject_persistent(const KernelSpec& spec, const DeviceTraits& traits);

// Makes a persistent kernel of launches that reject_persistent() accepts, in order. `place` returns
// where an argument (input, output, packed, workspace) of launch i lies. `count` is set to the
// number of launches before the first one whose tensors lie too far from the buffers' beginnings.
PersistentKernel make_persistent(
    std::span<const KernelSpec* const> launches,
    const std::function<ArgumentPlace(size_t launch, const Argument& argument)>& place,
    const DeviceTraits& traits, size_t& count);

}  // namespace clinfer::ocl
