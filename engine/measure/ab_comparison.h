// Compares two models by alternating inferences, so that both run under the same conditions.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/engine.h"

namespace clinfer {

// The result of a comparison. Each round runs both models twice, in the order first, second,
// second, first, so that each of them once follows the other one and finds its program evicted from
// the device's caches.
struct ABComparison {
  double first_ms = 0, second_ms = 0;  // medians
  // Time of the first divided by time of the second: median and quartiles of the rounds.
  double gain = 0, low = 0, high = 0;
  size_t rounds = 0;

  // Returns true if the second model is slower by more than chance. Two models with the same
  // kernels, whose buffers lie elsewhere, can differ by 2 % (osnet at batch 8 on an H200: 0.979).
  // Twice the standard error of the median is allowed for as well; for a normal distribution that
  // error is 0.93 times the distance of the quartiles divided by the root of the number of rounds.
  bool second_is_slower() const;
};

using Requests = std::vector<std::unique_ptr<InferRequest>>;

// Compares two models, whose inputs are set. A turn starts all requests of a model and restarts
// each when it finishes, up to eight times if an inference is short; its time is given per
// inference. If an inference takes longer than `slow_ms`, a turn is one inference, layer by layer.
// Goes on for about `seconds`, and for at least three rounds; asks `go_on` between turns, or
// between layers. Throws the errors of inferences.
ABComparison compare_alternately(Requests& first, Requests& second, double seconds,
                                 const std::function<bool()>& go_on, double slow_ms = 250);

}  // namespace clinfer
