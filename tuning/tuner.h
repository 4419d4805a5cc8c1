// Searches for the best kernel of one operation on one device.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "tuning/budget.h"
#include "tuning/kernel_runner.h"

namespace clinfer {

// One way to run an operation.
struct KernelChoice {
  const KernelFamily* family = nullptr;
  TuningPoint point;
  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

std::string to_string(const KernelChoice& choice);  // "conv_tile VECTOR=16 TILE_P=6"

// Returns the index of a point in its family's space; -1 if the space does not have it (any more).
int index_in_space(const KernelChoice& choice, const OpDesc& desc, const DeviceTraits& traits);

struct SearchLimits {
  double seconds = 0;       // for this operation; 0: until the search is complete
  bool exhaustive = false;  // measures every point instead of searching; see search()
  SecondsClock clock = steady_seconds;
};

struct SearchProgress {
  size_t tried = 0;                    // number of kernels measured so far
  double default_ns = 0, best_ns = 0;  // 0: not known yet
};

struct SearchResult {
  KernelChoice best;                   // the default itself unless another one is clearly faster
  double default_ns = 0, best_ns = 0;  // measured alternately
  size_t tried = 0;
  bool stopped = false;  // true if the observer stopped the search
  std::vector<std::pair<std::string, std::string>>
      failed;  // what did not build, run or verify, and the reasons
};

// Returns the first candidates of a search: `guesses`, each family's heuristic, and the points that
// the families' cost models consider cheapest (without a model: the head of the family's space and
// some spread over it). A point may occur twice.
std::vector<KernelChoice> first_candidates(const OpDesc& desc, const DeviceTraits& traits,
                                           std::span<const KernelFamily* const> families,
                                           std::span<const KernelChoice> guesses);

// Returns the kernels that are built in turn while the driver says that the one before spills
// registers: the family's heuristic, then the cheapest other points. They are few, because each is
// compiled.
std::vector<KernelChoice> untuned_candidates(const OpDesc& desc, const DeviceTraits& traits,
                                             const KernelFamily& family);

// Returns the share of a kernel's time that a search may be expected to save, if a cost model chose
// the kernel without comparing it with measurements of the device. It is large if other points of
// the family are predicted to take hardly longer, and nearly zero if there is none. Without a
// model, all points count as equal.
double expected_gain(const KernelChoice& choice, const OpDesc& desc, const DeviceTraits& traits);

// Measures kernels of `families` against the untuned kernel `fallback`. Everything is compared by
// ratios of samples taken next to each other, so that a drifting clock does not matter. Halves the
// first candidates successively: all get few samples; the better ones are verified and get more;
// then neighbours of the winner are tried until none is better. An exhaustive search tries, instead
// of neighbours, all points of all families whose first candidates came close to the best. Kernels
// that fail are noted and never chosen. A time limit is checked between builds and between samples;
// the first candidate is built and the best one compared with the default in any case. `observe` is
// called at least for every sample; if it returns false, the search ends with the best result so
// far. Throws what `runner` throws for the fallback.
SearchResult search(const OpDesc& desc, const DeviceTraits& traits,
                    std::span<const KernelFamily* const> families, const KernelChoice& fallback,
                    std::span<const KernelChoice> guesses, KernelRunner& runner,
                    const SearchLimits& limits,
                    const std::function<bool(const SearchProgress&)>& observe);

}  // namespace clinfer
