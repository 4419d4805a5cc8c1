// Masks and maps as pixels, and as run lengths as COCO defines them: column by column, the number
// of pixels that do not belong to the object, then that do, then that do not, and so on.
#pragma once

#include <cstdint>
#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

// A mask over a part of the picture, row by row: 255 for pixels of an object, 0 for others.
struct Raster {
  Rect rect;  // in pixels of the picture
  std::vector<uint8_t> pixels;
};

// Returns the object's pixels within its box, in a picture of width x height.
Raster raster_of(const MaskView& mask, const PictureBox& box, int width, int height);

// Returns run lengths over the whole picture of width x height, which add up to its pixels.
std::vector<uint32_t> run_lengths(const Raster& raster, int width, int height);

struct ClassShare {
  int label_id = 0;
  double share = 0;  // as a share of the picture's pixels
  std::vector<uint32_t> counts;
};

// Returns the label_id of each pixel, row by row; -1 where the map does not reach. For maps of kind
// `classes`.
std::vector<int32_t> class_of_pixels(const MapView& map, int width, int height);

// Returns the classes that occur in the picture, in the order of their numbers.
std::vector<ClassShare> class_shares(const MapView& map, int width, int height);

// Returns the value at each pixel, interpolated between cells; NaN where the map does not reach.
std::vector<float> value_of_pixels(const MapView& map, int width, int height);

}  // namespace clinfer
