// clinfer tune --pipeline: the best number of streams, requests and images an inference.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>

#include "engine/engine.h"
#include "engine/measure/pipeline.h"

namespace clinfer {

// Measures by turns, prints a table into `out`, keeps the best in config.tuning_file, and returns it. batch 0:
// tries several. Stops where `go_on` says so, keeping nothing. Throws Error.
PipelineChoice tune_pipeline(const std::shared_ptr<const Model>& model, const Config& config,
                             unsigned batch, const std::function<bool()>& go_on, std::FILE* out);

}  // namespace clinfer
