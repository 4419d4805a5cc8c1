// Outputs that have a value, or one per channel, for each place of the picture.
#pragma once

#include <optional>

#include "engine/heads/common.h"

namespace clinfer {

// The layout of an output that covers the picture: rows x columns cells of `channels` numbers each.
struct MapLayout {
  size_t index = 0;  // of the output
  size_t channels = 1, rows = 0, columns = 0;
  bool channels_last = false;

  size_t cells() const { return rows * columns; }
  size_t elements() const { return channels * cells(); }
  // Element of channel c at a cell.
  size_t at(size_t c, size_t cell) const {
    return channels_last ? cell * channels + c : c * cells() + cell;
  }
};

// [C,h,w], [h,w,C] or [h,w] after leading ones, with the proportions of the network's input and no
// more than four times its size; nullopt for other outputs. Where both ends could be the channels,
// the shorter one is.
std::optional<MapLayout> map_layout(const ModelFacts& facts, size_t output);

// Returns whether the model's file is called after one of these: facts.name has the word, or an
// output has.
bool is_called(const ModelFacts& facts, const OutputFacts& output,
               std::initializer_list<const char*> words);

}  // namespace clinfer
