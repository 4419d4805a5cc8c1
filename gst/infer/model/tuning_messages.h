// Reports kernel tuning in messages and statistics: the progress of a run, and its results.
#pragma once

#include <gst/gst.h>

#include <string>

#include "engine/engine.h"

namespace clinfer {

// Returns "Tuning layer 3 of 27 (conv1): 14 points, best 1.23 x default, 132 s left"; after the
// last layer, a text that the whole network is compared.
std::string tuning_text(const TuningStatus& status);

// Returns the progress as numbers, for an element message: "clinfer-tuning" with layer, index,
// layers, points, default-us, best-us, seconds, seconds-left. The caller owns it.
GstStructure* tuning_structure(const TuningStatus& status);

// Adds tuning-hits, tuning-misses, tuning-lapsed, tuning-shipped, tuning-measured, tuning-modelled,
// tuning-taken-back, tuning-gain, and the list tuning-layers.
void add_tuning(GstStructure* stats, const TuningReport& report);

}  // namespace clinfer
