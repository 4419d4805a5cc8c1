// Clips: network inputs of several frames, [N,C,T,H,W], [N,T,C,H,W] or, with channels last,
// [N,T,H,W,C]; a further dimension of 1 may follow N. Each frame is an image of its own.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/base/tensor.h"

namespace clinfer {

struct ClipAxes {
  size_t frames = 0, channels = 0, height = 0, width = 0;
};

// Returns the axes of a clip with 1 or 3 channels; `nhwc`: channels are last. Returns nullopt for
// other shapes, also for those of single pictures.
std::optional<ClipAxes> clip_axes(const Shape& shape, bool nhwc);

// Counts the images that a picture input takes: N, or N*T of clips; 0 for other shapes.
int64_t images_of(const Shape& shape, bool nhwc);

// Returns image `image` of a picture input as the last image of a tensor [*,C,H,W] (nhwc:
// [*,H,W,C]) that begins at the image's frame; `index` becomes its number there. A picture input of
// rank 4 is returned unchanged.
TensorDesc image_in(const TensorDesc& input, bool nhwc, int64_t image, int& index);

}  // namespace clinfer
