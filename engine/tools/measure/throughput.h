// Measures latency and throughput of overlapping inferences, as applications have them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "engine/tools/measure/synthetic.h"

namespace clinfer {

struct Measured {
  std::vector<double> latencies_ms;  // sorted
  double seconds = 0;
  double images_per_second = 0;

  double percentile(double p) const;  // by the nearest-rank method
};

// The inputs for inferences: tensors, or a frame before each start.
struct Feed {
  explicit Feed(const CompiledModel& compiled);  // noise for every input

  std::vector<Tensor> tensors;
  std::optional<ImageInput> image;
  const Frame* frame = nullptr;
  // If set, each inference uploads its tensors, which were converted to the stored form once. Else
  // they stay on the device, as with requests of several devices.
  bool uploads = true;

  void prepare(InferRequest& request) const;
  void before_start(InferRequest& request) const;
};

// Returns the number of images of one inference: the first dimension of the first input.
size_t batch_of(const CompiledModel& compiled);

// Runs a thread for each request, in its own cycle of start and wait, until the time is over.
// Throws the errors of inferences.
Measured measure(std::vector<std::unique_ptr<InferRequest>>& requests, const Feed& feed,
                 double seconds, size_t batch);

// Runs this many inferences by all requests at a time, as measure() does, and returns how many of
// them gave results that differ from the first one's in any bit. Throws an inference's error.
size_t count_different(const CompiledModel& compiled,
                       std::vector<std::unique_ptr<InferRequest>>& requests, const Feed& feed,
                       size_t inferences);

}  // namespace clinfer
