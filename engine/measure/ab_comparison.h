// Compares two models by alternating inferences, so that both run under the same conditions.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/engine.h"

namespace clinfer {

// Tells how much faster the second of two models is than the first. A round is both twice, in the
// order first, second, second, first: the model that follows the other one finds its program
// evicted from the device's caches, once each.
struct ABComparison {
  double first_ms = 0, second_ms = 0;  // medians
  double gain = 0, low = 0, high = 0;  // first over second: median and quartiles of the rounds
  size_t rounds = 0;

  // True if the second is slower by more than chance. Two models with the same kernels, whose
  // buffers lie elsewhere, can differ by 2 % (osnet at batch 8 on an H200: 0.979). Twice the
  // standard error of the median is allowed for as well: 0.93 times the distance of the quartiles
  // over the root of the number of rounds, for a normal distribution.
  bool second_is_slower() const;
};

using Requests = std::vector<std::unique_ptr<InferRequest>>;

// A turn starts all requests of a model, whose inputs are set, and restarts each when it finishes,
// up to eight times where an inference is short; its time is given per inference. Where one takes
// longer than `slow_ms`, a turn is one inference, layer by layer. Goes on for about `seconds`, for
// three rounds at least; `go_on` is asked between turns, or layers. Throws what an inference
// throws.
ABComparison compare_alternately(Requests& first, Requests& second, double seconds,
                                 const std::function<bool()>& go_on, double slow_ms = 250);

}  // namespace clinfer
