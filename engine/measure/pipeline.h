// Streams, requests in flight and images an inference that together give the most images per
// second, as measured by `clinfer tune --pipeline` and kept in tuning files beside the kernels.
#pragma once

#include <optional>

#include "engine/engine.h"

namespace clinfer {

struct PipelineChoice {
  unsigned streams = 0, requests = 0, batch = 0;
  double images_per_second = 0;
};

// What the tuning file of `config` says for this model at this batch, or for the best of all
// batches (0). Nothing where the file or the mode does not give it. Throws as compile() for files
// that cannot serve.
std::optional<PipelineChoice> find_pipeline(const Model& model, const Config& config,
                                            const DeviceInfo& device, unsigned batch);

// Keeps it in the tuning file: for its batch, and as the best of all where `best`. Throws
// Error{io}.
void store_pipeline(const Model& model, const Config& config, const DeviceInfo& device,
                    const PipelineChoice& choice, bool best);

}  // namespace clinfer
