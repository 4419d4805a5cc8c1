// Masks and maps as pixels, and as the run lengths that COCO defines: column by column, the number
// of pixels that are not of it, that are, that are not ...
#pragma once

#include <cstdint>
#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

// Pixels of a picture that are an object (255) or not (0), row by row.
struct Raster {
  Rect rect;  // pixels of the picture
  std::vector<uint8_t> pixels;
};

// The object's pixels within its box, in a picture of width x height.
Raster raster_of(const MaskView& mask, const PictureBox& box, int width, int height);

// Run lengths over the whole picture of width x height; they add up to its pixels.
std::vector<uint32_t> run_lengths(const Raster& raster, int width, int height);

struct ClassShare {
  int label_id = 0;
  double share = 0;  // of the picture's pixels
  std::vector<uint32_t> counts;
};

// The label_id of each pixel, row by row; -1 where the map does not reach. Of kind `classes`.
std::vector<int32_t> class_of_pixels(const MapView& map, int width, int height);

// The classes that are somewhere in the picture, in the order of their numbers.
std::vector<ClassShare> class_shares(const MapView& map, int width, int height);

// The value at each pixel, between those of the cells; NaN where the map does not reach.
std::vector<float> value_of_pixels(const MapView& map, int width, int height);

}  // namespace clinfer
