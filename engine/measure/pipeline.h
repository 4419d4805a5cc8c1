// Pipeline settings: the streams, requests in flight and batch size that together give the most
// images per second. `clinfer tune --pipeline` measures them; tuning files keep them beside the
// kernels.
#pragma once

#include <optional>

#include "engine/engine.h"

namespace clinfer {

struct PipelineChoice {
  unsigned streams = 0, requests = 0, batch = 0;
  double images_per_second = 0;
};

// Reads the settings for this model at this batch (0: at the best of all batches) from the tuning
// file of `config`. Returns nothing if the file has none or the mode does not read it. Throws as
// compile() does for unusable files.
std::optional<PipelineChoice> find_pipeline(const Model& model, const Config& config,
                                            const DeviceInfo& device, unsigned batch);

// Writes the settings to the tuning file: for their batch, and as the best of all batches if
// `best`. Throws Error{io}.
void store_pipeline(const Model& model, const Config& config, const DeviceInfo& device,
                    const PipelineChoice& choice, bool best);

}  // namespace clinfer
