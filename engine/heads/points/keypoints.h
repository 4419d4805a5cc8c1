// Code shared by the heads that find points of one object that fills the picture.
#pragma once

#include "engine/heads/base/common.h"

namespace clinfer {

// Adds the one object that fills the picture, with the network's whole input as its box, unless it
// is below the threshold.
void add_whole(const ModelFacts& facts, Detection detection, const DecodeSettings& settings,
               Results& results);

float mean_confidence(const std::vector<KeyPoint>& points);

}  // namespace clinfer
