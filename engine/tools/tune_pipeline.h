// clinfer tune --pipeline: the best number of streams, requests and images an inference.
#pragma once

#include <functional>
#include <memory>

#include "engine/engine.h"

namespace clinfer {

// Measures by turns, prints a table, and keeps what is best in config.tuning_file. batch 0: tries
// several. Stops where `go_on` says so, keeping nothing. Throws Error.
void tune_pipeline(const std::shared_ptr<const Model>& model, const Config& config, unsigned batch,
                   const std::function<bool()>& go_on);

}  // namespace clinfer
