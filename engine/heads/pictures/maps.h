// Outputs that have a value, or one for each channel, for each place of the picture.
#pragma once

#include <optional>

#include "engine/heads/base/common.h"

namespace clinfer {

// The layout of an output that covers the picture: rows x columns cells with `channels` numbers
// each.
struct MapLayout {
  size_t index = 0;  // of the output
  size_t channels = 1, rows = 0, columns = 0;
  bool channels_last = false;

  size_t cells() const { return rows * columns; }
  size_t elements() const { return channels * cells(); }
  // Returns the index of the element for channel c of a cell.
  size_t at(size_t c, size_t cell) const {
    return channels_last ? cell * channels + c : c * cells() + cell;
  }
};

// Recognises [C,h,w], [h,w,C] or [h,w] after leading ones, with the proportions of the network's
// input and at most four times its size; returns nullopt for other outputs. If both ends could be
// the channels, the shorter one is.
std::optional<MapLayout> map_layout(const ModelFacts& facts, size_t output);

// Returns whether facts.name, the name of the model's file, or a name of the output contains one of
// these words.
bool is_called(const ModelFacts& facts, const OutputFacts& output,
               std::initializer_list<const char*> words);

}  // namespace clinfer
