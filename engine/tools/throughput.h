// Latency and throughput of inferences that overlap as an application's do.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "engine/tools/synthetic.h"

namespace clinfer {

struct Measured {
  std::vector<double> latencies_ms;  // sorted
  double seconds = 0;
  double images_per_second = 0;

  double percentile(double p) const;  // nearest rank
};

// The inputs of every inference: tensors set once, or a frame before each start.
struct Feed {
  explicit Feed(const CompiledModel& compiled);  // noise for every input

  std::vector<Tensor> tensors;
  std::optional<ImageInput> image;
  const Frame* frame = nullptr;

  void prepare(InferRequest& request) const;
  void before_start(InferRequest& request) const;
};

// Images of one inference: the first dimension of the first input.
size_t batch_of(const CompiledModel& compiled);

// One thread a request, each in its own cycle of start and wait, until the time is over. Throws
// what an inference threw.
Measured measure(std::vector<std::unique_ptr<InferRequest>>& requests, const Feed& feed,
                 double seconds, size_t batch);

// Runs so many inferences, by all requests at a time as measure() does, and returns how many of them gave
// other results than the first one, in any bit. Throws what an inference threw.
size_t count_different(const CompiledModel& compiled,
                       std::vector<std::unique_ptr<InferRequest>>& requests, const Feed& feed,
                       size_t inferences);

}  // namespace clinfer
