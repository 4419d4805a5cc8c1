// Shared by the heads that find points of one thing that fills the picture.
#pragma once

#include "engine/heads/common.h"

namespace clinfer {

// One thing that fills the picture: the box is the network's whole input. Left out below the
// threshold.
void add_whole(const ModelFacts& facts, Detection detection, const DecodeSettings& settings,
               Results& results);

float mean_confidence(const std::vector<KeyPoint>& points);

}  // namespace clinfer
