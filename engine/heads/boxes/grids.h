// Feature maps: outputs whose rows and columns are those of the network's input over one stride.
#pragma once

#include <optional>
#include <vector>

#include "engine/heads/base/common.h"

namespace clinfer {

// An output of a feature map, [1,C,h,w] or [1,h,w,C].
struct Map {
  size_t output = 0, channels = 0, rows = 0, columns = 0;
  bool channels_last = false;
  size_t cells() const { return rows * columns; }
  size_t elements() const { return channels * cells(); }
  size_t at(size_t channel, size_t cell) const {
    return channels_last ? cell * channels + channel : channel * cells() + cell;
  }
  bool same_grid(const Map& other) const { return rows == other.rows && columns == other.columns; }
};

// Finds outputs of rank 4 with floats whose last two (or middle two) dimensions are the input's
// divided by `stride`, rounded up. If both could be the grid, the last two are.
std::optional<Map> map_of(const ModelFacts& facts, size_t output, int stride);
std::vector<Map> maps_of(const ModelFacts& facts, int stride);  // in the order of the outputs

// Returns whether values are logits, since some are outside of 0..1.
bool has_logits(const Floats& values);

// Match RetinaFace and SCRFD before their maps are joined: scores, boxes and optional points of two
// anchors in each cell, in maps at strides 8, 16 and 32. Return Fit::no for other models.
Match match_retinaface_maps(const ModelFacts& facts);
Match match_scrfd_maps(const ModelFacts& facts);

}  // namespace clinfer
