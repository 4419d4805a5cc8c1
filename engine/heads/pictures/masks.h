// Masks of objects: from prototypes times coefficients, and from finished grids.
#pragma once

#include <memory>
#include <optional>

#include "engine/heads/base/common.h"

namespace clinfer {

// An output of mask prototypes, [1,P,h,w] or [1,h,w,P], which covers the whole input.
struct Prototypes {
  size_t output = 0, channels = 0, rows = 0, columns = 0;
  bool channels_last = false;
  size_t elements() const { return channels * rows * columns; }
};

// Returns the only output that looks like prototypes: a picture with a quarter of the input's size
// (or an eighth, or a half), and up to 256 channels.
std::optional<Prototypes> find_prototypes(const ModelFacts& facts);

// Returns the mask of the object in `box`: logits on the part of the grid that the box needs.
std::shared_ptr<const ObjectMask> prototype_mask(const Prototypes& prototypes, const Floats& values,
                                                 const float* coefficients, const Detection& box,
                                                 int width, int height);

// An output with a grid for each row: [N,h,w], [N,1,h,w], [1,N,h,w] or [1,N,1,h,w] with h, w of at
// least 8 (smaller ones are points).
struct MaskGrids {
  size_t output = 0, count = 0, rows = 0, columns = 0;
  // True if it is as large as the input, which it then covers; otherwise it covers the object's
  // box.
  bool whole_picture = false;
};
std::optional<MaskGrids> find_mask_grids(const ModelFacts& facts, size_t count);

// Returns the values of the grid of row `row`. With `logits`, values above 0 belong to the object,
// else those above 0.5.
std::shared_ptr<const ObjectMask> grid_mask(const MaskGrids& grids, const Floats& values,
                                            size_t row, bool logits, const Detection& box,
                                            int width, int height);

}  // namespace clinfer
