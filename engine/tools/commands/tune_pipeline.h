// clinfer tune --pipeline: finds the best number of streams, requests and images for an inference.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>

#include "engine/engine.h"
#include "engine/measure/pipeline.h"

namespace clinfer {

// Measures alternately, prints a table to `out`, writes the best choice to config.tuning_file and
// returns it. `batch` 0: tries several sizes. If `go_on` returns false, stops and writes nothing.
// Throws Error.
PipelineChoice tune_pipeline(const std::shared_ptr<const Model>& model, const Config& config,
                             unsigned batch, const std::function<bool()>& go_on, std::FILE* out);

}  // namespace clinfer
