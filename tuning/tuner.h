// The search for the best kernel of one operation on one device.
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

// Returns the position of a point in its family's space; -1 where it is not in it (any more).
int index_in_space(const KernelChoice& choice, const OpDesc& desc, const DeviceTraits& traits);

struct SearchLimits {
  double seconds = 0;       // for this operation; 0: until the search is through
  bool exhaustive = false;  // time every point instead of searching, see search()
  SecondsClock clock = steady_seconds;
};

struct SearchProgress {
  size_t tried = 0;                    // kernels timed so far
  double default_ns = 0, best_ns = 0;  // 0: not known yet
};

struct SearchResult {
  KernelChoice best;  // the default itself unless another one is faster beyond doubt
  double default_ns = 0, best_ns = 0;  // measured side by side
  size_t tried = 0;
  bool stopped = false;  // by the observer
  std::vector<std::pair<std::string, std::string>>
      failed;  // what did not build, run or verify, and why
};

// The first candidates of a search: `guesses`, each family's own choice, and the points that the
// families' models find cheapest (where a family has none: the head of its space and some spread
// over it). May name a point twice.
std::vector<KernelChoice> first_candidates(const OpDesc& desc, const DeviceTraits& traits,
                                           std::span<const KernelFamily* const> families,
                                           std::span<const KernelChoice> guesses);

// The share of a kernel's time that a search may be expected to save, where a model chose it that
// nobody compared with measurements of the device: much where other points of the family are
// predicted to take hardly longer, next to nothing where there is none. Without a model all points
// are taken for equal.
double expected_gain(const KernelChoice& choice, const OpDesc& desc, const DeviceTraits& traits);

// Times kernels of `families` against the untuned choice `fallback`. Everything is compared by
// ratios of samples taken next to each other, so a drifting clock does not decide. Successive
// halving of the first candidates: all get few samples, the better ones are checked and get more;
// around the winner its neighbours are tried until none is better. Where it is exhaustive, instead
// of neighbours all points are tried of all families whose first candidates came near the best.
// Kernels that fail are noted and never chosen. Where time is limited, it is looked at between builds
// and between samples; the first candidate is built and the best one compared with the default
// whatever the limit. `observe` is called at least at every sample;
// returning false ends the search with the best so far. Throws what `runner` throws for the
// fallback.
SearchResult search(const OpDesc& desc, const DeviceTraits& traits,
                    std::span<const KernelFamily* const> families, const KernelChoice& fallback,
                    std::span<const KernelChoice> guesses, KernelRunner& runner,
                    const SearchLimits& limits,
                    const std::function<bool(const SearchProgress&)>& observe);

}  // namespace clinfer
